"""From a fresh clone to the first answered query, and to the guide: what `make run` and `make docs` take.

It clones the last commit into a temporary folder, so commit first. Registries and the caches of pip and npm are used as
they are. Ports 8000 and 8001 have to be free.
"""

import os
import resource
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
QUERY = urllib.request.Request(
    "http://127.0.0.1:8000/graphql",
    data=b'{"query": "{ leaderboard(first: 3) { nodes { rank contender { name } } } }"}',
    headers={"Content-Type": "application/json"},
)
GUIDE = urllib.request.Request("http://127.0.0.1:8001/")


def answered(request: urllib.request.Request) -> bool:
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(target: str, folder: Path, request: urllib.request.Request) -> None:
    """Run a target until the request is answered; the CPU time is that of everything it started."""
    if answered(request):
        raise SystemExit(f"Something answers {request.full_url} already: stop it")
    cpu, began = cpu_seconds(), time.perf_counter()
    running = subprocess.Popen(["make", target], cwd=folder, start_new_session=True)
    while not answered(request):
        if running.poll() is not None:
            raise SystemExit(f"make {target} ended with {running.returncode}")
        time.sleep(0.2)
    elapsed = time.perf_counter() - began
    os.killpg(running.pid, signal.SIGINT)
    running.wait()
    load = os.getloadavg()[0]
    print(f"make {target}: {elapsed:.0f} s elapsed, {cpu_seconds() - cpu:.0f} s of CPU, at a load of {load:.1f}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder, "ringside")
        subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
        measured("run", clone, QUERY)
        measured("docs", clone, GUIDE)


if __name__ == "__main__":
    main()
