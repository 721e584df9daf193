"""Sending an email once: claimed, sent, marked as sent. And sending many, some at a time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from datastore.dynamo import DynamoError
from datastore.mail_claims import CLAIM_LIFETIME, Claim, MailClaims
from server.mail.message import Email
from server.mail.smtp import DeliveryUnknown, EmailRejected, EmailTransport, ServerUnreachable

if TYPE_CHECKING:
    from resolvers.context import Services

C = TypeVar("C", bound=Claim)
T = TypeVar("T")


class NotSent(Exception):
    """This email was not sent, or perhaps not; the message says why."""


async def send_once(
    services: Services,
    transport: EmailTransport,
    claims: MailClaims[C],
    claim: C,
    email: Email,
    claim_lifetime: timedelta = CLAIM_LIFETIME,
) -> C | None:
    """None once it is sent, or the record of the run that claimed or sent it. May raise NotSent, ServerUnreachable."""
    table = services.table
    existing = await claims.claim(table, claim, services.once(), claim_lifetime)
    if existing is not None:
        return existing
    try:
        await transport.send(email)
    except DeliveryUnknown as error:
        # The claim stays: no run sends the email again before it lapses.
        raise NotSent(f"the email may or may not have been sent: {error}") from None
    except EmailRejected as error:
        await claims.release(table, claim)
        raise NotSent(str(error)) from None
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
