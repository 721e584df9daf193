"""Emails with a link by which somebody confirms that an address is theirs.

Nothing about an address is stored before it is confirmed, except a keyed hash: the link itself says what it confirms,
sealed. So the process that gets the request also sends the email. A member's request waits for that, for some seconds
at most. That of a visitor, who may name any address, is answered before anything is looked up or sent, so neither the
answer nor its time depends on the address.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from functools import partial
from typing import Any

import orjson
import structlog

from datastore.dynamo import DynamoError, SingleFlight, deadline, shared_context
from datastore.jobs.leases import Held, LeaseLost
from datastore.people import confirmations as confirmation_store
from datastore.people.confirmations import Confirmation
from datastore.people.profiles import Profile
from datastore.refusals import Conflict, InvalidInput, NotAllowed, Refusal, Unavailable
from datastore.values.seal import Seal
from resolvers.live.background import Promised
from resolvers.requests.address_limits import AddressLimits
from resolvers.requests.context import Context, Services
from resolvers.values.texts import with_ascii_domain

LINK_HOURS = 24
PATH = "/confirm"
_PURPOSE = "confirmation"
_KEPT = timedelta(days=2)
"""For longer than a link counts, so that a used one is known."""
_LONGEST_WAIT = 5.0
"""Seconds that a request waits for the mail server."""
_STORING = 10.0
RATE = "20/day"
"""Emails that one member may ask for, in each process."""
_SOON = timedelta(seconds=30)
_log = structlog.get_logger("ringside.confirmations")


class Purpose(Enum):
    """What a link confirms."""

    SUBSCRIPTION = "SUBSCRIPTION"
    ADDRESS = "ADDRESS"


@dataclass(frozen=True, slots=True)
class Link:
    """What a link says. `about` is a list and a character set, or a member."""

    purpose: Purpose
    email: str
    address: str
    """The keyed hash that stands for the address in the table."""
    on: date
    about: Sequence[str]
    expires: datetime

    def token(self, seal: Seal) -> str:
        fields = [self.purpose.value, self.email, self.address, self.on, self.about, int(self.expires.timestamp())]
        return seal.sign_text(_PURPOSE, orjson.dumps(fields))

    @property
    def used_up(self) -> tuple[str, str, date]:
        """The email that it came with."""
        return self.purpose.value, self.address, self.on

    @classmethod
    def parse(cls, seal: Seal, token: str) -> Link:
        """Forged unless this service signed the token. It may have expired."""
        purpose, email, address, on, about, expires = orjson.loads(seal.open_text(_PURPOSE, token))
        ends = datetime.fromtimestamp(expires, UTC)
        return cls(Purpose(purpose), email, address, date.fromisoformat(on), about, ends)


class NotSent(Exception):
    """The email was certainly not sent."""


class Undeliverable(NotSent):
    """The mail server takes no address with such characters."""


class PerhapsSent(Exception):
    """The mail server got the email, and its answer is missing."""


class MayArrive(Unavailable):
    """The email was perhaps sent, or is on its way: then its link has to be good."""

    def __init__(self, link: Link, message: str, retry_after: float | None = None) -> None:
        super().__init__(message, retry_after=retry_after)
        self.link = link


_Sending = Coroutine[Any, Any, None]
Send = Callable[[Link, dict[str, Any]], _Sending]
"""Sends the email with a link, made of these values; raises NotSent, Undeliverable or PerhapsSent."""


def email_hash(seal: Seal, email: str) -> str:
    """The keyed hash of an address, the same for all of its spellings."""
    return _email_hashes(seal, email)[0]


def has_bounced(seal: Seal, profile: Profile, email: str) -> bool:
    """Whether this address was taken away from the profile because it bounced."""
    return profile.email_bounced in _email_hashes(seal, email)


def _email_hashes(seal: Seal, email: str) -> Sequence[str]:
    """Under each of the secrets, in their order."""
    name, _, domain = email.rpartition("@")
    ascii_domain = with_ascii_domain(f"@{domain}").lower()
    return [each.hex() for each in seal.keyed_hashes("email address", f"{name.lower()}{ascii_domain}".encode())]


class Confirmations:
    """The emails that this process sends."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._send: Send | None = None
        self._sending: SingleFlight[tuple[str, ...], None] = SingleFlight(shared_context)
        self.most_sending = 32
        """Emails that this process sends or has waiting."""
        self.patience = _LONGEST_WAIT
        self._under_way = 0
        self._answered = Promised()

    def start(self, send: Send) -> None:
        """Send emails from now on. Without this, requests for one are refused."""
        self._send = send

    @property
    def can_send(self) -> bool:
        return self._send is not None

    async def ask(
        self, ctx: Context, purpose: Purpose, email: str, about: Sequence[str], values: dict[str, Any]
    ) -> Link:
        """Send the link, unless today's email to the address was sent.

        For a member a refusal if it was not, and MayArrive if it may have been. Of a subscription it is sent after this
        has returned.
        """
        link = self._link(purpose, email, about)
        send = self._send
        if send is None:
            raise NotAllowed("This site sends no emails.")
        self._require_room()  # what is refused for that counts towards no limit
        await self._services.get(AddressLimits).admit_email(ctx)
        asker = ""
        if purpose is Purpose.ADDRESS:
            self._services.rates.hit(RATE, "confirmations", ctx.viewer.id)
            asker = self._services.seal.keyed_hash("confirmation asker", ctx.viewer.id.encode()).hex()
        # One that is made again, since its email was not sent, is no state of the one before: its lease begins anew.
        term = int(self._services.clock().timestamp() * 1000)
        wanted = Confirmation(purpose.value, link.address, link.on, asker, link.expires + _KEPT, term=term)
        key = (purpose.value, link.address, asker)
        self._require_room()  # again: others may have begun meanwhile
        work = self._sending.run(key, lambda: self._send_once(link, wanted, partial(send, link, values)))
        if purpose is Purpose.SUBSCRIPTION:
            self._answered.begin(_complete(work))
            return link
        wait = min(self.patience, self._services.policy.request_seconds / 2)
        try:
            await asyncio.wait_for(work, wait)
        except TimeoutError:
            raise MayArrive(
                link,
                "The mail server has not answered yet: the email may still arrive. If it does not, ask again.",
                retry_after=_SOON.total_seconds(),
            ) from None
        return link

    def _require_room(self) -> None:
        if self._under_way + len(self._answered) >= self.most_sending:
            raise Unavailable("Many emails are on their way.", retry_after=_SOON.total_seconds())

    def _link(self, purpose: Purpose, email: str, about: Sequence[str]) -> Link:
        now = self._services.clock().astimezone(UTC)
        hashed = email_hash(self._services.seal, email)
        return Link(purpose, email, hashed, now.date(), about, now + timedelta(hours=LINK_HOURS))

    async def _send_once(self, link: Link, wanted: Confirmation, send: Callable[[], _Sending]) -> None:
        services = self._services
        self._under_way += 1
        try:
            with deadline(_STORING):
                found = await confirmation_store.acquire_confirmation(services.table, services.leases, wanted)
            if isinstance(found, Confirmation):
                _refuse_begun(found, wanted, link)
            else:
                await self._deliver(found, link, send)
        except LeaseLost:
            raise _begun_elsewhere(link) from None
        finally:
            self._under_way -= 1

    async def _deliver(self, lease: Held[Confirmation], link: Link, send: Callable[[], _Sending]) -> None:
        purpose, is_sent = lease.record.purpose, True
        try:
            await lease.renewed_during(send())
        except NotSent as error:
            _log.warning("a confirmation email was not sent", purpose=purpose, reason=str(error))
            with deadline(_STORING):
                await confirmation_store.delete_confirmation(self._services.table, lease)
            raise _not_sent(error) from None
        except PerhapsSent as error:
            _log.warning("a confirmation email may not have been sent", purpose=purpose, reason=str(error))
            is_sent = False
        try:
            with deadline(_STORING):
                await lease.release(sent=self._services.clock())
        except (DynamoError, LeaseLost) as error:
            _log.warning("a confirmation email was not marked as sent", reason=str(error))
        if not is_sent:
            raise MayArrive(
                link,
                "The mail server did not confirm the email: it may still arrive. If it does not, ask again tomorrow.",
            )

    async def all_ended(self) -> None:
        """Wait until every email is sent, or certainly not, whose request was answered before."""
        await self._answered.all_ended()

    async def close(self) -> None:
        """Send what was promised, for some seconds; then give it up: those leases lapse."""
        await self._answered.close()
        await self._sending.close()


