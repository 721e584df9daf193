"""Bounds on what stays open: sockets, streams and subscriptions, in this process and of one client address."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from datastore.refusals import Overloaded
from resolvers.rate_limits import network


class Quota:
    """How many of a kind may be open at once; of an IPv6 client, its /64 counts."""

    def __init__(self, total: int, per_address: int) -> None:
        self.open = 0
        self._total = total
        self._per_address = per_address
        self._of_address: dict[str, int] = {}

    @contextmanager
    def held(self, address: str) -> Iterator[None]:
        """Count one more during the block; Overloaded if there are enough."""
        client = network(address)
        of_address = self._of_address.get(client, 0)
        if self.open >= self._total or of_address >= self._per_address:
            raise Overloaded
        self.open += 1
        self._of_address[client] = of_address + 1
        try:
            yield
        finally:
            self.open -= 1
            self._of_address[client] -= 1
            if not self._of_address[client]:
                del self._of_address[client]
