"""Suspects: voters of a board who behave as honest ones rarely do, as the last search found them.

| wanted                | read or write                                                            | requests        |
|-----------------------|--------------------------------------------------------------------------|-----------------|
| a board's search      | GetItem SUSPECTS#<board> SEARCH, consistent                              | 1               |
| begin a search        | put that with its job, if unchanged                                      | 1               |
| a page of suspects    | Query gsi1 SUSPECTS#<board>#<job>, up to a probability                   | 1               |
| whom a pseudonym means | Query gsi2 SUSPECT#<board>#<pseudonym>                                  | 1               |
| store suspects        | BatchWrite VOTER#<voter>#<board> SUSPECT#<job>; BatchGet a vote of each | 1 for 25; 100 |
| forget an earlier run | Query gsi1 SUSPECTS#<board>#<job>; BatchWrite                            | 1; 1 for 25     |
| show what was found   | UpdateItem of the search, if its job is still the latest                 | 1               |

A suspect lies with the voter's votes, so erasing the voter deletes it. One whose votes were deleted during the search
is not kept. All of it is removed after 30 days.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from datastore.dynamo import Page, PageRequest, Table
from datastore.dynamo.entity import HIGHEST, Entity, Key
from datastore.dynamo.writes import Write, absent, where
from datastore.voting.votes import VOTE

LIFETIME = timedelta(days=30)
PSEUDONYM = "suspect."
"""How every pseudonym begins, and no voter's id."""


@dataclass(frozen=True, slots=True)
class SuspectSearch:
    """A board's latest search, and the one that is shown: that is the latest which has ended."""

    board: str
    job: str
    version: int
    shown: str | None = None
    computed_at: datetime | None = None
    votes: int = 0
    voters: int = 0

    def is_over(self, now: datetime) -> bool:
        """Whether what it has found is removed by now."""
        return self.computed_at is not None and self.computed_at + LIFETIME <= now


@dataclass(frozen=True, slots=True)
class RankChange:
    """A contender's rank by score, and what it would be without a suspect."""

    contender: int
    rank: int
    without: int


@dataclass(frozen=True, slots=True)
class Suspect:
    """A voter whom a search has found, the `place`-th by probability. `last_vote` is the number of a vote of theirs."""

    board: str
    job: str
    place: int
    voter: str
    pseudonym: str
    last_vote: int
    votes: int
    probability: float
    reasons: tuple[str, ...]
    changes: tuple[RankChange, ...]
    expires: datetime

    @property
    def rarity(self) -> str:
        return _rarity(self.probability)


def _rarity(probability: float) -> str:
    """A probability in a form whose text order is its order."""
    return f"{probability:.12f}"


SEARCH = Entity(SuspectSearch, Key("SUSPECTS#{board}", "SEARCH"))
SUSPECT = Entity(
    Suspect,
    Key("VOTER#{voter}#{board}", "SUSPECT#{job}"),
    ttl="expires",
    gsi1=Key("SUSPECTS#{board}#{job}", "{rarity}#{place:06d}"),
    gsi2=Key("SUSPECT#{board}#{pseudonym}", "{job}"),
)


async def read_search(table: Table, board: str) -> SuspectSearch | None:
    return await table.get(SEARCH.at(board=board), consistent=True)


def search_put(after: SuspectSearch, before: SuspectSearch | None) -> Write:
    """The write of a search, unless it has changed."""
    return SEARCH.put(after, when=absent() if before is None else where(version=before.version))


async def show_search(table: Table, board: str, job: str, now: datetime, votes: int, voters: int) -> None:
    """Show what a job has found, unless a later one has begun."""
    values = {"shown": job, "computed_at": now, "votes": votes, "voters": voters}
    await table.try_write(SEARCH.update(SEARCH.at(board=board), values=values, add={"version": 1}, when=where(job=job)))


async def delete_others(table: Table, board: str, job: str, found: Collection[str]) -> None:
    """Delete what an interrupted run of a job stored of voters who are not among those that it finds now."""
    stored = table.iterate(SUSPECT.on("gsi1", board=board, job=job))
    await table.write_many([SUSPECT.delete(SUSPECT.item_key(each)) async for each in stored if each.voter not in found])


async def store_suspects(table: Table, suspects: Sequence[Suspect]) -> int:
    """Store suspects, but none whose votes are gone. Return how many there are."""
    await table.write_many([SUSPECT.put(each) for each in suspects])
    votes = await table.get_many(
        [VOTE.at(voter=each.voter, board=each.board, number=each.last_vote) for each in suspects], consistent=True
    )
    gone = [suspect for suspect, vote in zip(suspects, votes, strict=True) if vote is None]
    await table.write_many([SUSPECT.delete(SUSPECT.item_key(each)) for each in gone])
    return len(suspects) - len(gone)


async def read_suspects_page(table: Table, board: str, job: str, at_most: float, request: PageRequest) -> Page[Suspect]:
    """Those with a probability of at most so much, the least probable first."""
    suspects = SUSPECT.on("gsi1", board=board, job=job).between(None, f"{_rarity(at_most)}#{HIGHEST}")
    return await table.page([suspects], request)


async def voter_of(table: Table, board: str, pseudonym: str) -> str | None:
    """Whom a pseudonym of a board stands for; None if it is nobody's."""
    found = await table.query(SUSPECT.on("gsi2", board=board, pseudonym=pseudonym), limit=1)
    return found.records[0].voter if found.records else None
