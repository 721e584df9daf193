"""Imports of what an editor pastes: the same stores as those of the commands. docs/imports.md describes the formats.

A text is checked while its editor waits. If all of it may be imported, a job does that, whose answer is waited for.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import orjson

from datastore.jobs import jobs as job_store
from datastore.jobs.jobs import Job
from datastore.refusals import Conflict, InvalidInput, NotFound
from datastore.vocabulary import lists as list_store
from datastore.vocabulary.lists import WordList
from datastore.voting.boards import MAIN
from resolvers.jobs.running import JobRun, job_soon, new_job, shown_job
from resolvers.pickem.season_files import SeasonStore, season_rows
from resolvers.requests.context import Context, Role, Services
from resolvers.transfer.loop import OnProblem, Preview, PreviewedStore, import_records, preview_records
from resolvers.transfer.readers import Row, csv_rows
from resolvers.vocabulary import transfer as vocabulary
from resolvers.vocabulary.lists import ListId
from resolvers.vocabulary.visibility import require_input_list
from resolvers.voting import transfer as voting
from resolvers.voting.voiding import require_board

IMPORT_TEXT: Final = "IMPORT"
LONGEST_TEXT = 1_000_000
MOST_PROBLEMS = 100
"""As many as somebody mends at a time."""
RATE: Final = "300/hour"
"""Imports and previews of one editor in each process: each parses up to a megabyte, and reads what there is."""
_TEXT = "The text"


class Format(NamedTuple):
    """How a text is read, and where its records go."""

    read: Callable[[str], Iterator[Row]]
    open_store: Callable[[Services, str, str | None], PreviewedStore[Any]]
    """For a board or a list, and whom the journal names."""
    on_problem: OnProblem


@dataclass(frozen=True, slots=True)
class ImportProblem:
    """What is wrong with a row."""

    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import has added so far, or what a preview would add; and the job while it goes on."""

    added: int
    problems: tuple[ImportProblem, ...]
    job: Job | None


# ── formats ──


def _season_rows(text: str) -> Iterator[Row]:
    try:
        return season_rows(orjson.loads(text))
    except orjson.JSONDecodeError as error:
        raise InvalidInput(f"{_TEXT} is not JSON: {error}.") from None


async def _stored_list(services: Services, *, id_: str) -> WordList:
    found = (await list_store.read_lists(services.table, [id_])).get(id_)
    if found is None:
        raise NotFound("There is no such list any more.", path=("input", "list"))
    return found


FORMATS: Final[Mapping[str, Format]] = {
    "contenders": Format(
        lambda text: csv_rows(text, _TEXT, voting.COLUMNS, [("name",)], others=False),
        lambda services, board, actor: voting.ContenderStore(services, board, None, actor),
        OnProblem.REFUSE,
    ),
    "events": Format(_season_rows, lambda services, _, actor: SeasonStore(services, actor), OnProblem.REFUSE),
    "words": Format(
        lambda text: csv_rows(text, _TEXT, vocabulary.COLUMNS, vocabulary.REQUIRED, others=True),
        lambda services, list_, actor: vocabulary.WordStore(services, partial(_stored_list, id_=list_), actor),
        OnProblem.SKIP,
    ),
}

# ── fields ──


async def import_contenders(ctx: Context, /, *, board: str = MAIN, text: str, dry_run: bool = False) -> Imported:
    ctx.with_role(Role.EDITOR)
    await require_board(ctx, board)
    return await _import(ctx, "contenders", board, text, dry_run=dry_run)


async def import_events(ctx: Context, /, *, text: str, dry_run: bool = False) -> Imported:
    ctx.with_role(Role.EDITOR)
    return await _import(ctx, "events", "", text, dry_run=dry_run)


async def import_words(ctx: Context, /, *, list: ListId, text: str, dry_run: bool = False) -> Imported:  # noqa: A002
    """Into a public list: private ones are short, and their owners' alone."""
    ctx.with_role(Role.EDITOR)
    if not (await require_input_list(ctx, list)).public:
        raise InvalidInput("Only a public list takes an import.", path=("input", "list"))
    return await _import(ctx, "words", list, text, dry_run=dry_run)


async def _import(ctx: Context, what: str, into: str, text: str, *, dry_run: bool) -> Imported:
    ctx.services.rates.hit(RATE, "imports", ctx.viewer.id)
    if len(text.encode()) > LONGEST_TEXT:
        raise InvalidInput(f"An import has at most {LONGEST_TEXT:,} bytes: split it.", path=("input", "text"))
    found = await _preview(ctx.services, what, into, text)
    problems = tuple(ImportProblem(row.number, message) for row, message in found.problems[:MOST_PROBLEMS])
    if dry_run or not found.missing:
        previewed = Imported(len(found.missing), problems, None)
        if not dry_run:
            await ctx.unit.store_receipt(ctx.table, previewed)
        return previewed
    input_ = {"what": what, "into": into, "actor": ctx.unit.actor or "", "problems": f"{len(found.problems)}"}
    new = new_job(ctx, IMPORT_TEXT, input_, role=Role.EDITOR)
    await job_store.store_text(ctx.table, new.id, text, ctx.now() + job_store.LIFETIME)
    await job_store.begin_job(ctx.table, new, Imported(0, problems, shown_job(new)), ctx.unit)
    job = await job_soon(ctx, new, import_text_job)
    answer = Imported(job.done, problems, job if job.is_running else None)
    await ctx.unit.replace_receipt(ctx.table, answer)
    return answer


async def _preview(services: Services, what: str, into: str, text: str) -> Preview:
    """What is to be imported; InvalidInput if the text as a whole cannot be read."""
    form = FORMATS[what]
    try:
        # Without the mark that begins a file from a spreadsheet; in a thread, like `preview_records`.
        rows = await asyncio.to_thread(lambda: [*form.read(text.removeprefix("\ufeff"))])
    except InvalidInput as unreadable:
        raise InvalidInput(unreadable.message, path=("input", "text")) from None
    return await preview_records(rows, form.open_store(services, into, None), form.on_problem)


# ── the job ──


async def import_text_job(services: Services, run: JobRun) -> str | None:
    """Add what is missing, and say so; an attempt after that, which finds no text any more, has what it said."""
    if run.place is None:
        run.place = await _add_text(services, run)
        await run.report()
    await job_store.delete_text(services.table, run.job.id)
    return run.place


async def _add_text(services: Services, run: JobRun) -> str:
    """Add what is still missing: what an attempt before this one has added counts as done."""
    what, into, actor = run.input["what"], run.input["into"], run.input["actor"] or None
    text = await job_store.read_text(services.table, run.job.id)
    found = await _preview(services, what, into, text)
    if len(found.problems) > int(run.input["problems"]):
        raise Conflict("Others have taken room that this import needs. Import the text again: what was added stays.")
    if run.total is None:
        run.total = len(found.missing)
        await run.report()
    done = run.total - len(found.missing)

    def advance(read: int) -> None:
        run.done = done + read

    advance(0)
    store = FORMATS[what].open_store(services, into, actor)
    imported = await import_records(found.missing, store, OnProblem.STOP, advance)
    return "".join([f"Added: {run.done:,}.", *(f" {problem}" for problem in imported.problems)])
