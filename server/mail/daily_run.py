"""The daily run: draws the word of every list and sends one email to every subscriber.

    lists ── daily words ────┐
                             ├── batches of 100 members ── not sent yet ── read consistently ── record ── send ── mark
    index of subscribers ────┘   without those who are noted as sent (`SentMembers`)

The index only says whom to look at. Address and subscriptions are read consistently just before the record. When the
index may have caught up with the run's beginning, the run walks it again and sends to whom it did not show before. So
every subscription and every change acknowledged before the run began counts, also with entries in flight. Later
subscriptions are served by this run or by the next one.

Only one batch of members and the words of their lists are in memory, the notes of one shard, and the ids of members who
subscribed within the last hour. After a kill another process starts the run again: it skips the emails that are marked
as sent.
"""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from math import inf
from operator import attrgetter
from typing import Any, NamedTuple

import structlog

from datastore.dynamo import DynamoError, ReadCache, batches, gather_or_cancel, pieces
from datastore.people.profiles import Profile, member_shard
from datastore.refusals import Refusal, Unavailable
from datastore.vocabulary import subscriptions as subscription_store
from datastore.vocabulary import words
from datastore.vocabulary.daily import DailyWord, ListBroken, clear_deleted_list, draw_daily_word
from datastore.vocabulary.lists import WordList, deleted_lists, lists_by_name, read_list
from datastore.vocabulary.words import Word
from resolvers.requests.context import Services
from resolvers.vocabulary.schedules import newest_date, time_zone
from resolvers.vocabulary.subscriptions import end_with_list
from server.mail.message import Email, EmailKind, Letterhead, Section, Unsubscription, message_id
from server.mail.sending import Emails, SendingSummary

# ── what is due ──

_ONE_DAY = timedelta(days=1)


def dates_begun(now: datetime) -> Sequence[date]:
    """The dates whose words are drawn: that of UTC, and the next one once it has begun anywhere."""
    return sorted({now.date(), newest_date(now)})


def due_at(profile: Profile | None, on: date) -> datetime:
    """When the words of a date are due. An hour that the clocks skip is the one that follows it."""
    hour = time.fromisoformat(profile.daily_word_at) if profile and profile.daily_word_at else time()
    return datetime.combine(on, hour, time_zone(profile.time_zone if profile else None)).astimezone(UTC)


def due_date(profile: Profile | None, now: datetime) -> date:
    """The last date whose words are due."""
    on = _today(profile, now)
    while due_at(profile, on) > now:
        on -= _ONE_DAY
    return on


def due_subscriptions(
    profile: Profile | None, subscriptions: Sequence[subscription_store.Subscription], on: date, now: datetime
) -> Sequence[subscription_store.Subscription]:
    """Those whose words are due: a new subscription begins today, not with the words of a date before."""
    if on >= _today(profile, now):
        return subscriptions
    due = due_at(profile, on)
    return [subscription for subscription in subscriptions if subscription.since <= due]


def _today(profile: Profile | None, now: datetime) -> date:
    return now.astimezone(time_zone(profile.time_zone if profile else None)).date()


# ── sent members ──
# Who was sent the email of a date: read and noted by the hundred, so that a run is cheap when little is due.
#
# A note repeats the emails' own records, and is written after them. So a member in a note was sent the email; any other
# member must be looked up. Only the notes of the shard that a run walks are in memory.

_PURPOSE = "sent email"
_SIZE = 8


