"""Emails about replies: one for each author who wants them, at most every quarter of an hour.

    notices in the index ── an author's notices, read consistently ── record ── send ── mark ── delete the notices

The first reply is told at the next look, within a minute; those of the quarter of an hour after an email are told
together in the next one. What became of the replies and of the author's wishes meanwhile counts: a reply that is gone
or held is not told, and an author who no longer wants it gets nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from urllib.parse import urlsplit

import structlog

from datastore.comments.notices import (
    RECORD_LIFETIME,
    REPLY_EMAILS,
    ReplyMail,
    ReplyNotice,
    authors_to_tell,
    delete_notices,
    has_notices,
    read_waiting,
)
from datastore.comments.pages import read_comments
from datastore.comments.records import Comment
from datastore.dynamo import batches
from datastore.jobs.leases import Held, Turn
from datastore.people.profiles import Profile, read_profile
from resolvers.comments.notices import wants_replies
from resolvers.requests.context import FORMER_MEMBER, Services
from resolvers.values.page_languages import page_language
from server.mail.delivery import LeasedTransport, RunLimits, SendingSummary, send_all, send_once
from server.mail.emails_due import email_template
from server.mail.message import Email, EmailTemplate, OtherEmails, Unsubscription, compose, host_of
from server.mail.rendering import EmailKind, in_language
from server.mail.schedules import TurnSchedule
from server.mail.smtp import EmailTransport, open_transport
from server.settings import Settings

GATHERED = timedelta(minutes=15)
LOOK_EVERY = timedelta(seconds=20)
MOST_SHOWN = 20
LETTERS = 200
_BATCH = 100
_log = structlog.get_logger("ringside.replies")


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


def _as_told(comment: Comment, *, by_site: bool) -> Comment | None:
    """A reply; or the site's answer as a reply of the site's, if it is still there."""
    if not by_site:
        return comment
    answer = comment.answer
    return None if answer is None else replace(comment, body=answer.body, author=_OF_SITE)


class ReplyRun:
    """One look, by the process that has the turn."""

    def __init__(
        self, services: Services, template: EmailTemplate, transport: EmailTransport, limits: RunLimits
    ) -> None:
        self._services = services
        self._template = template
        self._transport = transport
        self._limits = limits
        self.summary = SendingSummary()

    async def run(self) -> SendingSummary:
        """ServerUnreachable ends it early."""
        async for users in batches(authors_to_tell(self._services.table), _BATCH):
            await send_all(users, self._tell, self._limits.at_once)
        return self.summary

    async def _tell(self, user: str) -> None:
        with self.summary.failure_counted(user, _log):
            notices, last = await read_waiting(self._services.table, user)
            if last is not None and self._services.clock() < last.begun + GATHERED:
                return
            told = set(last.replies) if last is not None and last.sent is not None else set()
            new = [notice for notice in notices if notice.reply not in told]
            profile = await read_profile(self._services.table, user)
            if profile is not None and wants_replies(profile) and new:
                await self._send(profile, new, last if last is not None and last.sent is None else None)
            await delete_notices(self._services.table, notices)

    async def _send(self, profile: Profile, notices: Sequence[ReplyNotice], unsent: ReplyMail | None) -> None:
        places = {notice.place: notice.answered is not None for notice in notices}
        found = zip(places.values(), await read_comments(self._services.table, list(places)), strict=True)
        told = [_as_told(one, by_site=by_site) for by_site, one in found if one is not None and one.held is None]
        replies = [reply for reply in told if reply is not None]
        if not replies:
            return
        now = self._services.clock()
        id_ = self._services.ids.next(now) if unsent is None else unsent.id
        ids = tuple(notice.reply for notice in notices)
        record = ReplyMail(profile.user, id_, now, ids, expires=now + RECORD_LIFETIME)
        email = await self._render(profile, replies, id_)
        if await send_once(self._services, self._transport, REPLY_EMAILS, record, email):
            self.summary.sent += 1

    async def _render(self, profile: Profile, replies: Sequence[Comment], id_: str) -> Email:
        template = self._template
        unsubscribe = template.link(Unsubscription(profile.user, other=OtherEmails.REPLIES))
        site = urlsplit(template.public_url).netloc
        shown = {
            "site": site,
            "replies": await shown_comments(self._services, replies[:MOST_SHOWN], site),
            "more": max(0, len(replies) - MOST_SHOWN),
            "unsubscribe": unsubscribe,
        }
        values = in_language(EmailKind.REPLIES, page_language(replies[-1].language), shown)
        rendered = template.templates.render(EmailKind.REPLIES, values)
        digest = hashlib.sha256(f"{profile.user}\x00{id_}".encode()).hexdigest()[:32]
        identifier = f"<replies.{digest}@{host_of(template.sender)}>"
        return compose(template.sender, profile.email or "", rendered, identifier, unsubscribe)


class ReplySchedule(TurnSchedule):
    """Looks for replies to be told all the time; without any it does not ask for the turn."""

    def __init__(self, services: Services, settings: Settings) -> None:
        self._services = services
        self._settings = settings
        super().__init__(services, "reply emails", LOOK_EVERY, self._send, lambda: has_notices(services.table))

    async def _send(self, lease: Held[Turn]) -> None:
        async with open_transport(self._settings) as transport:
            leased = LeasedTransport(transport, lease)
            summary = await ReplyRun(self._services, email_template(self._settings), leased, RunLimits()).run()
        if summary.sent or summary.failed:
            _log.info("emails about replies sent", sent=summary.sent, failed=summary.failed)
        for reason in summary.reasons:
            _log.warning("an email was not sent", reason=reason)
