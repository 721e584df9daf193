"""Word lists, daily words and subscriptions: one function per field."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date
from typing import Annotated

import structlog

from datastore import vocabulary as vocabulary_store
from datastore.dynamo import Page, Window
from datastore.people import Profile
from datastore.refusals import Conflict, InvalidInput
from datastore.vocabulary import (
    LONGEST_LIST,
    MOST_WORDS,
    AddedWords,
    Batch,
    CharacterSet,
    DailyWord,
    ListBroken,
    Subscription,
    Word,
    WordList,
)
from resolvers import people
from resolvers.context import Context, NodeOf
from resolvers.viewer import Role
from resolvers.vocabulary.profile_screen import profile_screens
from resolvers.vocabulary.streaks import local_day, time_zone
from resolvers.vocabulary.visibility import Shelves, line, load_list, named_list, optional_line, reader, visible_word

ListId = Annotated[str, NodeOf("WordList")]

LONGEST_NAME = 100
LONGEST_CHARACTERS = 100
LONGEST_PINYIN = 200
LONGEST_DEFINITION = 1000
HIGHEST_LEVEL = 100
MOST_SUBSCRIPTIONS = 200
DIGITS = 6
CHANGES = "600/minute"
_DRAWS_AT_ONCE = 16
_log = structlog.get_logger("ringside.vocabulary")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWord:
    """A word as somebody gives it: every text is unchecked."""

    simplified: str
    traditional: str | None = None
    pinyin: str | None = None
    definition: str


# ── lists ──


async def word_list(ctx: Context, /, *, id: ListId) -> WordList | None:  # noqa: A002 - the argument's public name
    found = await vocabulary_store.word_list(ctx.table, id, consistent=True)
    if found is None or not found.visible_to(reader(ctx)):
        return None
    ctx.services.get(Shelves).lists.put(id, found)
    return found


async def word_lists(ctx: Context, /, *, window: Window) -> Page[WordList]:
    """Public lists and the viewer's own private ones, together by name."""
    page = await vocabulary_store.lists_page(ctx.table, reader(ctx), window)
    for found in page.nodes:
        ctx.services.get(Shelves).lists.put(found.list, found)
    return page


async def owner(ctx: Context, found: WordList, /) -> Profile | None:
    """Public lists belong to the community's editors together."""
    return None if found.public or found.owner is None else await people.author(ctx, found.owner)


async def subscriber_count(ctx: Context, found: WordList, /) -> int:
    return await vocabulary_store.subscriber_count(ctx.table, found.list)


async def words(ctx: Context, found: WordList, /, *, window: Window) -> Page[Word]:
    return await vocabulary_store.word_page(ctx.table, found, window)


async def create_word_list(ctx: Context, /, *, name: str, level: int | None = None, public: bool = False) -> WordList:
    """Editors make public lists; every member makes private ones, up to ten."""
    member = ctx.with_role(Role.EDITOR) if public else ctx.member()
    if level is not None and not 0 <= level <= HIGHEST_LEVEL:
        message = f"A level is 0 to {HIGHEST_LEVEL}."
        raise InvalidInput(message, path=("input", "level"))
    new = WordList(
        list=ctx.new_id(),
        name=line(name, LONGEST_NAME, "A list's name", ("input", "name")),
        public=public,
        created_at=ctx.now(),
        owner=None if public else member.id,
        level=level,
    )
    await ctx.services.rates.hit(CHANGES, "lists", member.id)
    await vocabulary_store.create_list(ctx.table, new, ctx.once)
    ctx.services.get(Shelves).changed(new)
    return new


async def add_words(ctx: Context, /, *, list: ListId, words: Sequence[NewWord]) -> AddedWords:  # noqa: A002
    """Editors add to public lists, owners to their own; all of the words or none."""
    ctx.member()
    found = await named_list(ctx, list)
    if found.public:
        ctx.with_role(Role.EDITOR)
    if not 1 <= len(words) <= MOST_WORDS:
        message = f"Add 1 to {MOST_WORDS} words at a time; these are {len(words)}."
        raise InvalidInput(message, path=("input", "words"))
    given = tuple(checked(list, word, ("input", "words", str(place))) for place, word in enumerate(words))
    await ctx.services.rates.hit(CHANGES, "words", ctx.viewer.id)
    # A repeat that finds the claim of its own first attempt goes on with it.
    same = f"{ctx.viewer.id} {ctx.once.key}" if ctx.once.key else ctx.new_id()
    batch = Batch(same, given, LONGEST_LIST if found.public else MOST_WORDS)
    added = await vocabulary_store.add_words(ctx.table, list, batch, ctx.once)
    ctx.services.get(Shelves).changed(added.list)
    return added


async def words_added(ctx: Context, added: AddedWords, /) -> Sequence[Word]:
    return await vocabulary_store.added_words(ctx.table, added)


def checked(list_id: str, word: NewWord, path: tuple[str, ...]) -> Word:
    """A word whose texts can be kept and shown. Its ordinal is set when it is added."""
    return Word(
        list=list_id,
        ordinal=0,
        simplified=line(word.simplified, LONGEST_CHARACTERS, "A word in simplified characters", (*path, "simplified")),
        traditional=optional_line(
            word.traditional, LONGEST_CHARACTERS, "A word in traditional characters", (*path, "traditional")
        ),
        pinyin=optional_line(word.pinyin, LONGEST_PINYIN, "Pinyin", (*path, "pinyin")),
        definition=line(word.definition, LONGEST_DEFINITION, "A definition", (*path, "definition")),
    )


# ── daily words ──


