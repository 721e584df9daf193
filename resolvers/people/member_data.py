"""What each part does with one member's data, for the jobs that write their file, take something back, or erase them.

A part hands over one object, its `MEMBER_DATA`; `resolvers.whole.erasing` lists them. Everything that these functions
do may be interrupted and is then repeated, so each must be idempotent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import iso
from datastore.people.member_items import MemberItems
from resolvers.jobs.running import JobRun
from resolvers.requests.context import Services


class Part(StrEnum):
    """A part of what is stored about a member."""

    VOTES = "VOTES"
    PREDICTIONS = "PREDICTIONS"
    COMMENTS = "COMMENTS"
    QUIZZES = "QUIZZES"
    SENTENCES = "SENTENCES"
    SUBSCRIPTIONS = "SUBSCRIPTIONS"
    PROFILE = "PROFILE"


class Contributions(StrEnum):
    """What becomes of what an erased member contributed."""

    REMOVE = "REMOVE"
    ANONYMISE = "ANONYMISE"


@dataclass(frozen=True, slots=True)
class TakingBack:
    """What to take back of whom, and who wants it."""

    user: str
    since: datetime | None
    parts: frozenset[Part]
    actor: str | None

    def as_input(self) -> dict[str, str]:
        since = "" if self.since is None else iso(self.since)
        return {"user": self.user, "since": since, "parts": " ".join(sorted(self.parts)), "actor": self.actor or ""}

    @classmethod
    def of_input(cls, stored: Mapping[str, str]) -> TakingBack:
        since = datetime.fromisoformat(stored["since"]) if stored["since"] else None
        return cls(stored["user"], since, frozenset(map(Part, stored["parts"].split())), stored["actor"] or None)

    def is_recent(self, moment: datetime) -> bool:
        return self.since is None or moment >= self.since


class Erasure:
    """A member who is being erased by a job."""

    def __init__(self, services: Services, run: JobRun) -> None:
        self.services = services
        self.table = services.table
        self.run = run
        self.user = run.input["user"]
        self.anonymise = run.input["contributions"] == Contributions.ANONYMISE
        """Whether their contributions stay, as a former member's."""
        self.unit = services.unit()


TakeBack: TypeAlias = "Callable[[Services, JobRun, TakingBack, UnitOfWork], Awaitable[None]]"
Erase: TypeAlias = Callable[[Erasure], Awaitable[None]]


async def _nothing(*_: object) -> None:
    return


@dataclass(frozen=True, slots=True)
class MemberData:
    """What a part keeps of a member, and what it does with it."""

    items: MemberItems
    contributions: frozenset[Part] = frozenset()
    """What `take_back` takes back."""
    take_back: TakeBack = _nothing
    erase: Erase = _nothing
    """Deletes what is not in the member's own partition, and uncounts what counts; some only if it is not anonymised.
    """
