"""Voiding votes: of one voter, or of all who voted from the voter's addresses in the last week.

Each vote is voided in a transaction with the counters that it added to, once, however often voiding is repeated. What
voids many says after each few how many, so its caller decides when to stop; a repeat passes over voided votes.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from datastore.changes.kinds import Kind
from datastore.changes.recording import OFF
from datastore.changes.tombstones import MemberErased
from datastore.dynamo import ConditionFailed
from datastore.dynamo.concurrency import gather_or_cancel
from datastore.dynamo.conditions import where
from datastore.voting.addresses import ADDRESS_SHARDS, ADDRESS_VOTER, LOOKBACK, ORIGIN, AddressVoter, Origin
from datastore.voting.votes import VOTE, Vote, counter_updates, vote_occurrence

if TYPE_CHECKING:
    from datastore.changes.unit_of_work import UnitOfWork
    from datastore.dynamo import Table

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
    erased_too: bool = False,
) -> AsyncGenerator[int]:
    """Void the counted votes of a voter, newest first: all of them, or those of some origins since a time.

    MemberErased if the voter is being erased, unless `erased_too`.
    """
    void = partial(_void_erased_too if erased_too else _void, table, unit)
    batch: list[Vote] = []
    async for vote in table.iterate(VOTE.on(voter=voter, board=board).newest_first(), consistent=True):
        if since is not None and vote.at < since:
            break
        if vote.counts and (origins is None or vote.origin in origins):
            batch.append(vote)
        if len(batch) == _VOTES_AT_ONCE:
            yield await _void_batch(void, batch)
            batch = []
    yield await _void_batch(void, batch)


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
    async for voided in void_votes(
        table, found.voter, found.board, unit, origins=of_address, since=since, erased_too=True
    ):
        yield voided


async def _origins(table: Table, voter: str, board: str, now: datetime) -> list[Origin]:
    origins = table.iterate(ORIGIN.on(voter=voter, board=board), consistent=True)
    return [origin async for origin in origins if origin.expires > now]
