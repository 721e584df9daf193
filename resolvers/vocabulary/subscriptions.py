"""Subscriptions to daily words: one function per field."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime, timedelta
from operator import attrgetter

from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import Table, gather_or_cancel
from datastore.people import profiles as profile_store
from datastore.people.identities import comparable_address
from datastore.people.profiles import Profile
from datastore.refusals import Conflict, NotAllowed, NotFound
from datastore.values.seal import Seal
from datastore.vocabulary import subscriptions as subscription_store
from datastore.vocabulary.lists import WordList, read_list, read_lists
from datastore.vocabulary.subscriptions import AddressClaim, CharacterSet, Claimed, Subscription
from resolvers.people.confirmations import Confirmations, Link, Purpose, has_bounced
from resolvers.people.profile import validate_email_address
from resolvers.requests.context import Context, Services
from resolvers.vocabulary.cache import VocabularyCache, profile_screens
from resolvers.vocabulary.lists import ListId
from resolvers.vocabulary.visibility import ShownList, ShownSubscription, require_input_list, show_subscriptions

# ── subscriptions of members ──

MOST_SUBSCRIPTIONS = 200
_AT_ONCE = 8


async def subscriptions(ctx: Context, profile: Profile, /) -> list[ShownSubscription]:
    """The member's subscriptions, shown to the member only. Those of a deleted list have ended."""
    if not ctx.viewer.is_user(profile.user):
        return []
    screen = await ctx.services.get(profile_screens).load((profile.user, date.max))
    subscribed = (
        screen.subscriptions if screen else await subscription_store.read_subscriptions(ctx.table, profile.user)
    )
    lists = await ctx.services.get(VocabularyCache).lists.load_many([each.list for each in subscribed])
    named = [
        replace(subscription, active=subscription.active and word_list.deleted_at is None)
        for subscription, word_list in zip(subscribed, lists, strict=True)
        if word_list is not None and word_list.was_visible_to(profile.user)
    ]
    return show_subscriptions(ctx, named)


async def subscribe(
    ctx: Context,
    /,
    *,
    list: ListId,  # noqa: A002 - the argument's public name
    character_set: CharacterSet = CharacterSet.SIMPLIFIED,
) -> Subscription:
    member = ctx.member()
    ctx.count_change("subscriptions")
    word_list, existing = await asyncio.gather(
        require_input_list(ctx, list), subscription_store.read_subscriptions(ctx.table, member.id)
    )
    wanted = Subscription(member.id, word_list.list, character_set, active=True, since=ctx.now())
    await _make_room(ctx.services, existing, wanted, "You have")
    return await subscription_store.subscribe(ctx.table, wanted, ctx.unit)


async def _make_room(services: Services, existing: Sequence[Subscription], wanted: Subscription, owner: str) -> None:
    """Delete the ended subscriptions that must go, oldest first, so that no more are stored than a member may have.

    If that many are active, those to deleted lists are ended first. Conflict if there are still too many, unless one
    is to the same list. `owner` begins the message.
    """
    if sum(each.active for each in existing) >= MOST_SUBSCRIPTIONS:
        existing = await _end_with_lists(services, existing)
    active = [each for each in existing if each.active]
    if len(active) >= MOST_SUBSCRIPTIONS and not any(each.list == wanted.list for each in active):
        raise Conflict(f"{owner} {len(active)} subscriptions, which is the limit. End one first.")
    key = (wanted.list, wanted.character_set)
    others = [each for each in existing if (each.list, each.character_set) != key]
    ended = sorted((each for each in others if not each.active), key=attrgetter("since"))
    superfluous = ended[: max(0, len(others) + 1 - MOST_SUBSCRIPTIONS)]
    await subscription_store.delete_ended(services.table, superfluous)


async def _end_with_lists(services: Services, existing: Sequence[Subscription]) -> list[Subscription]:
    """These subscriptions, after those to deleted lists were ended."""
    lists = await read_lists(services.table, list({each.list for each in existing if each.active}))
    deleted = {key for key, word_list in lists.items() if word_list.deleted_at is not None}
    ending = [each for each in existing if each.active and each.list in deleted]
    await gather_or_cancel((end_with_list(services, each) for each in ending), _AT_ONCE)
    return [replace(each, active=each.active and each.list not in deleted) for each in existing]


