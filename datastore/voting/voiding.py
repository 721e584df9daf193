"""Voiding votes, of one voter or of all who voted from the voter's addresses in the last week; and these addresses.

Votes that a job has voided for several voters can be restored for a day: `Voiding` says whose they were.

| wanted                        | read or write                                                      | requests |
|-------------------------------|--------------------------------------------------------------------|----------|
| remember a voter's address    | Put both of the following                                          | 1        |
| a voter's addresses           | Query VOTER#<voter>#<board>, ORIGIN#<tag>, consistent              | 1        |
| an address's voters           | Query ADDRESS#<address>#<board>#<shard>, VOTER#<voter>, consistent | 16       |
| void or restore votes         | a transaction for each vote and the counters that it added to      | votes    |
| void several voters           | Get VOIDINGS <digest>; put it with its job                         | 2        |
| all votes and origins         | Scan                                                               | 1 a 100  |
| what changes the same voters  | Query VOIDINGS, those of the last day                              | 1        |
| restore them                  | Query VOIDINGS, those of the last day; put one with its job        | 2        |

Each vote is voided once, however often voiding is repeated; but one that a job has voided for several voters, and that
is voided otherwise later, cannot be restored any more. A function that voids many votes yields, after a few at a
time, how many those were, so its caller decides when to stop; a repeat passes over voided votes.

Addresses stand in the table as keyed hashes only, in items that expire. A vote has a random tag in place of the hash,
and an item names the address of the tag for a week: after that the tag means nothing. A process writes the two items
before a voter's first vote of a day from an address on a board: 2 write units. Even if all votes that an address may
cast by default (100 a second) were first votes, each of its 16 shards would take 7 units a second.
How much of its limits an address has used is in `datastore.people.address_use`.
"""

import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from hashlib import sha256

from datastore.changes.occurrences import Kind
from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import ConditionFailed, Stale, Table, optimistic_from
from datastore.dynamo.entity import Entity, Key, shard_of
from datastore.dynamo.retries import batches, gather_or_cancel
from datastore.dynamo.writes import Write, absent, where
from datastore.voting.votes import VOTE, Vote, counter_updates, read_vote, vote_occurrence

# ── addresses ──

LOOKBACK = timedelta(days=7)
"""For how long votes from one address can be found."""

ADDRESS_SHARDS = 16


@dataclass(frozen=True, slots=True)
class Origin:
    """The address from which a voter cast the votes on a board that have this tag."""

    voter: str
    board: str
    tag: str
    address: str
    expires: datetime


@dataclass(frozen=True, slots=True)
class AddressVoter:
    """A voter who has voted on a board from an address."""

    address: str
    board: str
    shard: int
    voter: str
    expires: datetime


ORIGIN = Entity(Origin, Key("VOTER#{voter}#{board}", "ORIGIN#{tag}"), ttl="expires")
ADDRESS_VOTER = Entity(AddressVoter, Key("ADDRESS#{address}#{board}#{shard:02d}", "VOTER#{voter}"), ttl="expires")


async def remember_origin(table: Table, voter: str, board: str, address: str, day: date) -> str:
    """Remember that a voter casts votes from an address on a day. Return the tag for these votes."""
    tag = secrets.token_hex(6)
    expires = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1) + LOOKBACK
    shard = shard_of(voter, ADDRESS_SHARDS)
    writes = (
        ORIGIN.put(Origin(voter, board, tag, address, expires)),
        ADDRESS_VOTER.put(AddressVoter(address, board, shard, voter, expires)),
    )
    await table.write_many(writes)
    return tag


def votes_and_origins(table: Table) -> AsyncIterator[Vote | Origin]:
    """Of all boards, in the order of the table: a voter's origins on a board, and right after them their votes.

    A read has few items, so that draws do not wait long for the engine meanwhile.
    """
    return table.scan(ORIGIN, VOTE, at_once=100)


# ── voiding ──

_VOTES_AT_ONCE = 2
"""The votes of one voter share a shard, so more transactions at a time would only conflict with each other."""


async def void_votes(
    table: Table,
    voter: str,
    board: str,
    unit: UnitOfWork,
    *,
    origins: Collection[str] | None = None,
    since: datetime | None = None,
    job: str | None = None,
) -> AsyncGenerator[int]:
    """Void the counted votes of a voter, newest first: all of them, or those of some origins since a time.

    A `job` can bring them back; without one nothing can, not even what an earlier job has voided of these votes.
    """

    async def wanted() -> AsyncIterator[Vote]:
        async for vote in table.iterate(VOTE.on(voter=voter, board=board).newest_first(), consistent=True):
            if since is not None and vote.at < since:
                return
            if (vote.can_count if job is None else vote.counts) and (origins is None or vote.origin in origins):
                yield vote

    void = partial(_void_for_good, table, unit) if job is None else partial(_void, table, unit, job=job)
    async for votes in batches(wanted(), _VOTES_AT_ONCE):
        yield sum(await gather_or_cancel(map(void, votes)))


async def _void(table: Table, unit: UnitOfWork, vote: Vote, job: str | None = None) -> bool:
    """Void one vote; return whether this call did it."""
    values = {"void": True, "voided_by": job}
    change = VOTE.update(VOTE.item_key(vote), values=values, when=where(void=False))
    return await _count_again(table, unit, Kind.VOTE_VOIDED, vote, change, by=-1)


