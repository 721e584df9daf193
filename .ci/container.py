"""Runs the Dockerfile's steps without a container engine, then starts and checks the results.

Each COPY and RUN is executed in order, with the image's folders inside a temporary one. The service is started as the
image's user, who may write only to a folder for temporary files. It uses an engine in another process, and gets the
requests that an orchestrator, an API client and a browser would send. Then the target `embedded` is started with a
folder for its volume, and stopped and started again. The stages' files are all in one place, so what a stage leaves out
is not checked.
"""

import copy
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import sysconfig
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
DYNOXIDE: Final = ROOT / "deploy/engine/node_modules/@dynoxide/linux-x64/dynoxide"
FOLDERS: Final = ("/src", "/opt", "/data")
PATIENCE: Final = 30.0
REFUSED: Final = "RINGSIDE_DYNAMODB_URL is invalid: it is not set"
SECRET: Final = "a secret for one rehearsal and nothing else"


class Image:
    """An image whose folders are inside `below`, with the environment, user and commands from its Dockerfile."""

    def __init__(self, below: Path) -> None:
        self.below = below
        _lay(below / "base")
        self.work = below
        self.environment: dict[str, str] = {}
        self.user = 0
        self.said: dict[str, list[str]] = {}
        self.stages: dict[str, dict[str, Any]] = {}
        self._stage = ""

    def do(self, instruction: str, rest: str) -> None:
        """Execute one instruction of a Dockerfile."""
        match instruction:
            case "FROM":
                self._begin_stage(*rest.partition(" AS ")[::2])
            case "WORKDIR":
                self.work = Path(self.here(rest))
                self.work.mkdir(parents=True, exist_ok=True)
            case "ENV":
                pairs = re.findall(r'(\w+)=(?:"([^"]*)"|(\S+))', rest.replace("$PATH", self.environment["PATH"]))
                self.environment.update({name: self.here(quoted or bare) for name, quoted, bare in pairs})
            case "COPY":
                self._copy(rest)
            case "RUN":
                subprocess.run(["sh", "-ec", self.here(rest)], cwd=self.work, env=self._building(), check=True)
            case "USER":
                self.user = int(rest.partition(":")[0])
            case "ENTRYPOINT" | "CMD":
                self.said[instruction] = json.loads(rest)
            case "HEALTHCHECK":
                self.said[instruction] = json.loads(rest.partition("CMD ")[2])

    def _copy(self, rest: str) -> None:
        """Copy from the checkout, or from another stage, whose files are in the same place."""
        if not rest.startswith("--from="):
            _copy(rest.split(), self.work)
            return
        source, target = (Path(self.here(name)) for name in rest.split()[-2:])
        if source != target:
            (shutil.copytree if source.is_dir() else shutil.copy)(source, target)

    def _begin_stage(self, source: str, name: str) -> None:
        """A stage has an environment of its own, or that of the stage it comes from. Its files stay in place."""
        base = self.below / "base"
        path = {"PATH": f"{base}/bin:{os.environ['PATH']}", "LD_LIBRARY_PATH": f"{base}/lib", "HOME": "/"}
        new = {"environment": path, "user": 0, "said": {}, "work": self.below}
        self._keep_stage()
        vars(self).update(copy.deepcopy(self.stages.get(source, new)))
        self._stage = name

    def _keep_stage(self) -> None:
        self.stages[self._stage] = copy.deepcopy(
            {name: vars(self)[name] for name in ("environment", "user", "said", "work")}
        )

    def here(self, text: str) -> str:
        """Replace the image's folders in a text by their real paths."""
        return re.sub(rf"(?<![\w.])({'|'.join(FOLDERS)})(?=[/\s\":]|$)", rf"{self.below}\1", text)

    def _building(self) -> dict[str, str]:
        """Return the build environment, including how this machine reaches its package registries."""
        known = ("PIP_", "NPM_", "NODE_", "SSL_", "HTTP_", "HTTPS_", "NO_PROXY")
        return {
            **{name: value for name, value in os.environ.items() if name.upper().startswith(known)},
            "NODE_USE_SYSTEM_CA": "1",
            **self.environment,
            "HOME": os.environ.get("HOME", "/"),
        }

    def start(self, command: Sequence[str], scratch: Path, **settings: str) -> subprocess.Popen[str]:
        """Start a command as a container would: as the image's user and with only the image's environment."""
        another = {"user": self.user, "group": self.user, "extra_groups": []} if os.geteuid() == 0 else {}
        if another:
            os.chown(scratch, self.user, self.user)
        return subprocess.Popen(  # type: ignore[call-overload,no-any-return]
            [shutil.which(command[0], path=self.environment["PATH"]) or command[0], *command[1:]],
            cwd="/",
            env={**self.environment, "TMPDIR": str(scratch), **settings},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **another,
        )


