"""Word lists, daily words and subscriptions: one function per field."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date
from typing import Annotated

import structlog

from datastore import vocabulary
from datastore.dynamo import Page, Source, Window, merge
from datastore.people import Profile
from datastore.refusals import Clash, InvalidInput
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
from resolvers.context import Asking, NodeOf
from resolvers.viewer import Role
from resolvers.vocabulary.profile_screen import Screens
from resolvers.vocabulary.streaks import day_of, zone_of
from resolvers.vocabulary.visibility import Shelves, line, list_of, named_list, optional_line, reader, visible_word

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


@dataclass(frozen=True, slots=True)
class NewWord:
    """A word as somebody gives it: every text is unchecked."""

    simplified: str
    definition: str
    traditional: str | None = None
    pinyin: str | None = None


# ── lists ──


async def word_list(asking: Asking, /, *, id: ListId) -> WordList | None:  # noqa: A002 - the argument's public name
    found = await vocabulary.word_list(asking.table, id, consistent=True)
    if found is None or not found.visible_to(reader(asking)):
        return None
    asking.house.part(Shelves).lists.put(id, found)
    return found


async def word_lists(asking: Asking, /, *, window: Window) -> Page[WordList]:
    """Public lists and the viewer's own private ones, together by name."""
    scope = "word lists"
    position = window.position(scope)
    member = reader(asking)
    shelves = [vocabulary.shelf(None), *([vocabulary.shelf(member)] if member is not None else [])]
    sources = [Source(shelf.past(position), window.size + 1) for shelf in shelves]
    merged = await merge(asking.table, sources, window.size + 1)
    for found in merged.records:
        asking.house.part(Shelves).lists.put(found.list, found)
    return Page.cut(merged.records, window, scope, shelves[0].sort_of)


async def owner(asking: Asking, found: WordList, /) -> Profile | None:
    """Public lists belong to the community's editors together."""
    return None if found.public or found.owner is None else await people.author(asking, found.owner)


async def subscriber_count(asking: Asking, found: WordList, /) -> int:
    return await vocabulary.subscriber_count(asking.table, found.list)


async def words(asking: Asking, found: WordList, /, *, window: Window) -> Page[Word]:
    return await vocabulary.word_page(asking.table, found, window)


async def create_word_list(asking: Asking, /, *, name: str, level: int | None = None, public: bool = False) -> WordList:
    """Editors make public lists; every member makes private ones, up to ten."""
    member = asking.with_role(Role.EDITOR) if public else asking.member()
    if level is not None and not 0 <= level <= HIGHEST_LEVEL:
        message = f"A level is 0 to {HIGHEST_LEVEL}."
        raise InvalidInput(message, path=("input", "level"))
    new = WordList(
        list=asking.new_id(),
        name=line(name, LONGEST_NAME, "A list's name", ("input", "name")),
        public=public,
        created_at=asking.now(),
        owner=None if public else member.id,
        level=level,
    )
    await asking.house.rates.hit(CHANGES, "lists", member.id)
    await vocabulary.create_list(asking.table, new, asking.once)
    asking.house.part(Shelves).changed(new)
    return new


async def add_words(asking: Asking, /, *, list: ListId, words: Sequence[NewWord]) -> AddedWords:  # noqa: A002
    """Editors add to public lists, owners to their own; all of the words or none."""
    asking.member()
    found = await named_list(asking, list)
    if found.public:
        asking.with_role(Role.EDITOR)
    if not 1 <= len(words) <= MOST_WORDS:
        message = f"Add 1 to {MOST_WORDS} words at a time; these are {len(words)}."
        raise InvalidInput(message, path=("input", "words"))
    given = tuple(checked(list, word, ("input", "words", str(place))) for place, word in enumerate(words))
    await asking.house.rates.hit(CHANGES, "words", asking.viewer.id)
    # A repeat that finds the claim of its own first attempt goes on with it.
    same = f"{asking.viewer.id} {asking.once.key}" if asking.once.key else asking.new_id()
    batch = Batch(same, given, LONGEST_LIST if found.public else MOST_WORDS)
    added = await vocabulary.add_words(asking.table, list, batch, asking.once)
    asking.house.part(Shelves).changed(added.list)
    return added


async def words_added(asking: Asking, added: AddedWords, /) -> Sequence[Word]:
    return await vocabulary.added_words(asking.table, added)


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


async def daily_words(asking: Asking, /, *, on: date | None = None) -> list[DailyWord]:
    """The words of all lists that the viewer may see, by the lists' names."""
    day = await _day(asking, on)
    shelves = [None, member] if (member := reader(asking)) is not None else [None]
    found = [drawn for shelf in shelves for drawn in await _shelf_on(asking, shelf, day)]
    lists = await asking.house.part(Shelves).lists.load_many([drawn.list for drawn in found])
    known = [(one.alphabetical, one.list, drawn) for one, drawn in zip(lists, found, strict=True) if one is not None]
    return [drawn for _, _, drawn in sorted(known, key=lambda row: row[:2])]


