"""Word lists and their words: one function per field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from datastore.refusals import InvalidInput, NotFound
from datastore.vocabulary import lists, subscriptions
from datastore.vocabulary import words as word_store
from datastore.vocabulary.lists import WordList
from datastore.vocabulary.words import LONGEST_LIST, MOST_WORDS, AddedWords, WordBatch
from resolvers.people.visibility import ShownProfile, author
from resolvers.requests.context import Context, NodeOf, Role
from resolvers.vocabulary.cache import VocabularyCache
from resolvers.vocabulary.texts import NewWord, parse_list_name, parse_word, validate_level
from resolvers.vocabulary.visibility import (
    ShownList,
    ShownWord,
    load_word,
    require_editable,
    require_input_list,
    show_list,
)

ListId = Annotated[str, NodeOf("WordList")]
WordId = Annotated[str, NodeOf("Word")]

CHANGE_RATE = "600/minute"
_ORDINAL_DIGITS = 6


# ── reading ──


async def word_list(ctx: Context, /, *, id: ListId) -> ShownList | None:  # noqa: A002 - the argument's public name
    return show_list(ctx, await ctx.services.get(VocabularyCache).lists.load(id, 0))


async def owner(ctx: Context, word_list: ShownList, /) -> ShownProfile | None:
    """None for a public list: all editors maintain it."""
    return None if word_list.public or word_list.owner is None else await author(ctx, word_list.owner)


async def subscriber_count(ctx: Context, word_list: ShownList, /) -> int:
    return await subscriptions.read_subscriber_count(ctx.table, word_list.list)


# ── writing ──


async def create_word_list(ctx: Context, /, *, name: str, level: int | None = None, public: bool = False) -> WordList:
    """Editors create public lists; every member creates private ones, up to ten."""
    creator = ctx.with_role(Role.EDITOR) if public else ctx.member()
    validate_level(level)
    new = WordList(
        list=ctx.new_id(),
        name=parse_list_name(name, ("input", "name")),
        public=public,
        created_at=ctx.now(),
        owner=None if public else creator.id,
        level=level,
    )
    ctx.services.rates.hit(CHANGE_RATE, "lists", creator.id)
    await lists.create_list(ctx.table, new, ctx.unit)
    ctx.services.get(VocabularyCache).put_written_list(new)
    return new


async def add_words(ctx: Context, /, *, list: ListId, words: Sequence[NewWord]) -> AddedWords:  # noqa: A002
    """Editors add to public lists, owners to their own; all of the words or none."""
    ctx.signed_in()
    word_list = await require_input_list(ctx, list)
    require_editable(ctx, word_list)
    if not 1 <= len(words) <= MOST_WORDS:
        raise InvalidInput(f"Add 1 to {MOST_WORDS} words at a time, not {len(words)}.", path=("input", "words"))
    parsed = tuple(parse_word(list, word, ("input", "words", str(index))) for index, word in enumerate(words))
    ctx.services.rates.hit(CHANGE_RATE, "words", ctx.viewer.id)
    # A repeated request gets the id of its first attempt, so that it does not wait for that.
    batch_id = f"{ctx.viewer.id} {ctx.unit.key}" if ctx.unit.key else ctx.new_id()
    batch = WordBatch(batch_id, parsed, LONGEST_LIST if word_list.public else MOST_WORDS)
    added = await word_store.add_words(ctx.table, list, batch, ctx.unit)
    ctx.services.get(VocabularyCache).put_written_list(added.list)
    return added


# ── nodes ──


async def word_node(ctx: Context, key: str) -> ShownWord | None:
    word_key = _split_key(key)
    return await load_word(ctx, *word_key) if word_key else None


async def require_word(ctx: Context, key: str) -> ShownWord:
    """The word that an input names."""
    word = await word_node(ctx, key)
    if word is None:
        raise NotFound("There is no such word.", path=("input", "word"))
    return word


def _split_key(key: str) -> tuple[str, int] | None:
    """The list and ordinal in a word's key; None if it is not the key of a word."""
    list_id, _, digits = key.rpartition(".")
    if not list_id or not digits.isascii() or not digits.isdecimal() or len(digits) > _ORDINAL_DIGITS:
        return None
    return (list_id, int(digits)) if digits == str(int(digits)) else None
