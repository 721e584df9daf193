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
from functools import partial
from typing import Any

from datastore.changes.occurrences import OCCURRENCE, REMOVALS, WEBHOOK, object_key
from datastore.changes.unit_of_work import VISITOR_PREFIX
from datastore.comments.records import COMMENT, HELD, REPLY
from datastore.dynamo import BadKey, Table
from datastore.dynamo.entity import Entity, ItemKey
from datastore.members.api_keys import API_KEY
from datastore.people.profiles import PROFILE, read_profile
from datastore.pickem.events import EVENT, MATCH
from datastore.pickem.leagues import LEAGUE
from datastore.pickem.predictions import prediction_key
from datastore.vocabulary.learning import QUIZ, SENTENCE
from datastore.vocabulary.lists import LIST
from datastore.vocabulary.subscriptions import SUBSCRIPTION
from datastore.vocabulary.words import REMOVED_WORD, WORD
from datastore.voting.boards import BOARD
from datastore.voting.contenders import contender_key
from datastore.voting.votes import VOTE

Keys = list["ItemKey[Any]"]
Place = tuple[Keys, "str | None"]
"""Where an object may be stored, and whose it is if it is a member's or a visitor's."""


def _comment(key: str) -> Place:
    product, _, ulid = key.rpartition("#")
    return [entity.at(product=product, ulid=ulid) for entity in (COMMENT, HELD, REPLY)], None


def _contender(key: str) -> Place:
    board, _, ordinal = key.rpartition("/")
    return [contender_key(board, int(ordinal))], None


def _vote(key: str) -> Place:
    board, number, voter = key.split(":", 2)
    return [VOTE.at(voter=voter, board=board, number=int(number))], voter


def _match(key: str) -> Place:
    event, _, match = key.partition(":")
    return [MATCH.at(event=event, id=match)], None


def _prediction(key: str) -> Place:
    event, _, user = key.partition(":")
    return [prediction_key(event, user)], user


def _word(key: str) -> Place:
    word_list, _, ordinal = key.rpartition(".")
    return [entity.at(list=word_list, ordinal=int(ordinal)) for entity in (WORD, REMOVED_WORD)], None


def _of_day(entity: Entity[Any], key: str) -> Place:
    day, result, user = key.split(".", 2)
    return [entity.at(user=user, date=date.fromisoformat(day), id=result)], user


def _subscription(key: str) -> Place:
    word_list, character_set, user = key.split(".", 2)
    return [SUBSCRIPTION.at(user=user, list=word_list, character_set=character_set)], user


_PLACES: Mapping[str, Callable[[str], Place]] = {
    "ApiKey": lambda key: ([API_KEY.at(id=key)], None),
    "Board": lambda key: ([BOARD.at(slug=key)], None),
    "Comment": _comment,
    "Contender": _contender,
    "Event": lambda key: ([EVENT.at(id=key)], None),
    "League": lambda key: ([LEAGUE.at(id=key)], None),
    "Match": _match,
    "Prediction": _prediction,
    "QuizResult": partial(_of_day, QUIZ),
    "Sentence": partial(_of_day, SENTENCE),
    "Subscription": _subscription,
    "User": lambda key: ([PROFILE.at(user=key)], key),
    "Vote": _vote,
    "Webhook": lambda key: ([WEBHOOK.at(id=key)], None),
    "Word": _word,
    "WordList": lambda key: ([LIST.at(list=key)], None),
}


def keys_of(name: str) -> Keys:
    """Where an object may be stored; none if that is no name of an object."""
    return _place(name)[0]


def _place(name: str) -> Place:
    kind, _, key = name.partition(":")
    find = _PLACES.get(kind)
    try:
        return ([], None) if find is None else find(key)
    except (BadKey, ValueError):
        return [], None


async def missing_objects(table: Table, names: Iterable[str]) -> list[str]:
    """Those that are not stored, that no occurrence says were removed, and whose member was not erased."""
    places = {name: _place(name) for name in names}
    keys = [(name, key) for name, (some, _) in places.items() for key in some]
    records = await table.get_many([key for _, key in keys], consistent=True)
    found = {name for (name, _), record in zip(keys, records, strict=True) if record is not None}
    missing = [name for name in places if name not in found and not await _was_removed(table, name)]
    return [name for name in missing if not await _was_erased(table, places[name][1])]


async def _was_erased(table: Table, owner: str | None) -> bool:
    """Whether the member whose object it was has no profile any more.

    A visitor never had one, and may have been somebody who then signed in and was erased: votes go with the others.
    """
    if owner is None:
        return False
    return owner.startswith(VISITOR_PREFIX) or await read_profile(table, owner) is None


async def _was_removed(table: Table, name: str) -> bool:
    async for occurrence in table.iterate(OCCURRENCE.on("gsi2", object_key=object_key(name)).newest_first()):
        if occurrence.kind in REMOVALS:
            return True
    return False