def _lay(base: Path) -> None:
    """Provide the base image's `python`: this machine's, or a copy if other users cannot read it (in a home folder)."""
    interpreter = Path(sys._base_executable).resolve()  # type: ignore[attr-defined]  # noqa: SLF001
    if not all(folder.stat().st_mode & stat.S_IXOTH for folder in interpreter.parents):
        library = Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix}))
        shutil.copytree(
            library, base / "lib" / library.name, ignore=shutil.ignore_patterns("site-packages", "test", "__pycache__")
        )
        for shared in Path(sys.base_prefix).glob("lib/libpython3.*"):
            shutil.copy(shared, base / "lib")
        copied = base / "bin" / interpreter.name
        copied.parent.mkdir()
        interpreter = Path(shutil.copy(interpreter, copied))
    python = base / "bin" / "python"
    python.parent.mkdir(parents=True, exist_ok=True)
    python.write_text(f'#!/bin/sh\nexec {interpreter} "$@"\n')
    python.chmod(0o755)


def _copy(names: Sequence[str], work: Path) -> None:
    """Copy the sources into the last of the names."""
    *sources, target = names
    if target.endswith("/"):
        (work / target).mkdir(exist_ok=True)
    for source in sources:
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, work / target, ignore=_ignored, dirs_exist_ok=True)
        else:
            shutil.copy(ROOT / source, work / target)


def _ignored(folder: str, names: Sequence[str]) -> set[str]:
    """Return the names in a folder that .dockerignore excludes, by path or, after `**/`, anywhere."""
    patterns = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    here = Path(folder).relative_to(ROOT)
    return {name for name in names if f"**/{name}" in patterns or str(here / name) in patterns}


