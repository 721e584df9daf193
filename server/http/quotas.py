"""Bounds on what goes on at once, in this process and of one client address: requests, sockets, subscriptions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from datastore.refusals import Overloaded
from resolvers.values.network_addresses import network


class Quota:
    """How many of a kind may be open at once; of an IPv6 client, its /64 counts."""

    def __init__(self, total: int, per_address: int) -> None:
        self.open = 0
        self._total = total
        self._per_address = per_address
        self._of_address: dict[str, int] = {}

    def is_full(self, address: str) -> bool:
        """Whether one more of this address would be refused."""
        return self.open >= self._total or self._of_address.get(network(address), 0) >= self._per_address

    @contextmanager
    def held(self, address: str) -> Iterator[None]:
        """Count one more during the block; Overloaded if there are enough."""
        self.begin(address)
        try:
            yield
        finally:
            self.end(address)

    def begin(self, address: str) -> None:
        """Count one more until `end`, which the caller must call; Overloaded if there are enough."""
        if self.is_full(address):
            raise Overloaded
        client = network(address)
        self.open += 1
        self._of_address[client] = self._of_address.get(client, 0) + 1

    def end(self, address: str) -> None:
        client = network(address)
        self.open -= 1
        self._of_address[client] -= 1
        if not self._of_address[client]:
            del self._of_address[client]
