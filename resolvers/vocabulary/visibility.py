"""Who may see and change which lists and words.

Everyone sees public lists, which editors change; a private one is its owner's alone. A deleted list is seen by nobody,
except that quizzes and subscriptions go on naming it: they show its empty record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from datastore import vocabulary as vocabulary_store
from datastore.dynamo import key_text
from datastore.refusals import NotFound
from datastore.vocabulary import Word, WordList
from resolvers.viewer import Role
from resolvers.vocabulary.cache import VocabularyCache

if TYPE_CHECKING:
    from resolvers.context import Context


async def load_list(ctx: Context, list_id: str) -> WordList | None:
    """A list, if the viewer may see it."""
    word_list = await ctx.services.get(VocabularyCache).lists.load(key_text(list_id))
    return word_list if word_list is not None and word_list.visible_to(ctx.viewer.member_id) else None


async def require_list(ctx: Context, list_id: str) -> WordList:
    """The list that a record names, which may be the empty record of a deleted one."""
    word_list = await ctx.services.get(VocabularyCache).lists.load(list_id)
    if word_list is None or not word_list.was_visible_to(ctx.viewer.member_id):
        raise NotFound
    return word_list


async def require_input_list(ctx: Context, list_id: str) -> WordList:
    """The list that an input names. Another member's private list is refused like an id without a list."""
    word_list = await load_list(ctx, list_id)
    if word_list is None:
        raise NotFound("There is no list with this id.", path=("input", "list"))
    return word_list


def require_editable(ctx: Context, word_list: WordList) -> None:
    """Refuse a viewer who may see the list but not change it."""
    if word_list.public:
        ctx.with_role(Role.EDITOR)
    else:
        ctx.member()


async def load_word(ctx: Context, list_id: str, ordinal: int) -> Word | None:
    """A word of a list that the viewer may see, also one that was removed from it."""
    word_list = await load_list(ctx, list_id)
    if word_list is None:
        return None
    if ordinal >= word_list.next_ordinal:  # the cached list may be older than the word
        word_list = await vocabulary_store.read_list(ctx.table, list_id, consistent=True)
        if word_list is None or ordinal >= word_list.next_ordinal:
            return None
    return await ctx.services.get(VocabularyCache).words.load((list_id, ordinal))
