"""An engine seen from outside: how many requests, and how many of the same kind at a time, a service has sent it."""

from __future__ import annotations

import asyncio
from collections import Counter

import orjson

from tests.fault.faults import Answer
from tests.fault.proxy import Proxy

READS = {"GetItem", "BatchGetItem", "Query"}


class Watched(Proxy):
    """A proxy that notes reads in flight. Each takes `slowness` seconds longer, so that others have time to come."""

    def __init__(self, engine: str, *, slowness: float = 0.02) -> None:
        super().__init__(engine, slowness=slowness)
        self._now = Counter[bytes]()
        self.forget()

    def forget(self) -> None:
        super().forget()
        self.most_of_a_key = 0
        """The most reads of the same that were under way at one moment."""
        self.most = 0
        """The same of any reads."""
        self.reads = 0

    async def _ask(self, raw: bytes, headers: dict[str, str]) -> Answer:
        operation = next((value for name, value in headers.items() if name.lower() == "x-amz-target"), "")
        if operation.rpartition(".")[2] not in READS:
            return await super()._ask(raw, headers)
        key = operation.encode() + orjson.dumps(orjson.loads(raw), option=orjson.OPT_SORT_KEYS)
        self.reads += 1
        self._now[key] += 1
        self.most_of_a_key = max(self.most_of_a_key, self._now[key])
        self.most = max(self.most, self._now.total())
        try:
            await asyncio.sleep(self.slowness)
            return await super()._ask(raw, headers)
        finally:
            self._now[key] -= 1
            self._now += Counter()  # what is not under way is not remembered
