"""Voiding votes: of one voter, or of all who voted from the voter's addresses in the last week.

Each vote is voided in a transaction with the counters that it added to, once, however often voiding is repeated. Work
stops when it is `out_of_time`; a repeat continues. For the voters of an address, an item remembers the place.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from datastore.changes.kinds import Kind
from datastore.changes.recording import OFF
from datastore.changes.tombstones import MemberErased
from datastore.dynamo import ConditionFailed
from datastore.dynamo.concurrency import gather_or_cancel
from datastore.dynamo.conditions import where
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key
from datastore.voting.addresses import ADDRESS_SHARDS, ADDRESS_VOTER, LOOKBACK, ORIGIN, AddressVoter, Origin
from datastore.voting.votes import VOTE, Vote, counter_updates, vote_occurrence

if TYPE_CHECKING:
    from datastore.changes.unit_of_work import UnitOfWork
    from datastore.dynamo import Table

_VOTES_AT_ONCE = 2
"""The votes of one voter share a shard, so more transactions at a time would only conflict with each other."""

_VOTERS_AT_ONCE = 4
_PLACE_LIFETIME = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class VoidingPlace:
    """How far the voiding of all votes from a voter's addresses has come: an address's shard and a voter in it."""

    voter: str
    board: str
    shard: str
    last: str
    expires: datetime


VOIDING_PLACE = Entity(VoidingPlace, Key("VOTER#{voter}#{board}", "VOIDING"), ttl="expires")


class Voided(NamedTuple):
    """How many votes a call voided, and whether none is left to look at."""

    votes: int
    finished: bool


async def void_votes(
    table: Table,
    voter: str,
    board: str,
    unit: UnitOfWork,
    out_of_time: Callable[[], bool],
    *,
    origins: Collection[str] | None = None,
    since: datetime | None = None,
    erased_too: bool = False,
) -> Voided:
    """Void the counted votes of a voter, newest first: all of them, or those of some origins since a time.

    MemberErased if the voter is being erased, unless `erased_too`.
    """
    void = partial(_void_erased_too if erased_too else _void, table, unit)
    voided, batch, finished = 0, list[Vote](), True
    async for vote in table.iterate(VOTE.on(voter=voter, board=board).newest_first(), consistent=True):
        if since is not None and vote.at < since:
            break
        if vote.counts and (origins is None or vote.origin in origins):
            batch.append(vote)
        if len(batch) == _VOTES_AT_ONCE:
            voided, batch = voided + await _void_batch(void, batch), []
            if out_of_time():
                finished = False
                break
    return Voided(voided + await _void_batch(void, batch), finished)


async def _void_batch(void: Callable[[Vote], Coroutine[Any, Any, bool]], votes: Sequence[Vote]) -> int:
    return sum(await gather_or_cancel(map(void, votes)))


async def _void(table: Table, unit: UnitOfWork, vote: Vote) -> bool:
    """Void one vote; return whether this call did it."""
    set_void = VOTE.update(VOTE.item_key(vote), values={"void": True}, when=where(void=False))
    try:
        occurrence = vote_occurrence(unit, Kind.VOTE_VOIDED, vote)
        await unit.apply(table, set_void, *counter_updates(vote, by=-1), *occurrence)
    except ConditionFailed as failed:
        # After an attempt without an answer, that attempt may have voided the vote.
        return failed.doubtful
    return True


async def _void_erased_too(table: Table, unit: UnitOfWork, vote: Vote) -> bool:
    """The same also if the voter is being erased; unrecorded then, since nothing may name them.

    Made anonymous, their votes would move as they are and lose their origin: nobody would find them by an address.
    """
    try:
        return await _void(table, unit, vote)
    except MemberErased:
        await unit.refuse_erased(table)
        return await _void(table, replace(unit, journal=OFF, tombstones=None), vote)


async def void_votes_of_addresses(
    table: Table, voter: str, board: str, unit: UnitOfWork, out_of_time: Callable[[], bool]
) -> Voided:
    """Void the last week's votes on a board from all addresses that a voter has voted from in that week."""
    now = unit.now
    place = await table.get(VOIDING_PLACE.at(voter=voter, board=board), consistent=True)
    if place is not None and place.expires <= now:
        place = None
    voided, finished = 0, True
    addresses = {origin.address for origin in await _origins(table, voter, board, now)}
    async with aclosing(_voters(table, sorted(addresses), board, now, place)) as voters:
        async for group in voters:
            results = await gather_or_cancel(_void_from(table, found, unit, out_of_time) for _, found in group)
            voided += sum(result.votes for result in results)
            finished = all(result.finished for result in results)
            if finished:
                shard, last = group[-1]
                place = VoidingPlace(voter, board, shard, last.voter, now + _PLACE_LIFETIME)
            if not finished or out_of_time():
                finished = False
                break
    if place is not None:
        key = VOIDING_PLACE.item_key(place)
        await table.write(VOIDING_PLACE.delete(key) if finished else VOIDING_PLACE.put(place))
    return Voided(voided, finished)


async def _voters(
    table: Table, addresses: Sequence[str], board: str, now: datetime, place: VoidingPlace | None
) -> AsyncGenerator[list[tuple[str, AddressVoter]]]:
    """The voters of some addresses after a place, a few at a time, each with the name of its shard."""
    group: list[tuple[str, AddressVoter]] = []
    for address in addresses:
        for shard in range(ADDRESS_SHARDS):
            name = f"{address}-{shard:02d}"
            if place is not None and name < place.shard:
                continue
            voters = ADDRESS_VOTER.on(address=address, board=board, shard=shard)
            if place is not None and name == place.shard:
                voters = voters.past(ADDRESS_VOTER.at(address=address, board=board, shard=shard, voter=place.last).sk)
            async for found in table.iterate(voters, consistent=True):
                if found.expires > now:  # the engine removes expired items late
                    group.append((name, found))
                if len(group) == _VOTERS_AT_ONCE:
                    yield group
                    group = []
    if group:
        yield group


async def _void_from(table: Table, found: AddressVoter, unit: UnitOfWork, out_of_time: Callable[[], bool]) -> Voided:
    """Void a voter's votes of the last week from one address."""
    origins = await _origins(table, found.voter, found.board, unit.now)
    of_address = {origin.tag for origin in origins if origin.address == found.address}
    since = unit.now - LOOKBACK
    return await void_votes(
        table, found.voter, found.board, unit, out_of_time, origins=of_address, since=since, erased_too=True
    )


async def _origins(table: Table, voter: str, board: str, now: datetime) -> list[Origin]:
    origins = table.iterate(ORIGIN.on(voter=voter, board=board), consistent=True)
    return [origin async for origin in origins if origin.expires > now]
