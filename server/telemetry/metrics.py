"""The metrics at /metrics, labelled by operation, because one path serves all of them.

Each application has its own registry. With several workers, prometheus_client stores the figures in files of a shared
folder if PROMETHEUS_MULTIPROC_DIR is set before it is imported; `shared_metrics` sets it.

Clients choose the names of operations. Trusted documents count under their own names. Of the others, MAX_NAMES that
succeed for members do, and as many that succeed for visitors; the rest count as "other", so that invented names cannot
fill the memory. They cannot take up the rows for long either: a name that visitors use often replaces the one that they
have used least lately. With several workers, whose files cannot drop a row, rows stay with the first names.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from datastore.journal.usage import OTHER, OperationFigures

# ── operation names ──

ANONYMOUS = "anonymous"
MAX_NAMES = 200
LONGEST_NAME = 100
MAX_WAITING = 1_000
"""Names without a row whose uses are counted."""

USES = 16
"""The uses after which a name without a row is compared with those that have one."""

AGED_AFTER = 10_000
"""Uses after which all counts are halved, so that names that nobody uses any more lose their rows."""


class OperationNames:
    """The names with rows: known ones; of others, some that members use and some that visitors use."""

    def __init__(self, known: Iterable[str], drop: Callable[[str], None] | None) -> None:
        """`drop` removes the row of a name; None if rows stay."""
        self._known = frozenset(known) | {ANONYMOUS, OTHER}
        self._drop = drop
        self._by_members: set[str] = set()
        self._by_visitors: dict[str, int] = {}
        self._waiting: dict[str, int] = {}
        self._uses = 0

    def count(self, name: str, *, succeeded: bool, by_member: bool) -> bool:
        """Count a use of a name; return whether the name has a row."""
        if name in self._known or name in self._by_members:
            return True
        if name in self._by_visitors:
            self._count_visit(name)
            return True
        if not succeeded or len(name) > LONGEST_NAME:
            return False
        if by_member and len(self._by_members) < MAX_NAMES:
            self._by_members.add(name)
        elif len(self._by_visitors) < MAX_NAMES:
            self._by_visitors[name] = 1
        else:
            return self._replaces(name)
        return True

    def _count_visit(self, name: str) -> None:
        self._by_visitors[name] += 1
        self._uses += 1
        if self._uses % AGED_AFTER == 0:
            self._by_visitors = {name: uses // 2 for name, uses in self._by_visitors.items()}

    def _replaces(self, name: str) -> bool:
        """Whether a name of a visitor, now used often enough, has taken the row of the one used least."""
        if self._drop is None:
            return False
        uses = self._waiting[name] = self._waiting.get(name, 0) + 1
        if len(self._waiting) > MAX_WAITING:
            self._waiting = {name: uses // 2 for name, uses in self._waiting.items() if uses > 1}
        if uses % USES:
            return False
        least = min(self._by_visitors, key=self._by_visitors.__getitem__)
        if self._by_visitors[least] >= uses:
            return False
        self._drop(least)
        del self._by_visitors[least], self._waiting[name]
        self._by_visitors[name] = uses
        return True


# ── metrics ──

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
BATCH = 100
"""Requests counted in one batch, which keeps their counters in the CPU's cache."""
_Request: TypeAlias = tuple[str | None, "Outcome", float, float, float, int, bool, bool]
Loads: TypeAlias = Mapping[tuple[str, str], int]
"""How many keys of each kind were answered so far, by its name and by how: `hit`, `miss` or `wait`."""
BackupFigures: TypeAlias = Callable[[], Mapping[str, float]]
"""When the newest scheduled backup was made (`newest`), how many failed since (`failures`), and the `period`."""
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Outcome(StrEnum):
    """How a request ended, from the operator's point of view."""

    OK = "ok"
    ERRORS = "errors"
    """Answered, with errors of some fields."""
    INVALID = "invalid"
    """Not a valid request: malformed, not of this schema, or over a limit."""
    UNAUTHENTICATED = "unauthenticated"
    OVERLOADED = "overloaded"
    UNAVAILABLE = "unavailable"
    FAILED = "failed"
    """An unexpected error."""


