"""`make bench BENCH=execution`: answering from memory over HTTP, compared with other GraphQL servers.

Each server answers the same two queries from the same data: 20 comments whose 20 authors come from a loader, and a
leaderboard of 100 rows. The result is the CPU time of its processes per request. It is written to
bench/results/execution.md and execution.svg.
"""

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

from bench.services.charts import bar_chart
from bench.services.measurement import Server, fetch_json, measure, repository_root
from bench.services.pages import PAGES, write

PEERS = repository_root() / "bench" / "peers"
NODE = str(Path(sys.executable).with_name("node"))
RINGSIDE = "Ringside"
CLIENTS = 8
"""Enough to keep a fast server busy: an idle server is woken for each request, which costs it CPU."""
GOALS = {"Strawberry on FastAPI": "35", "Mercurius with JIT": "1.0", "Static JSON, Starlette": "0.4"}
"""The least `x` that is aimed at."""


def servers() -> list[Server]:
    python, peers = sys.executable, str(PEERS / ".venv" / "bin" / "python")
    static = {page: f"/{page}" for page in PAGES}
    return [
        Server(RINGSIDE, [python, "-m", "bench.services.ringside", "PORT"], headers={"cookie": _cookie()}),
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
    from datastore.values.seal import Seal  # noqa: PLC0415 - for this alone

    seal = Seal(["a secret for measuring, of length"])
    return f"ringside_visitor={seal.sign_text('visitor', bytes(16))}"


def install() -> None:
    """Install the other servers from their lock files if they are missing."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "NODE_USE_SYSTEM_CA": "1"}
    dependencies = json.loads((PEERS / "package.json").read_text(encoding="utf-8"))["dependencies"]
    if not all((PEERS / "node_modules" / name).is_dir() for name in dependencies):
        quiet = ["--loglevel=error", "--no-audit", "--no-fund", "--no-update-notifier"]
        subprocess.run([Path(sys.executable).with_name("npm"), "ci", *quiet], cwd=PEERS, env=environment, check=True)
    if not (PEERS / ".venv" / "bin" / "ariadne").exists():
        uv = Path(sys.executable).with_name("uv")
        subprocess.run([uv, "venv", "-q", "--clear", PEERS / ".venv", "--python", sys.executable], check=True)
        locked = ["--require-hashes", "-r", str(PEERS / "requirements.lock")]
        subprocess.run(
            [uv, "pip", "install", "-q", "--python", PEERS / ".venv" / "bin" / "python", *locked], check=True
        )


def chosen(description: str | None, all_servers: list[Server]) -> tuple[argparse.Namespace, list[Server]]:
    """The options of the command line, and the servers that they select, which are installed."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1.0, help="CPU seconds per server, page and round")
    parser.add_argument("--only", default="", help="measure only servers whose names contain this, and write no files")
    options = parser.parse_args()
    install()
    return options, [server for server in all_servers if options.only.lower() in server.name.lower()]


def main() -> None:
    options, selected = chosen(__doc__, [replace(server, connections=CLIENTS) for server in servers()])
    bodies = {page: orjson.dumps({"query": text, "variables": values}) for page, (text, values) in PAGES.items()}
    with tempfile.TemporaryDirectory() as folder:
        data, static = Path(folder, "data.json"), Path(folder, "static")
        static.mkdir()
        write(data)
        environment = {"BENCH_DATA": str(data), "BENCH_STATIC": str(static), "PYTHONPATH": str(repository_root())}
        try:
            for server in selected:
                server.start(environment)
                check_same_data(server, bodies, static)
            measure(selected, bodies, rounds=options.rounds, seconds=options.seconds)
        finally:
            for server in selected:
                server.stop()
    text = table(selected)
    print(text)
    if not options.only:
        results = repository_root() / "bench" / "results"
        results.mkdir(exist_ok=True)
        (results / "execution.md").write_text(text, encoding="utf-8")
        (results / "execution.svg").write_text(chart(selected), encoding="utf-8")


def check_same_data(server: Server, bodies: dict[str, bytes], static: Path) -> None:
    """Check that every server returns the same data; the static server serves the first one's bytes."""
    for page, body in bodies.items():
        file = static / f"{page}.json"
        answer: Any = fetch_json(server, page, body)
        if not file.exists():
            file.write_bytes(orjson.dumps(answer))
        expected = json.loads(file.read_bytes())
        if answer.get("data") != expected["data"] or answer.get("errors"):
            raise RuntimeError(f"{server.name} returns other data for the page {page}: {str(answer)[:300]}")


def table(measured: list[Server]) -> str:
    ringside = measured[0]
    lines = [
        "# Answering from memory",
        "",
        "CPU time per request over HTTP, in milliseconds, as the operating system counts it for the server's",
        "processes: medians of interleaved rounds, all in one run. `x` is the multiple of Ringside's time, and the",
        "goal is the least `x` that is aimed at on both pages.",
        "Every server answers the same queries with the same data: 20 comments whose 20 authors come from a loader",
        "(without a cache across requests), and 100 rows of a leaderboard.",
        f"{CLIENTS} clients send identical requests, each as soon as it has its previous response. With 4 clients,",
        "small responses cost a tenth more.",
        "",
        f"Run it with `make bench BENCH=execution`. This run: Python {platform.python_version()}, Node {node()},",
        f"{os.cpu_count()} cores, {len(ringside.rounds[next(iter(PAGES))])} rounds.",
        "",
        f"| | {' | '.join(f'{page}, ms | x' for page in PAGES)} | goal |",
        f"|---|{'---:|---:|' * len(PAGES)}---:|",
    ]
    for server in measured:
        cells = [
            f"{server.milliseconds(page):.3f} | {server.milliseconds(page) / ringside.milliseconds(page):.2f}"
            for page in PAGES
        ]
        lines.append(f"| {server.name} | {' | '.join(cells)} | {GOALS.get(server.name, '')} |")
    return "\n".join(lines) + "\n"


def chart(measured: list[Server]) -> str:
    rows = [(server.name, {page: server.milliseconds(page) for page in PAGES}) for server in measured]
    return bar_chart(
        "CPU per request, milliseconds (shorter is better)",
        sorted(rows, key=lambda row: sum(row[1].values())),
        RINGSIDE,
    )


def node() -> str:
    return subprocess.run([NODE, "--version"], capture_output=True, text=True, check=True).stdout.strip().lstrip("v")


if __name__ == "__main__":
    main()
