"""Letters on their way: over SMTP, or to the log where no mail server is set.

What a sending can end with decides whether it may be repeated, so the three endings have three names:

Refused      the server said no to this letter, or it cannot be sent at all: certainly not sent
Unreachable  no connection, or no login: certainly not sent, and neither will others be
Doubtful     the connection was lost after the letter was handed over: sent or not, nobody knows
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.message import EmailMessage
from email.policy import SMTP as WIRE
from ipaddress import ip_address
from typing import Protocol
from urllib.parse import unquote, urlsplit

import aiosmtplib
import structlog

from server.settings import Settings, near

AT_ONCE = 8
"""Connections to the mail server, and letters on their way, at the same time."""
TIMEOUT = 60.0
_ATTEMPTS = 3
_PAUSE = 1.0
_LATER = range(400, 500)
_log = structlog.get_logger("ringside.mail")


class Refused(Exception):
    """This letter was not sent, for certain."""


class Unreachable(Exception):
    """No letter can be sent now."""


class Doubtful(Exception):
    """The letter was handed over, and the answer is missing."""


class Outbox(Protocol):
    """Where letters are put."""

    async def send(self, letter: EmailMessage, recipient: str) -> None:
        """Returns when the letter was taken; raises Refused, Unreachable or Doubtful."""


class ToTheLog:
    """No mail server is set: letters are shown to whoever reads the log."""

    async def send(self, letter: EmailMessage, recipient: str) -> None:
        body = letter.get_body(("plain",))
        text = body.get_content() if body is not None else ""
        _log.info("a letter", to=recipient, subject=str(letter["Subject"]), text=text)


class OverSmtp:
    """A few connections to one mail server, kept open from letter to letter.

    `smtps://` speaks TLS from the first byte, `smtp://` turns to it (STARTTLS). Without TLS nothing goes out but to
    this machine or its own network, and a password to this machine only. Certificates are always checked, against the
    machine's own authorities or those that SSL_CERT_FILE names.
    """

    def __init__(self, url: str, sender: str, *, at_once: int = AT_ONCE, pause: float = _PAUSE) -> None:
        address = urlsplit(url)
        self.sender = sender
        self.host = address.hostname or "localhost"
        self._tls_at_once = address.scheme == "smtps"
        self._port = address.port or (465 if self._tls_at_once else 587)
        self._user = unquote(address.username) if address.username else None
        self._password = unquote(address.password) if address.password else None
        self._room = asyncio.Semaphore(at_once)
        self._idle: list[aiosmtplib.SMTP] = []
        self._pause = pause
        self._context = ssl.create_default_context()

    async def send(self, letter: EmailMessage, recipient: str) -> None:
        async with self._room:
            for attempt in range(1, _ATTEMPTS + 1):
                connection = self._idle.pop() if self._idle else await self._connected()
                try:
                    await _handed_over(connection, letter, self.sender, recipient)
                except _AskAgain as later:
                    self._put_back(connection)
                    if attempt == _ATTEMPTS:
                        raise Refused(str(later)) from None
                    await asyncio.sleep(self._pause * attempt)
                except BaseException:
                    self._put_back(connection)
                    raise
                else:
                    self._put_back(connection)
                    return

    def _put_back(self, connection: aiosmtplib.SMTP) -> None:
        if connection.is_connected:
            self._idle.append(connection)

    async def _connected(self) -> aiosmtplib.SMTP:
        """A connection that is encrypted and logged in as the settings ask."""
        encrypt = True if must_encrypt(self.host, login=self._user is not None) else None
        for attempt in range(1, _ATTEMPTS + 1):
            connection = aiosmtplib.SMTP(
                hostname=self.host,
                port=self._port,
                username=self._user,
                password=self._password,
                use_tls=self._tls_at_once,
                start_tls=False if self._tls_at_once else encrypt,
                tls_context=self._context,
                timeout=TIMEOUT,
            )
            try:
                await connection.connect()
            except (aiosmtplib.SMTPException, OSError, ValueError) as error:
                connection.close()
                if _final(error) or attempt == _ATTEMPTS:
                    message = f"The mail server {self.host}:{self._port} cannot be used: {_said(error)}"
                    raise Unreachable(message) from None
                await asyncio.sleep(self._pause * attempt)
            else:
                return connection
        raise AssertionError  # the loop returns or raises

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        await asyncio.gather(*(connection.quit() for connection in idle), return_exceptions=True)


def must_encrypt(host: str, *, login: bool) -> bool:
    """Whether a server without TLS is turned away: one on this machine never is, a neighbour only with a login."""
    try:
        here = ip_address(host).is_loopback
    except ValueError:
        here = host == "localhost"
    return not here and (login or not near(host))


def _final(error: BaseException) -> bool:
    """Whether connecting again would end the same way: a wrong password, no TLS, a certificate nobody vouches for."""
    named = isinstance(error, aiosmtplib.SMTPAuthenticationError | aiosmtplib.SMTPNotSupported | ValueError)
    return named or isinstance(error, ssl.SSLError) or isinstance(error.__cause__, ssl.SSLError)


class _AskAgain(Exception):
    """Not sent, for certain, and not for good: the server is busy, or a kept connection had ended."""


async def _handed_over(connection: aiosmtplib.SMTP, letter: EmailMessage, sender: str, recipient: str) -> None:
    """One letter over one connection, step by step: only the last step can leave its outcome unknown."""
    utf8 = not (sender + recipient).isascii()
    try:
        if utf8 and not connection.supports_extension("smtputf8"):
            message = "the mail server takes no address beyond ASCII"
            raise Refused(message)
        await connection.mail(sender, options=["SMTPUTF8"] if utf8 else [], encoding="utf-8" if utf8 else "ascii")
        await connection.rcpt(recipient, encoding="utf-8" if utf8 else "ascii")
    except aiosmtplib.SMTPResponseException as error:
        await _reset(connection)
        raise (_AskAgain if error.code in _LATER else Refused)(_said(error)) from None
    except (aiosmtplib.SMTPException, OSError) as error:
        connection.close()
        raise _AskAgain(_said(error)) from None
    try:
        await connection.data(letter.as_bytes(policy=WIRE.clone(utf8=utf8)))
    except aiosmtplib.SMTPResponseException as error:
        await _reset(connection)
        raise (_AskAgain if error.code in _LATER else Refused)(_said(error)) from None
    except (aiosmtplib.SMTPException, OSError) as error:
        connection.close()
        raise Doubtful(_said(error)) from None


async def _reset(connection: aiosmtplib.SMTP) -> None:
    """Makes a connection fit for the next letter, or ends it."""
    try:
        await connection.rset()
    except (aiosmtplib.SMTPException, OSError):
        connection.close()


def _said(error: BaseException) -> str:
    """What the server said, on one line: it ends up in a report."""
    code = f"{error.code} " if isinstance(error, aiosmtplib.SMTPResponseException) else ""
    return " ".join(f"{code}{getattr(error, 'message', '') or error or type(error).__name__}".split())[:300]


@asynccontextmanager
async def outbox_of(settings: Settings, at_once: int = AT_ONCE) -> AsyncIterator[Outbox]:
    """The outbox that the settings name."""
    if settings.smtp_url is None:
        yield ToTheLog()
        return
    outbox = OverSmtp(settings.smtp_url.get_secret_value(), sender_of(settings), at_once=at_once)
    try:
        yield outbox
    finally:
        await outbox.close()


def sender_of(settings: Settings) -> str:
    """Who letters come from, as a header shows it."""
    if settings.mail_from is not None:
        return settings.mail_from
    if settings.smtp_url is None:
        return "ringside@localhost"
    address = urlsplit(settings.smtp_url.get_secret_value())
    user = unquote(address.username or "")
    # A name without a dot, such as localhost, is no domain to most servers.
    return user if "@" in user and user.isprintable() and " " not in user else f"ringside@{address.hostname}"
