"""Startup time, idle memory, and the cost of refusing malicious documents.

    python -m bench.foundation [--write]

Startup: from the process's start to the first answer over HTTP, on the embedded engine with its demo data; the median
of five starts. Memory: resident memory of the service's process two seconds later. Refusals: the slowest of ten runs of
each malicious document of the test suite, checked in this process.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

import httpx
import psutil

from schema import schema
from server.execution.documents import Documents, GraphQLRequest
from server.execution.limits import InvalidOperation
from tests.query_bombs import LARGEST_DOCUMENTS, QUERY_BOMBS
from tests.service import running_service

RESULTS = Path(__file__).parent / "results" / "foundation.md"
STARTS = 5


def measure_start(data: str) -> tuple[float, float]:
    """Return the seconds to the first answer, and the idle memory in megabytes."""
    began = time.perf_counter()
    with running_service({"RINGSIDE_DATA": data}, ["--demo"]) as service:
        httpx.post(f"{service.url}/graphql", json={"query": "{ __typename }"}).raise_for_status()
        took = time.perf_counter() - began
        time.sleep(2)
        return took, psutil.Process(service.process.pid).memory_info().rss / 1e6


def slowest_refusal() -> tuple[str, float]:
    documents = Documents(schema._schema)  # noqa: SLF001
    worst = ("", 0.0)
    for name, text in QUERY_BOMBS.items():
        for _ in range(10):
            began = time.perf_counter()
            try:
                documents.operation(GraphQLRequest(text), introspection=True)
            except InvalidOperation:
                worst = max(worst, (name, (time.perf_counter() - began) * 1000), key=lambda pair: pair[1])
    return worst


def slowest_first_use() -> tuple[str, float, str, float]:
    """The largest legal documents: milliseconds of CPU to check one, and to compile it at its second use."""
    checked, compiled = ("", 0.0), ("", 0.0)
    for name, text in LARGEST_DOCUMENTS.items():
        request = GraphQLRequest(text, "Q0" if name == "operations" else None)
        documents = Documents(schema._schema)  # noqa: SLF001
        began = time.process_time()
        documents.operation(request, introspection=True)
        checked = max(checked, (name, (time.process_time() - began) * 1000), key=lambda pair: pair[1])
        operation = documents.operation(request, introspection=True)
        began = time.process_time()
        operation.compiled.prepare({}, suggestions=True)
        compiled = max(compiled, (name, (time.process_time() - began) * 1000), key=lambda pair: pair[1])
    return *checked, *compiled


def main() -> None:
    with tempfile.TemporaryDirectory() as data:
        measure_start(data)
        runs = [measure_start(data) for _ in range(STARTS)]
    name, slowest = slowest_refusal()
    checked, checking, compiled, compiling = slowest_first_use()
    lines = [
        "# Startup, idle memory, refusals",
        "",
        "    python -m bench.foundation --write",
        "",
        "| figure | target | measured |",
        "|---|---|---|",
        f"| startup, median of {STARTS} | 1.5 s | {statistics.median(took for took, _ in runs):.2f} s |",
        f"| idle memory of the service | 120 MB | {max(memory for _, memory in runs):.0f} MB |",
        f"| slowest refusal of a malicious document ({name}) | 50 ms | {slowest:.0f} ms |",
        f"| CPU to check a legal document, the slowest ({checked}) | 50 ms | {checking:.0f} ms |",
        f"| CPU to compile one, the slowest ({compiled}) | 50 ms | {compiling:.0f} ms |",
        "| GraphQL over HTTP, `auditServer` of npm's graphql-http | 61 of 61 | 61 of 61 (part of the test suite) |",
        "",
    ]
    print("\n".join(lines))
    if "--write" in sys.argv:
        RESULTS.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
