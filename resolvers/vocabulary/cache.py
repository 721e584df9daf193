"""Lists, words and a day's words, at most two seconds old. An index may be behind them."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import date, timedelta
from functools import partial
from math import inf
from typing import Final, TypeVar

import structlog

from datastore.dynamo import PageRequest, Reads, gather_or_cancel, read_each
from datastore.refusals import Conflict
from datastore.vocabulary import learning
from datastore.vocabulary.daily import DailyWord, ListBroken, daily_words_of_date, draw_daily_word
from datastore.vocabulary.learning import DateRange, ProfileScreen
from datastore.vocabulary.lists import WordList, lists_by_name, read_lists
from datastore.vocabulary.words import Word, read_words
from resolvers.requests.context import Context, Services

# ── cache ──

R = TypeVar("R")

_AGE = 2.0
_MOST_DAYS = 1_000
MOST_LISTS: Final = 100
"""Public lists whose words of a day are shown together, however many editors make: those with the first ids."""
_CONCURRENT_DRAWS = 16
_log = structlog.get_logger("ringside.vocabulary")


class VocabularyCache:
    """The reads of lists, words and a day's words."""

    def __init__(self, services: Services) -> None:
        self._services = services
        cache = services.cache
        self.lists: Reads[str, WordList] = cache.batches(
            "word_lists", partial(read_lists, services.table), age=_AGE, kept=inf
        )
        self.words = cache.batches("words", self._read_words, age=_AGE)
        self.days = cache.each("daily_words", self._draw_missing, age=_AGE, most=_MOST_DAYS)

    async def _read_words(self, keys: Sequence[tuple[str, int]]) -> Mapping[tuple[str, int], Word]:
        """Missing words are read again, consistently: another process may have written them a moment ago."""
        words = await read_words(self._services.table, keys)
        missing = [key for key in keys if key not in words]
        if not missing:
            return words
        return {**words, **await read_words(self._services.table, missing, consistent=True)}

    def put_written_list(self, word_list: WordList) -> None:
        """Take over a list that this process has just written. It may be one without a daily word."""
        self.lists.put(word_list.list, word_list)
        self.days.forget_all()

    def put_written_word(self, word: Word) -> None:
        self.words.put((word.list, word.ordinal), word)
        self.days.forget_all()

    async def _draw_missing(self, key: tuple[str | None, date]) -> Sequence[DailyWord]:
        """A day's words of public lists, or of a member's private ones; those that are missing are drawn, of all lists.

        Both indexes may be seconds behind. A word that is drawn but not in its index yet is found in the table by the
        draw; a list that is not in its index yet is missing until it is.
        """
        owner, day = key
        table = self._services.table
        listed, lists = await asyncio.gather(
            collect(daily_words_of_date(table, day, owner)),
            collect(lists_by_name(table, owner)),
        )
        drawn = {daily.list for daily in listed}
        missing = [each for each in lists if each.word_count and each.list not in drawn]
        new = await gather_or_cancel((self._draw(each.list, day) for each in missing), _CONCURRENT_DRAWS)
        both = [*listed, *(daily for daily in new if daily is not None)]
        return sorted(both, key=lambda daily: daily.list)[:MOST_LISTS]

    async def _draw(self, list_id: str, day: date) -> DailyWord | None:
        """One list's word; None if it cannot have one, so that the other lists still get theirs."""
        try:
            return await draw_daily_word(self._services.table, list_id, day)
        except (ListBroken, Conflict) as error:
            _log.error("a list has no daily word", list=list_id, reason=str(error))
            return None


async def collect(records: AsyncIterator[R]) -> list[R]:
    return [record async for record in records]


# ── profile screen ──
# Profile screens: the records that several fields of one member need, read in one query.

SCREEN_AGE = timedelta(days=31)
"""How far back a profile screen reaches; older days are read connection by connection."""


async def load_screen(ctx: Context, user: str, dates: DateRange, request: PageRequest) -> ProfileScreen | None:
    """The profile screen, if it contains the requested page: a first page of recent days."""
    if dates.since is None or request.position is not None or dates.since < ctx.now().date() - SCREEN_AGE:
        return None
    return await ctx.services.get(profile_screens).load((user, dates.since))


def profile_screens(services: Services) -> Reads[tuple[str, date], ProfileScreen]:
    """Screens by member and first day; none for a member whose screen is too large for one read.

    All fields that load a member's screen at the same time share one read, from the earliest of their days.
    """

    async def read(keys: Sequence[tuple[str, date]]) -> Mapping[tuple[str, date], ProfileScreen | Exception]:
        earliest: dict[str, date] = {}
        for user, since in keys:
            earliest[user] = min(since, earliest.get(user, since))
        screens = await read_each(
            list(earliest), lambda user: learning.read_profile_screen(services.table, user, earliest[user])
        )
        return {(user, since): screens[user] for user, since in keys if user in screens}

    return services.cache.batches("profile_screens", read)
