"""Exporting a member's file: JSON Lines, whose first line explains the kinds of all others.

The job writes the file into the table in pieces. Its link is sealed, and good once, within an hour after the job is
done.
"""

import dataclasses
import secrets
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import orjson

from datastore.changes.occurrences import Kind
from datastore.dynamo import PIECE_BYTES, Table
from datastore.jobs import jobs as job_store
from datastore.jobs.jobs import Job
from datastore.members import exports as export_store
from datastore.members.exports import Export, ExportPiece
from datastore.people.member_items import read_member
from datastore.refusals import NotAllowed
from resolvers.jobs.running import JobRun, JobRunner, new_job
from resolvers.people.visibility import load_member
from resolvers.requests.context import Context, Role, Services, UserId
from resolvers.values.texts import camel_case
from resolvers.whole.erasing import PARTS

EXPORT_MEMBER: Final = "EXPORT_MEMBER"
PURPOSE: Final = "member export"
PATH: Final = "/member-export"
LINK_LIFETIME = timedelta(hours=1)
_WRITING_TIME = timedelta(hours=6)
"""How long the pieces of a file may lie before it is complete."""
RATE: Final = "6/hour"
"""Exports that one member may begin in each process: each reads and writes everything about a member."""


@dataclass(frozen=True, slots=True)
class MemberExport:
    """A job that writes a member's file, and the link to fetch it with."""

    job: Job
    url: str


async def export_member(ctx: Context, /, *, user: UserId) -> MemberExport:
    """Begin to write down everything about a member; for themselves and admins."""
    viewer = ctx.signed_in()
    if not (viewer.may(Role.ADMIN) or viewer.is_user(user)):
        raise NotAllowed("Only an admin can export another member's data.", path=("input", "user"))
    member = await load_member(ctx, user)
    ctx.services.rates.hit(RATE, "members:export", viewer.id)
    occurred = ctx.unit.occurred(Kind.MEMBER_EXPORTED, f"User:{member.user}")
    job = new_job(ctx, EXPORT_MEMBER, {"user": member.user}, about=member.user)
    token = ctx.services.seal.sign_text(PURPOSE, job.id.encode())
    answer = MemberExport(job, f"{ctx.services.policy.public_url}{PATH}?token={token}")
    await job_store.begin_job(ctx.table, job, answer, ctx.unit, *occurred)
    ctx.services.get(JobRunner).work_soon(job)
    return answer


async def export_member_job(services: Services, run: JobRun) -> str:
    table, attempt, user = services.table, secrets.token_hex(8), run.input["user"]
    pieces, waiting = 0, bytearray()

    async def write() -> None:
        nonlocal pieces
        expires = services.clock() + _WRITING_TIME
        piece = bytes(waiting[:PIECE_BYTES])
        del waiting[:PIECE_BYTES]
        await export_store.write_piece(table, ExportPiece(run.job.id, attempt, pieces, piece, expires))
        pieces += 1

    run.done = 0
    async for line in file_lines(table, user, services.clock().isoformat()):
        waiting += line
        run.done += 1
        while len(waiting) >= PIECE_BYTES:
            await write()
    while waiting:
        await write()
    await export_store.publish(table, Export(run.job.id, attempt, pieces, services.clock() + LINK_LIFETIME))
    return "The file can be fetched once, within an hour."


async def file_lines(table: Table, user: str, exported_at: str) -> AsyncIterator[bytes]:
    """The lines of a member's file, each with its line feed."""
    yield _line({"kind": "header", "member": user, "exportedAt": exported_at, **_explanations()})
    async for kept, record in read_member(table, user, [part.items for part in PARTS]):
        names = (*(field.name for field in dataclasses.fields(record)), *kept.times_in_id)
        shown = {camel_case(name): getattr(record, name) for name in names if name not in kept.without}
        yield _line({"kind": kept.kind, "record": shown})


def _explanations() -> dict[str, Mapping[str, str]]:
    """What each kind is, and what the file leaves out and why."""
    kinds, left_out = {}, {}
    for entity, kept in (item for part in PARTS for item in part.items.kept.items()):
        if kept.kind is None:
            left_out[entity.record.__name__] = kept.note
        else:
            kinds[kept.kind] = kept.note
            left_out |= {f"{kept.kind}.{name}": reason for name, reason in kept.without.items()}
    return {"kinds": kinds, "leftOut": left_out}


def _line(fields: dict[str, Any]) -> bytes:
    return orjson.dumps(fields, default=_encoded, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_SORT_KEYS)


def _encoded(value: object) -> str:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    raise TypeError
