"""Reviewing words: one function per field. Members see their own cards only."""

from __future__ import annotations

from collections.abc import Sequence

from datastore import vocabulary as vocabulary_store
from datastore.vocabulary import Card
from resolvers.loading.batched import batched
from resolvers.requests.context import Context
from resolvers.vocabulary.cache import VocabularyCache
from resolvers.vocabulary.lists import WordId, require_word
from resolvers.vocabulary.scheduling import Grade, reviewed
from resolvers.vocabulary.visibility import ShownCard, ShownWord, show_own_word

REVIEW_RATE = "600/minute"


async def review_word(ctx: Context, /, *, word: WordId, grade: Grade) -> Card:
    """The word's card with the time at which it is due next; the first review makes it."""
    member = ctx.member()
    reviewing = await require_word(ctx, word)
    word_key = (reviewing.list, reviewing.ordinal)
    ctx.services.rates.hit(REVIEW_RATE, "reviews", member.id)
    now = ctx.now()
    return await vocabulary_store.review_card(
        ctx.table, member.id, *word_key, lambda before: reviewed(before, member.id, word_key, grade, now), ctx.unit
    )


@batched
async def card_words(ctx: Context, cards: Sequence[ShownCard], /) -> list[ShownWord]:
    """The words. Cards whose words are gone leave the queue, and are shown for the last time."""
    keys = [(card.list, card.ordinal) for card in cards]
    words = await ctx.services.get(VocabularyCache).words.load_many(keys)
    await vocabulary_store.drop_cards(
        ctx.table, [card for card, word in zip(cards, words, strict=True) if word is None]
    )
    return [show_own_word(key, word) for key, word in zip(keys, words, strict=True)]
