"""Sending emails: over SMTP, or to the log if no mail server is set; and each email of a run once.

How sending fails decides whether it may be repeated, so there are five exceptions:

EmailRejected      the server rejected this email, or it cannot be sent at all: certainly not sent
AddressNotTaken    one of these: the server takes no address with such characters, however often it is asked
RejectedForNow     one of these: the server may take it later, or the connection was lost before it was handed over
ServerUnreachable  no connection or no login: certainly not sent, and other emails will fail too
DeliveryUnknown    the connection was lost after the email was handed over: it may have been sent
"""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from ipaddress import ip_address
from typing import Protocol, TypeVar
from urllib.parse import unquote, urlsplit

import aiosmtplib
import structlog

from datastore.dynamo import Again, DynamoError, repeated
from datastore.jobs.leases import Held, LeaseLost, Turn
from datastore.people.confirmations import SentEmail, SentEmails
from datastore.refusals import Refusal
from resolvers.requests.context import Services
from resolvers.values.texts import ascii_domain, is_email_address, with_ascii_domain
from server.mail.message import Email, Letterhead
from server.settings import Settings, is_near

# ── transports ──

AT_ONCE = 8
"""Connections to the mail server, and emails that are being sent at the same time."""
TIMEOUT = 60.0
"""For each step of an email but the last."""
LONGEST_SEND = 300.0
"""For all steps and attempts of an email together, and its wait for a connection."""
_TIMEOUT_OF_REQUEST = 10.0
"""For each step of an email that somebody waits for."""
_GOODBYE = 1.0
_ATTEMPTS = 3
_PAUSE = 2.0
_TEMPORARY = range(400, 500)
_log = structlog.get_logger("ringside.mail")
T = TypeVar("T")


class EmailRejected(Exception):
    """This email was certainly not sent."""


class AddressNotTaken(EmailRejected):
    """The recipient's address is not ASCII, and the server takes no others."""


class RejectedForNow(EmailRejected):
    """The same email may be accepted later."""


class ServerUnreachable(Exception):
    """No email can be sent now."""


class DeliveryUnknown(Exception):
    """The email was handed over, and the server's answer is missing."""


class EmailTransport(Protocol):
    """Sends emails one by one."""

    async def send(self, email: Email) -> None:
        """Return when the server has accepted it; raise EmailRejected, ServerUnreachable or DeliveryUnknown."""


class LogTransport:
    """Writes emails to the log, for deployments without a mail server."""

    async def send(self, email: Email) -> None:
        _log.info("email", to=email.recipient, subject=email.subject, text=email.text)