async def end_with_list(services: Services, subscription: Subscription) -> None:
    """End a subscription to a list that was deleted."""
    key = (subscription.user, subscription.list, subscription.character_set)
    with suppress(NotFound):
        await subscription_store.unsubscribe(services.table, *key, services.unit())


async def unsubscribe(
    ctx: Context,
    /,
    *,
    list: ListId,  # noqa: A002 - the argument's public name
    character_set: CharacterSet = CharacterSet.SIMPLIFIED,
) -> Subscription:
    """End the subscription, even one to a deleted list. Whoever has one was allowed to see its list."""
    member = ctx.member()
    ctx.count_change("subscriptions")
    return await subscription_store.unsubscribe(ctx.table, member.id, list, character_set, ctx.unit)


# ── address subscriptions ──
# Subscriptions by email address, without an account: asked for, confirmed by a link, claimed by a member.
#
# A confirmed address has a record of its own, as `ringside migrate legacy` makes one for each address that no member
# has. A member may claim a record's subscriptions once the address is proven to be theirs: they opened the link that
# `updateProfile` sent to it, or their provider says so in their token.

RECORD_PREFIX = "m-"
"""What the ids of addresses' records begin with."""


# ── asking ──


async def subscribable_by_email(ctx: Context, word_list: ShownList, /) -> bool:
    return word_list.public and ctx.services.get(Confirmations).can_send


async def request_subscription(
    ctx: Context,
    /,
    *,
    email: str,
    list: ListId,  # noqa: A002 - the argument's public name
    character_set: CharacterSet = CharacterSet.SIMPLIFIED,
) -> str:
    """Send the link by which the address subscribes, once a day.

    No receipt is stored for an idempotency key, since that would hold the address: a repeat sends nothing anyway.
    """
    validate_email_address(email)
    word_list = await require_input_list(ctx, list)
    if not word_list.public:
        raise NotAllowed("A private list is sent to its owner only, who has to sign in.", path=("input", "list"))
    about = (word_list.list, character_set.value)
    confirmations = ctx.services.get(Confirmations)
    await confirmations.ask(ctx, Purpose.SUBSCRIPTION, email, about, {"list_name": word_list.name})
    return email


# ── confirming ──


async def read_list_to_confirm(services: Services, link: Link) -> WordList:
    """The list that a link is about; NotFound if it is not there for everybody any more."""
    word_list = await read_list(services.table, link.about[0], consistent=True)
    if word_list is None or word_list.deleted_at is not None or not word_list.public:
        raise NotFound("This list was deleted.")
    return word_list


async def confirm_subscription(services: Services, link: Link) -> WordList:
    """Start the subscription that a link is about and use the link up, all or nothing."""
    word_list = await read_list_to_confirm(services, link)
    record = await _load_record(services.table, services.seal, link.email)
    owner = record or new_record(services.seal, link.email, services.clock())
    existing = await subscription_store.read_subscriptions(services.table, owner.user)
    unit = services.unit(f"User:{owner.user}")
    owner = replace(owner, email=link.email, email_confirmed=unit.now)
    wanted = Subscription(owner.user, word_list.list, CharacterSet(link.about[1]), active=True, since=unit.now)
    await _make_room(services, existing, wanted, "This address has")
    await subscription_store.confirm_subscription(services.table, owner, wanted, link.used_up, unit)
    services.profiles.put(owner.user, owner)
    return word_list


def record_id(seal: Seal, email: str) -> str:
    """The id of an address's record. It is keyed, so that it does not reveal the address."""
    return _record_ids(seal, email)[0]


def _record_ids(seal: Seal, email: str) -> Sequence[str]:
    """The ids under each of the secrets, the newest first."""
    hashes = seal.keyed_hashes("legacy member", comparable_address(email).encode())
    return [RECORD_PREFIX + each.hex()[:24] for each in hashes]


def new_record(seal: Seal, email: str, now: datetime) -> Profile:
    user = record_id(seal, email)
    return Profile(user, f"Reader {user[2:8]}", joined_at=now, email=email)


async def _load_record(table: Table, seal: Seal, email: str) -> Profile | None:
    """The record of an address, also one whose subscriptions were claimed."""
    for user in _record_ids(seal, email):
        profile = await profile_store.read_profile(table, user)
        if profile is not None and comparable_address(profile.email or email) == comparable_address(email):
            return profile
    return None