def instructions(dockerfile: str) -> Iterator[tuple[str, str]]:
    """Yield each instruction and the rest of its line, with continued lines joined."""
    text = re.sub(r"^#.*\n", "", dockerfile, flags=re.MULTILINE).replace("\\\n", " ")
    for line in filter(None, map(str.strip, text.splitlines())):
        instruction, _, rest = line.partition(" ")
        yield instruction, rest.strip()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def answer(url: str, body: Mapping[str, object] | None = None, accept: str = "application/json") -> str:
    """Return the body of a successful response; raise for any other."""
    data = json.dumps(body).encode() if body else None
    headers = {"accept": accept, "content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=10) as response:
        text: str = response.read().decode()
        return text


def until_it_answers(url: str) -> None:
    last = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except urllib.error.HTTPError:
            return
        except OSError:
            if time.monotonic() > last:
                raise
            time.sleep(0.1)


@contextmanager
def engine(folder: Path) -> Iterator[str]:
    """Run an engine outside the container and yield its address."""
    port = free_port()
    command = (DYNOXIDE, "serve", "--host", "127.0.0.1", "--port", str(port), "--db-path", folder / "table.db")
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until_it_answers(f"http://127.0.0.1:{port}")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def ended(process: subprocess.Popen[str], code: int) -> str:
    """Wait for a process to exit with this code and return its output."""
    said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, f"exit code {process.returncode}, not {code}:\n{said}"
    return said


def rehearse(image: Image, scratch: Path, url: str) -> None:
    """Check a container's life: refused without an address, table created, served, queried, stopped."""
    entry, serve = image.said["ENTRYPOINT"], image.said["CMD"]
    refused = ended(image.start([*entry, *serve], scratch), 1)
    assert REFUSED in refused, refused
    assert "Traceback" not in refused, refused

    settings = {"RINGSIDE_DYNAMODB_URL": url, "RINGSIDE_SECRETS": SECRET, "RINGSIDE_INTROSPECTION": "on"}
    print(ended(image.start([*entry, "table", "create"], scratch, **settings), 0).strip())

    port = free_port()
    own_port = ["--host", "127.0.0.1", "--port", str(port)]
    service = image.start([*entry, *serve[:1], *own_port, "--demo"], scratch, **settings)
    try:
        address = f"http://127.0.0.1:{port}"
        until_it_answers(f"{address}/livez")
        assert json.loads(answer(f"{address}/livez")) == {"status": "alive"}
        assert json.loads(answer(f"{address}/readyz")) == {"status": "ready"}
        assert json.loads(answer(f"{address}/graphql", {"query": "{ __typename }"})) == {
            "data": {"__typename": "Query"}
        }
        page = answer(f"{address}/graphql", accept="text/html")
        scripts = re.findall(r'src="(/explorer/[^"]+\.js)"', page)
        assert scripts, page
        assert all(answer(address + script) for script in scripts)
        assert "ringside_" in answer(f"{address}/metrics")
        licences = answer(f"{address}/explorer/licenses.txt")
        assert all(f"\n## {name} - " in licences for name in ("uvicorn", "graphiql")), licences[:500]
        health = [part.replace("127.0.0.1:8000", f"127.0.0.1:{port}") for part in image.said["HEALTHCHECK"]]
        ended(image.start(health, scratch), 0)
        service.send_signal(signal.SIGTERM)
        ended(service, 0)
        print(f"Served as user {image.user if os.geteuid() == 0 else os.geteuid()} and stopped on SIGTERM")
    finally:
        service.kill()
        service.wait()


def always_installed(lock: str) -> list[str]:
    """The packages of a lock file, without those that only some platforms or versions of Python need."""
    locked = re.findall(r"^([\w.-]+)==[^\s;]+ *(;.*?)? *\\$", lock, re.MULTILINE)
    return [name for name, condition in locked if not condition]


def check_materials(folder: Path) -> None:
    """Check that the image has its bill of materials, which names what the locks name, and all licences."""
    components = {
        name: {component["name"].lower().replace("_", "-") for component in json.loads(file.read_text())["components"]}
        for name in ("python", "explorer", "engine")
        for file in (folder / f"{name}.cdx.json",)
    }
    missing = set(always_installed((ROOT / "requirements.lock").read_text(encoding="utf-8"))) - components["python"]
    assert not missing, missing
    assert {"graphiql", "react"} <= components["explorer"]
    assert components["engine"] == {"@dynoxide/linux-x64"}
    licences = (folder / "licenses.md").read_text(encoding="utf-8").lower().replace("_", "-")
    assert not [name for name in components["python"] if f"\n## {name} - " not in licences]
    assert "MIT License" in (folder / "LICENSE").read_text(encoding="utf-8")
    print(f"{len(components['python'])} Python and {len(components['explorer'])} npm packages, with their licences")


def rehearse_embedded(image: Image, scratch: Path) -> None:
    """Check that the target `embedded` keeps its table in its volume from one container to the next."""
    data = Path(image.here("/data"))
    if os.geteuid() == 0:
        os.chown(data, image.user, image.user)
    port = free_port()
    arguments = [*image.said["ENTRYPOINT"], "serve", "--host", "127.0.0.1", "--port", str(port)]
    for more in (["--demo"], []):
        service = image.start([*arguments, *more], scratch)
        try:
            until_it_answers(f"http://127.0.0.1:{port}/readyz")
            boards = answer(f"http://127.0.0.1:{port}/graphql", {"query": '{ board(slug: "main") { votes } }'})
            assert json.loads(boards)["data"]["board"]["votes"] > 0, boards
            service.send_signal(signal.SIGTERM)
            ended(service, 0)
        finally:
            service.kill()
            service.wait()
    print("The embedded engine's table outlived its container")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="ringside-image-") as name:
        below = Path(name)
        below.chmod(0o755)
        image = Image(below)
        for instruction, rest in instructions((ROOT / "Dockerfile").read_text(encoding="utf-8")):
            print(f"{instruction} {rest[:100]}", flush=True)
            image.do(instruction, rest)
        check_materials(below / "opt/ringside/share/ringside")
        scratch = below / "tmp"
        scratch.mkdir()
        with engine(below) as url:
            rehearse(image, scratch, url)
        assert not list(scratch.iterdir()), "the service left files behind"
        vars(image).update(image.stages["embedded"])
        rehearse_embedded(image, scratch)


if __name__ == "__main__":
    sys.exit(main())
