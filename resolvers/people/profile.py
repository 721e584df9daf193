"""A member's own profile: its changes, and the rules for its values."""

import re
from dataclasses import replace
from datetime import datetime
from functools import cache
from zoneinfo import available_timezones

from datastore.people import profiles as profile_store
from datastore.people.profiles import Profile
from datastore.refusals import InvalidInput, NotAllowed, NotFound
from resolvers.people.confirmations import Confirmations, MayArrive, Purpose
from resolvers.requests.context import LONGEST_NAME, UNSET, Context, Unset, parse_given
from resolvers.values.texts import LONGEST_EMAIL, is_email_address, parse_line, validate_web_address

# ── profiles ──

MOST_REMINDER_HOURS = 168
_TIME_OF_DAY = re.compile("([01][0-9]|2[0-3]):[0-5][0-9]", re.ASCII)


async def update_profile(
    ctx: Context,
    /,
    *,
    name: str | None = None,
    avatar_url: str | Unset | None = UNSET,
    email: str | Unset | None = UNSET,
    time_zone: str | Unset | None = UNSET,
    daily_word_at: str | Unset | None = UNSET,
    lock_reminder_hours: int | Unset | None = UNSET,
    reply_emails: bool | None = None,
) -> Profile:
    """Change the given values. Null clears a value; a name cannot be cleared; an address must be confirmed first."""
    member = ctx.member()
    settings = (email, time_zone, daily_word_at, lock_reminder_hours)
    if member.is_guest and (reply_emails is not None or any(value is not UNSET for value in settings)):
        raise NotAllowed("A guest has a name and a picture: sign in with an address for everything else.")
    ctx.count_change("profile")
    stored = await profile_store.read_profile(ctx.table, member.id)
    if stored is None:
        raise NotFound("This account was erased.")
    current = ctx.services.with_name(stored)
    changes = parse_given(
        name=(UNSET if name is None else name, lambda text: parse_display_name(text, member.id)),
        avatar_url=(avatar_url, lambda text: validate_web_address(text, ("input", "avatarUrl"), "An avatar")),
        time_zone=(time_zone, validate_time_zone),
        daily_word_at=(daily_word_at, validate_time_of_day),
        lock_reminder_hours=(lock_reminder_hours, lambda hours: validate_reminder_hours(hours) or None),
    )
    if reply_emails is not None:
        changes["reply_emails"] = reply_emails
    if email is not UNSET:  # the last, because it may send an email
        changes |= await _email_changes(ctx, current, None if email is None else validate_email_address(email))
    changed = replace(current, **changes)
    changes = {field: value for field, value in changes.items() if getattr(stored, field) != value}
    await profile_store.update_profile(ctx.table, changed, changes, ctx.unit)
    ctx.services.profiles.put(member.id, changed)
    return changed


async def _email_changes(ctx: Context, current: Profile, email: str | None) -> dict[str, str | datetime | None]:
    """What the profile stores: the address if it is confirmed, and else that it is to be, once its link was sent.

    A later change makes the links of earlier ones void.
    """
    changes: dict[str, str | datetime | None] = {"email_pending": None}
    if email is None:
        return {**changes, **profile_store.NO_EMAIL}
    if ctx.viewer.verified_email == email:
        return {**changes, **profile_store.proven(email, ctx.now())}
    confirmations = ctx.services.get(Confirmations)
    if email == current.email and (current.proven_email or not confirmations.can_send):
        return changes
    try:
        link = await confirmations.ask(ctx, Purpose.ADDRESS, email, [current.user], {"name": current.name})
    except MayArrive as refused:
        unit = ctx.services.unit(f"User:{current.user}")
        await profile_store.expect_email(ctx.table, current, refused.link.address, unit)
        raise
    return {"email_pending": link.address}


# ── rules for a profile's values ──


def parse_display_name(text: str, user: str) -> str:
    name = parse_line(text, LONGEST_NAME, "A name", ("input", "name"))
    if name == user[:LONGEST_NAME]:
        raise InvalidInput("A name must differ from the member's id, which is not shown.", path=("input", "name"))
    return name


def validate_email_address(text: str) -> str:
    if not is_email_address(text):
        raise InvalidInput(
            f"An email address looks like name@example.org and has at most {LONGEST_EMAIL} characters.",
            path=("input", "email"),
        )
    return text


def validate_time_zone(text: str) -> str:
    if text not in _time_zones():
        raise InvalidInput("A time zone is an IANA name such as Europe/Vienna.", path=("input", "timeZone"))
    return text


@cache
def _time_zones() -> frozenset[str]:
    """The names of all zones but the server's own and none. Finding them opens their files, so it is done once."""
    return frozenset(available_timezones() - {"localtime", "Factory"})


def validate_time_of_day(text: str) -> str:
    if not _TIME_OF_DAY.fullmatch(text):
        raise InvalidInput("A time of day is written as 07:30, from 00:00 to 23:59.", path=("input", "dailyWordAt"))
    return text


def validate_reminder_hours(hours: int) -> int:
    if not 0 <= hours <= MOST_REMINDER_HOURS:
        raise InvalidInput(
            f"A reminder comes 1 to {MOST_REMINDER_HOURS} hours before the lock; 0 means none.",
            path=("input", "lockReminderHours"),
        )
    return hours
