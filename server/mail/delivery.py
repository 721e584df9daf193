"""Sending an email once: recorded, sent, marked as sent. And sending many, some at a time, counting those that fail."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar

import structlog

from datastore.dynamo import DynamoError
from datastore.jobs.leases import Held, LeaseLost, Turn
from datastore.people.confirmations import SentEmail, SentEmails
from datastore.refusals import Refusal
from resolvers.requests.context import Services
from server.mail.message import Email
from server.mail.smtp import AT_ONCE, DeliveryUnknown, EmailRejected, EmailTransport, ServerUnreachable

E = TypeVar("E", bound=SentEmail)
T = TypeVar("T")

MAX_REASONS = 20


class SendingFailed(Exception):
    """This email was not sent, or perhaps not; the message says why."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """How many emails are sent at a time, how late the index may be."""

    at_once: int = AT_ONCE
    index_lag: timedelta = timedelta()


@dataclass(slots=True)
class SendingSummary:
    """What a run of any kind did: emails that it sent, and that failed."""

    sent: int = 0
    failed: int = 0
    reasons: list[str] = field(default_factory=list)

    @contextlib.contextmanager
    def failure_counted(self, user: str, log: structlog.stdlib.BoundLogger) -> Iterator[None]:
        """Count a failure of this member's email, so that it does not stop the others."""
        try:
            yield
        except (ServerUnreachable, LeaseLost):
            raise
        except (DynamoError, Refusal, SendingFailed) as error:
            self._add_failure(f"{user}: {error}")
        except Exception as error:
            log.exception("an email failed", user=user)
            self._add_failure(f"{user}: {type(error).__name__}")

    def _add_failure(self, reason: str) -> None:
        self.failed += 1
        if len(self.reasons) < MAX_REASONS:
            self.reasons.append(reason)


@dataclass(frozen=True, slots=True)
class LeasedTransport:
    """Sends emails while this process holds the lease of the emails."""

    transport: EmailTransport
    lease: Held[Turn]

    async def send(self, email: Email) -> None:
        if not self.lease.is_safe:
            raise LeaseLost
        await self.transport.send(email)


async def send_once(
    services: Services, transport: EmailTransport, emails: SentEmails[E], record: E, email: Email
) -> bool:
    """Whether it was sent now, not before. May raise SendingFailed, ServerUnreachable or LeaseLost."""
    table = services.table
    if not await emails.begin(table, record, services.unit()):
        return False
    try:
        await transport.send(email)
    except DeliveryUnknown as error:
        raise SendingFailed(f"the email may or may not have been sent: {error}") from None
    except EmailRejected as error:
        raise SendingFailed(str(error)) from None
    await emails.mark_sent(table, record, services.clock())
    return True


async def send_all(recipients: Sequence[T], send: Callable[[T], Awaitable[None]], at_once: int) -> None:
    """Call `send` for each, for at most `at_once` of them at a time; ServerUnreachable and LeaseLost end it."""
    remaining = list(reversed(recipients))

    async def work() -> None:
        while remaining:
            await send(remaining.pop())

    workers = [asyncio.create_task(work()) for _ in range(min(at_once, len(recipients)))]
    try:
        await asyncio.gather(*workers)
    except (ServerUnreachable, LeaseLost):
        # The other workers end by themselves.
        remaining.clear()
        await asyncio.gather(*workers, return_exceptions=True)
        raise
