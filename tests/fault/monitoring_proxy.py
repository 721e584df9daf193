"""An engine behind a proxy that counts the reads of a service, and how many of them are in flight at a time."""

import asyncio
from collections import Counter

import orjson

from tests.fault.faults import Answer
from tests.fault.proxy import Proxy

READS = {"GetItem", "BatchGetItem", "Query"}


class MonitoringProxy(Proxy):
    """Delays each read by `max_delay` seconds, so that others can start meanwhile."""

    def __init__(self, engine: str, *, max_delay: float = 0.02) -> None:
        super().__init__(engine, max_delay=max_delay)
        self._in_flight_reads = Counter[bytes]()
        self.reset_counts()

    def reset_counts(self) -> None:
        super().reset_counts()
        self.max_identical_reads = 0
        """The largest number of identical reads in flight."""
        self.max_reads = 0
        """The largest number of any reads in flight."""
        self.reads = 0

    async def _forward(self, raw: bytes, headers: dict[str, str]) -> Answer:
        operation = next((value for name, value in headers.items() if name.lower() == "x-amz-target"), "")
        if operation.rpartition(".")[2] not in READS:
            return await super()._forward(raw, headers)
        read = operation.encode() + orjson.dumps(orjson.loads(raw), option=orjson.OPT_SORT_KEYS)
        self.reads += 1
        self._in_flight_reads[read] += 1
        self.max_identical_reads = max(self.max_identical_reads, self._in_flight_reads[read])
        self.max_reads = max(self.max_reads, self._in_flight_reads.total())
        try:
            await asyncio.sleep(self.max_delay)
            return await super()._forward(raw, headers)
        finally:
            self._in_flight_reads[read] -= 1
            self._in_flight_reads += Counter()  # drops the reads that are not in flight
