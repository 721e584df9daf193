"""Daily words: one function per field."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, date, timedelta
from typing import Final

from datastore.dynamo import Page, Window
from datastore.refusals import InvalidInput, NotFound
from datastore.vocabulary.daily import (
    DailyWord,
    draw_daily_word,
    read_daily_word,
    read_daily_words_of_date,
    read_past_daily_words,
    read_upcoming_words,
)
from resolvers.loading import batched
from resolvers.people import visibility as member_visibility
from resolvers.requests.context import Context
from resolvers.vocabulary import visibility
from resolvers.vocabulary.cache import MOST_LISTS, VocabularyCache
from resolvers.vocabulary.lists import ListId
from resolvers.vocabulary.schedules import local_day, time_zone

MOST_DAYS_AHEAD: Final = 31


async def daily_words(ctx: Context, /, *, on: date | None = None) -> list[visibility.ShownDailyWord]:
    """The words of lists that the viewer may see, by the lists' names.

    While a list is being published, both parts of the index may lead to its word.
    """
    day = await _validated_day(ctx, on)
    owners = [None, member] if (member := ctx.viewer.member_id) is not None else [None]
    by_owner = await asyncio.gather(*(_load_daily_words(ctx, owner, day) for owner in owners))
    drawn = {daily.list: daily for daily_words in by_owner for daily in daily_words}
    lists = await ctx.services.get(VocabularyCache).lists.load_many([*drawn])
    named = [
        (shown.alphabetical, shown.list, visibility.show_daily_word(shown, daily))
        for word_list, daily in zip(lists, drawn.values(), strict=True)
        if (shown := visibility.show_list(ctx, word_list)) is not None
    ]
    return [daily for _, _, daily in sorted(named, key=lambda row: row[:2])]


async def daily_word(
    ctx: Context, word_list: visibility.ShownList, /, *, on: date | None = None
) -> visibility.ShownDailyWord | None:
    """The list's word of a date. The first request of a day draws its word; past days without a request have none."""
    day = await _validated_day(ctx, on)
    if day < _utc_today(ctx):
        daily = await read_daily_word(ctx.table, word_list.list, day)
    else:
        daily = await draw_daily_word(ctx.table, word_list.list, day)
    return None if daily is None else visibility.show_daily_word(word_list, daily)


async def review(
    ctx: Context,
    word_list: visibility.ShownList,
    /,
    *,
    from_: date | None = None,
    to: date | None = None,
    window: Window,
) -> Page[visibility.ShownDailyWord]:
    newest = await _newest_day(ctx)
    page = await read_past_daily_words(ctx.table, word_list.list, from_, to, window, newest)
    return page.map([visibility.show_daily_word(word_list, daily) for daily in page.nodes])


@batched
async def daily_word_words(ctx: Context, dailies: Sequence[visibility.ShownDailyWord], /) -> list[visibility.ShownWord]:
    """The words as they are now: those of lists with corrected words are read again."""
    cache = ctx.services.get(VocabularyCache)
    lists = await cache.lists.load_many([daily.list for daily in dailies])
    corrected = [
        (daily.list, daily.word.ordinal)
        for daily, word_list in zip(dailies, lists, strict=True)
        if word_list is not None and word_list.corrected
    ]
    words = dict(zip(corrected, await cache.words.load_many(corrected), strict=True))
    return [visibility.show_current_word(daily, words.get((daily.list, daily.word.ordinal))) for daily in dailies]


async def upcoming_words(ctx: Context, /, *, list: ListId, days: int = 14) -> Sequence[visibility.ShownDailyWord]:  # noqa: A002
    """For those who may change the list, who may then correct a word, or remove it until its day begins anywhere."""
    ctx.signed_in()
    word_list = await visibility.load_list(ctx, list, 0)
    if word_list is None:
        raise NotFound("There is no such list.", path=("list",))
    visibility.require_editable(ctx, word_list)
    if not 1 <= days <= MOST_DAYS_AHEAD:
        raise InvalidInput(f"Ask for 1 to {MOST_DAYS_AHEAD} days.", path=("days",))
    dates = [_utc_today(ctx) + timedelta(days=day) for day in range(days)]
    return [
        visibility.show_daily_word(word_list, daily) for daily in await read_upcoming_words(ctx.table, word_list, dates)
    ]


def _utc_today(ctx: Context) -> date:
    return ctx.now().astimezone(UTC).date()


async def _validated_day(ctx: Context, on: date | None) -> date:
    """The requested day, by default today in UTC. It must have begun, in UTC or in the viewer's time zone."""
    today = _utc_today(ctx)
    if on is None or on <= today:
        return on or today
    if on > await _newest_day(ctx):
        raise InvalidInput(
            f"The word of {on} is not drawn before that day begins. Ask for {today} or earlier.", path=("on",)
        )
    return on


async def _newest_day(ctx: Context) -> date:
    """The newest day that has begun, in UTC or in the viewer's time zone."""
    is_nobody = ctx.viewer.proven is not None  # who reads days does not become a member by that, and has set no zone
    today, viewer = _utc_today(ctx), None if is_nobody else await member_visibility.viewer(ctx)
    return today if viewer is None else max(today, local_day(ctx.now(), time_zone(viewer.time_zone)))


async def _load_daily_words(ctx: Context, owner: str | None, day: date) -> Sequence[DailyWord]:
    """A day's words of public lists, or of a member's private ones. Today's missing words are drawn."""
    if day < _utc_today(ctx):
        return await read_daily_words_of_date(ctx.table, day, owner, MOST_LISTS)
    return await ctx.services.get(VocabularyCache).days.load((owner, day)) or ()
