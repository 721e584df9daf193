"""Voiding a voter: within the request as far as its time allows, and the rest as a job."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime

from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import BadKey, key_text, remaining
from datastore.jobs.jobs import Job
from datastore.refusals import InvalidInput
from datastore.voting import boards
from datastore.voting.boards import MAIN
from datastore.voting.member_items import MEMBER_ITEMS, clear_addresses, clear_voter
from datastore.voting.voiding import void_votes, void_votes_of_addresses
from datastore.voting.votes import read_latest_vote
from resolvers.jobs.running import JobRun, begin_job
from resolvers.people.member_data import Erasure, MemberData, Part, TakingBack
from resolvers.requests.context import AnyId, Context, Role, Services
from resolvers.values.node_ids import parse_node_id
from resolvers.voting.settling import BoardCache
from resolvers.voting.visibility import board_cache

# ── voiding ──

VOID_VOTER = "VOID_VOTER"
_LONGEST_VOTER = 128
"""Characters of the longest voter id, a member's."""


@dataclass(frozen=True, slots=True)
class VoidedVotes:
    """What one call voided, and the job that voids the rest, if there was more."""

    votes_removed: int
    job: Job | None = None


async def void_voter(ctx: Context, /, *, board: str = MAIN, voter: AnyId, same_address: bool = False) -> VoidedVotes:
    """Void all votes of one voter on one board and settle it; with `same_address` also those from their addresses.

    Half of the request's time is for voiding, the rest for settling. What is left then becomes a job.
    """
    ctx.with_role(Role.EDITOR)
    if not boards.is_slug(board) or await board_cache(ctx).boards.load(board) is None:
        raise boards.board_not_found(board)
    wanted = _Wanted(board, _parse_voter(voter), same_address, ctx.unit.actor)
    until, voided, job = remaining() / 2, 0, None
    async with wanted.voiding(ctx.services) as counts:
        async for votes in counts:
            voided += votes
            if remaining() < until:
                job = await begin_job(ctx, VOID_VOTER, wanted.as_input())
                break
    answer = VoidedVotes(voided, job)
    await ctx.unit.store_receipt(ctx.table, answer)
    return answer


async def void_voter_job(services: Services, run: JobRun) -> str:
    """Void what a request had no time for. It starts over after an interruption: voided votes are passed over."""
    async with _Wanted.of_input(run.input).voiding(services) as counts:
        async for votes in counts:
            run.done += votes
    return f"Votes voided: {run.done}."


async def void_votes_since(services: Services, voter: str, since: datetime | None, unit: UnitOfWork) -> int:
    """Void a voter's votes since a time on every board, and settle the boards; return their number."""
    table, voided = services.table, 0
    for board in await boards.every_slug(table):
        if await read_latest_vote(table, voter, board) is None:
            continue
        settler = services.get(BoardCache).settler(board)
        async with settler.voting():
            voided += sum([votes async for votes in void_votes(table, voter, board, unit, since=since)])
        services.get(BoardCache).votes_voided(voter, board)
        await settler.settle_anew()
    return voided


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Whose votes to void, and where."""

    board: str
    voter: str
    same_address: bool
    actor: str | None

    def as_input(self) -> dict[str, str]:
        same_address = "yes" if self.same_address else ""
        return {"board": self.board, "voter": self.voter, "same_address": same_address, "actor": self.actor or ""}

    @classmethod
    def of_input(cls, stored: Mapping[str, str]) -> _Wanted:
        return cls(stored["board"], stored["voter"], bool(stored["same_address"]), stored.get("actor") or None)

    @asynccontextmanager
    async def voiding(self, services: Services) -> AsyncIterator[AsyncIterator[int]]:
        """How many votes were voided, some at a time. At the end the board is settled."""
        settler = services.get(BoardCache).settler(self.board)
        async with settler.voting(), aclosing(self._void(services)) as counts:
            yield counts
        services.get(BoardCache).votes_voided(self.voter, self.board)
        await settler.settle_anew()

    async def _void(self, services: Services) -> AsyncGenerator[int]:
        table, unit = services.table, services.unit(self.actor)
        async for votes in void_votes(table, self.voter, self.board, unit):
            yield votes
        if self.same_address:
            async for votes in void_votes_of_addresses(table, self.voter, self.board, unit):
                yield votes


def _parse_voter(text: str) -> str:
    """A voter's own id, or the id of the member who voted."""
    try:
        kind, key = parse_node_id(text)
    except InvalidInput:
        kind, key = "User", text
    with suppress(BadKey):
        if kind == "User" and len(key) <= _LONGEST_VOTER:
            return key_text(key)
    raise InvalidInput(
        "A voter is identified by a User's id, or by the `voter` of a ballot or of an exported vote.",
        path=("input", "voter"),
    )


# ── member data ──
# Taking back and erasing a member's votes.


async def _take_back(services: Services, run: JobRun, wanted: TakingBack, unit: UnitOfWork) -> None:
    run.done += await void_votes_since(services, wanted.user, wanted.since, unit)


async def _erase(erasure: Erasure) -> None:
    table, user = erasure.table, erasure.user
    if not erasure.anonymise:
        erasure.run.done += await void_votes_since(erasure.services, user, None, erasure.unit)
    clear = clear_addresses if erasure.anonymise else clear_voter
    for board in await boards.every_slug(table):
        await clear(table, user, board)


MEMBER_DATA = MemberData(MEMBER_ITEMS, frozenset({Part.VOTES}), _take_back, _erase)
