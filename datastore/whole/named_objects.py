"""What the journal names: whether it exists, was removed as the journal says, or was an erased member's.

| wanted                        | read                                             | requests      |
|-------------------------------|--------------------------------------------------|---------------|
| which of these objects exist  | BatchGetItem under the keys of their types       | 1 for 33      |
| whether one was removed       | gsi2 OBJECT#<object> of the journal              | 1 an object   |
| whether its member was erased | GetItem USER#<id> PROFILE                        | 1 an object   |

A name is the type and key of a node, such as "Comment:42#01J…" or "Event:01J…".
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import date
from typing import Any

from datastore.changes.occurrences import OCCURRENCE, REMOVALS, WEBHOOK, object_key
from datastore.changes.unit_of_work import VISITOR_PREFIX
from datastore.comments.records import COMMENT, HELD, REPLY
from datastore.dynamo import BadKey, Table
from datastore.dynamo.entity import Entity, ItemKey
from datastore.members.api_keys import API_KEY
from datastore.people.profiles import PROFILE, member_shard, read_profile
from datastore.pickem.events import EVENT, MATCH
from datastore.pickem.leagues import LEAGUE
from datastore.pickem.predictions import PREDICTION
from datastore.vocabulary.learning import QUIZ, SENTENCE
from datastore.vocabulary.lists import LIST
from datastore.vocabulary.subscriptions import SUBSCRIPTION
from datastore.vocabulary.words import REMOVED_WORD, WORD
from datastore.voting.boards import BOARD
from datastore.voting.contenders import contender_key
from datastore.voting.votes import VOTE

Keys = list["ItemKey[Any]"]


def _comment(key: str) -> Keys:
    product, _, ulid = key.rpartition("#")
    return [entity.at(product=product, ulid=ulid) for entity in (COMMENT, HELD, REPLY)]


def _contender(key: str) -> Keys:
    board, _, ordinal = key.rpartition("/")
    return [contender_key(board, int(ordinal))]


def _vote(key: str) -> Keys:
    board, number, voter = key.split(":", 2)
    return [VOTE.at(voter=voter, board=board, number=int(number))]


def _match(key: str) -> Keys:
    event, _, match = key.partition(":")
    return [MATCH.at(event=event, id=match)]


def _prediction(key: str) -> Keys:
    event, _, user = key.partition(":")
    return [PREDICTION.at(event=event, shard=member_shard(user), user=user)]


def _word(key: str) -> Keys:
    word_list, _, ordinal = key.rpartition(".")
    return [entity.at(list=word_list, ordinal=int(ordinal)) for entity in (WORD, REMOVED_WORD)]


def _of_day(entity: Entity[Any]) -> Callable[[str], Keys]:
    def keys(key: str) -> Keys:
        day, result, user = key.split(".", 2)
        return [entity.at(user=user, date=date.fromisoformat(day), id=result)]

    return keys


def _subscription(key: str) -> Keys:
    word_list, character_set, user = key.split(".", 2)
    return [SUBSCRIPTION.at(user=user, list=word_list, character_set=character_set)]


_KEYS: Mapping[str, Callable[[str], Keys]] = {
    "ApiKey": lambda key: [API_KEY.at(id=key)],
    "Board": lambda key: [BOARD.at(slug=key)],
    "Comment": _comment,
    "Contender": _contender,
    "Event": lambda key: [EVENT.at(id=key)],
    "League": lambda key: [LEAGUE.at(id=key)],
    "Match": _match,
    "Prediction": _prediction,
    "QuizResult": _of_day(QUIZ),
    "Sentence": _of_day(SENTENCE),
    "Subscription": _subscription,
    "User": lambda key: [PROFILE.at(user=key)],
    "Vote": _vote,
    "Webhook": lambda key: [WEBHOOK.at(id=key)],
    "Word": _word,
    "WordList": lambda key: [LIST.at(list=key)],
}


_OWNERS: Mapping[str, Callable[[str], str]] = {
    "Prediction": lambda key: key.partition(":")[2],
    "QuizResult": lambda key: key.split(".", 2)[2],
    "Sentence": lambda key: key.split(".", 2)[2],
    "Subscription": lambda key: key.split(".", 2)[2],
    "User": lambda key: key,
    "Vote": lambda key: key.split(":", 2)[2],
}
"""Whose an object is, by its key."""


def keys_of(name: str) -> Keys:
    """Where an object may be stored; none if that is no name of an object."""
    kind, _, key = name.partition(":")
    find = _KEYS.get(kind)
    try:
        return [] if find is None else find(key)
    except (BadKey, ValueError):
        return []


async def missing_objects(table: Table, names: Iterable[str]) -> list[str]:
    """Those that are not stored, that no occurrence says were removed, and whose member was not erased."""
    places = {name: keys_of(name) for name in dict.fromkeys(names)}
    keys = [(name, key) for name, some in places.items() for key in some]
    records = await table.get_many([key for _, key in keys], consistent=True)
    found = {name for (name, _), record in zip(keys, records, strict=True) if record is not None}
    missing = [name for name in places if name not in found and not await _was_removed(table, name)]
    return [name for name in missing if not await _was_erased(table, name)]


async def _was_erased(table: Table, name: str) -> bool:
    """Whether the member whose object it was has no profile any more.

    A visitor never had one, and may have been somebody who then signed in and was erased: votes go with the others.
    """
    kind, _, key = name.partition(":")
    if kind not in _OWNERS:
        return False
    owner = _OWNERS[kind](key)
    return owner.startswith(VISITOR_PREFIX) or await read_profile(table, owner) is None


async def _was_removed(table: Table, name: str) -> bool:
    async for occurrence in table.iterate(OCCURRENCE.on("gsi2", object_key=object_key(name)).newest_first()):
        if occurrence.kind in REMOVALS:
            return True
    return False
