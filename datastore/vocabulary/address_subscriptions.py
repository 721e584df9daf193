"""Subscriptions of an email address without an account: they have a record of their own until a member claims them.

The record is a member's profile and subscriptions, under an id made from the address. Nobody signs in as it.

Links in emails name the record. So a claim leaves an item that leads from them to the member's subscriptions.
It lies with the member's items, and is deleted with them when the member is erased.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING

from datastore.changes.kinds import Kind
from datastore.dynamo import ConditionFailed, Stale, optimistic
from datastore.dynamo.conditions import absent, present, where
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key
from datastore.people.confirmations import read_confirmation, use_confirmation
from datastore.people.profiles import (
    NO_EMAIL,
    PROFILE,
    Profile,
    read_profile,
)
from datastore.refusals import Conflict
from datastore.vocabulary.subscriptions import (
    end_writes,
    is_count_change,
    read_both,
    start_writes,
    subscription_occurrence,
)

if TYPE_CHECKING:
    from datetime import date

    from datastore.changes.unit_of_work import UnitOfWork
    from datastore.dynamo import Table
    from datastore.dynamo.writes import Write
    from datastore.vocabulary.subscriptions import Subscription


@dataclass(frozen=True, slots=True)
class AddressClaim:
    """A member has claimed the subscriptions of an address's record."""

    user: str
    record: str
    claimed_at: datetime


ADDRESS_CLAIM = Entity(
    AddressClaim, Key("USER#{user}", "CLAIMED#{record}"), gsi1=Key("CLAIMED#{record}", "USER#{user}")
)


async def note_claim(table: Table, claim: AddressClaim, unit: UnitOfWork) -> None:
    await unit.apply(table, ADDRESS_CLAIM.put(claim))


async def read_claims(table: Table, record: str) -> list[AddressClaim]:
    """Who claimed a record's subscriptions: several, if the address subscribed again after a claim."""
    return [claim async for claim in table.iterate(ADDRESS_CLAIM.on("gsi1", record=record))]


class ConfirmationUsed(Conflict):
    explanation = "This link was already used."


async def confirm_subscription(
    table: Table, owner: Profile, wanted: Subscription, used_up: tuple[str, str, date], unit: UnitOfWork
) -> None:
    """Start the subscription of an address and use its link up, all or nothing; ConfirmationUsed if it was used.

    `owner` is the address's record, which is created if it does not exist. `used_up` names the email: purpose, keyed
    hash of the address, date.
    """
    attempt = token_hex(16)

    async def read() -> tuple[Profile | None, Subscription | None, Subscription | None]:
        return await read_profile(table, owner.user), *await read_both(table, wanted)

    async def confirm(found: tuple[Profile | None, Subscription | None, Subscription | None]) -> None:
        stored, current, other = found
        started = current is None or not current.active
        occurrence = subscription_occurrence(unit, Kind.SUBSCRIPTION_STARTED, wanted) if started else ()
        writes = [use_confirmation(*used_up, unit.now, attempt), _owner_write(owner, stored)]
        try:
            await unit.apply(table, *writes, *start_writes(wanted, current, other), *occurrence)
        except ConditionFailed:
            confirmation = await read_confirmation(table, *used_up)
            if confirmation is not None and confirmation.used_by == attempt:
                return  # an attempt without an answer had been carried out
            if confirmation is None or confirmation.used is not None:
                raise ConfirmationUsed from None
            raise Stale from None

    await optimistic(read, confirm)


def _owner_write(owner: Profile, stored: Profile | None) -> Write:
    if stored is None:
        return PROFILE.put(owner, when=absent())
    values = {name: getattr(owner, name) for name in NO_EMAIL}
    return PROFILE.update(PROFILE.item_key(owner), values=values, when=present())


async def move_subscription(table: Table, old: Subscription, new: Subscription, unit: UnitOfWork) -> None:
    """End the record's subscription and start the member's, both or neither; one of theirs stays as it is."""

    async def move(found: tuple[Subscription | None, Subscription | None]) -> None:
        old_current, old_other = found
        if old_current is None or not old_current.active:
            return
        new_current, new_other = await read_both(table, new)
        occurrences = [*subscription_occurrence(unit, Kind.SUBSCRIPTION_ENDED, old)]
        if new_current is None or not new_current.active:
            occurrences += subscription_occurrence(unit, Kind.SUBSCRIPTION_STARTED, new)
        ends, starts = end_writes(old_current, old, old_other), start_writes(new, new_current, new_other)
        if old.shard == new.shard and is_count_change(ends[-1]) and is_count_change(starts[-1]):
            # A transaction changes an item only once, and the count stays as it is.
            del ends[-1], starts[-1]
        await unit.apply(table, *ends, *starts, *occurrences)

    await optimistic(partial(read_both, table, old), move, idempotent=True)


async def drop_address(table: Table, record: str, address: str) -> None:
    """A record whose subscriptions were claimed receives nothing more."""
    try:
        await table.write(PROFILE.update(PROFILE.at(user=record), values=NO_EMAIL, when=where(email=address)))
    except ConditionFailed:
        return
