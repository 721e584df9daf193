"""What all clients of a run share, and a client that records what the journal must say."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any, Final

from datastore.changes.occurrences import Kind
from tests.fault.ledger import Ledger
from tests.fault.retrying_client import RetryingClient
from tests.journal_kinds import NOT_RECORDED, RECORDED

PRODUCTS: Final = ("p1", "p2")
LANGUAGES: Final = ("en", "de")
CONTENDERS: Final = ("a", "b", "c", "d", "e", "f")
TROLL: Final = "troll"
"""A member who only votes, and whose votes are voided at the end."""
SPAMMER: Final = "spammer"
"""A member who is suspended for a moment, and whose contributions are taken back in the middle of a run."""
LEAVERS: Final = {"leaver-1": "REMOVE", "leaver-2": "ANONYMISE"}
"""Members who are erased in the middle of a run, and what becomes of their contributions."""
EVERYBODY: Final = "*"


@dataclass
class SharedState:
    """What all clients know."""

    ledger: Ledger = field(default_factory=Ledger)
    lists: list[str] = field(default_factory=list)
    open_event: tuple[str, Sequence[str]] | None = None
    moderated: list[str] = field(default_factory=list)
    """Comments whose authors leave them to the moderator."""
    busy: set[tuple[str, str]] = field(default_factory=set)
    """Places in leagues that somebody is about to change."""
    numbers: Iterator[int] = field(default_factory=count)
    leaving: bool = False
    stopped: bool = False

    @contextmanager
    def changing(self, *places: tuple[str, str]) -> Iterator[None]:
        self.busy |= {*places}
        yield
        self.busy -= {*places}

    def is_free(self, league: str, user: str) -> bool:
        """Whether nobody is about to change this place, or the league itself."""
        return not self.busy & {(league, user), (league, EVERYBODY)}

    def is_unused(self, league: str) -> bool:
        """Whether nobody is about to change the league or any place in it."""
        return all(key != league for key, _ in self.busy)


class RecordingClient(RetryingClient):
    """Records in the ledger what the journal must say about each acknowledged mutation."""

    def __init__(self, name: str, token: str, urls: Sequence[str], random: Random, shared: SharedState) -> None:
        super().__init__(name, token, urls, random)
        self.shared = shared
        self.ledger = shared.ledger

    async def mutate(self, mutation: str, *refusals: str, **fields: Any) -> dict[str, Any] | None:
        answer = await super().mutate(mutation, *refusals, **fields)
        if answer is not None and (kind := _kind(mutation, fields)):
            self.ledger.occurred(kind, self.name)
        return answer

    async def must(self, mutation: str, **fields: Any) -> dict[str, Any]:
        """The payload of a mutation that must not be refused."""
        answer = await self.mutate(mutation, **fields)
        assert answer is not None
        return answer


def _kind(mutation: str, fields: dict[str, Any]) -> Kind | None:
    found = re.search(r"(\w+)\(input:", mutation)
    assert found is not None
    if found[1] in NOT_RECORDED:
        return None
    return Kind.SENTENCE_CHANGED if "sentence" in fields else RECORDED[found[1]][0]
