"""A member's file: everything that is stored about one member, kind by kind.

| wanted                                     | read                                                | requests      |
|--------------------------------------------|-----------------------------------------------------|---------------|
| profile, learning, subscriptions           | Query USER#<id>, consistent                         | 1 a megabyte  |
| comments                                   | the same of its pointers, then BatchGetItem         | 1 for 100     |
| votes and where they came from             | Query VOTER#<id>#<board> of every board, consistent | boards        |
| predictions and standings                  | BatchGetItem for every event and season, consistent | 1 for 100     |
| private lists                              | gsi1 LISTS#OF-<id>; Query LIST#<id>, consistent     | 1, and lists  |
| reports, suspension, what they did         | gsi1 MODERATION#PUBLISHED; GetItem; gsi1 of the journal | 1 a page each |

Every entity of the table is either a kind of the file, with all of its fields but `LEFT_OUT_FIELDS` and with its
`TIMES_IN_IDS`, or says why it is not; and says what becomes of it when the member is erased or taken back. Tests
compare this with what the datastore declares. Nothing is read by a scan. A few hundred of the member's records are in
memory at a time, beside all events and the slugs of all boards.

Lists, reports and occurrences whose index entries are still in flight are missing; a later file has them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from datastore import (
    address_use,
    api_keys,
    confirmations,
    created,
    demo,
    exports,
    jobs,
    layout,
    leases,
    receipts,
    suspensions,
    tombstones,
)
from datastore.comments import counts, leaders, pointers, records, transfer
from datastore.dynamo.entity import Entity, Partition
from datastore.journal import records as journal
from datastore.people import PROFILE, member_shard
from datastore.pickem import event_records, gates, histograms, league_records, predictions, reminders, standings
from datastore.pickem.events import every_event
from datastore.vocabulary import (
    address_subscriptions,
    cards,
    daily,
    learning,
    lists,
    mail,
    quizzes,
    subscriptions,
    words,
)
from datastore.voting import addresses, boards, contenders, marks, tallies, voiding, votes

if TYPE_CHECKING:
    from datastore.dynamo import Table

KINDS: Mapping[Entity[Any], tuple[str, str]] = {
    PROFILE: ("profile", "Your name, settings and email address, and when you joined."),
    suspensions.SUSPENSION: ("suspension", "That you may not write, why, and until when."),
    suspensions.ADMIN: ("admin", "That you have lately written as an admin."),
    votes.VOTE: ("vote", "One of your verdicts: the pair by the numbers of both contenders, and which of them won."),
    addresses.ORIGIN: ("voteOrigin", "For a week: that some votes on a board came from one network address."),
    predictions.PREDICTION: ("prediction", "Your picks for one event: the number of a team for each match."),
    standings.STANDING: ("standing", "Your points in one season."),
    reminders.REMINDER: ("reminder", "That an email reminded you of an event."),
    league_records.MEMBER_LEAGUES: ("leagues", "The leagues that you are in, or wait for, with their seasons."),
    league_records.LEAGUE_MEMBER: ("leagueMembership", "Your place in one league."),
    records.COMMENT: (
        "comment",
        "One of your comments that everybody sees. `arrivedAt`: when it was published after it had been held.",
    ),
    records.HELD: ("heldComment", "One of your comments that waits for a moderator or was rejected."),
    records.REPORTS: ("report", "Your report of a comment that moderators have yet to decide about."),
    learning.QUIZ: ("quiz", "The result of one quiz."),
    learning.SENTENCE: ("sentence", "One practice sentence."),
    quizzes.OPEN_QUIZ: ("openQuiz", "For a day: a quiz that you were asked, with your cards of its words."),
    cards.CARD: ("card", "When you will be asked a word again, and how well you know it."),
    learning.ACTIVE_DAYS: (
        "activeDays",
        "The days on which you were active: bit n is the day `since` + n; and when you last answered a quiz.",
    ),
    subscriptions.SUBSCRIPTION: ("subscription", "A subscription to the daily words of a list, active or ended."),
    address_subscriptions.ADDRESS_CLAIM: (
        "addressClaim",
        "That you claimed the subscriptions of an address, which is named by a keyed hash.",
    ),
    mail.MAIL: ("mail", "That an email was sent to you on a date."),
    lists.QUOTA: ("quota", "How many private lists you have."),
    lists.LIST: ("list", "One of your private lists."),
    words.WORD: ("word", "One word of your private lists."),
    words.REMOVED_WORD: ("removedWord", "One word that was removed from your private lists."),
    daily.DAILY: ("dailyWord", "The word of your private list on a date."),
    journal.OCCURRENCE: ("occurrence", "Something that you did, with its time and object."),
}
"""The kinds of the file, each with the words that its header explains it in."""

TIMES_IN_IDS: Mapping[type, tuple[str, ...]] = {
    records.Comment: ("created_at", "arrived_at"),
    journal.Occurrence: ("at",),
}
"""The times that a record has only inside an id: properties, which the file has beside the fields."""

_REPEATS = "Repeats what the file has"
_NOBODY = "Says nothing about a member"

LEFT_OUT: Mapping[Entity[Any], str] = {
    pointers.POINTER: f"{_REPEATS}: it says where a comment is.",
    cards.QUEUED_CARD: f"{_REPEATS}: it is a card's place among those that are due.",
    cards.QUEUE_CHANGE: f"{_REPEATS}: it says which cards of an answered quiz are about to change their places.",
    receipts.RECEIPT: f"{_REPEATS}: the answers to repeated requests, which expire after seven days. They are stored "
    "under the keys that clients chose, so nobody can list a member's.",
    voiding.VOIDING_PLACE: "For a day: how far an editor's voiding of votes has come.",
    addresses.ADDRESS_VOTER: "For a week: it lists the voters of an address by its keyed hash.",
    tombstones.TOMBSTONE: "That a member is erased, whom it names by a keyed hash.",
    confirmations.CONFIRMATION: "For three days: that an email was sent to an address, which it names by a keyed hash.",
    mail.SENT_NOTE: f"{_REPEATS}, for three days: that an email was sent to a member, whom it names by a keyed hash.",
    jobs.JOB: "Names who began it by a keyed hash; its input is forgotten when it ends.",
    **dict.fromkeys(
        (
            address_use.ADDRESS_USE,
            api_keys.API_KEY,
            boards.BOARD,
            contenders.CONTENDER,
            contenders.DETAILS,
            contenders.IMPORTED_NAME,
            contenders.NAME,
            contenders.PICTURE,
            counts.TALLY,
            created.CREATED,
            demo.DEMO_PART,
            event_records.EVENT,
            exports.EXPORT,
            exports.EXPORT_PIECE,
            event_records.MATCH,
            gates.GATE,
            histograms.HISTOGRAM_PART,
            journal.DELIVERY,
            journal.WEBHOOK,
            journal.WEBHOOK_ADDITIONS,
            layout.LAYOUT,
            league_records.LEAGUE,
            league_records.LEAGUE_CODE,
            leaders.LEADER,
            leases.TURN,
            mail.DAILY_MAILING,
            marks.DIRTY_MARK,
            records.LATE_ARRIVAL,
            standings.SEASON,
            subscriptions.SUBSCRIBER_COUNT,
            tallies.PAIR,
            tallies.TALLY,
            transfer.IMPORT_BATCH,
        ),
        f"{_NOBODY}.",
    ),
}
"""What the file leaves out, and why."""

LEFT_OUT_FIELDS: Mapping[str, str] = {
    "vote.origin": "A random tag, which for a week leads to the network address that the vote came from.",
    "voteOrigin.tag": "The same tag.",
    "openQuiz.words": "For a day: the right answers of a quiz, which you may still be about to give.",
    "voteOrigin.address": "A keyed hash of the address: two files would show that their members share one.",
}
"""The fields of kinds that the file leaves out, and why."""


class Fate(Enum):
    """What becomes of the items of an entity that name a member."""

    DELETED = "deleted, and uncounted where they counted"
    MOVED = "moved to an id that is nobody's, where they count on"
    FORGOTTEN = "kept without the member's id"
    REJECTED = "kept, and uncounted"
    KEPT = "kept"
    NOBODY = "there are none"


@dataclass(frozen=True, slots=True)
class Fates:
    """What becomes of an entity's items when the member is erased, made anonymous, or taken back."""

    removed: Fate
    anonymised: Fate
    taken_back: Fate