class SmtpTransport:
    """A pool of connections to one mail server: as many as it takes, and `at_once` at the most.

    `smtps://` uses TLS from the first byte, `smtp://` upgrades with STARTTLS. Without TLS it sends only to this machine
    or its private network, and a password only to this machine. Certificates are always checked, against the machine's
    own authorities or those that SSL_CERT_FILE names.

    With `for_requests`, somebody waits for each email: there is one attempt, of less than two minutes, and a connection
    of its own, since one that has been idle for long is often closed.
    """

    def __init__(
        self, url: str, sender: str, *, at_once: int = AT_ONCE, pause: float = _PAUSE, for_requests: bool = False
    ) -> None:
        address = urlsplit(url)
        self.sender = sender
        self.host = address.hostname or "localhost"
        self._implicit_tls = address.scheme == "smtps"
        self._port = address.port or (465 if self._implicit_tls else 587)
        self._user = unquote(address.username) if address.username else None
        self._password = unquote(address.password) if address.password else None
        self._encrypt = True if must_encrypt(self.host, login=self._user is not None) else None
        self._idle: list[aiosmtplib.SMTP] = []
        self._opening: set[asyncio.Task[aiosmtplib.SMTP]] = set()
        self._in_use = 0
        self._most = at_once
        """Connections at the same time: fewer, once the server has refused one although it takes others."""
        self._changed = asyncio.Event()
        self._pause = pause
        self._attempts, self.timeout = (1, _TIMEOUT_OF_REQUEST) if for_requests else (_ATTEMPTS, TIMEOUT)
        self._last_step = _TIMEOUT_OF_REQUEST if for_requests else LONGEST_SEND
        self.longest = LONGEST_SEND
        """Seconds that all attempts at an email may take together."""
        self._keeps_connections = not for_requests
        self._context = ssl.create_default_context()

    async def send(self, email: Email) -> None:
        deadline = asyncio.get_running_loop().time() + self.longest

        async def unit() -> None:
            async with self._connection(deadline) as connection:
                await _send(connection, email, self.sender, deadline, self._last_step)

        await self._repeated(unit, deadline)

    async def _repeated(self, step: Callable[[], Awaitable[T]], deadline: float) -> T:
        """What a step returns. It is tried again if certainly nothing was sent, but the server may take it later."""
        time, pauses = asyncio.get_running_loop().time, (self._pause * n for n in range(1, self._attempts))
        try:
            return await repeated(step, pauses, lambda: deadline - self.timeout - time())
        except Again as failed:
            raise failed.failure from None

    @asynccontextmanager
    async def _connection(self, deadline: float) -> AsyncIterator[aiosmtplib.SMTP]:
        """A connection for one email. It is used again only if that was sent, or cleanly refused and reset."""
        connection = await self._repeated(partial(self._free_connection, deadline), deadline)
        self._in_use += 1
        try:
            yield connection
        except (Again, EmailRejected):
            raise
        except BaseException:
            connection.close()
            raise
        finally:
            self._in_use -= 1
            if connection.is_connected and self._keeps_connections:
                self._idle.append(connection)
            elif connection.is_connected:
                # Hardly wait for the goodbye: the email was sent, or was not.
                await _or_close(connection, connection.quit(timeout=_GOODBYE))
            self._note_change()

    async def _free_connection(self, deadline: float) -> aiosmtplib.SMTP:
        """An idle connection or a new one; if there are as many as may be, one that another email is done with."""
        while (connection := self._idle_connection()) is None:
            if self._in_use + len(self._opening) < self._most:
                return await self._open(deadline)
            await self._changed.wait()
        return connection

    async def _open(self, deadline: float) -> aiosmtplib.SMTP:
        """A new connection. If the server takes no more than there are, the next attempt waits for one of these."""
        opening = asyncio.create_task(self._connect(deadline))
        self._opening.add(opening)
        opening.add_done_callback(self._opened)
        try:
            return await opening
        except Again:
            if self._opening:  # these may be all that the server takes
                await asyncio.wait(self._opening)
            taken = self._in_use + len(self._idle)
            if taken and self._keeps_connections:
                self._most = taken
            raise

    def _opened(self, opening: asyncio.Task[aiosmtplib.SMTP]) -> None:
        self._opening.discard(opening)
        self._note_change()

    def _note_change(self) -> None:
        """Wake the emails that wait for a connection."""
        self._changed.set()
        self._changed = asyncio.Event()

    def _idle_connection(self) -> aiosmtplib.SMTP | None:
        """The connection used last, if the server has not closed it, as servers do with idle ones."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_connected:
                return connection
            connection.close()
        return None

    async def _connect(self, deadline: float) -> aiosmtplib.SMTP:
        """Open a connection, encrypted and logged in as the settings ask."""
        connection = aiosmtplib.SMTP(
            hostname=self.host,
            port=self._port,
            username=self._user,
            password=self._password,
            use_tls=self._implicit_tls,
            start_tls=False if self._implicit_tls else self._encrypt,
            tls_context=self._context,
            timeout=self.timeout,
        )
        try:
            async with asyncio.timeout_at(deadline):
                await connection.connect()
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            connection.close()
            reason = f"The mail server {self.host}:{self._port} cannot be used: {_describe(error)}"
            unreachable = ServerUnreachable(reason)
            raise (unreachable if _is_permanent(error) else Again(unreachable)) from None
        return connection

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        await asyncio.gather(*(connection.quit() for connection in idle), return_exceptions=True)


def must_encrypt(host: str, *, login: bool) -> bool:
    """Whether the server must offer TLS: not on this machine, and on its private network only for a login."""
    try:
        loopback = ip_address(host).is_loopback
    except ValueError:
        loopback = host == "localhost"
    return not loopback and (login or not is_near(host))


def _is_permanent(error: BaseException) -> bool:
    """Whether connecting again would fail too: a wrong password, no TLS, an untrusted certificate."""
    if isinstance(error, aiosmtplib.SMTPAuthenticationError):
        return error.code not in _TEMPORARY
    refused = isinstance(error, aiosmtplib.SMTPNotSupported | ValueError)
    return refused or isinstance(error, ssl.SSLError) or isinstance(error.__cause__, ssl.SSLError)


def _refused(error: aiosmtplib.SMTPResponseException, recipient: str) -> Exception:
    reason = _describe(error, recipient)
    return Again(RejectedForNow(reason)) if error.code in _TEMPORARY else EmailRejected(reason)


async def _send(connection: aiosmtplib.SMTP, email: Email, sender: str, deadline: float, last_step: float) -> None:
    """Send step by step: only the last step can leave its outcome unknown.

    That one may take longer than others: many servers examine an email before they say that they have it.
    """
    recipient, handed_over = email.recipient, False
    utf8 = not (sender + recipient).isascii()
    try:
        async with asyncio.timeout_at(deadline):
            if utf8 and connection.is_ehlo_or_helo_needed:  # what it said before TLS began no longer counts
                await connection.ehlo()
            if utf8 and not connection.supports_extension("smtputf8"):
                kind = EmailRejected if recipient.isascii() else AddressNotTaken  # or it is the sender's fault
                raise kind("the mail server accepts only ASCII addresses")
            await connection.mail(sender, options=["SMTPUTF8"] if utf8 else [], encoding="utf-8" if utf8 else "ascii")
            await connection.rcpt(recipient, encoding="utf-8" if utf8 else "ascii")
            handed_over = True
            await connection.data(email.content, timeout=last_step)
    except aiosmtplib.SMTPResponseException as error:
        await _or_close(connection, connection.rset())
        raise _refused(error, recipient) from None
    except (aiosmtplib.SMTPException, OSError) as error:
        connection.close()
        reason = _describe(error, recipient)
        raise (DeliveryUnknown(reason) if handed_over else Again(RejectedForNow(reason))) from None


async def _or_close(connection: aiosmtplib.SMTP, command: Awaitable[object]) -> None:
    """Close the connection if a command fails that sends nothing: before the next email, or as a goodbye."""
    try:
        await command
    except (aiosmtplib.SMTPException, OSError):
        connection.close()


def _describe(error: BaseException, recipient: str | None = None) -> str:
    """The server's answer on one line, for a report or a log: without the recipient's address, which many repeat."""
    code = f"{error.code} " if isinstance(error, aiosmtplib.SMTPResponseException) else ""
    answer = " ".join(f"{code}{getattr(error, 'message', '') or str(error) or type(error).__name__}".split())
    if recipient:
        answer = re.sub(re.escape(recipient), "the recipient", answer, flags=re.IGNORECASE)
    return answer[:300]


@asynccontextmanager
async def open_transport(settings: Settings, at_once: int = AT_ONCE) -> AsyncIterator[EmailTransport]:
    if settings.smtp_url is None:
        yield LogTransport()
        return
    transport = SmtpTransport(settings.smtp_url.get_secret_value(), sender_address(settings), at_once=at_once)
    try:
        yield transport
    finally:
        await transport.close()


def sender_address(settings: Settings) -> str:
    """The From header of all emails."""
    if settings.mail_from is not None:
        return settings.mail_from
    if settings.smtp_url is None:
        return "ringside@localhost"
    address = urlsplit(settings.smtp_url.get_secret_value())
    user = with_ascii_domain(unquote(address.username or ""))
    # Most servers do not accept a domain without a dot, such as localhost.
    usable = user.isascii() and is_email_address(user)
    return user if usable else f"ringside@{ascii_domain(address.hostname or '')}"


# ── runs ──
# An email is sent once: recorded, sent, marked as sent. Many are sent some at a time, counting those that fail.

E = TypeVar("E", bound=SentEmail)

MAX_REASONS = 20


class SendingFailed(Exception):
    """This email was not sent, or perhaps not; the message says why."""


class FailedForNow(SendingFailed):
    """The same email may be sent later."""


@dataclass(slots=True)
class SendingSummary:
    """What a run of any kind did: emails that it sent, and that failed."""

    sent: int = 0
    failed: int = 0
    failed_for_now: bool = False
    """Whether something failed that may succeed soon."""
    reasons: list[str] = field(default_factory=list)

    async def send_all(
        self,
        users: Sequence[str],
        send: Callable[[str], Awaitable[None]],
        at_once: int,
        log: structlog.stdlib.BoundLogger,
    ) -> None:
        """Call `send` for each, for at most `at_once` of them at a time; ServerUnreachable and LeaseLost end it."""
        remaining = list(reversed(users))

        async def work() -> None:
            while remaining:
                await self._send_to(remaining.pop(), send, log)

        workers = [asyncio.create_task(work()) for _ in range(min(at_once, len(users)))]
        try:
            await asyncio.gather(*workers)
        except (ServerUnreachable, LeaseLost):
            # The other workers end by themselves.
            remaining.clear()
            await asyncio.gather(*workers, return_exceptions=True)
            raise

    async def _send_to(
        self, user: str, send: Callable[[str], Awaitable[None]], log: structlog.stdlib.BoundLogger
    ) -> None:
        """Count a failure of this member's email, so that it does not stop the others."""
        try:
            await send(user)
        except (ServerUnreachable, LeaseLost):
            raise
        except (DynamoError, Refusal, SendingFailed) as error:
            self.failed_for_now |= isinstance(error, DynamoError | Refusal | FailedForNow)
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


