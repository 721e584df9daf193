"""Word lists and their words: one function per field.

Editors change public lists and their words, owners their private ones. What others have made with them stays: past
daily words, quizzes and sentences go on showing a removed word, and quizzes the name of a deleted list.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from datastore.refusals import Conflict, InvalidInput, NotFound, require_revision
from datastore.vocabulary import daily, lists, subscriptions
from datastore.vocabulary import words as word_store
from datastore.vocabulary.lists import WordList
from datastore.vocabulary.words import LONGEST_LIST, MOST_WORDS, AddedWords, Word, WordBatch
from resolvers.people.visibility import ShownProfile, author
from resolvers.requests.context import UNSET, Context, NodeOf, Role, Unset
from resolvers.values.node_ids import node_id
from resolvers.vocabulary import visibility
from resolvers.vocabulary.cache import VocabularyCache
from resolvers.vocabulary.texts import NewWord, as_new_word, parse_list_name, parse_word, validate_level

ListId = Annotated[str, NodeOf("WordList")]
WordId = Annotated[str, NodeOf("Word")]

_CLEARED_AT_ONCE = 1_000
"""Words and daily words that a request deletes with their list. `ringside emails` deletes the rest."""
_ORDINAL_DIGITS = 6


# ── reading ──


async def word_list(ctx: Context, /, *, id: ListId) -> visibility.ShownList | None:  # noqa: A002 - the argument's public name
    return await visibility.load_list(ctx, id, 0)


async def owner(ctx: Context, word_list: visibility.ShownList, /) -> ShownProfile | None:
    """None for a public list: all editors maintain it."""
    return None if word_list.public or word_list.owner is None else await author(ctx, word_list.owner)


async def subscriber_count(ctx: Context, word_list: visibility.ShownList, /) -> int:
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
    ctx.count_change("lists")
    await lists.create_list(ctx.table, new, ctx.unit)
    ctx.services.get(VocabularyCache).put_written_list(new)
    return new


async def add_words(ctx: Context, /, *, list: ListId, words: Sequence[NewWord]) -> AddedWords:  # noqa: A002
    """Editors add to public lists, owners to their own; all of the words or none."""
    ctx.signed_in()
    word_list = await visibility.require_input_list(ctx, list)
    visibility.require_editable(ctx, word_list)
    if not 1 <= len(words) <= MOST_WORDS:
        raise InvalidInput(f"Add 1 to {MOST_WORDS} words at a time, not {len(words)}.", path=("input", "words"))
    parsed = tuple(parse_word(list, word, ("input", "words", str(index))) for index, word in enumerate(words))
    ctx.count_change("words")
    # A repeated request gets the id of its first attempt, so that it does not wait for that.
    batch_id = f"{ctx.viewer.id} {ctx.unit.key}" if ctx.unit.key else ctx.new_id()
    batch = WordBatch(batch_id, parsed, LONGEST_LIST if word_list.public else MOST_WORDS)
    added = await word_store.add_words(ctx.table, list, batch, ctx.unit)
    ctx.services.get(VocabularyCache).put_written_list(added.list)
    return added


# ── changing words ──


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
    changed = await word_store.change_word(ctx.table, list_id, ordinal, corrected, ctx.unit)
    cache.lists.forget(list_id)
    cache.put_written_word(changed)
    return changed


async def remove_word(ctx: Context, /, *, word: WordId) -> WordList:
    """The list without the word, even if the word was removed before."""
    list_id, ordinal = await _require_editable_word(ctx, word)
    word_list = await word_store.remove_word(ctx.table, list_id, ordinal, ctx.unit)
    ctx.services.get(VocabularyCache).put_written_list(word_list)
    return word_list


async def _require_editable_word(ctx: Context, key: str) -> tuple[str, int]:
    """List and ordinal of a word that the viewer may change."""
    ctx.signed_in()
    word = await require_word(ctx, key)
    visibility.require_editable(ctx, await visibility.require_input_list(ctx, word.list))
    ctx.count_change("words")
    return word.list, word.ordinal


# ── changing lists ──


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
    visibility.require_editable(ctx, stored)
    ctx.count_change("lists")
    await lists.delete_list(ctx.table, list, deleted_id, ctx.unit)
    after = await lists.read_list(ctx.table, list, consistent=True)
    if after is not None:
        ctx.services.get(VocabularyCache).put_written_list(after)
        await daily.clear_deleted_list(ctx.table, after, _CLEARED_AT_ONCE)
    return deleted_id


async def _require_editable_list(ctx: Context, list_id: str) -> WordList:
    ctx.signed_in()
    word_list = await visibility.require_input_list(ctx, list_id)
    visibility.require_editable(ctx, word_list)
    ctx.count_change("lists")
    return word_list


# ── nodes ──


async def word_node(ctx: Context, key: str) -> visibility.ShownWord | None:
    word_key = _split_key(key)
    return await visibility.load_word(ctx, *word_key) if word_key else None


async def require_word(ctx: Context, key: str) -> visibility.ShownWord:
    """The word that an input names."""
    return visibility.named_by_input(await word_node(ctx, key), "word")


def _split_key(key: str) -> tuple[str, int] | None:
    """The list and ordinal in a word's key; None if it is not the key of a word."""
    list_id, _, digits = key.rpartition(".")
    if not list_id or not digits.isascii() or not digits.isdecimal() or len(digits) > _ORDINAL_DIGITS:
        return None
    return (list_id, int(digits)) if digits == str(int(digits)) else None
