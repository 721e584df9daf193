"""Correcting and removing words, lists and sentences: one function per field.

Editors change public lists and their words, owners their private ones. What others have made with them stays: past
daily words, quizzes and sentences go on showing a removed word, and quizzes the name of a deleted list.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from datastore.refusals import Conflict, InvalidInput, NotAllowed, NotFound, require_revision
from datastore.vocabulary import daily, learning, lists, words
from datastore.vocabulary.lists import WordList
from datastore.vocabulary.words import Word
from resolvers.requests.context import UNSET, Context, Role, Unset
from resolvers.values.node_ids import node_id
from resolvers.vocabulary.cache import VocabularyCache
from resolvers.vocabulary.learning import SentenceId, sentence_node
from resolvers.vocabulary.lists import CHANGE_RATE, ListId, WordId, require_word
from resolvers.vocabulary.quiz_leaderboard import QuizLeaderboards
from resolvers.vocabulary.texts import as_new_word, parse_list_name, parse_word, validate_level
from resolvers.vocabulary.visibility import require_editable, require_input_list

_CLEARED_AT_ONCE = 1_000
"""Words and daily words that a request deletes with their list. `ringside emails` deletes the rest."""


# ── words ──


async def update_word(  # noqa: PLR0913 - a parameter for each text
    ctx: Context,
    /,
    *,
    word: WordId,
    simplified: str | None = None,
    traditional: str | Unset | None = UNSET,
    pinyin: str | Unset | None = UNSET,
    definition: str | None = None,
    term: str | None = None,
    reading: str | Unset | None = UNSET,
    example: str | Unset | None = UNSET,
    audio_url: str | Unset | None = UNSET,
    revision: int | None = None,
) -> Word:
    """Change the given texts. Null clears one that may be missing."""
    list_id, ordinal = await _require_editable_word(ctx, word)
    if term is not None and simplified is not None:
        raise InvalidInput("Give either `term` or `simplified`.", path=("input", "term"))
    optional = {
        "traditional": traditional, "pinyin": pinyin, "reading": reading, "example": example, "audio_url": audio_url,
    }  # fmt: skip
    given: dict[str, Any] = {name: text for name, text in optional.items() if not isinstance(text, Unset)}
    if definition is not None:
        given["definition"] = definition
    written = simplified if term is None else term

    def corrected(current: Word) -> Word:
        require_revision(current.revision or 0, revision)
        spelling = {} if written is None else {"simplified" if current.chinese else "term": written}
        new = replace(as_new_word(current), **given, **spelling)
        return replace(parse_word(list_id, new, ("input",)), ordinal=ordinal)

    cache = ctx.services.get(VocabularyCache)
    cache.words.forget((list_id, ordinal))  # after a conflict, its editor looks at what another process has written
    changed = await words.change_word(ctx.table, list_id, ordinal, corrected, ctx.unit)
    cache.lists.forget(list_id)
    cache.put_written_word(changed)
    return changed


async def remove_word(ctx: Context, /, *, word: WordId) -> WordList:
    """The list without the word, even if the word was removed before."""
    list_id, ordinal = await _require_editable_word(ctx, word)
    word_list = await words.remove_word(ctx.table, list_id, ordinal, ctx.unit)
    ctx.services.get(VocabularyCache).put_written_list(word_list)
    return word_list


async def _require_editable_word(ctx: Context, key: str) -> tuple[str, int]:
    """List and ordinal of a word that the viewer may change."""
    viewer = ctx.signed_in()
    word = await require_word(ctx, key)
    require_editable(ctx, await require_input_list(ctx, word.list))
    ctx.services.rates.hit(CHANGE_RATE, "words", viewer.id)
    return word.list, word.ordinal


# ── lists ──


async def update_word_list(
    ctx: Context,
    /,
    *,
    list: ListId,  # noqa: A002 - the argument's public name
    name: str | None = None,
    level: int | Unset | None = UNSET,
    public: bool | None = None,
    revision: int | None = None,
) -> WordList:
    """Change the given values. An editor may publish a list of their own; a public list stays public."""
    word_list = await _require_editable_list(ctx, list)
    if not isinstance(level, Unset):
        validate_level(level)
    new_name = None if name is None else parse_list_name(name, ("input", "name"))
    if public and not word_list.public:
        ctx.with_role(Role.EDITOR)

    async def changed(current: WordList) -> WordList:
        require_revision(current.revision, revision)
        if public is False and current.public:
            raise Conflict(
                "A public list stays public: members subscribe to it and name it in their quizzes.",
                path=("input", "public"),
            )
        if public and not current.public:  # first, since nothing repeats it if this process is killed in between
            await daily.show_daily_words_to_everyone(ctx.table, list)
        return replace(
            current,
            name=current.name if new_name is None else new_name,
            level=current.level if isinstance(level, Unset) else level,
            public=current.public or bool(public),
            owner=None if public else current.owner,
        )

    after = await lists.change_list(ctx.table, list, changed, ctx.unit)
    ctx.services.get(VocabularyCache).put_written_list(after)
    return after


async def delete_word_list(ctx: Context, /, *, list: ListId) -> str:  # noqa: A002 - the argument's public name
    """The id of the deleted list, even if it was deleted before."""
    deleted_id = node_id("WordList", list)
    ctx.signed_in()
    stored = await lists.read_list(ctx.table, list, consistent=True)
    if stored is None or not stored.was_visible_to(ctx.viewer.member_id):
        raise NotFound("There is no such list.", path=("input", "list"))
    require_editable(ctx, stored)
    ctx.services.rates.hit(CHANGE_RATE, "lists", ctx.viewer.id)
    await lists.delete_list(ctx.table, list, deleted_id, ctx.unit)
    after = await lists.read_list(ctx.table, list, consistent=True)
    if after is not None:
        ctx.services.get(VocabularyCache).put_written_list(after)
        await daily.clear_deleted_list(ctx.table, after, _CLEARED_AT_ONCE)
    return deleted_id


async def _require_editable_list(ctx: Context, list_id: str) -> WordList:
    viewer = ctx.signed_in()
    word_list = await require_input_list(ctx, list_id)
    require_editable(ctx, word_list)
    ctx.services.rates.hit(CHANGE_RATE, "lists", viewer.id)
    return word_list


# ── sentences ──


async def delete_sentence(ctx: Context, /, *, sentence: SentenceId) -> str:
    """The id of the deleted sentence. Its day stays one on which its author was active."""
    viewer = ctx.signed_in()
    existing = await sentence_node(ctx, sentence)
    if existing is None:
        raise NotFound("There is no such sentence.", path=("input", "sentence"))
    if not viewer.is_user(existing.user) and not viewer.may(Role.MODERATOR):
        raise NotAllowed("Only its author or a moderator may delete a sentence.", path=("input", "sentence"))
    deleted_id = node_id("Sentence", sentence)
    await learning.delete_sentence(ctx.table, existing, deleted_id, ctx.unit)
    ctx.services.get(QuizLeaderboards).discard(existing)
    return deleted_id
