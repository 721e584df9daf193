"""Any object by its id: one reader per node type."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from datastore.refusals import InvalidInput
from resolvers import people
from resolvers.comments import pages
from resolvers.context import AnyId, Context
from resolvers.node_ids import parse_node_id
from resolvers.pickem import events, predictions
from resolvers.vocabulary import daily_words, learning
from resolvers.voting import boards

MOST = 100

READERS: Mapping[str, Callable[[Context, str], Awaitable[Any]]] = {
    "Event": lambda ctx, key: events.event(ctx, id=key),
    "Match": events.match_by_key,
    "Prediction": predictions.prediction_by_key,
    "User": lambda ctx, key: people.user(ctx, id=key),
    "Comment": lambda ctx, key: pages.comment(ctx, id=key),
    "Board": lambda ctx, key: boards.board(ctx, slug=key),
    "Contender": lambda ctx, key: boards.contender(ctx, id=key),
    "WordList": daily_words.list_node,
    "Word": daily_words.word_node,
    "QuizResult": learning.quiz_node,
    "Sentence": learning.sentence_node,
}


async def node(ctx: Context, /, *, id: AnyId) -> Any:  # noqa: A002 - the argument's public name
    type_name, key = parse_node_id(id)
    reader = READERS.get(type_name)
    if reader is None:
        message = f"There is no node of the type {type_name}."
        raise InvalidInput(message, path=("id",))
    return await reader(ctx, key)


async def nodes(ctx: Context, /, *, ids: list[AnyId]) -> list[Any]:
    if len(ids) > MOST:
        message = f"At most {MOST} ids at once."
        raise InvalidInput(message, path=("ids",))
    return list(await asyncio.gather(*(node(ctx, id=one) for one in ids)))