class SentMembers:
    """The notes that a run reads and writes."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._shard = -1
        self._noted: dict[date, set[bytes]] = {}

    async def has(self, user: str, on: date) -> bool:
        """Whether a note says that the member was sent the email of this date."""
        if (shard := member_shard(user)) != self._shard:
            self._shard, self._noted = shard, {}
        if (noted := self._noted.get(on)) is None:
            noted = self._noted[on] = await self._read(on, shard)
        return self._hash(user) in noted

    async def _read(self, on: date, shard: int) -> set[bytes]:
        notes = await subscription_store.read_sent_notes(self._services.table, on, shard)
        return {*pieces(b"".join(note.members for note in notes), _SIZE)}

    async def note(self, sent: Sequence[tuple[str, date]]) -> None:
        """Note members whose emails, each of a date, were sent."""
        grouped: defaultdict[tuple[date, int], list[bytes]] = defaultdict(list)
        for user, on in sent:
            grouped[on, member_shard(user)].append(self._hash(user))
        services = self._services
        for (on, shard), hashes in grouped.items():
            now = services.clock()
            note = subscription_store.SentNote(
                on, shard, services.ids.next(now), b"".join(hashes), now + subscription_store.NOTE_LIFETIME
            )
            await subscription_store.note_sent(services.table, note)

    def _hash(self, user: str) -> bytes:
        return self._services.seal.keyed_hash(_PURPOSE, user.encode(), size=_SIZE)


# ── emails ──


def email_of_words(letterhead: Letterhead, user: str, address: str, sections: Sequence[Section], on: date) -> Email:
    """A member's email of a date; InvalidInput if the address is not valid."""
    end_all = letterhead.link(Unsubscription(user))
    words = [_shown(letterhead, user, section) for section in sections]
    values = {"on": on, "words": words, "unsubscribe_all": end_all}
    identifier = message_id(f"daily.{on:%Y%m%d}", letterhead.sender, user, on)
    return letterhead.email(EmailKind.DAILY_WORD, values, address, identifier, end_all)


def _shown(letterhead: Letterhead, user: str, section: Section) -> dict[str, Any]:
    """What the templates show of a section."""
    return {
        "term": section.characters,
        "language": section.language,
        "reading": section.word.reading,
        "definition": section.word.definition,
        "example": section.word.example,
        "list_name": section.list_name,
        "unsubscribe": letterhead.link(Unsubscription(user, section.list)),
    }


# ── daily run ──

INDEX_LAG = timedelta(seconds=10)
"""How long after a write an index may still lack it. DynamoDB's indexes are usually milliseconds behind."""
_RECENT = timedelta(hours=1)
"""Subscriptions older than this are certainly in the index."""
_BATCH = 100
_CLEARED_AT_ONCE = 1_000
_DRAWS_AT_ONCE = 16
_log = structlog.get_logger("ringside.daily")


@dataclass(slots=True)
class RunSummary(SendingSummary):
    """What a run did."""

    lists: int = 0
    subscribers: int = 0
    already_sent: int = 0
    without_address: int = 0
    without_words: int = 0
    unsubscribed: int = 0
    not_due: int = 0
    failed_lists: dict[str, str] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        return not (self.failed or self.failed_lists)

    def lines(self) -> list[str]:
        """To be printed."""
        counts = {
            "lists with a word": self.lists,
            "subscribers": self.subscribers,
            "emails sent": self.sent,
            "sent before": self.already_sent,
            "without an email address": self.without_address,
            "without a list that has words": self.without_words,
            "unsubscribed a moment ago": self.unsubscribed,
            "not due yet": self.not_due,
            "failed": self.failed,
        }
        lines = [f"{count:>9,} {label}" for label, count in counts.items()]
        lines += [f"list {name}: {reason}" for name, reason in self.failed_lists.items()]
        return [*lines, *self.reasons]


class MailingExpired(Exception):
    """The records of this date's emails may have expired: a new run could send some of them twice."""


class ListWord(NamedTuple):
    """A list and its word of the date."""

    list: WordList
    daily: DailyWord


class ListDate(NamedTuple):
    """A list and a date."""

    list: str
    on: date


