"""Subscriptions to daily words: one function per field."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from operator import attrgetter

from datastore import vocabulary as vocabulary_store
from datastore.people.profiles import Profile
from datastore.refusals import Conflict
from datastore.vocabulary import CharacterSet, Subscription
from resolvers.requests.context import Context
from resolvers.vocabulary.cache import VocabularyCache
from resolvers.vocabulary.lists import CHANGE_RATE, ListId
from resolvers.vocabulary.profile_screen import profile_screens
from resolvers.vocabulary.visibility import ShownSubscription, require_input_list, show_subscriptions

MOST_SUBSCRIPTIONS = 200


async def subscriptions(ctx: Context, profile: Profile, /) -> list[ShownSubscription]:
    """The member's subscriptions, shown to the member only. Those of a deleted list have ended."""
    if not ctx.viewer.is_user(profile.user):
        return []
    screen = await ctx.services.get(profile_screens).load((profile.user, date.max))
    subscribed = screen.subscriptions if screen else await vocabulary_store.read_subscriptions(ctx.table, profile.user)
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
    ctx.services.rates.hit(CHANGE_RATE, "subscriptions", member.id)
    word_list, existing = await asyncio.gather(
        require_input_list(ctx, list), vocabulary_store.read_subscriptions(ctx.table, member.id)
    )
    wanted = Subscription(member.id, word_list.list, character_set, active=True, since=ctx.now())
    superfluous = make_room(existing, wanted, "You have")
    await vocabulary_store.delete_ended(ctx.table, superfluous)
    return await vocabulary_store.subscribe(ctx.table, wanted, ctx.unit)


def make_room(existing: Sequence[Subscription], wanted: Subscription, owner: str) -> Sequence[Subscription]:
    """The ended subscriptions that must go, oldest first, so that no more are stored than a member may have.

    Conflict if that many are active, unless one is to the same list. `owner` begins the message.
    """
    active = [each for each in existing if each.active]
    if len(active) >= MOST_SUBSCRIPTIONS and not any(each.list == wanted.list for each in active):
        raise Conflict(f"{owner} {len(active)} subscriptions, which is the limit. End one first.")
    key = (wanted.list, wanted.character_set)
    others = [each for each in existing if (each.list, each.character_set) != key]
    ended = sorted((each for each in others if not each.active), key=attrgetter("since"))
    return ended[: max(0, len(others) + 1 - MOST_SUBSCRIPTIONS)]


async def unsubscribe(
    ctx: Context,
    /,
    *,
    list: ListId,  # noqa: A002 - the argument's public name
    character_set: CharacterSet = CharacterSet.SIMPLIFIED,
) -> Subscription:
    member = ctx.member()
    await require_input_list(ctx, list)
    return await vocabulary_store.unsubscribe(ctx.table, member.id, list, character_set, ctx.unit)
