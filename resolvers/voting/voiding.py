"""Voiding a voter, as a job whose end is waited for; voiding and restoring many voters."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from datastore.changes.occurrences import Kind
from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import BadKey, Table, gather_or_cancel, key_text, optimistic
from datastore.jobs import jobs as job_store
from datastore.jobs.jobs import Job, JobState
from datastore.refusals import Conflict, InvalidInput, NotFound
from datastore.voting import boards
from datastore.voting import voiding as store
from datastore.voting.boards import MAIN
from datastore.voting.continuing import any_has_counted_vote, voters_of
from datastore.voting.suspects import PSEUDONYM, voter_of
from datastore.voting.voiding import RESTORABLE, Voiding
from datastore.voting.votes import read_latest_vote
from resolvers.jobs.running import JobId, JobRun, begin_job, found_job, job_soon, new_job, shown_job
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
    """How many votes are voided so far, and the job while it goes on."""

    votes_removed: int
    job: Job | None = None


async def void_voter(ctx: Context, /, *, board: str = MAIN, voter: AnyId, same_address: bool = False) -> VoidedVotes:
    """Void all votes of one voter on one board and settle it; with `same_address` also those from their addresses.

    What is left when the request has to answer goes on as a job.
    """
    ctx.with_role(Role.EDITOR)
    await require_board(ctx, board)
    wanted = {
        "board": board,
        "voter": await _voter_named(ctx, board, voter, ("input", "voter")),
        "same_address": "yes" if same_address else "",
        "actor": ctx.unit.actor or "",
    }
    new = new_job(ctx, VOID_VOTER, wanted, role=Role.EDITOR)
    await job_store.begin_job(ctx.table, new, VoidedVotes(0, shown_job(new)), ctx.unit)
    job = await job_soon(ctx, new, void_voter_job)
    answer = VoidedVotes(job.done, job if job.is_running else None)
    await ctx.unit.replace_receipt(ctx.table, answer)
    return answer


async def require_board(ctx: Context, board: str) -> None:
    if not boards.is_slug(board) or await board_cache(ctx).boards.load(board) is None:
        raise boards.board_not_found(board)


async def void_voter_job(services: Services, run: JobRun) -> str:
    """It starts over after an interruption: voided votes are passed over."""
    table, board, unit = services.table, run.input["board"], services.unit(run.input["actor"] or None)
    async with _changing_votes(services, board, run.input["voter"]):
        for voter in await voters_of(table, run.input["voter"], board):
            async for votes in store.void_votes(table, voter, board, unit):
                run.done += votes
            if run.input["same_address"]:
                async for votes in store.void_votes_of_addresses(table, voter, board, unit):
                    run.done += votes
    return f"Votes voided: {run.done:,}."


async def void_votes_since(services: Services, voter: str, since: datetime | None, unit: UnitOfWork) -> int:
    """Void a voter's votes since a time on every board, and settle the boards; return their number."""
    table, voided = services.table, 0
    for board in await boards.every_slug(table):
        voters = await voters_of(table, voter, board)
        if len(voters) == 1 and await read_latest_vote(table, voter, board) is None:
            continue
        async with _changing_votes(services, board, voter):
            for each in voters:
                voided += sum([votes async for votes in store.void_votes(table, each, board, unit, since=since)])
    return voided


@asynccontextmanager
async def _changing_votes(services: Services, board: str, *voters: str) -> AsyncIterator[None]:
    """Votes of these voters change in the block. At its end the board is settled, or will be in the background."""
    cache = services.get(BoardCache)
    async with cache.settler(board).voting():
        yield
    for voter in voters:
        cache.votes_voided(voter, board)
    await cache.settler(board).settle_anew()


def _parse_voter(text: str, path: tuple[str, ...]) -> str:
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
        path=path,
    )


# ── many voters ──
# Voiding the votes of several voters, and restoring what was voided, are jobs. A board's voiding of a set of voters
# names its job, in one transaction with that: whoever voids the same voters meanwhile, or again, finds the same job.

VOID_VOTERS = "VOID_VOTERS"
RESTORE_VOTERS = "RESTORE_VOTERS"
MOST_VOTERS = 100