class DailyRun:
    """One run, for one date or for those that are due, by the process that holds the lease of the emails."""

    def __init__(
        self, emails: Emails, progress: Callable[[RunSummary], None] = lambda _: None, on: date | None = None
    ) -> None:
        """With `on`, everybody's words of that date are due; without, each member's at their own hour."""
        self._emails = emails
        self._services = services = emails.services
        self._table = services.table
        self._progress = progress
        self._on = on
        self._words = ReadCache().each("list_words", self._draw, age=inf)
        self._deleted_lists: set[str] = set()
        self._failed_draws: set[ListDate] = set()
        self._seen_recent: set[str] = set()
        """Members who subscribed lately and were seen, so that the second walk of the index does not count them."""
        self._recent_since = services.clock() - _RECENT
        self._sent_members = SentMembers(services)
        self._just_sent: list[tuple[str, date]] = []
        self.summary = RunSummary()

    async def run(self) -> RunSummary:
        """MailingExpired before it begins. ServerUnreachable ends it early."""
        loop = asyncio.get_running_loop()
        shown_at = loop.time() + self._emails.index_lag.total_seconds()
        dates = [self._on] if self._on else dates_begun(self._services.clock())
        for on in dates:
            await self._begin(on)
        await self._clear_deleted_lists()
        await self._draw_public_words(dates)
        await self._send_to_subscribers(only_recent=False)
        await asyncio.sleep(max(0.0, shown_at - loop.time()))
        await self._send_to_subscribers(only_recent=True)
        return self.summary

    async def _begin(self, on: date) -> None:
        mailing = await subscription_store.begin_mailing(self._table, on, self._services.clock())
        if mailing.begun < self._services.clock() - subscription_store.LATEST:
            raise MailingExpired(
                f"The emails of {on} were sent on {mailing.begun:%Y-%m-%d}, too long ago to know to whom"
            )

    async def _send_to_subscribers(self, *, only_recent: bool) -> None:
        """Walk the index once, and send to the members whom this run has not seen."""
        async for batch in batches(self._subscribers(only_recent=only_recent), _BATCH):
            await self._send_batch(batch)

    async def _subscribers(self, *, only_recent: bool) -> AsyncIterator[tuple[str, date]]:
        async for subscriber in subscription_store.all_subscribers(self._table):
            is_recent = self._has_recent(subscriber.subscriptions)
            if subscriber.user in self._seen_recent or (only_recent and not is_recent):
                continue
            if is_recent:
                self._seen_recent.add(subscriber.user)
            self.summary.subscribers += 1
            on = self._date_for(subscriber.profile)
            if await self._sent_members.has(subscriber.user, on):
                self.summary.already_sent += 1
            else:
                yield subscriber.user, on

    def _date_for(self, profile: Profile | None) -> date:
        return self._on or due_date(profile, self._services.clock())

    def _has_recent(self, subscriptions: Sequence[subscription_store.Subscription]) -> bool:
        """Whether one of them was made so late that the first walk of the index may have lacked it."""
        return any(subscription.since > self._recent_since for subscription in subscriptions)

    # ── words ──

    async def _draw_public_words(self, dates: Sequence[date]) -> None:
        async def draw(list_id: str) -> None:
            with contextlib.suppress(DynamoError, Refusal):  # which is noted; the emails with this word wait
                drawn = [await self._list_word(ListDate(list_id, on)) for on in dates]
                self.summary.lists += any(drawn)

        async for word_lists in batches(lists_by_name(self._table, None), _BATCH):
            await gather_or_cancel((draw(word_list.list) for word_list in word_lists), _DRAWS_AT_ONCE)
            self._progress(self.summary)

    async def _list_word(self, wanted: ListDate) -> ListWord | None:
        """Draw a list's word of a date once a run; None for a list without words, or a broken one.

        After any other failure all emails with this word wait for the next run: None would send the other lists' words
        without this one, which no run could then make up for.
        """
        if wanted in self._failed_draws:
            raise Unavailable("The word of one of the lists could not be drawn.")
        (list_word,) = await self._words.load(wanted) or (None,)
        return list_word

    async def _draw(self, wanted: ListDate) -> tuple[ListWord | None]:
        list_id, on = wanted
        try:
            daily = await draw_daily_word(self._table, list_id, on)
            word_list = await read_list(self._table, list_id, consistent=True)
            if daily is not None and word_list is not None and word_list.corrected:
                daily = replace(daily, word=await self._current_word(daily.word))
        except (ListBroken, DynamoError, Refusal) as error:
            self.summary.failed_lists[list_id] = str(error)
            _log.error("drawing a daily word failed", list=list_id, reason=str(error))
            if isinstance(error, ListBroken):
                return (None,)
            self._failed_draws.add(wanted)
            self.summary.failed_for_now = True
            raise
        if word_list is not None and word_list.deleted_at is not None:
            self._deleted_lists.add(list_id)
            return (None,)
        return (ListWord(word_list, daily) if word_list is not None and daily is not None else None,)

    async def _current_word(self, word: Word) -> Word:
        """The word as it is now: it may have been corrected since it was drawn."""
        key = (word.list, word.ordinal)
        return (await words.read_words(self._table, [key], consistent=True)).get(key, word)

    async def _clear_deleted_lists(self) -> None:
        """Delete what is left of the words of deleted lists."""
        async for word_list in deleted_lists(self._table):
            while not await clear_deleted_list(self._table, word_list, _CLEARED_AT_ONCE):
                pass

    # ── emails ──

    async def _send_batch(self, batch: Sequence[tuple[str, date]]) -> None:
        """Send to these members the words of these dates."""
        sent = await subscription_store.read_sent_mails(self._table, batch)
        self.summary.already_sent += len(sent)
        unsent = [user for user, on in batch if (user, on) not in sent]
        await self.summary.send_all(unsent, self._send_email, self._emails.at_once, _log)
        await self._sent_members.note([*sent, *self._just_sent])
        self._just_sent.clear()
        self._progress(self.summary)

    async def _send_email(self, user: str) -> None:
        """Decide by what the table has now, not by what the index shows."""
        addressee = await subscription_store.read_addressee(self._table, user)
        if self._has_recent(addressee.subscriptions):
            self._seen_recent.add(user)
        if not addressee.subscriptions:
            self.summary.unsubscribed += 1
            return
        if addressee.profile is None or not addressee.profile.email:
            self.summary.without_address += 1
            return
        on = self._date_for(addressee.profile)
        due = addressee.subscriptions
        if self._on is None:
            due = tuple(due_subscriptions(addressee.profile, due, on, self._services.clock()))
        if not due:
            self.summary.not_due += 1
            return
        sections = await self._sections(due, on)
        if not sections:
            self.summary.without_words += 1
            return
        await self._send_sections(user, addressee.profile.email, sections, on)

    async def _send_sections(self, user: str, address: str, sections: Sequence[Section], on: date) -> None:
        email = email_of_words(self._emails.letterhead, user, address, sections, on)
        record = subscription_store.Mail(user, on, expires=self._services.clock() + subscription_store.RECORD_LIFETIME)
        if await self._emails.send_once(subscription_store.DAILY_EMAILS, record, email):
            self.summary.sent += 1
            self._just_sent.append((user, on))
        else:
            self.summary.already_sent += 1

    async def _sections(self, subscriptions: Sequence[subscription_store.Subscription], on: date) -> list[Section]:
        """The words of a member's subscriptions. A private list is sent to its owner alone."""
        sections: dict[tuple[str, str], Section] = {}
        for subscription in subscriptions:
            drawn = await self._list_word(ListDate(subscription.list, on))
            if subscription.list in self._deleted_lists:
                await end_with_list(self._services, subscription)
            elif drawn is not None and drawn.list.visible_to(subscription.user):
                word = drawn.daily.word
                characters = subscription.character_set if word.chinese else None
                section = Section(subscription.list, drawn.list.name, characters, word)
                key = (subscription.list, section.characters)
                sections[key] = replace(section, character_set=None) if key in sections else section
        return sorted(sections.values(), key=attrgetter("place"))
