"""Emails about comments: replies of which an author is to be told, and the records of what was sent.

| wanted                       | read or write                                          | requests    |
|------------------------------|--------------------------------------------------------|-------------|
| tell an author of a reply    | Put USER#<author> REPLYNOTICE#<reply>, with the reply  | 0 more      |
| who is to be told            | gsi1 REPLYNOTICES                                      | 1 a page    |
| an author's, the last email  | Query USER#<author> twice, consistent                  | 2           |
| what emails have told        | Query USER#<author>, consistent, when one is due       | 1           |
| told                         | BatchWriteItem, deleting                               | 1 for 25    |

A notice is written with the reply that becomes visible, only for authors who want to be told. So it is lost if and only
if the reply is. The record of an email names the replies that it told: a notice that outlives its email is not told
again, nor is one that is written anew because its reply was held meanwhile.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from datastore.comments.records import Answer, Comment
from datastore.dynamo import Table
from datastore.dynamo.entity import Entity, Key, Partition
from datastore.people.confirmations import SentEmails
from datastore.values.ids import CLOCK_SKEW, derived_id, first_id

_NOTICE_LIFETIME = timedelta(days=2)
RECORD_LIFETIME = timedelta(days=30)
_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class ReplyNotice:
    """A reply, or the site's answer, of which the author of what it answers is to be told."""

    user: str
    reply: str
    product: str
    expires: datetime
    answered: str | None = None
    """The comment that the site has answered; then `reply` is an id of the notice's own."""

    @property
    def place(self) -> tuple[str, str]:
        """The product and id of the comment that is the reply, or that has the site's answer."""
        return self.product, self.answered or self.reply


REPLY_NOTICE = Entity(
    ReplyNotice, Key("USER#{user}", "REPLYNOTICE#{reply}"), gsi1=Key("REPLYNOTICES", "{user}#{reply}"), ttl="expires"
)


def new_notice(user: str, reply: Comment, now: datetime) -> ReplyNotice:
    return ReplyNotice(user, reply.ulid, reply.product, now + _NOTICE_LIFETIME)


def answer_notice(comment: Comment, answer: Answer, now: datetime) -> ReplyNotice:
    """The same answer has the same id: it is not told again because its comment was held meanwhile."""
    id_ = derived_id(answer.at, comment.ulid.encode())
    return ReplyNotice(comment.author, id_, comment.product, now + _NOTICE_LIFETIME, comment.ulid)


async def authors_to_tell(table: Table) -> AsyncIterator[str]:
    """The members of whom the index shows a notice, each once."""
    last = None
    async for notice in table.iterate(REPLY_NOTICE.on("gsi1")):
        if notice.user != last:
            last = notice.user
            yield notice.user


async def has_notices(table: Table) -> bool:
    """Whether the index shows any."""
    return bool((await table.query(REPLY_NOTICE.on("gsi1"), limit=1)).records)


@dataclass(frozen=True, slots=True)
class ReplyMail:
    """An email about replies, which a run has begun to send, and then sent."""

    user: str
    id: str
    begun: datetime
    replies: tuple[str, ...]
    expires: datetime
    sent: datetime | None = None


REPLY_MAIL = Entity(ReplyMail, Key("USER#{user}", "REPLYMAIL#{id}"), ttl="expires")
REPLY_EMAILS = SentEmails(REPLY_MAIL)


@dataclass(frozen=True, slots=True)
class DigestMail:
    """An email to an address of moderators, by the address's keyed hash and when it was due."""

    user: str
    due: str
    expires: datetime
    sent: datetime | None = None


DIGEST_MAIL = Entity(DigestMail, Key("DIGEST#{user}", "MAIL#{due}"), ttl="expires")
DIGEST_EMAILS = SentEmails(DIGEST_MAIL)


async def read_waiting(table: Table, user: str, now: datetime) -> tuple[Sequence[ReplyNotice], ReplyMail | None]:
    """A member's notices, the oldest first, and the last email.

    Not one that seems to be yet to come: it was begun while the clock was ahead.
    """
    notices, last = await asyncio.gather(
        table.query(REPLY_NOTICE.on(user=user), limit=_AT_ONCE, consistent=True),
        table.query(_mails(user, now), limit=1, consistent=True),
    )
    return notices.records, next(iter(last.records), None)


async def read_told(table: Table, user: str, now: datetime) -> set[str]:
    """The replies that a member's last emails told."""
    mails = await table.query(_mails(user, now), limit=_AT_ONCE, consistent=True)
    return {reply for mail in mails.records if mail.sent is not None for reply in mail.replies}


def _mails(user: str, now: datetime) -> Partition[ReplyMail]:
    return REPLY_MAIL.on(user=user).between(None, f"REPLYMAIL#{first_id(now + CLOCK_SKEW)}").newest_first()


async def delete_notices(table: Table, notices: Sequence[ReplyNotice]) -> None:
    await table.write_many(REPLY_NOTICE.delete(REPLY_NOTICE.item_key(notice)) for notice in notices)
