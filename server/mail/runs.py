"""The emails that are due: when, and the runs that send reminders, replies and digests; `daily_run` sends the words.

They are sent by a command, or inside the service on a schedule.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

import structlog

from datastore.comments import changes
from datastore.comments import notices as notice_store
from datastore.comments.pages import read_comments
from datastore.comments.records import Comment, Status
from datastore.dynamo import Window, batches
from datastore.jobs.leases import Held, Turn
from datastore.members import suspensions as suspension_store
from datastore.people import profiles as profile_store
from datastore.people.profiles import Profile, read_profile
from datastore.pickem import predictions
from datastore.pickem.events import Event, EventState, read_events
from datastore.pickem.predictions import REMINDERS, Reminder
from datastore.refusals import Refusal
from resolvers.comments.notices import wants_replies
from resolvers.live.background import Repeated
from resolvers.people.profile import MOST_REMINDER_HOURS
from resolvers.requests.context import FORMER_MEMBER, Services
from resolvers.values.languages import page_language
from resolvers.vocabulary.schedules import time_zone
from server.mail import message, sending
from server.mail.daily_run import INDEX_LAG, DailyRun
from server.settings import AWS, Settings
from server.settings.values import Digest

# ── schedules ──
# Work on emails that is due every so often, by one process at a time.

_LOOK_AGAIN = 20.0
"""Seconds until the next attempt, if another process has the turn or a run has just ended."""
_TRY_AGAIN = timedelta(minutes=15)
"""Until a run is repeated that failed, as when the mail server does not answer, unless its period is shorter."""
_CLOCK_SKEW = timedelta(minutes=1)
_FIRST = "first"
"""Instead of when the first run was due."""
_log = structlog.get_logger("ringside.emails")


@contextlib.asynccontextmanager
async def open_emails(
    services: Services, settings: Settings, lease: Held[Turn], at_once: int = sending.AT_ONCE
) -> AsyncIterator[sending.Emails]:
    """What runs send with, while the process holds the lease of their turn."""
    templates = message.EmailTemplates(settings.email_templates)
    letterhead = message.Letterhead(sending.sender_address(settings), settings.public_url, services.seal, templates)
    index_lag = INDEX_LAG if settings.dynamodb_url == AWS else timedelta()  # local engines' are never behind
    async with sending.open_transport(settings, at_once) as transport:
        yield sending.Emails(services, letterhead, sending.LeasedTransport(transport, lease), at_once, index_lag)


class TurnSchedule(Repeated):
    """Sends when it is due, with the lease of a turn.

    The place of the lease is when the next run is due. It is set when a run has ended: so if the process is killed or
    stops, another one finds that a run is still due, and goes on, since what was sent is marked. Of a run that did not
    end well, it is when to try again and, after a blank, when the run was due, or that it was the first.
    """

    def __init__(self, services: Services, settings: Settings, name: str, period: timedelta) -> None:
        self._services = services
        self._settings = settings
        self._name = name
        self._period = period
        self._until_next = _LOOK_AGAIN
        problem = "sending emails failed; the next run goes on"
        expected = sending.ServerUnreachable, sending.FailedForNow
        super().__init__(self.run_if_due, lambda: self._until_next, problem, _log, *expected)

    async def has_work(self) -> bool:
        """Whether to ask for the turn."""
        return True

    async def send(self, emails: sending.Emails, due_at: str | None) -> None:
        """Send what is due. `due_at` is when this run was, and None of the first one."""
        raise NotImplementedError

    async def _send_in_turn(self, lease: Held[Turn], due_at: str | None) -> None:
        async with open_emails(self._services, self._settings, lease) as emails:
            await self.send(emails, due_at)

    async def run_if_due(self) -> bool:
        """Whether a run was due, and no other process has it."""
        self._until_next = _LOOK_AGAIN
        lease = await self._services.leases.take_turn(self._name) if await self.has_work() else None
        if lease is None:
            return False
        place, now = lease.record.place, self._services.clock()
        at, _, failed = (place or now.isoformat()).partition(" ")
        next_at = datetime.fromisoformat(at)
        due_at = None if failed == _FIRST else (failed or place)
        # A time that is later than it can be was set by a clock that was ahead.
        is_due = not now < next_at <= now + self._period + _CLOCK_SKEW
        try:
            if is_due:
                await lease.renewed_during(self._send_in_turn(lease, due_at))
                place = (now + self._period).isoformat()
            else:
                self._until_next = (next_at - now).total_seconds()
        except BaseException as ended:
            pause = timedelta() if isinstance(ended, asyncio.CancelledError) else min(_TRY_AGAIN, self._period)
            place = f"{(now + pause).isoformat()} {due_at or _FIRST}"
            raise
        finally:
            await lease.leave(place=place)
        return is_due


# ── daily words and reminders ──

EMAILS = "emails"
"""The turn of the process that sends emails."""
_WAIT = 1.0


async def turn(services: Services) -> Held[Turn]:
    """The lease of the emails, once no other process sends any."""
    while True:
        lease = await services.leases.take_turn(EMAILS)
        if lease is not None:
            return lease
        await asyncio.sleep(_WAIT)


class EmailSchedule(TurnSchedule):
    """Sends what is due, every so many minutes."""

    def __init__(self, services: Services, settings: Settings, minutes: float) -> None:
        super().__init__(services, settings, EMAILS, timedelta(minutes=minutes))

    async def send(self, emails: sending.Emails, _: str | None) -> None:
        """The reminders first: they have a deadline. FailedForNow if a later run may send what this one could not."""
        reminders = await ReminderRun(emails).run()
        words = await DailyRun(emails).run()
        failed = words.failed + reminders.failed
        if words.sent or reminders.sent or failed:
            _log.info("emails sent", words=words.sent, reminders=reminders.sent, failed=failed)
        for reason in (*words.reasons, *reminders.reasons):
            _log.warning("an email was not sent", reason=reason)
        if words.failed_for_now or reminders.failed_for_now:
            raise sending.FailedForNow("some emails or words failed for now")


# ── reminders ──
# Before the lock: one email for each event, only to members who asked for them, may predict and have no prediction.
#
# upcoming events ── members who want a reminder by now ── neither reminded nor predicted ── record ── send ── mark
#
# The indexes only say which events and members to look at. The event, the member, their prediction, the earlier
# reminder and their suspension are read consistently just before. No member is looked at unless an event locks within
# the next seven days.

_BATCH = 100
_reminders_log = structlog.get_logger("ringside.reminders")


@dataclass(slots=True)
class ReminderSummary(sending.SendingSummary):
    """What a run did."""

    events: int = 0
    passed_over: int = 0

    @property
    def complete(self) -> bool:
        return not self.failed

    def lines(self) -> list[str]:
        """To be printed."""
        counts = {
            "events that lock within a week": self.events,
            "reminders sent": self.sent,
            "reminded before, or with a prediction": self.passed_over,
            "failed": self.failed,
        }
        return [*(f"{count:>9,} {label}" for label, count in counts.items()), *self.reasons]


class ReminderRun:
    """One run, by the process that holds the lease of the emails."""

    def __init__(self, emails: sending.Emails) -> None:
        self._emails = emails
        self._services = emails.services
        self.summary = ReminderSummary()

    async def run(self) -> ReminderSummary:
        """ServerUnreachable ends it early."""
        events = await self._events()
        self.summary.events = len(events)
        if events:
            await self._remind(events)
        return self.summary

    async def _events(self) -> list[Event]:
        now = self._services.clock()
        until = now + timedelta(hours=MOST_REMINDER_HOURS)
        return [event async for event in predictions.events_to_lock(self._services.table, now, until)]

    async def _remind(self, events: Sequence[Event]) -> None:
        """Walk the members once, and fill a batch for each event."""
        due_users: dict[str, list[str]] = {event.id: [] for event in events}
        async for _, profile in profile_store.listed_profiles(self._services.table):
            for event in events:
                if _is_due(profile, event, self._services.clock()):
                    batch = due_users[event.id]
                    batch.append(profile.user)
                    if len(batch) == self._emails.at_once:  # so that all are sent as soon as they are looked at
                        due_users[event.id] = []
                        await self._send_batch(event.id, batch)
        for event_id, batch in due_users.items():
            await self._send_batch(event_id, batch)

    async def _send_batch(self, event_id: str, users: Sequence[str]) -> None:
        if not users:
            return
        table, now = self._services.table, self._services.clock()
        event = (await read_events(table, [event_id])).get(event_id)
        passed_over = await predictions.read_reminded_or_predicted(table, event_id, users)
        profiles = await profile_store.read_profiles(table, users, consistent=True)
        self.summary.passed_over += len(passed_over)
        if event is not None:
            due = [user for user, one in profiles.items() if user not in passed_over and _is_due(one, event, now)]
            held = await suspension_store.read_suspensions(table, due)
            due = [user for user in due if user not in held or not held[user].holds_at(now)]
            send = partial(self._send_email, event, profiles)
            await self.summary.send_all(due, send, self._emails.at_once, _reminders_log)

    async def _send_email(self, event: Event, profiles: Mapping[str, Profile], user: str) -> None:
        email = self._render(event, profiles[user])
        record = Reminder(user, event.id, expires=self._services.clock() + predictions.RECORD_LIFETIME)
        if await self._emails.send_once(REMINDERS, record, email):
            self.summary.sent += 1
        else:
            self.summary.passed_over += 1

    def _render(self, event: Event, profile: Profile) -> message.Email:
        letterhead = self._emails.letterhead
        unsubscribe = letterhead.link(message.Unsubscription(profile.user, other=message.OtherEmails.REMINDERS))
        zone = time_zone(profile.time_zone)
        values = {
            "event": event.name,
            "season": event.season,
            "place": event.place,
            "locks_at": event.starts_at.astimezone(zone),
            "time_zone": profile.time_zone or "UTC",
            "unsubscribe": unsubscribe,
        }
        identifier = message.message_id("lock", letterhead.sender, profile.user, event.id)
        kind = message.EmailKind.LOCK_REMINDER
        return letterhead.email(kind, values, profile.email or "", identifier, unsubscribe)


def _is_due(profile: Profile, event: Event, now: datetime) -> bool:
    """Whether the member wants to be reminded of the event by now, and can still predict it."""
    if not profile.lock_reminder_hours or not profile.email or event.state is not EventState.UPCOMING:
        return False
    if not event.card and event.tie_break is None:  # there is nothing to predict yet
        return False
    return now < event.starts_at <= now + timedelta(hours=profile.lock_reminder_hours)


# ── replies ──
# One email for each author who wants them, at most every quarter of an hour.
#
# notices in the index ── an author's notices, read consistently ── record ── send ── mark ── delete the notices
#
# The first reply is told at the next look, within a minute; those of the quarter of an hour after an email are told
# together in the next one. What became of the replies and of the author's wishes meanwhile counts: a reply that is gone
# or held is not told, and an author who no longer wants it gets nothing. Publishing one that was held writes its notice
# anew, so it is told then, unless an earlier email told it.

GATHERED = timedelta(minutes=15)
LOOK_EVERY = timedelta(seconds=20)
MOST_SHOWN = 20
LETTERS = 200
_replies_log = structlog.get_logger("ringside.replies")


_OF_SITE = "the site"
"""Instead of an author's id, which has no blank."""


