"""`make bench BENCH=execution`: answering from memory over HTTP, compared with other GraphQL servers.

Each server answers the same two queries from the same data: 20 comments whose 20 authors come from a loader, and a
leaderboard of 100 rows. The result is the CPU time of its processes per request. It is written to
bench/results/execution.md and execution.svg.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from bench.services.drawing import bars
from bench.services.measuring import Server, answer, here, measure
from bench.services.pages import PAGES, write

PEERS = here() / "bench" / "peers"
NODE = str(Path(sys.executable).with_name("node"))
OURS = "Ringside"
CLIENTS = 8
"""Enough to keep a fast server busy: an idle server is woken for each request, which costs it CPU."""


def servers() -> list[Server]:
    python, peers = sys.executable, str(PEERS / ".venv" / "bin" / "python")
    static = {page: f"/{page}" for page in PAGES}
    return [
        Server(OURS, [python, "-m", "bench.services.ringside", "PORT"], headers={"cookie": _cookie()}),
        Server("Strawberry on FastAPI", [python, "-m", "bench.services.plain_strawberry", "PORT"]),
        Server("Ariadne", [peers, str(PEERS / "ariadne_app.py"), "PORT"]),
        Server("Apollo Server", [NODE, str(PEERS / "apollo.mjs"), "PORT"]),
        Server("GraphQL Yoga", [NODE, str(PEERS / "yoga.mjs"), "PORT"]),
        Server("Mercurius", [NODE, str(PEERS / "mercurius.mjs"), "PORT"]),
        Server("Mercurius with JIT", [NODE, str(PEERS / "mercurius.mjs"), "PORT", "jit"]),
        Server("Static JSON, Starlette", [python, "-m", "bench.services.static", "PORT"], paths=static),
    ]


def _cookie() -> str:
    """Return the cookie of a returning visitor, as all requests but a visitor's first have one."""
    from datastore.seal import Seal  # noqa: PLC0415 - for this alone

    seal = Seal(["a secret for measuring, of length"])
    return f"ringside_visitor={seal.sign_text('visitor', bytes(16))}"


def install() -> None:
    """Install the other servers from their lock files if they are missing."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "NODE_USE_SYSTEM_CA": "1"}
    wanted = json.loads((PEERS / "package.json").read_text(encoding="utf-8"))["dependencies"]
    if not all((PEERS / "node_modules" / name).is_dir() for name in wanted):
        quiet = ["--loglevel=error", "--no-audit", "--no-fund", "--no-update-notifier"]
        subprocess.run([Path(sys.executable).with_name("npm"), "ci", *quiet], cwd=PEERS, env=environment, check=True)
    if not (PEERS / ".venv" / "bin" / "ariadne").exists():
        uv = Path(sys.executable).with_name("uv")
        subprocess.run([uv, "venv", "-q", "--clear", PEERS / ".venv", "--python", sys.executable], check=True)
        locked = ["--require-hashes", "-r", PEERS / "requirements.lock"]
        subprocess.run(
            [uv, "pip", "install", "-q", "--python", PEERS / ".venv" / "bin" / "python", *locked], check=True
        )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=9)
    arguments.add_argument("--seconds", type=float, default=1.0, help="CPU seconds per server, page and round")
    arguments.add_argument("--only", help="measure only servers whose names contain this, and write no files")
    given = arguments.parse_args()
    install()
    chosen = [
        replace(one, connections=CLIENTS)
        for one in servers()
        if not given.only or given.only.lower() in one.name.lower()
    ]
    bodies = {page: orjson.dumps({"query": text, "variables": values}) for page, (text, values) in PAGES.items()}
    with tempfile.TemporaryDirectory() as folder:
        data, static = Path(folder, "data.json"), Path(folder, "static")
        static.mkdir()
        write(data)
        environment = {"BENCH_DATA": str(data), "BENCH_STATIC": str(static), "PYTHONPATH": str(here())}
        try:
            for server in chosen:
                server.start(environment)
                same(server, bodies, static)
            measure(chosen, bodies, rounds=given.rounds, seconds=given.seconds)
        finally:
            for server in chosen:
                server.stop()
    text = table(chosen)
    print(text)
    if not given.only:
        results = here() / "bench" / "results"
        results.mkdir(exist_ok=True)
        (results / "execution.md").write_text(text, encoding="utf-8")
        (results / "execution.svg").write_text(picture(chosen), encoding="utf-8")


def same(server: Server, bodies: dict[str, bytes], static: Path) -> None:
    """Check that every server returns the same data; the static server serves the first one's bytes."""
    for page, body in bodies.items():
        file = static / f"{page}.json"
        found: Any = answer(server, page, body)
        if not file.exists():
            file.write_bytes(orjson.dumps(found))
        expected = json.loads(file.read_bytes())
        if found.get("data") != expected["data"] or found.get("errors"):
            message = f"{server.name} answers the page {page} with something else: {str(found)[:300]}"
            raise RuntimeError(message)


def table(measured: list[Server]) -> str:
    ours = measured[0]
    lines = [
        "# Answering from memory",
        "",
        "CPU time per request over HTTP, in milliseconds, as the operating system counts it for the server's",
        "processes: medians of interleaved rounds, all in one run. `x` is the multiple of Ringside's time.",
        "Every server answers the same queries with the same data: 20 comments whose 20 authors come from a loader",
        "(without a cache across requests), and 100 rows of a leaderboard.",
        f"{CLIENTS} clients send identical requests, each as soon as it has its previous response. With 4 clients,",
        "small responses cost a tenth more.",
        "",
        f"Run it with `make bench BENCH=execution`. This run: Python {platform.python_version()}, Node {_node()},",
        f"{os.cpu_count()} cores, {len(ours.rounds[next(iter(PAGES))])} rounds.",
        "",
        f"| | {' | '.join(f'{page}, ms | x' for page in PAGES)} |",
        f"|---|{'---:|---:|' * len(PAGES)}",
    ]
    for server in measured:
        cells = [f"{server.figure(page):.3f} | {server.figure(page) / ours.figure(page):.2f}" for page in PAGES]
        lines.append(f"| {server.name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def picture(measured: list[Server]) -> str:
    rows = [(server.name, {page: server.figure(page) for page in PAGES}) for server in measured]
    return bars(
        "CPU per request, milliseconds (shorter is better)", sorted(rows, key=lambda row: sum(row[1].values())), OURS
    )


def _node() -> str:
    return subprocess.run([NODE, "--version"], capture_output=True, text=True, check=True).stdout.strip().lstrip("v")


if __name__ == "__main__":
    main()