class Metrics:
    """The metrics of one application."""

    def __init__(self, known: Iterable[str] = (), backups: BackupFigures | None = None) -> None:
        """Count operations in `known` (those of trusted documents) under their own names from the start.

        `backups` tells about scheduled backups, if there are any.
        """
        self.registry = CollectorRegistry()
        self._backups = _BackupCollector(backups) if backups else None
        if self._backups:
            self.registry.register(self._backups)
        # A single process counts in batches, and in `settle`. With several workers each request is counted at once,
        # because another worker may render the metrics.
        self._shared = FOLDER_VARIABLE in os.environ
        self._recent: list[_Request] = []
        if not self._shared:
            ProcessCollector(registry=self.registry)
        self.in_flight = 0
        self._in_flight_gauge = Gauge(
            "ringside_requests_in_flight",
            "Requests in progress.",
            registry=self.registry,
            multiprocess_mode="livesum",
        )
        if not self._shared:
            self._in_flight_gauge.set_function(lambda: self.in_flight)
        self.subscriptions = Gauge(
            "ringside_subscriptions", "Open subscriptions.", registry=self.registry, multiprocess_mode="livesum"
        )
        self._requests = self._counter("ringside_requests", "Requests answered.", "operation", "outcome")
        self._seconds = Histogram(
            "ringside_request_seconds",
            "Seconds from a request's arrival to its response.",
            ["operation"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        self._units = self._counter(
            "ringside_capacity_units", "Capacity units reported by the table.", "operation", "kind"
        )
        self._calls = self._counter("ringside_engine_calls", "Requests sent to the table.", "operation")
        self._fallbacks = self._counter("ringside_fallbacks", "Operations executed by graphql-core.", "reason")
        self._loads_counter = self._counter("ringside_loads", "Records requested from the cache.", "kind", "result")
        self._loads: Callable[[], Loads] = dict
        self._loads_counted: Loads = {}
        self._finished = 0
        self._figures: defaultdict[str, OperationFigures] = defaultdict(OperationFigures)
        self._rows: dict[str, _Row] = {}
        self._names = OperationNames(known, None if self._shared else self._drop)

    def count_in_flight(self, change: int) -> None:
        """Count requests in progress: 1 when one begins, -1 when it ends."""
        self.in_flight += change
        if self._shared:
            self._in_flight_gauge.set(self.in_flight)

    def finished(
        self,
        operation: str | None,
        outcome: Outcome,
        seconds: float,
        *,
        read_units: float = 0.0,
        write_units: float = 0.0,
        engine_calls: int = 0,
        by_member: bool = False,
        refused: bool = False,
    ) -> None:
        """Count an answered request."""
        self._recent.append((operation, outcome, seconds, read_units, write_units, engine_calls, by_member, refused))
        if self._shared or len(self._recent) >= BATCH:
            self._count()
        self._finished += 1
        if self._finished % BATCH == 0:
            self._count_loads()

    def _count(self) -> None:
        for operation, outcome, seconds, read_units, write_units, engine_calls, by_member, refused in self._recent:
            name = operation or ANONYMOUS
            is_named = self._names.count(name, succeeded=outcome is Outcome.OK, by_member=by_member)
            name = name if is_named else OTHER
            row = self._row(name)
            row.count(outcome)
            row.seconds.observe(seconds)
            is_refusal = refused or outcome is not Outcome.OK
            self._figures[name] += OperationFigures(1, int(is_refusal), read_units, write_units)
            if engine_calls:
                row.calls.inc(engine_calls)
                row.read.inc(read_units)
                row.write.inc(write_units)
        self._recent.clear()

    def take_figures(self) -> Mapping[str, OperationFigures]:
        """What each operation has taken in this process since this was last called."""
        self._count()
        figures, self._figures = self._figures, defaultdict(OperationFigures)
        return figures

    def watch_loads(self, loads: Callable[[], Loads]) -> None:
        """Count what the read cache of this process answers, as `loads` tells it."""
        self._loads, self._loads_counted = loads, {}

    def _count_loads(self) -> None:
        loads = self._loads()
        for (kind, result), number in loads.items():
            if more := number - self._loads_counted.get((kind, result), 0):
                self._loads_counter.labels(kind, result).inc(more)
        self._loads_counted = loads

    def fell_back(self, reason: str) -> None:
        """Count an operation that was not compiled; the reasons are constants in the code."""
        self._fallbacks.labels(reason).inc()

    def settle(self) -> None:
        """Count what has yet to be counted, before `render`. Call this where requests are counted: it takes no lock."""
        self._count()
        self._count_loads()

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """Return the response of /metrics for all workers, and its content type. Any thread may call this."""
        registry, folder = self.registry, os.environ.get(FOLDER_VARIABLE)
        if folder:
            _remove_dead_workers(Path(folder))
            registry = CollectorRegistry()
            MultiProcessCollector(registry, folder)  # type: ignore[no-untyped-call]  # theirs
            if self._backups:
                registry.register(self._backups)
        try:
            encode, content_type = choose_encoder(accept)
        except TypeError:  # the library's, for a version that is no number
            encode, content_type = choose_encoder("")
        return encode(registry), content_type

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(name, meaning, labels, registry=self.registry)

    def _row(self, name: str) -> _Row:
        row = self._rows.get(name)
        if row is None:
            row = self._rows[name] = _Row(name, self._requests, self._seconds, self._calls, self._units)
        return row

    def _drop(self, name: str) -> None:
        if row := self._rows.pop(name, None):
            for outcome in row.outcomes:
                self._requests.remove(name, outcome)
            self._seconds.remove(name)
            self._calls.remove(name)
            self._units.remove(name, "read")
            self._units.remove(name, "write")


class _BackupCollector:
    """The figures of scheduled backups, which the process that runs the engine makes, read when they are asked for."""

    def __init__(self, figures: BackupFigures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        figures = self._figures()
        for name, meaning, value in (
            ("newest_timestamp_seconds", "When the newest scheduled backup was made; 0 if there is none.", "newest"),
            ("failures", "Failed scheduled backups since the newest one.", "failures"),
            ("period_seconds", "The time between two scheduled backups.", "period"),
        ):
            yield GaugeMetricFamily(f"ringside_backup_{name}", meaning, value=figures[value])


class _Row:
    """The counters of one operation, looked up once: saves 1 µs each per request."""

    __slots__ = ("_counts", "_name", "_requests", "calls", "read", "seconds", "write")

    def __init__(self, name: str, requests: Counter, seconds: Histogram, calls: Counter, units: Counter) -> None:
        self._name, self._requests = name, requests
        self._counts: dict[Outcome, Counter] = {}
        self.seconds = seconds.labels(name)
        self.calls = calls.labels(name)
        self.read, self.write = units.labels(name, "read"), units.labels(name, "write")

    @property
    def outcomes(self) -> Iterable[Outcome]:
        return self._counts.keys()

    def count(self, outcome: Outcome) -> None:
        counter = self._counts.get(outcome)
        if counter is None:
            counter = self._counts[outcome] = self._requests.labels(self._name, outcome)
        counter.inc()


@contextmanager
def shared_metrics() -> Iterator[Path]:
    """Create the folder for the workers' figures before they start, and remove it after they have stopped.

    A folder given by PROMETHEUS_MULTIPROC_DIR is cleared of an earlier run's figures, used, and kept.
    """
    if given := os.environ.get(FOLDER_VARIABLE):
        folder = Path(given)
        folder.mkdir(parents=True, exist_ok=True)
        for stale in folder.glob("*.db"):
            stale.unlink()
        yield folder
        return
    folder = Path(tempfile.mkdtemp(prefix="ringside-metrics-"))
    os.environ[FOLDER_VARIABLE] = str(folder)
    try:
        yield folder
    finally:
        del os.environ[FOLDER_VARIABLE]
        shutil.rmtree(folder, ignore_errors=True)


def _remove_dead_workers(folder: Path) -> None:
    """Remove the gauges of killed workers; their counters remain."""
    for file in folder.glob("gauge_live*.db"):
        pid = int(file.stem.rpartition("_")[2])
        try:
            with suppress(PermissionError):
                os.kill(pid, 0)
        except ProcessLookupError:
            with suppress(FileNotFoundError):
                mark_process_dead(pid, str(folder))  # type: ignore[no-untyped-call]  # theirs