_PERSONAL = Fates(Fate.DELETED, Fate.DELETED, Fate.KEPT)
_TRACE = Fates(Fate.FORGOTTEN, Fate.FORGOTTEN, Fate.KEPT)
FATES: Mapping[Entity[Any], Fates] = {
    **dict.fromkeys(LEFT_OUT, Fates(Fate.NOBODY, Fate.NOBODY, Fate.NOBODY)),
    **dict.fromkeys(KINDS, _PERSONAL),
    votes.VOTE: Fates(Fate.DELETED, Fate.MOVED, Fate.REJECTED),
    predictions.PREDICTION: Fates(Fate.DELETED, Fate.MOVED, Fate.DELETED),
    standings.STANDING: Fates(Fate.DELETED, Fate.MOVED, Fate.DELETED),
    records.COMMENT: Fates(Fate.DELETED, Fate.MOVED, Fate.REJECTED),
    records.HELD: Fates(Fate.DELETED, Fate.MOVED, Fate.KEPT),
    pointers.POINTER: Fates(Fate.DELETED, Fate.MOVED, Fate.KEPT),
    records.REPORTS: Fates(Fate.FORGOTTEN, Fate.MOVED, Fate.KEPT),
    learning.QUIZ: Fates(Fate.DELETED, Fate.MOVED, Fate.DELETED),
    learning.SENTENCE: Fates(Fate.DELETED, Fate.MOVED, Fate.DELETED),
    learning.ACTIVE_DAYS: Fates(Fate.DELETED, Fate.MOVED, Fate.DELETED),
    journal.OCCURRENCE: _TRACE,
    journal.DELIVERY: _TRACE,
    jobs.JOB: _TRACE,
    **dict.fromkeys(
        (
            cards.QUEUED_CARD,
            cards.QUEUE_CHANGE,
            receipts.RECEIPT,
            voiding.VOIDING_PLACE,
            addresses.ADDRESS_VOTER,
            exports.EXPORT,
            exports.EXPORT_PIECE,
        ),
        _PERSONAL,
    ),
}
"""Every entity; a test compares it with what erasing leaves."""