async def void_voters(ctx: Context, /, *, board: str, voters: list[AnyId]) -> Job:
    """Begin to void all votes of these voters on a board. It can be taken back for a day."""
    ctx.with_role(Role.EDITOR)
    await require_board(ctx, board)
    if not 1 <= len(voters) <= MOST_VOTERS:
        raise InvalidInput(f"Name 1 to {MOST_VOTERS} voters.", path=("input", "voters"))
    reading = (_voter_named(ctx, board, each, ("input", "voters", str(place))) for place, each in enumerate(voters))
    named = tuple(sorted(set(await gather_or_cancel(reading))))
    digest = store.voters_digest(board, named)

    async def begin(earlier: Voiding | None) -> Job:
        alike = await store.voidings_of(ctx.table, board, named)
        if await _is_any_running(ctx, (restoring for each in alike for restoring in each.jobs.values() if restoring)):
            raise Conflict(
                "Votes of these voters are being restored. Wait until that job has ended.", path=("input", "voters")
            )
        if found := await _same_voiding(ctx, earlier, named):
            return await found_job(ctx, found)
        job = new_job(ctx, VOID_VOTERS, _input_of(ctx, board, named), role=Role.EDITOR)
        jobs = {**(earlier.jobs if earlier else {}), job.id: ""}
        version = earlier.version + 1 if earlier else 1
        after = Voiding(board, digest, named, jobs, version, ctx.now() + RESTORABLE)
        occurred = ctx.unit.occurred(Kind.VOTERS_VOIDED, f"Board:{board}")
        return await begin_job(ctx, job, store.voiding_put(after, earlier), *occurred)

    return await optimistic(lambda: store.read_voiding(ctx.table, digest), begin, idempotent=True)


async def _voter_named(ctx: Context, board: str, text: str, path: tuple[str, ...]) -> str:
    """The voter whom an editor names, by the pseudonym of a suspect or by an id."""
    voter = _parse_voter(text, path)
    if not voter.startswith(PSEUDONYM):
        return voter
    found = await voter_of(ctx.table, board, voter)
    if found is None:
        raise NotFound("This is no suspect of this board now. Load the list again.", path=path)
    return found


async def _same_voiding(ctx: Context, earlier: Voiding | None, voters: Sequence[str]) -> Job | None:
    """The job that voids these voters, or has voided all that they have voted since."""
    if earlier is None or earlier.jobs[earlier.latest]:
        return None
    job = await job_store.read_job(ctx.table, earlier.latest)
    if job is None or job.state is JobState.FAILED:
        return None
    if not job.is_running and await any_has_counted_vote(ctx.table, voters, earlier.board):
        return None
    return job


async def _is_any_running(ctx: Context, jobs: Iterable[str]) -> bool:
    """A voiding and a restoring of the same voter are never at work together.

    The voiding would pass over what is void still, and the restoring would bring that back.
    """
    found = await gather_or_cancel(job_store.read_job(ctx.table, each) for each in jobs)
    return any(job is not None and job.is_running for job in found)


def _input_of(ctx: Context, board: str, voters: Sequence[str]) -> dict[str, str]:
    return {"board": board, "actor": ctx.unit.actor or "", "voters": "\n".join(voters)}


async def restore_voters(ctx: Context, /, *, job: JobId) -> Job:
    """Begin to restore what a job has voided within the last day. A repeat finds the same job."""
    ctx.with_role(Role.EDITOR)

    async def begin(voiding: Voiding | None) -> Job:
        voided = await job_store.read_job(ctx.table, job)
        if voiding is None or voided is None or voided.started_at + RESTORABLE <= ctx.now():
            raise NotFound("Name a job of voidVoters of the last 24 hours.", path=("input", "job"))
        earlier = await job_store.read_job(ctx.table, voiding.jobs[job]) if voiding.jobs[job] else None
        if earlier is not None and earlier.state is not JobState.FAILED:
            return await found_job(ctx, earlier)
        alike = await store.voidings_of(ctx.table, voiding.board, voiding.voters)
        if await _is_any_running(ctx, (each for voiding_ in alike for each in voiding_.jobs)):
            raise Conflict(
                "Votes of these voters are still being voided. Wait until that job has ended.", path=("input", "job")
            )
        input_ = {"voided": job, **_input_of(ctx, voiding.board, voiding.voters)}
        new = new_job(ctx, RESTORE_VOTERS, input_, role=Role.EDITOR)
        after = replace(voiding, jobs={**voiding.jobs, job: new.id}, version=voiding.version + 1)
        occurred = ctx.unit.occurred(Kind.VOTERS_RESTORED, f"Board:{voiding.board}")
        return await begin_job(ctx, new, store.voiding_put(after, voiding), *occurred)

    return await optimistic(lambda: store.voiding_by(ctx.table, job), begin, idempotent=True)


async def void_voters_job(services: Services, run: JobRun) -> str:
    """It starts over after an interruption, and passes over votes that are void."""
    await _change_votes(services, run, partial(store.void_votes, job=run.job.id))
    return f"Votes voided: {run.done:,}."


async def restore_voters_job(services: Services, run: JobRun) -> str:
    await _change_votes(services, run, partial(store.restore_votes, job=run.input["voided"]))
    return f"Votes restored: {run.done:,}."


async def _change_votes(
    services: Services, run: JobRun, change: Callable[[Table, str, str, UnitOfWork], AsyncGenerator[int]]
) -> None:
    """Change the votes of each voter of a job."""
    board, unit, voters = run.input["board"], services.unit(run.input["actor"] or None), run.input["voters"].split("\n")
    async with _changing_votes(services, board, *voters):
        for voter in voters:
            for each in await voters_of(services.table, voter, board):
                async for votes in change(services.table, each, board, unit):
                    run.done += votes