# ── claiming ──


async def claim_subscriptions(ctx: Context, /) -> Claimed:
    """Move the subscriptions of the member's proven addresses to the member.

    An interrupted claim leaves no receipt, so that a repeat completes it.
    """
    member = ctx.member()
    ctx.count_change("subscriptions")
    profile = await profile_store.read_profile(ctx.table, member.id)
    confirmed = profile.proven_email if profile is not None else None
    addresses = list(dict.fromkeys(address for address in (member.verified_email, confirmed) if address))
    if not addresses:
        raise NotAllowed(
            "No email address is known to be yours. Enter it in your profile and open the link in the email, or sign "
            "in where your address is verified."
        )
    claimed: dict[tuple[str, CharacterSet], Subscription] = {}
    for address in addresses:
        record = await _load_record(ctx.table, ctx.services.seal, address)
        if record is not None and record.user != member.id:
            claimed |= await _claim(ctx.services, member.id, ctx.unit, record)
    if profile is not None and profile.email is None and not has_bounced(ctx.services.seal, profile, addresses[0]):
        await _give_address(ctx, addresses[0])
    answer = Claimed(tuple(claimed.values()))
    await ctx.unit.store_receipt(ctx.table, answer)
    return answer


async def claim_address(services: Services, user: str, address: str) -> None:
    """Move what an address subscribed to, to the member who has just proven that it is theirs."""
    record = await _load_record(services.table, services.seal, address)
    if record is not None and record.user != user:
        await _claim(services, user, services.unit(f"User:{user}"), record)


async def _claim(
    services: Services, user: str, unit: UnitOfWork, record: Profile
) -> dict[tuple[str, CharacterSet], Subscription]:
    """Move what the record has, then its address, then what was confirmed meanwhile.

    What was sent to the record is noted for the member first, so that no kill in between lets it be sent again; and at
    the end once more, for what was sent meanwhile. A member with lists of their own still needs those lists' words.
    """
    left = await subscription_store.read_subscriptions(services.table, record.user)
    if record.email is not None or any(each.active for each in left):  # somebody else's claim may have left nothing
        claim = AddressClaim(user, record.user, services.clock())
        await subscription_store.note_claim(services.table, claim)
    own = await subscription_store.read_subscriptions(services.table, user)
    has_own = any(each.active for each in own)
    if not has_own:
        await _note_sent(services, user, record)
    await _move_all(services, user, unit, record)
    if record.email is not None:
        await subscription_store.drop_address(services.table, record.user, record.email)
        services.profiles.forget(record.user)
    old = await _move_all(services, user, unit, record)
    if not has_own:
        await _note_sent(services, user, record)
    keys = {_key(each) for each in old}
    own = await subscription_store.read_subscriptions(services.table, user)
    return {_key(each): each for each in own if each.active and _key(each) in keys}


async def _note_sent(services: Services, user: str, record: Profile) -> None:
    """The emails of the dates that may be due to somebody, in any zone."""
    dates = [services.clock().date() + timedelta(days=days) for days in (-2, -1, 0, 1)]
    await subscription_store.copy_mails(services.table, record.user, user, dates)


async def _move_all(services: Services, user: str, unit: UnitOfWork, record: Profile) -> Sequence[Subscription]:
    """Everything that the record had; what was active has moved, except from lists that are no longer public."""
    old = await subscription_store.read_subscriptions(services.table, record.user)
    lists = await read_lists(services.table, list({each.list for each in old}))
    moving = [each for each in old if each.active and each.list in lists and lists[each.list].visible_to(user)]
    await gather_or_cancel((_move(services, user, unit, subscription) for subscription in moving), _AT_ONCE)
    return old


async def _move(services: Services, user: str, unit: UnitOfWork, subscription: Subscription) -> None:
    ended = replace(subscription, active=False)
    started = replace(subscription, user=user)
    await subscription_store.move_subscription(services.table, ended, started, unit)


async def _give_address(ctx: Context, email: str) -> None:
    """A member without an address receives what they claimed where it was received before."""
    changed = await profile_store.give_email(ctx.table, ctx.viewer.id, email, ctx.unit)
    if changed is not None:
        ctx.services.profiles.put(changed.user, ctx.services.with_name(changed))


def _key(subscription: Subscription) -> tuple[str, CharacterSet]:
    return subscription.list, subscription.character_set