async def shown_comments(services: Services, comments: Sequence[Comment], site: str = "") -> list[dict[str, str]]:
    """What the templates show of comments: the author, the product and the beginning of the text."""
    authors = list({comment.author for comment in comments} - {_OF_SITE})
    profiles = dict(zip(authors, await services.profiles.load_many(authors), strict=True))
    names = {author: FORMER_MEMBER if one is None else one.name for author, one in profiles.items()} | {_OF_SITE: site}
    return [
        {
            "author": names[comment.author],
            "product": comment.product,
            "body": comment.body if len(comment.body) <= LETTERS else f"{comment.body[:LETTERS]}…",
        }
        for comment in comments
    ]


def _as_told(comment: Comment | None, *, by_site: bool) -> Comment | None:
    """A reply, or the site's answer as a reply of the site's, if it is still there to be seen."""
    if comment is None or comment.held is not None:
        return None
    if not by_site:
        return comment
    answer = comment.answer
    return None if answer is None else replace(comment, body=answer.body, author=_OF_SITE)


class ReplyRun:
    """One look, by the process that has the turn."""

    def __init__(self, emails: sending.Emails) -> None:
        self._emails = emails
        self._services = emails.services
        self.summary = sending.SendingSummary()

    async def run(self) -> sending.SendingSummary:
        """ServerUnreachable ends it early."""
        async for users in batches(notice_store.authors_to_tell(self._services.table), _BATCH):
            await self.summary.send_all(users, self._tell, self._emails.at_once, _replies_log)
        return self.summary

    async def _tell(self, user: str) -> None:
        now = self._services.clock()
        notices, last = await notice_store.read_waiting(self._services.table, user, now)
        if last is not None and now < last.begun + GATHERED:
            return
        told = await notice_store.read_told(self._services.table, user, now)
        new = [notice for notice in notices if notice.reply not in told and now < notice.expires]
        profile = await read_profile(self._services.table, user)
        if profile is not None and wants_replies(profile) and new:
            await self._send(profile, new, last if last is not None and last.sent is None else None)
        await notice_store.delete_notices(self._services.table, notices)

    async def _send(
        self, profile: Profile, notices: Sequence[notice_store.ReplyNotice], unsent: notice_store.ReplyMail | None
    ) -> None:
        places = {notice.place: notice.answered is not None for notice in notices}
        found = zip(places.items(), await read_comments(self._services.table, list(places)), strict=True)
        shown = {place: _as_told(one, by_site=by_site) for (place, by_site), one in found}
        told = {place: reply for place, reply in shown.items() if reply is not None}
        if not told:
            return
        now = self._services.clock()
        id_ = self._services.ids.next(now) if unsent is None else unsent.id
        ids = tuple(notice.reply for notice in notices if notice.place in told)
        record = notice_store.ReplyMail(profile.user, id_, now, ids, expires=now + notice_store.RECORD_LIFETIME)
        email = await self._render(profile, list(told.values()), ids)
        if await self._emails.send_once(notice_store.REPLY_EMAILS, record, email):
            self.summary.sent += 1

    async def _render(self, profile: Profile, replies: Sequence[Comment], ids: tuple[str, ...]) -> message.Email:
        letterhead = self._emails.letterhead
        unsubscribe = letterhead.link(message.Unsubscription(profile.user, other=message.OtherEmails.REPLIES))
        shown = {
            "site": letterhead.site,
            "replies": await shown_comments(self._services, replies[:MOST_SHOWN], letterhead.site),
            "more": max(0, len(replies) - MOST_SHOWN),
            "unsubscribe": unsubscribe,
        }
        kind = message.EmailKind.REPLIES
        values = message.in_language(kind, page_language(replies[-1].language), shown)
        identifier = message.message_id("replies", letterhead.sender, profile.user, *ids)
        return letterhead.email(kind, values, profile.email or "", identifier, unsubscribe)