@dataclass(frozen=True, slots=True)
class Emails:
    """What the runs send with."""

    services: Services
    letterhead: Letterhead
    transport: EmailTransport
    at_once: int = AT_ONCE
    index_lag: timedelta = timedelta()
    """How late the indexes may be."""
    ending: float = 3.0
    """How long an email that is being sent is waited for when its run ends: less than what is left of a lost lease."""

    async def send_once(self, kind: SentEmails[E], record: E, email: Email) -> bool:
        """Whether it was sent now, not before. May raise SendingFailed, ServerUnreachable or LeaseLost.

        If the process stops, it is carried out for a moment: once it is handed over, the next run would send it again.
        """
        if not await kind.begin(self.services.table, record):
            return False
        sending = asyncio.ensure_future(self._send_and_mark(kind, record, email))
        try:
            await asyncio.shield(sending)
        except asyncio.CancelledError:
            await asyncio.wait({sending}, timeout=self.ending)
            sending.cancel()
            await asyncio.wait({sending})
            raise
        return True

    async def _send_and_mark(self, kind: SentEmails[E], record: E, email: Email) -> None:
        try:
            await self.transport.send(email)
        except DeliveryUnknown as error:
            raise FailedForNow(f"the email may or may not have been sent: {error}") from None
        except RejectedForNow as error:
            raise FailedForNow(str(error)) from None
        except EmailRejected as error:
            raise SendingFailed(str(error)) from None
        await kind.mark_sent(self.services.table, record, self.services.clock())