_OWN = (
    PROFILE,
    quizzes.OPEN_QUIZ,
    learning.QUIZ,
    learning.SENTENCE,
    learning.ACTIVE_DAYS,
    cards.CARD,
    subscriptions.SUBSCRIPTION,
    address_subscriptions.ADDRESS_CLAIM,
    mail.MAIL,
    lists.QUOTA,
    league_records.MEMBER_LEAGUES,
    reminders.REMINDER,
)
_OF_LIST = (lists.LIST, words.WORD, words.REMOVED_WORD, daily.DAILY)
_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class OwnReport:
    """One member's part of the reports of a comment."""

    product: str
    ulid: str
    reason: str


async def member_file(table: Table, user: str) -> AsyncIterator[tuple[str, Any]]:
    """Every record about a member, with the name of its kind."""
    sources = (_own(table, user), _comments(table, user), _votes(table, user), _pickem(table, user))
    for source in (*sources, _lists(table, user), _reports(table, user), _of_members(table, user)):
        async for entity, record in source:
            yield KINDS[entity][0], record


async def _own(table: Table, user: str) -> AsyncIterator[tuple[Entity[Any], Any]]:
    collection: Partition[Any] = Partition(PROFILE, None, PROFILE.at(user=user).pk)
    async for record in table.iterate(collection, *_OWN, consistent=True):
        yield next(entity for entity in _OWN if isinstance(record, entity.record)), record


async def _comments(table: Table, user: str) -> AsyncIterator[tuple[Entity[Any], Any]]:
    rest: Partition[pointers.Pointer] | None = pointers.POINTER.on(author=user).newest_first()
    while rest is not None:
        some = await table.query(rest, limit=_AT_ONCE, consistent=True)
        for entity in (records.COMMENT, records.HELD):
            keys = [entity.at(product=pointer.product, ulid=pointer.ulid) for pointer in some.records]
            for comment in await table.get_many(keys, consistent=True):
                if comment is not None:
                    yield entity, comment
        rest = rest.past(some.last) if some.last else None


async def _votes(table: Table, user: str) -> AsyncIterator[tuple[Entity[Any], Any]]:
    for board in await boards.every_slug(table):
        collection: Partition[Any] = votes.VOTE.on(voter=user, board=board)
        async for vote in table.iterate(collection, consistent=True):
            yield votes.VOTE, vote
        async for origin in table.iterate(addresses.ORIGIN.on(voter=user, board=board), consistent=True):
            yield addresses.ORIGIN, origin


async def _pickem(table: Table, user: str) -> AsyncIterator[tuple[Entity[Any], Any]]:
    events = await every_event(table)
    shard = member_shard(user)
    keys: list[Any] = [predictions.PREDICTION.at(event=event.id, shard=shard, user=user) for event in events]
    for prediction in await table.get_many(keys, consistent=True):
        if prediction is not None:
            yield predictions.PREDICTION, prediction
    for season in sorted({event.season for event in events}):
        standing = await standings.read_standing(table, user, season)
        if standing is not None:
            yield standings.STANDING, standing
    own = await table.get(league_records.MEMBER_LEAGUES.at(user=user), consistent=True)
    places = [league_records.LEAGUE_MEMBER.at(league=league, user=user) for league in (own.leagues if own else ())]
    for place in await table.get_many(places, consistent=True):
        if place is not None:
            yield league_records.LEAGUE_MEMBER, place


async def _lists(table: Table, user: str) -> AsyncIterator[tuple[Entity[Any], Any]]:
    async for word_list in lists.lists_by_name(table, user):
        collection: Partition[Any] = Partition(lists.LIST, None, lists.LIST.item_key(word_list).pk)
        async for record in table.iterate(collection, *_OF_LIST, consistent=True):
            yield next(entity for entity in _OF_LIST if isinstance(record, entity.record)), record


async def _reports(table: Table, user: str) -> AsyncIterator[tuple[Entity[Any], Any]]:
    async for reports in table.iterate(records.REPORTS.on("gsi1")):
        if user in reports.reasons:
            yield records.REPORTS, OwnReport(reports.product, reports.ulid, reports.reasons[user])


async def _of_members(table: Table, user: str) -> AsyncIterator[tuple[Entity[Any], Any]]:
    for entity in (suspensions.SUSPENSION, suspensions.ADMIN):
        record = await table.get(entity.at(user=user), consistent=True)
        if record is not None:
            yield entity, record
    for shard in range(journal.ACTOR_SHARDS):
        done_by = journal.OCCURRENCE.on("gsi1", actor=f"User:{user}", actor_shard=shard)
        async for occurrence in table.iterate(done_by):
            yield journal.OCCURRENCE, occurrence