class ReplySchedule(TurnSchedule):
    """Looks for replies to be told all the time; without any it does not ask for the turn."""

    def __init__(self, services: Services, settings: Settings) -> None:
        super().__init__(services, settings, "reply emails", LOOK_EVERY)

    async def has_work(self) -> bool:
        return await notice_store.has_notices(self._services.table)

    async def send(self, emails: sending.Emails, _: str | None) -> None:
        summary = await ReplyRun(emails).run()
        if summary.sent or summary.failed:
            _replies_log.info("emails about replies sent", sent=summary.sent, failed=summary.failed)
        for reason in summary.reasons:
            _replies_log.warning("an email was not sent", reason=reason)


# ── digests ──
# What waits for moderators, by email to addresses that the operator names, each as often as they say.
#
# Nothing is sent while nothing waits. An email shows comments as text and leads to the moderators' page: nothing is
# decided by a link, which mail scanners open too.

_PURPOSE = "moderation email"
_digests_log = structlog.get_logger("ringside.digests")


class DigestSchedule(TurnSchedule):
    """Sends one address what waits, as often as it is said of that address."""

    def __init__(self, services: Services, settings: Settings, digest: Digest) -> None:
        self._digest = digest
        self._address = services.seal.keyed_hash(_PURPOSE, digest.address.encode()).hex()[:32]
        super().__init__(services, settings, f"digest {self._address}", digest.period)

    async def send(self, emails: sending.Emails, due_at: str | None) -> None:
        email = await self.render(emails.letterhead, due_at)
        if email is None:
            return
        record = notice_store.DigestMail(
            self._address, due_at or _FIRST, self._services.clock() + notice_store.RECORD_LIFETIME
        )
        try:
            await emails.send_once(notice_store.DIGEST_EMAILS, record, email)
        except sending.FailedForNow:
            raise  # or nobody would be told until the next one is due
        except (sending.SendingFailed, Refusal) as error:
            _digests_log.warning("a digest was not sent", reason=str(error))

    async def render(self, letterhead: message.Letterhead, due_at: str | None) -> message.Email | None:
        """The email that was due at a time, a period after the last one; None if nothing waits."""
        table, now = self._services.table, self._services.clock()
        since = min(now, datetime.fromisoformat(due_at) if due_at else now) - self._digest.period
        counts = {
            "waiting": await changes.count_queue(table, Status.PENDING),
            "reported": await changes.count_queue(table, Status.PUBLISHED),
        }
        if not any(counts.values()):
            return None
        counts["new"] = await changes.count_queue(table, Status.PENDING, since=since)
        shown = {
            "site": letterhead.site,
            "comments": await shown_comments(self._services, await self._oldest()),
            "link": f"{letterhead.public_url}/admin",
        }
        written = {
            name: f"{changes.MOST_COUNTED}+" if count > changes.MOST_COUNTED else count
            for name, count in counts.items()
        }
        kind = message.EmailKind.MODERATION_DIGEST
        values = message.in_language(kind, self._digest.language, shown | written)
        identifier = message.message_id("digest", letterhead.sender, f"{self._address} {due_at}")
        # An operator's templates may compare the numbers.
        return letterhead.email(kind, values | counts, self._digest.address, identifier)

    async def _oldest(self) -> list[Comment]:
        """Those that wait, then those that are reported."""
        window, comments = Window(MOST_SHOWN, self._services.seal), list[Comment]()
        for status in (Status.PENDING, Status.PUBLISHED):
            page = await changes.read_queue(self._services.table, status, window)
            comments += [comment for comment in page.nodes if comment is not None]
        return comments[:MOST_SHOWN]


def email_schedules(settings: Settings, services: Services) -> list[TurnSchedule]:
    """What the service sends by itself: words and reminders if it is to, and with a mail server about comments."""
    schedules = list[TurnSchedule]()
    if settings.email_minutes is not None:
        schedules.append(EmailSchedule(services, settings, settings.email_minutes))
    if settings.smtp_url is not None:
        digests = [DigestSchedule(services, settings, digest) for digest in settings.moderation_emails]
        schedules += [ReplySchedule(services, settings), *digests]
    return schedules
