"""Words that are due for review: one function per field. Members see their own only."""

from __future__ import annotations

from collections.abc import Sequence

from datastore import vocabulary as vocabulary_store
from datastore.dynamo import Page, Window
from datastore.people import Profile
from datastore.refusals import NotFound
from datastore.vocabulary import Card, Word, WordList
from resolvers.context import Context
from resolvers.loading.batched import batched
from resolvers.vocabulary.cache import VocabularyCache
from resolvers.vocabulary.lists import WordId, split_word_key
from resolvers.vocabulary.scheduling import Grade, reviewed
from resolvers.vocabulary.visibility import load_word, require_list

REVIEW_RATE = "600/minute"


async def due(ctx: Context, profile: Profile, /, *, window: Window) -> Page[Card]:
    if not ctx.viewer.is_user(profile.user):
        return Page.cut((), window.open(f"due {profile.user}"))
    return await vocabulary_store.read_due_page(ctx.table, profile.user, ctx.now(), window)


async def due_count(ctx: Context, profile: Profile, /) -> int:
    if not ctx.viewer.is_user(profile.user):
        return 0
    return await vocabulary_store.count_due(ctx.table, profile.user, ctx.now())


async def review_word(ctx: Context, /, *, word: WordId, grade: Grade) -> Card:
    """The word's card with the time at which it is due next; the first review makes it."""
    member = ctx.member()
    word_key = split_word_key(word)
    if word_key is None or await load_word(ctx, *word_key) is None:
        raise NotFound("There is no word with this id.", path=("input", "word"))
    ctx.services.rates.hit(REVIEW_RATE, "reviews", member.id)
    now = ctx.now()
    return await vocabulary_store.review_card(
        ctx.table, member.id, *word_key, lambda before: reviewed(before, member.id, word_key, grade, now), ctx.once
    )


@batched
async def card_words(ctx: Context, cards: Sequence[Card], /) -> list[Word]:
    """The words. Cards whose words are gone leave the queue, and are shown for the last time."""
    words = await ctx.services.get(VocabularyCache).words.load_many([(card.list, card.ordinal) for card in cards])
    gone = [card for card, word in zip(cards, words, strict=True) if word is None]
    await vocabulary_store.drop_cards(ctx.table, gone)
    return [word or _deleted_word(card.list, card.ordinal) for card, word in zip(cards, words, strict=True)]


async def load_words(ctx: Context, keys: Sequence[tuple[str, int]]) -> list[Word]:
    """The words that records of the viewer name; in place of a deleted one, a word that says so."""
    words = await ctx.services.get(VocabularyCache).words.load_many(keys)
    return [word or _deleted_word(*key) for key, word in zip(keys, words, strict=True)]


def _deleted_word(list_id: str, ordinal: int) -> Word:
    return Word(list_id, ordinal, "…", "This word was deleted with its list.")


async def card_list(ctx: Context, card: Card, /) -> WordList:
    return await require_list(ctx, card.list)