async def _complete(work: Awaitable[None]) -> None:
    """Work that nobody waits for; an email that was not sent is logged where that happens."""
    try:
        with suppress(Refusal):
            await work
    except DynamoError:
        _log.warning("a confirmation email was not sent", purpose=Purpose.SUBSCRIPTION.value, reason="no table")


def _refuse_begun(existing: Confirmation, wanted: Confirmation, link: Link) -> None:
    """The refusal of what an earlier request of the day has begun, unless it has sent the email."""
    if existing.asker != wanted.asker:
        raise Conflict("This address gets no more emails today: too many members asked. Ask again tomorrow.")
    if existing.sent is None:
        raise _begun_elsewhere(link)


def _begun_elsewhere(link: Link) -> MayArrive:
    return MayArrive(
        link,
        "An email to this address is being sent, or its sending was interrupted. If none arrives, ask again in half a "
        "minute.",
        retry_after=_SOON.total_seconds(),
    )


def _not_sent(error: NotSent) -> InvalidInput | Unavailable:
    if isinstance(error, Undeliverable):
        return InvalidInput(
            "The mail server of this service accepts only addresses in ASCII characters. Use another address.",
            path=("input", "email"),
        )
    return Unavailable(
        "The email was not sent: the mail server does not accept it now. Check the address, or try again later.",
        retry_after=_SOON.total_seconds(),
    )
