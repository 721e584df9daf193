"""The journal as moderators read it: one function per field."""

from collections.abc import Sequence

from datastore.changes.occurrences import Occurrence
from datastore.dynamo import Page, Window
from datastore.journal import reading
from datastore.journal.reading import MEMBER_ITEMS
from datastore.refusals import InvalidInput
from datastore.values.ids import is_ulid
from resolvers.loading import batched
from resolvers.people.member_data import MemberData
from resolvers.people.visibility import ShownProfile, members
from resolvers.requests.context import AnyId, Context, Role
from resolvers.values.node_ids import node_id, parse_node_id

# ── fields ──


async def journal(
    ctx: Context,
    /,
    *,
    actor: AnyId | None = None,
    object: AnyId | None = None,  # noqa: A002 - the argument's public name
    window: Window,
) -> Page[Occurrence]:
    """Newest first. Only admins may ask for a vote, whose name has its voter in it."""
    ctx.with_role(Role.MODERATOR)
    actor_name, object_name = _parse_name(actor, "actor"), _parse_name(object, "object")
    if object_name is not None and _names_voter(object_name):
        ctx.with_role(Role.ADMIN)
    return await reading.read_journal(ctx.table, actor_name, object_name, window)


def _parse_name(text: str | None, argument: str) -> str | None:
    """What the journal calls the node with this id."""
    if text is None:
        return None
    try:
        return ":".join(parse_node_id(text))
    except InvalidInput as refused:
        raise InvalidInput(refused.message, path=(argument,)) from None


async def occurrence_node(ctx: Context, key: str) -> Occurrence | None:
    """None for those who may not read the journal."""
    if not ctx.viewer.may(Role.MODERATOR) or not is_ulid(key):
        return None
    return await reading.read_occurrence(ctx.table, key)


def actor(_: Context, occurrence: Occurrence, /) -> str | None:
    return id_of(occurrence.actor)


@batched
async def actor_users(ctx: Context, occurrences: Sequence[Occurrence], /) -> list[ShownProfile | None]:
    """None for an actor who is no member, or not any more."""
    names = [(occurrence.actor or "").partition(":") for occurrence in occurrences]
    users = [key for kind, _, key in names if kind == "User"]
    shown = dict(zip(users, await members(ctx, users), strict=True))
    return [shown.get(key) if kind == "User" else None for kind, _, key in names]


def occurrence_object(ctx: Context, occurrence: Occurrence, /) -> str | None:
    return id_of(shown_object(ctx, occurrence))


def shown_object(ctx: Context, occurrence: Occurrence) -> str | None:
    """What the journal calls the object. A vote's name has its voter in it: only admins get it, others the board's."""
    name = occurrence.object
    if name is None or not _names_voter(name) or ctx.viewer.may(Role.ADMIN):
        return name
    _, board, *_ = name.split(":")
    return f"Board:{board}"


def _names_voter(name: str) -> bool:
    return name.startswith("Vote:")


def id_of(name: str | None) -> str | None:
    """The node id of what the journal calls by a name."""
    if name is None:
        return None
    type_name, _, key = name.partition(":")
    return node_id(type_name, key)


MEMBER_DATA = MemberData(MEMBER_ITEMS)
