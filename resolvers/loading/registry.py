"""The loaders of a process by name: they are counted by the metrics and closed with the process."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any, TypeVar

from resolvers.loading.loader import Loader

if TYPE_CHECKING:
    from collections.abc import Mapping

L = TypeVar("L", bound=Loader[Any, Any])


class Loaders:
    """All loaders of the parts."""

    def __init__(self) -> None:
        self._loaders: list[tuple[str, Loader[Any, Any]]] = []

    def add(self, name: str, loader: L) -> L:
        """Register and return the loader. Names must be constants, because they are labels of a metric."""
        self._loaders.append((name, loader))
        return loader

    def loads(self) -> Mapping[tuple[str, str], int]:
        """The number of keys that each loader has answered, by its name and by `hit`, `miss` or `wait`."""
        loads: Counter[tuple[str, str]] = Counter()
        for name, loader in self._loaders:
            counts = loader.counts
            loads[name, "hit"] += counts.hits
            loads[name, "miss"] += counts.misses
            loads[name, "wait"] += counts.waits
        return loads

    async def close(self) -> None:
        await asyncio.gather(*(loader.close() for _, loader in self._loaders))
