"""Commands that look after what is stored: `audit`, `jobs`, `score`, `board reshard`, `webhooks deliver`."""

import asyncio
from collections.abc import Collection
from typing import Annotated

import typer

from datastore.dynamo import Table, iso
from datastore.jobs import jobs as job_store
from datastore.jobs.jobs import Job
from datastore.values.ids import is_ulid
from datastore.voting import boards as board_store
from datastore.voting.boards import MAIN
from resolvers.jobs.running import JobRunner, refuse_failed
from resolvers.pickem.cache import load_locked_if_due
from resolvers.pickem.scoring import SCORE_EVENT, begin_scoring, event_job, score_event_job
from resolvers.requests.context import Services
from resolvers.values.node_ids import node_id, parse_node_key
from resolvers.values.texts import CONTROL_CHARACTERS
from server import Failed
from server.audit import find_breaches
from server.commands import err, out
from server.commands.files import progress_bar
from server.commands.running import run_with_services
from server.webhooks import Counts, Deliverer, open_sender

app = typer.Typer()

# ── audit ──


@app.command()
def audit() -> None:
    """Checks the invariants of the stored data; exit code 1 if one is broken."""
    broken = run_with_services(find_breaches)
    for breach in broken:
        err.print(breach, style="red")
    if broken:
        raise Failed("Not all checks passed.")
    out.print("All checks passed.")


# ── jobs ──

_LOOK_SECONDS = 0.5


@app.command()
def jobs(
    *, resume: Annotated[bool, typer.Option("--resume", help="Work on unfinished jobs until none is due.")] = False
) -> None:
    """Lists the jobs of the last 30 days, newest first. A serving process works on them by itself."""
    found = run_with_services(_resume if resume else _read_jobs)
    for one in found:
        out.print(_line(one))
    if not found:
        out.print("There are no jobs.")


def _line(job: Job) -> str:
    done = f"{job.done:,}" if job.total is None else f"{job.done:,} of {job.total:,}"
    ended = f", ended {iso(job.finished_at)}" if job.finished_at else ""
    times = f"started {iso(job.started_at)}{ended}"
    message = " ".join((job.message or "").split())
    return "  ".join(filter(None, (node_id("Job", job.id), job.kind, job.state, f"{done} done", times, message)))


async def _read_jobs(services: Services) -> list[Job]:
    return [one async for one in job_store.all_jobs(services.table)]


async def _resume(services: Services) -> list[Job]:
    """Work on every due job whose process is gone, and wait for the others. Kinds of a newer release are left to it."""
    from resolvers.whole.jobs import JOB_KINDS

    services.get(JobRunner).start(JOB_KINDS)
    with err.status("Looking for unfinished jobs"):
        while await _some_are_due(services, JOB_KINDS):  # noqa: ASYNC110 - others finish some of them
            await asyncio.sleep(_LOOK_SECONDS)
    return await _read_jobs(services)


async def _some_are_due(services: Services, kinds: Collection[str]) -> bool:
    unfinished = await job_store.read_unfinished_jobs(services.table)
    return any(one.kind in kinds and one.is_due(services.clock()) for one in unfinished)


# ── scoring ──

_REFRESH_SECONDS = 0.2


@app.command()
def score(
    event: Annotated[str, typer.Argument(help="The event's id, as the API or an export shows it.")],
    *,
    confirm_missing: Annotated[
        bool, typer.Option("--confirm-missing", help="Score even if matches have no result: they give no points.")
    ] = False,
) -> None:
    """Scores the predictions of an event. Safe to interrupt, to repeat and to run several times at once.

    An event that is already scored is checked: wrong points and ranks are repaired.
    """
    event_id = event if is_ulid(event) else parse_node_key("Event", event)
    name, scored = run_with_services(lambda services: _score(services, event_id, confirm_missing))
    out.print(f"{name}: {scored} predictions are scored.")


async def _score(services: Services, event_id: str, confirm_missing: bool) -> tuple[str, int]:
    """The event's name, and how many predictions are scored."""
    runner, new = services.get(JobRunner), event_job(services, SCORE_EVENT, event_id, actor=services.operator)
    job = await begin_scoring(services, new, confirm_missing=confirm_missing)
    with progress_bar("predictions") as advance:
        ended = runner.finish(job, score_event_job)
        while not ended.done():
            await asyncio.wait({ended}, timeout=_REFRESH_SECONDS)
            current = await runner.current(job)
            advance(current.done, current.total)
    job = refuse_failed(ended.result())
    event = await load_locked_if_due(services, event_id)
    name = event_id if event is None else event.name
    return CONTROL_CHARACTERS.sub(" ", name), job.done  # names were once accepted with them


# ── boards ──

boards = typer.Typer(help="Boards: how they count votes.", no_args_is_help=True)
app.add_typer(boards, name="board")


@boards.command()
def reshard(
    slug: Annotated[str, typer.Argument(help="The board.")] = MAIN,
    votes_per_second: Annotated[
        int, typer.Option(min=1, max=100_000, help="The rate of votes to prepare for.")
    ] = board_store.DEFAULT_RATE,
) -> None:
    """Sets the number of shards of a board's counters for a rate of votes. Safe while people vote."""
    shards = run_with_services(lambda services: _reshard(services.table, slug, votes_per_second))
    out.print(f"Votes on {slug} are counted in {shards} shard{'s' if shards > 1 else ''} from now on.")


async def _reshard(table: Table, slug: str, rate: int) -> int:
    marked = await board_store.read_board_with_marks(table, slug)
    if marked is None:
        raise Failed(f"There is no board called {slug}.")
    return await board_store.reshard(table, marked.board, rate)


# ── webhooks ──

webhooks = typer.Typer(help="Webhooks: deliver what waits for them.", no_args_is_help=True)
app.add_typer(webhooks, name="webhooks")


@webhooks.callback()
def _of_webhooks() -> None:
    """Keeps `deliver` a command of its own."""


@webhooks.command()
def deliver() -> None:
    """Sends what is due to webhooks, then exits. For cron, where no process serves."""
    counts = run_with_services(_deliver)
    out.print(f"{counts.delivered} delivered, {counts.failed} to be tried again, {counts.dead} given up.")


async def _deliver(services: Services) -> Counts:
    async with open_sender(services.policy.webhook_networks) as sender:
        deliverer = Deliverer(services, sender)
        try:
            with err.status("Delivering"):
                await deliverer.drain()
        finally:
            await deliverer.close()
    return deliverer.counts
