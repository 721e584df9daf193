"""Any object by its id: a loading function for each node type."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from datastore.changes.occurrences import Occurrence
from datastore.refusals import InvalidInput
from resolvers.comments import visibility as comment_visibility
from resolvers.jobs import running as job_resolvers
from resolvers.journal import occurrences, webhooks
from resolvers.members import api_keys
from resolvers.people import visibility as member_visibility
from resolvers.pickem import events, predictions
from resolvers.pickem.visibility import load_league
from resolvers.requests.context import AnyId, Context
from resolvers.values.node_ids import parse_node_id
from resolvers.vocabulary import learning, lists
from resolvers.voting import boards

LOADERS: Mapping[str, Callable[[Context, str], Awaitable[Any]]] = {
    "Event": lambda ctx, key: events.event(ctx, id=key),
    "Match": events.match_by_key,
    "Prediction": predictions.prediction_by_key,
    "Job": lambda ctx, key: job_resolvers.job(ctx, id=key),
    "League": load_league,
    "User": lambda ctx, key: member_visibility.user(ctx, id=key),
    "Comment": lambda ctx, key: comment_visibility.comment(ctx, id=key),
    "Board": lambda ctx, key: boards.board(ctx, slug=key),
    "Contender": lambda ctx, key: boards.contender(ctx, id=key),
    "WordList": lambda ctx, key: lists.word_list(ctx, id=key),
    "Word": lists.word_node,
    "QuizResult": learning.quiz_node,
    "Sentence": learning.sentence_node,
    "ApiKey": api_keys.api_key_node,
    "Occurrence": occurrences.occurrence_node,
    "Webhook": webhooks.webhook_node,
    "Delivery": webhooks.delivery_node,
}


async def node(ctx: Context, /, *, id: AnyId) -> Any:  # noqa: A002 - the argument's public name
    type_name, key = parse_node_id(id)
    load = LOADERS.get(type_name)
    if load is None:
        raise InvalidInput(f"There is no node of the type {type_name}.", path=("id",))
    return await load(ctx, key)


async def object_node(ctx: Context, occurrence: Occurrence, /) -> Any:
    """What an occurrence was done to; None if it is gone, is no node, or may not be seen."""
    type_name, _, key = (occurrences.shown_object(ctx, occurrence) or "").partition(":")
    load = LOADERS.get(type_name)
    return None if load is None else await load(ctx, key)


async def nodes(ctx: Context, /, *, ids: list[AnyId]) -> list[Any]:
    """Where one cannot be read there is its exception, which is the error of that entry alone."""
    distinct = dict.fromkeys(ids)
    found = await asyncio.gather(*(node(ctx, id=each) for each in distinct), return_exceptions=True)
    by_id = dict(zip(distinct, found, strict=True))
    return [by_id[each] for each in ids]