async def daily_words(ctx: Context, /, *, on: date | None = None) -> list[DailyWord]:
    """The words of all lists that the viewer may see, by the lists' names."""
    day = await _day(ctx, on)
    owners = [None, member] if (member := reader(ctx)) is not None else [None]
    found = [drawn for owner_id in owners for drawn in await _drawn_on(ctx, owner_id, day)]
    lists = await ctx.services.get(Shelves).lists.load_many([drawn.list for drawn in found])
    known = [(one.alphabetical, one.list, drawn) for one, drawn in zip(lists, found, strict=True) if one is not None]
    return [drawn for _, _, drawn in sorted(known, key=lambda row: row[:2])]


async def daily_word(ctx: Context, found: WordList, /, *, on: date | None = None) -> DailyWord | None:
    """The list's word of a date. Today's is drawn by whoever asks first; a day that nobody asked about has none."""
    day = await _day(ctx, on)
    if day < _today(ctx):
        return await vocabulary_store.stored(ctx.table, found.list, day)
    return await vocabulary_store.draw(ctx.table, found.list, day)


async def review(
    ctx: Context, found: WordList, /, *, from_: date | None = None, to: date | None = None, window: Window
) -> Page[DailyWord]:
    return await vocabulary_store.review(ctx.table, found.list, from_, to, window)


async def daily_word_list(ctx: Context, daily: DailyWord, /) -> WordList:
    return await load_list(ctx, daily.list)


def _today(ctx: Context) -> date:
    return ctx.now().astimezone(UTC).date()


async def _day(ctx: Context, on: date | None) -> date:
    """The day asked about: today in UTC, or one that has begun, there or where the viewer is."""
    today = _today(ctx)
    if on is None or on <= today:
        return on or today
    viewer = await people.viewer(ctx)
    if viewer is None or on > local_day(ctx.now(), time_zone(viewer.time_zone)):
        message = f"The word of {on} is not drawn before that day begins. Ask for {today} or earlier."
        raise InvalidInput(message, path=("on",))
    return on


async def _drawn_on(ctx: Context, owner_id: str | None, day: date) -> list[DailyWord]:
    """The words of all lists of an owner on a day. On the day itself, lists that have none yet get theirs."""
    found = {drawn.list: drawn async for drawn in vocabulary_store.on_date(ctx.table, day, owner_id)}
    shelves = ctx.services.get(Shelves)
    if day >= _today(ctx) and not shelves.complete(owner_id, day):
        lists = [one async for one in vocabulary_store.lists_by_name(ctx.table, owner_id) if one.word_count]
        room = asyncio.Semaphore(_DRAWS_AT_ONCE)
        missing = [one for one in lists if one.list not in found]
        drawn = await asyncio.gather(*(_drawn(ctx, one, day, room) for one in missing))
        found |= {one.list: one for one in drawn if one is not None}
        if not missing:  # what was drawn just now may not be in the index yet
            shelves.completed(owner_id, day)
    return list(found.values())


async def _drawn(ctx: Context, found: WordList, day: date, room: asyncio.Semaphore) -> DailyWord | None:
    """One list's word; a list that cannot have one does not stand in the others' way."""
    async with room:
        try:
            return await vocabulary_store.draw(ctx.table, found.list, day)
        except (ListBroken, Conflict) as error:
            _log.error("a list has no daily word", list=found.list, reason=str(error))
            return None


# ── subscriptions ──


async def subscriptions(ctx: Context, profile: Profile, /) -> list[Subscription]:
    """To the member themself: what somebody gets by mail is nobody else's business."""
    if reader(ctx) != profile.user:
        return []
    screen = await ctx.services.get(profile_screens).load((profile.user, date.max))
    found = screen.subscriptions if screen else await vocabulary_store.subscriptions(ctx.table, profile.user)
    lists = await ctx.services.get(Shelves).lists.load_many([one.list for one in found])
    return [one for one, of in zip(found, lists, strict=True) if of is not None and of.visible_to(profile.user)]


async def subscription_list(ctx: Context, subscription: Subscription, /) -> WordList:
    return await load_list(ctx, subscription.list)


async def subscribe(
    ctx: Context,
    /,
    *,
    list: ListId,  # noqa: A002 - the argument's public name
    character_set: CharacterSet = CharacterSet.SIMPLIFIED,
) -> Subscription:
    member = ctx.member()
    found = await named_list(ctx, list)
    await ctx.services.rates.hit(CHANGES, "subscriptions", member.id)
    known = await vocabulary_store.subscriptions(ctx.table, member.id)
    if len(known) >= MOST_SUBSCRIPTIONS and not any(one.list == list for one in known):
        message = f"You have {len(known)} subscriptions, which is all a member may have."
        raise Conflict(message)
    wanted = Subscription(member.id, found.list, character_set, active=True, since=ctx.now())
    return await vocabulary_store.subscribe(ctx.table, wanted, ctx.once)


async def unsubscribe(
    ctx: Context,
    /,
    *,
    list: ListId,  # noqa: A002 - the argument's public name
    character_set: CharacterSet = CharacterSet.SIMPLIFIED,
) -> Subscription:
    member = ctx.member()
    await named_list(ctx, list)
    return await vocabulary_store.unsubscribe(ctx.table, member.id, list, character_set, ctx.once)


# ── nodes ──


async def list_node(ctx: Context, key: str) -> WordList | None:
    return await word_list(ctx, id=key)


async def word_node(ctx: Context, key: str) -> Word | None:
    place = word_place(key)
    return await visible_word(ctx, *place) if place else None


def word_place(key: str) -> tuple[str, int] | None:
    """The list and ordinal in a word's key; None for what is no such key."""
    list_id, _, digits = key.rpartition(".")
    if not list_id or not digits.isascii() or not digits.isdecimal() or len(digits) > DIGITS:
        return None
    return (list_id, int(digits)) if digits == str(int(digits)) else None
