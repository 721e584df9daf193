"""Looking for a board's suspects as a job, and showing what the last one found.

A process of its own reads the votes and computes (`suspect_search`), so requests go on meanwhile. What is shown names
nobody: a voter's pseudonym on the board is a keyed hash, and `voidVoters` takes it.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from signal import SIGINT, SIGTERM
from typing import Any

import orjson

from datastore.changes.occurrences import Kind
from datastore.dynamo import EngineUnavailable, Table, Window, chunks, optimistic
from datastore.jobs import jobs as job_store
from datastore.jobs.jobs import Job
from datastore.refusals import InvalidInput
from datastore.values.seal import Seal
from datastore.voting import suspects as store
from datastore.voting.boards import MAIN
from datastore.voting.contenders import read_contenders
from datastore.voting.suspects import RankChange, Suspect, SuspectSearch
from resolvers.jobs.running import JobRun, begin_job, found_job, new_job
from resolvers.requests.context import Context, Role, Services
from resolvers.voting.suspect_search import NO_ENGINE
from resolvers.voting.suspicion import MOST_PROBABLE
from resolvers.voting.visibility import SuspectPage, suspects_page
from resolvers.voting.voiding import require_board

FIND_SUSPECTS = "FIND_SUSPECTS"
_STORED_AT_ONCE = 100
_LONGEST_LINE = 2**16
_MOST_TOLD = 5
_INTERRUPTED = (NO_ENGINE, -SIGTERM, -SIGINT)
"""Exit codes after which the job begins again: signals reach this process too, which then leaves it to another."""
_ROOT = Path(__file__).parents[2]


# ── fields ──


async def suspects(ctx: Context, /, *, board: str = MAIN, at_most: float = 0.01, window: Window) -> SuspectPage:
    """What the last search found, the least probable first."""
    ctx.with_role(Role.EDITOR)
    if not 0 < at_most <= MOST_PROBABLE:
        raise InvalidInput(f"Give a probability above 0, of at most {MOST_PROBABLE}.", path=("atMost",))
    await require_board(ctx, board)
    return await suspects_page(ctx, board, at_most, window)


async def find_suspects(ctx: Context, /, *, board: str) -> Job:
    """Begin to look for a board's suspects; while a search runs, it is the one that is meant."""
    ctx.with_role(Role.EDITOR)
    await require_board(ctx, board)

    async def begin(before: SuspectSearch | None) -> Job:
        running = await job_store.read_job(ctx.table, before.job) if before else None
        if running is not None and running.is_running:
            return await found_job(ctx, running)
        job = new_job(ctx, FIND_SUSPECTS, {"board": board}, role=Role.EDITOR)
        if before is None:
            after = SuspectSearch(board, job.id, 1)
        else:
            after = replace(before, job=job.id, version=before.version + 1)
        occurred = ctx.unit.occurred(Kind.SUSPECTS_SOUGHT, f"Board:{board}")
        return await begin_job(ctx, job, store.search_put(after, before), *occurred)

    return await optimistic(lambda: store.read_search(ctx.table, board), begin, idempotent=True)


# ── the job ──


async def find_suspects_job(services: Services, run: JobRun) -> str:
    """It starts over after an interruption, and replaces what it had stored."""
    board = run.input["board"]
    async with _searching(services.table, board) as lines:
        totals, *read = [orjson.loads(line) async for line in lines]
    found = [_suspect(services.seal, run.job, board, place, each) for place, each in enumerate(read)]
    run.total = len(found)
    kept = 0
    await store.delete_others(services.table, board, run.job.id, {each.voter for each in found})
    for batch in chunks(found, _STORED_AT_ONCE):
        kept += await store.store_suspects(services.table, batch)
        run.done = kept
    now = services.clock()
    await store.show_search(services.table, board, run.job.id, now, totals["votes"], totals["voters"])
    told = f"Votes seen: {totals['votes']:,}. Voters to look at: {kept:,}."
    return " ".join((told, *await _pushed(services.table, board, totals["pushed"])))


async def _pushed(table: Table, board: str, pushed: Sequence[Sequence[Any]]) -> list[str]:
    """A sentence for each of the first contenders that groups vote for or against."""
    told = pushed[:_MOST_TOLD]
    contenders = await read_contenders(table, [(board, ordinal) for ordinal, *_ in told])
    return [
        f"A group seems to vote {'for' if up else 'against'} {contender.name}: rank {rank}, {without} without it."
        for ordinal, up, rank, without in told
        if (contender := contenders.get((board, ordinal)))
    ]


@asynccontextmanager
async def _searching(table: Table, board: str) -> AsyncIterator[AsyncIterator[bytes]]:
    """The lines that the searching process answers. It ends with its reader."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "resolvers.voting.suspect_search",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=_LONGEST_LINE,
        cwd=_ROOT,
    )
    assert process.stdin is not None  # noqa: S101 - it was asked for
    try:
        with suppress(ConnectionError):  # it has ended already, and its exit code says why
            process.stdin.write(orjson.dumps({"board": board, "address": table.address}) + b"\n")
            await process.stdin.drain()
        yield _lines(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _lines(process: asyncio.subprocess.Process) -> AsyncIterator[bytes]:
    assert process.stdout is not None  # noqa: S101 - it was asked for
    while line := await process.stdout.readline():
        yield line
    code = await process.wait()
    if code in _INTERRUPTED:
        raise EngineUnavailable(f"the search for suspects was interrupted: {code}")
    if code:
        raise RuntimeError(f"The search for suspects ended with {code}.")


def _suspect(seal: Seal, job: Job, board: str, place: int, found: Mapping[str, Any]) -> Suspect:
    voter = found["voter"]
    return Suspect(
        board=board,
        job=job.id,
        place=place,
        voter=voter,
        pseudonym=store.PSEUDONYM + seal.keyed_hash("suspect", f"{board}#{voter}".encode()).hex(),
        last_vote=found["last_vote"],
        votes=found["votes"],
        probability=found["probability"],
        reasons=tuple(found["reasons"]),
        changes=tuple(RankChange(**change) for change in found["changes"]),
        expires=job.started_at + store.LIFETIME,
    )