async def daily_word(asking: Asking, found: WordList, /, *, on: date | None = None) -> DailyWord | None:
    """The list's word of a date. Today's is drawn by whoever asks first; a day that nobody asked about has none."""
    day = await _day(asking, on)
    if day < _today(asking):
        return await vocabulary.stored(asking.table, found.list, day)
    return await vocabulary.draw(asking.table, found.list, day)


async def review(
    asking: Asking, found: WordList, /, *, from_: date | None = None, to: date | None = None, window: Window
) -> Page[DailyWord]:
    return await vocabulary.review(asking.table, found.list, from_, to, window)


async def list_of_daily_word(asking: Asking, daily: DailyWord, /) -> WordList:
    return await list_of(asking, daily.list)


def _today(asking: Asking) -> date:
    return asking.now().astimezone(UTC).date()


async def _day(asking: Asking, on: date | None) -> date:
    """The day asked about: today in UTC, or one that has begun, there or where the viewer is."""
    today = _today(asking)
    if on is None or on <= today:
        return on or today
    viewer = await people.viewer(asking)
    if viewer is None or on > day_of(asking.now(), zone_of(viewer.time_zone)):
        message = f"The word of {on} is not drawn before that day begins. Ask for {today} or earlier."
        raise InvalidInput(message, path=("on",))
    return on


async def _shelf_on(asking: Asking, owner_id: str | None, day: date) -> list[DailyWord]:
    """A shelf's words of a day. On the day itself, lists that have none yet get theirs."""
    found = {drawn.list: drawn async for drawn in vocabulary.on_date(asking.table, day, owner_id)}
    shelves, shelf = asking.house.part(Shelves), vocabulary.shelf_of(owner_id)
    if day >= _today(asking) and not shelves.complete(shelf, day):
        lists = [one async for one in asking.table.walk(vocabulary.shelf(owner_id)) if one.word_count]
        room = asyncio.Semaphore(_DRAWS_AT_ONCE)
        missing = [one for one in lists if one.list not in found]
        drawn = await asyncio.gather(*(_drawn(asking, one, day, room) for one in missing))
        found |= {one.list: one for one in drawn if one is not None}
        if not missing:  # what was drawn just now may not be in the index yet
            shelves.completed(shelf, day)
    return list(found.values())


async def _drawn(asking: Asking, found: WordList, day: date, room: asyncio.Semaphore) -> DailyWord | None:
    """One list's word; a list that cannot have one does not stand in the others' way."""
    async with room:
        try:
            return await vocabulary.draw(asking.table, found.list, day)
        except (ListBroken, Clash) as error:
            _log.error("a list has no daily word", list=found.list, reason=str(error))
            return None


# ── subscriptions ──


async def subscriptions(asking: Asking, profile: Profile, /) -> list[Subscription]:
    """To the member themself: what somebody gets by mail is nobody else's business."""
    if reader(asking) != profile.user:
        return []
    screen = await asking.house.part(Screens).load(profile.user)
    found = screen.subscriptions if screen else await vocabulary.subscriptions(asking.table, profile.user)
    lists = await asking.house.part(Shelves).lists.load_many([one.list for one in found])
    return [one for one, of in zip(found, lists, strict=True) if of is not None and of.visible_to(profile.user)]


async def list_of_subscription(asking: Asking, subscription: Subscription, /) -> WordList:
    return await list_of(asking, subscription.list)


async def subscribe(
    asking: Asking,
    /,
    *,
    list: ListId,  # noqa: A002 - the argument's public name
    character_set: CharacterSet = CharacterSet.SIMPLIFIED,
) -> Subscription:
    member = asking.member()
    found = await named_list(asking, list)
    await asking.house.rates.hit(CHANGES, "subscriptions", member.id)
    known = await vocabulary.subscriptions(asking.table, member.id)
    if len(known) >= MOST_SUBSCRIPTIONS and not any(one.list == list for one in known):
        message = f"You have {len(known)} subscriptions, which is all a member may have."
        raise Clash(message)
    wanted = Subscription(member.id, found.list, character_set, active=True, since=asking.now())
    return await vocabulary.subscribe(asking.table, wanted, asking.once)


async def unsubscribe(
    asking: Asking,
    /,
    *,
    list: ListId,  # noqa: A002 - the argument's public name
    character_set: CharacterSet = CharacterSet.SIMPLIFIED,
) -> Subscription:
    member = asking.member()
    await named_list(asking, list)
    return await vocabulary.unsubscribe(asking.table, member.id, list, character_set, asking.once)


# ── nodes ──


async def list_node(asking: Asking, key: str) -> WordList | None:
    return await word_list(asking, id=key)


async def word_node(asking: Asking, key: str) -> Word | None:
    place = word_place(key)
    return await visible_word(asking, *place) if place else None


def word_place(key: str) -> tuple[str, int] | None:
    """The list and ordinal in a word's key; None for what is no such key."""
    list_id, _, digits = key.rpartition(".")
    if not list_id or not digits.isascii() or not digits.isdecimal() or len(digits) > DIGITS:
        return None
    return (list_id, int(digits)) if digits == str(int(digits)) else None
