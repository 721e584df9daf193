"""What a viewer sees of members: a profile becomes a `ShownProfile` before a field shows it.

Everybody sees names and pictures. The rest of a profile is shown by the functions below, to the member and, where it
says so, to admins or moderators.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final, NewType

from datastore.dynamo import Page, Window, key_text
from datastore.people import profiles as profile_store
from datastore.people.identities import Identity, of_address, read_identities
from datastore.people.profiles import Profile
from datastore.refusals import InvalidInput, NotFound
from resolvers.people.identities import Members, make_viewer
from resolvers.requests.context import FORMER_MEMBER, Context, Role, UserId
from resolvers.values.node_ids import parse_node_key
from resolvers.values.texts import LONGEST_EMAIL, is_email_address

# ── profiles ──

AS_STORED: Final[Mapping[str, str]] = {}
"""What fields show without passing here, and why that gives nothing away."""

ShownProfile = NewType("ShownProfile", Profile)
ShownIdentity = NewType("ShownIdentity", Identity)

_FORMER_MEMBER_JOINED_AT: Final = datetime.fromtimestamp(0, UTC)
"""The same in every answer, since clients keep what has one id as one object."""


async def load_member(ctx: Context, user: str) -> Profile:
    """The member whom a mutation names, by a consistent read; NotFound if there is none."""
    profile = await profile_store.read_profile(ctx.table, key_text(user))
    if profile is None:
        raise NotFound("There is no such member.", path=("input", "user"))
    return ctx.services.with_name(profile)


async def viewer(ctx: Context, /) -> ShownProfile | None:
    """The viewer's profile; None for an anonymous visitor and an API key."""
    if not ctx.viewer.is_member:
        return None
    await make_viewer(ctx)
    profile = await ctx.services.profiles.load(ctx.viewer.id)
    if profile is None:  # perhaps only for plain reads, of one whom another process has just made
        profile = await profile_store.read_profile(ctx.table, ctx.viewer.id)
        profile = profile and ctx.services.with_name(profile)
    return _show_author(ctx.viewer.id, profile)


async def user(ctx: Context, /, *, id: UserId) -> ShownProfile | None:  # noqa: A002 - the argument's public name
    if ctx.viewer.is_user(id):
        return await viewer(ctx)
    profile = await ctx.services.profiles.load(key_text(id))
    return None if profile is None else ShownProfile(profile)


async def members(ctx: Context, users: Sequence[str]) -> list[ShownProfile | None]:
    """The profiles of members; None for those who are gone."""
    profiles = await ctx.services.profiles.load_many(users)
    return [None if profile is None else ShownProfile(profile) for profile in profiles]


async def author(ctx: Context, user: str) -> ShownProfile:
    """The profile of a user that a record names; a former member's if there is none."""
    return _show_author(user, await ctx.services.profiles.load(user))


async def authors(ctx: Context, users: Sequence[str]) -> list[ShownProfile]:
    """The same for many users, with one batch read."""
    profiles = await ctx.services.profiles.load_many(users)
    return [_show_author(user, profile) for user, profile in zip(users, profiles, strict=True)]


def _show_author(user: str, profile: Profile | None) -> ShownProfile:
    if profile is None:
        profile = Profile(user=user, name=FORMER_MEMBER, joined_at=_FORMER_MEMBER_JOINED_AT)
    return ShownProfile(profile)


async def find_members(ctx: Context, /, *, search: str | None = None, window: Window) -> Page[ShownProfile]:
    """The members found by id, by the beginning of a name or, by admins, by an address they sign in by; or all."""
    viewer = ctx.with_role(Role.MODERATOR)
    wanted = (search or "").strip()
    if len(wanted) > LONGEST_EMAIL:
        raise InvalidInput(f"A search has at most {LONGEST_EMAIL} characters.", path=("search",))
    found = await _named_exactly(ctx, wanted, by_address=viewer.may(Role.ADMIN))
    if found is not None:
        request = window.open("one member")
        return Page.cut([(found.user, found)] if request.position is None else [], request)
    page = await profile_store.read_members_page(ctx.table, profile_store.searched(wanted), window)
    return page.map(ShownProfile(ctx.services.with_name(profile)) for profile in page.nodes)


async def _named_exactly(ctx: Context, wanted: str, *, by_address: bool) -> ShownProfile | None:
    """The member with this id or address."""
    user = None
    if by_address and is_email_address(wanted):
        key = of_address(wanted).key
        identity = (await read_identities(ctx.table, [key])).get(key)
        user = None if identity is None else identity.user
    elif wanted:
        with suppress(InvalidInput):
            user = parse_node_key("User", wanted)
    profile = None if user is None else await ctx.services.profiles.load(key_text(user))
    return None if profile is None else ShownProfile(profile)


async def show_changed(_: Context, profile: Profile) -> ShownProfile:
    """The answer to whoever was allowed to change it."""
    return ShownProfile(profile)


# ── fields ──


async def identities(ctx: Context, profile: ShownProfile, /) -> list[ShownIdentity] | None:
    """For the member and admins, the oldest first."""
    if not (ctx.viewer.is_user(profile.user) or ctx.viewer.may(Role.ADMIN)):
        return None
    return [ShownIdentity(identity) for identity in await ctx.services.get(Members).of_profile(profile)]


def email(ctx: Context, profile: ShownProfile, /) -> str | None:
    """For the member and admins."""
    return profile.email if ctx.viewer.is_user(profile.user) or ctx.viewer.may(Role.ADMIN) else None


def time_zone(ctx: Context, profile: ShownProfile, /) -> str | None:
    """For the member only: it reveals where they live."""
    return profile.time_zone if ctx.viewer.is_user(profile.user) else None


def daily_word_at(ctx: Context, profile: ShownProfile, /) -> str | None:
    """For the member only, as their time zone is."""
    return profile.daily_word_at if ctx.viewer.is_user(profile.user) else None


def reply_emails(ctx: Context, profile: ShownProfile, /) -> bool | None:
    """For the member only."""
    return bool(profile.reply_emails) if ctx.viewer.is_user(profile.user) else None


def lock_reminder_hours(ctx: Context, profile: ShownProfile, /) -> int | None:
    """For the member only."""
    return profile.lock_reminder_hours if ctx.viewer.is_user(profile.user) else None