async def _void_for_good(table: Table, unit: UnitOfWork, vote: Vote) -> bool:
    """The same; a job that has voided the vote, before or meanwhile, cannot restore it any more."""

    async def change(current: Vote | None) -> bool:
        if current is None:
            return False
        if current.counts:
            if await _void(table, unit, current):
                return True
            raise Stale
        if current.voided_by is not None:
            as_read = where(void=True, voided_by=current.voided_by)
            await table.write(VOTE.update(VOTE.item_key(current), values={"voided_by": None}, when=as_read))
        return False

    read = partial(read_vote, table, vote.voter, vote.board, vote.number)
    known: Vote | None = vote
    return await optimistic_from(known, read, change, idempotent=True)


async def _restore(table: Table, unit: UnitOfWork, vote: Vote) -> bool:
    values = {"void": False, "voided_by": None}
    change = VOTE.update(VOTE.item_key(vote), values=values, when=where(void=True, voided_by=vote.voided_by))
    return await _count_again(table, unit, Kind.VOTE_RESTORED, vote, change, by=1)


async def _count_again(table: Table, unit: UnitOfWork, kind: Kind, vote: Vote, change: Write, *, by: int) -> bool:
    """Change a vote with its counters; return whether this call did it."""
    try:
        await unit.apply(table, change, *counter_updates(vote, by=by), *vote_occurrence(unit, kind, vote))
    except ConditionFailed as failed:
        # After an attempt without an answer, that attempt may have changed the vote.
        return failed.doubtful
    return True


async def restore_votes(table: Table, voter: str, board: str, unit: UnitOfWork, *, job: str) -> AsyncGenerator[int]:
    """Let the votes of a voter count again that a job has voided."""
    votes = table.iterate(VOTE.on(voter=voter, board=board), consistent=True)
    voided = (vote async for vote in votes if vote.void and vote.voided_by == job)
    async for some in batches(voided, _VOTES_AT_ONCE):
        yield sum(await gather_or_cancel(_restore(table, unit, vote) for vote in some))


async def void_votes_of_addresses(table: Table, voter: str, board: str, unit: UnitOfWork) -> AsyncGenerator[int]:
    """Void the last week's votes on a board from all addresses that a voter has voted from in that week."""
    for address in sorted({origin.address for origin in await _origins(table, voter, board, unit.now)}):
        for shard in range(ADDRESS_SHARDS):
            voters = ADDRESS_VOTER.on(address=address, board=board, shard=shard)
            async for found in table.iterate(voters, consistent=True):
                if found.expires > unit.now:  # the engine removes expired items late
                    async for voided in _void_from(table, found, unit):
                        yield voided


async def _void_from(table: Table, found: AddressVoter, unit: UnitOfWork) -> AsyncGenerator[int]:
    """Void a voter's votes of the last week from one address."""
    origins = await _origins(table, found.voter, found.board, unit.now)
    of_address = {origin.tag for origin in origins if origin.address == found.address}
    since = unit.now - LOOKBACK
    async for voided in void_votes(table, found.voter, found.board, unit, origins=of_address, since=since):
        yield voided


async def _origins(table: Table, voter: str, board: str, now: datetime) -> list[Origin]:
    origins = table.iterate(ORIGIN.on(voter=voter, board=board), consistent=True)
    return [origin async for origin in origins if origin.expires > now]


# ── voiding several voters ──

RESTORABLE = timedelta(days=1)
"""For how long votes that were voided together can be restored."""


@dataclass(frozen=True, slots=True)
class Voiding:
    """Voters whose votes were voided together. The same voters may be voided again later, by another job.

    `jobs` maps the jobs that voided them to those that restore what they voided, or to an empty text.
    """

    board: str
    digest: str
    voters: tuple[str, ...]
    jobs: dict[str, str]
    version: int
    expires: datetime

    @property
    def latest(self) -> str:
        """By the ids, which begin with a time: the table keeps no order of what a map has."""
        return max(self.jobs)


VOIDING = Entity(Voiding, Key("VOIDINGS", "{digest}"), ttl="expires")


def voters_digest(board: str, voters: Collection[str]) -> str:
    """What stands for a set of voters of a board."""
    return sha256("\n".join((board, *sorted(voters))).encode()).hexdigest()[:32]


async def read_voiding(table: Table, digest: str) -> Voiding | None:
    return await table.get(VOIDING.at(digest=digest), consistent=True)


async def voiding_by(table: Table, job: str) -> Voiding | None:
    """The voiding that a job has begun. There are as many to look through as editors have begun in a day."""
    async for voiding in table.iterate(VOIDING.on(), consistent=True):
        if job in voiding.jobs:
            return voiding
    return None


async def voidings_of(table: Table, board: str, voters: Collection[str]) -> list[Voiding]:
    """The voidings on a board that have one of these voters; to be looked through like those of a job."""
    found = table.iterate(VOIDING.on(), consistent=True)
    return [each async for each in found if each.board == board and not set(voters).isdisjoint(each.voters)]


def voiding_put(after: Voiding, before: Voiding | None) -> Write:
    """The write of a voiding, unless it has changed."""
    return VOIDING.put(after, when=absent() if before is None else where(version=before.version))
