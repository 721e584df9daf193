"""Sending an email once: claimed, sent, marked as sent. And sending many, some at a time, counting those that fail."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

import structlog

from datastore.dynamo import DynamoError
from datastore.mail_claims import CLAIM_LIFETIME, Claim, MailClaims
from datastore.refusals import Refusal
from server.mail.message import Email
from server.mail.smtp import AT_ONCE, DeliveryUnknown, EmailRejected, EmailTransport, ServerUnreachable

if TYPE_CHECKING:
    from resolvers.context import Services

C = TypeVar("C", bound=Claim)
T = TypeVar("T")

MAX_REASONS = 20


class SendingFailed(Exception):
    """This email was not sent, or perhaps not; the message says why."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """How many emails are sent at a time, how long another run's claim is respected, how late the index may be."""

    at_once: int = AT_ONCE
    claim_lifetime: timedelta = CLAIM_LIFETIME
    index_lag: timedelta = timedelta()


@dataclass(slots=True)
class SendingSummary:
    """What a run of any kind did: emails that it sent, that failed, and that another run has claimed."""

    sent: int = 0
    failed: int = 0
    claimed_elsewhere: int = 0
    reasons: list[str] = field(default_factory=list)

    @contextlib.contextmanager
    def failure_counted(self, user: str, log: structlog.stdlib.BoundLogger) -> Iterator[None]:
        """Count a failure of this member's email, so that it does not stop the others."""
        try:
            yield
        except ServerUnreachable:
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


async def send_once(
    services: Services,
    transport: EmailTransport,
    claims: MailClaims[C],
    claim: C,
    email: Email,
    claim_lifetime: timedelta = CLAIM_LIFETIME,
) -> C | None:
    """None once it is sent, or the record of the run that claimed or sent it.

    May raise SendingFailed or ServerUnreachable.
    """
    table = services.table
    existing = await claims.claim(table, claim, services.once(), claim_lifetime)
    if existing is not None:
        return existing
    try:
        await transport.send(email)
    except DeliveryUnknown as error:
        # The claim stays: no run sends the email again before it lapses.
        raise SendingFailed(f"the email may or may not have been sent: {error}") from None
    except EmailRejected as error:
        await claims.release(table, claim)
        raise SendingFailed(str(error)) from None
    except ServerUnreachable:
        with contextlib.suppress(DynamoError):
            await claims.release(table, claim)
        raise
    await claims.mark_sent(table, claim, services.clock())
    return None


async def send_all(recipients: Sequence[T], send: Callable[[T], Awaitable[None]], at_once: int) -> None:
    """Call `send` for each, for at most `at_once` of them at a time; ServerUnreachable ends it."""
    remaining = list(reversed(recipients))

    async def work() -> None:
        while remaining:
            await send(remaining.pop())

    workers = [asyncio.create_task(work()) for _ in range(min(at_once, len(recipients)))]
    try:
        await asyncio.gather(*workers)
    except ServerUnreachable:
        # The other workers end by themselves, and each releases its claim.
        remaining.clear()
        await asyncio.gather(*workers, return_exceptions=True)
        raise
