"""A real SMTP server in this process, with TLS and login if a test wants them. It stores what it accepts."""

import asyncio
import ssl
import threading
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from server.mail.message import Email
from tests.waiting import turns

USER, PASSWORD = "words@example.org", "a pass:word/with@signs"


class Mailbox:
    """The accepted emails. `answer_recipient` and `answer_login` may answer RCPT and AUTH with a rejection."""

    def __init__(self) -> None:
        self.emails: list[tuple[str, EmailMessage]] = []
        self.answer_recipient: Callable[[str], str | None] = lambda _: None
        self.answer_login: Callable[[], str | None] = lambda: None
        self.encrypted: list[bool] = []
        self.before_accepting: Callable[[Any], Awaitable[None]] | None = None
        """Called with the connection before an email is accepted."""
        self.port = 0
        self.certificate: Path | None = None

    async def handle_RCPT(self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any) -> str:  # noqa: N802
        if (rejection := self.answer_recipient(address)) is not None:
            return rejection
        envelope.rcpt_tos.append(address)
        return "250 OK"

    def login(self, _server: Any, _session: Any, _envelope: Any, _mechanism: str, data: Any) -> AuthResult:
        rejection = self.answer_login()
        valid = isinstance(data, LoginPassword) and data == LoginPassword(USER.encode(), PASSWORD.encode())
        return AuthResult(success=valid and rejection is None, handled=False, message=rejection)

    async def handle_DATA(self, server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802
        if self.before_accepting is not None:
            await self.before_accepting(server)
        email = message_from_bytes(envelope.content, policy=default)
        assert isinstance(email, EmailMessage)
        self.emails += [(recipient, email) for recipient in envelope.rcpt_tos]
        self.encrypted.append(server.transport.get_extra_info("ssl_object") is not None)
        return "250 OK"

    @property
    def recipients(self) -> list[str]:
        return sorted(recipient for recipient, _ in self.emails)


class Outbox:
    """What a run sends through when no server is wanted: it keeps the emails, or raises what an address gets."""

    def __init__(self) -> None:
        self.emails: list[Email] = []
        self.fails: Callable[[str], Exception | None] = lambda _: None

    @property
    def recipients(self) -> list[str]:
        return sorted(email.recipient for email in self.emails)

    async def send(self, email: Email) -> None:
        if (failure := self.fails(email.recipient)) is not None:
            raise failure
        self.emails.append(email)


def body_of(email: EmailMessage, kind: str = "plain") -> str:
    """The text of an email, in plain text or HTML."""
    part = email.get_body((kind,))
    assert part is not None
    return str(part.get_content())


class _Full(asyncio.Protocol):
    """A connection that is one too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        transport.write(b"421 4.7.0 Too many connections\r\n")
        transport.close()


def write_certificate(folder: Path) -> Path:
    """A certificate for this machine, and its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Ringside's tests")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "mail.pem"
    private_key = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(signed.public_bytes(serialization.Encoding.PEM) + private_key)
    return path


@asynccontextmanager
async def mail_server(
    mailbox: Mailbox,
    folder: Path,
    *,
    starttls: bool = False,
    tls: bool = False,
    login: bool = False,
    utf8: bool = True,
    most: int = 100,
) -> AsyncIterator[str]:
    """Yields the server's address, in the form of RINGSIDE_SMTP_URL. Without `utf8` it takes only ASCII addresses.

    `most` is how many connections it takes at the same time.
    """
    context = None
    if starttls or tls:
        mailbox.certificate = write_certificate(folder)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(mailbox.certificate)

    opened = set[SMTP]()

    class Counted(SMTP):
        def connection_lost(self, error: Exception | None) -> None:
            opened.discard(self)
            super().connection_lost(error)

    def protocol() -> asyncio.Protocol:
        if len(opened) >= most:
            return _Full()
        with warnings.catch_warnings():
            # aiosmtpd warns about logins without STARTTLS, even if the connection uses TLS from its first byte.
            warnings.simplefilter("ignore", UserWarning)
            smtp = Counted(
                mailbox,
                hostname="mail.test",
                enable_SMTPUTF8=utf8,
                tls_context=context if starttls else None,
                require_starttls=starttls,
                authenticator=mailbox.login if login else None,
                auth_required=login,
                auth_require_tls=starttls,
            )
        opened.add(smtp)
        return smtp

    server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0, ssl=context if tls else None)
    mailbox.port = server.sockets[0].getsockname()[1]
    credentials = "words%40example.org:a%20pass%3Aword%2Fwith%40signs@" if login else ""
    try:
        yield f"{'smtps' if tls else 'smtp'}://{credentials}127.0.0.1:{mailbox.port}"
    finally:
        server.close()
        await asyncio.sleep(0.05)
        await turns()  # connections whose handshake failed end in the next iterations of the event loop


@contextmanager
def mail_server_beside(mailbox: Mailbox, folder: Path) -> Iterator[str]:
    """The same in a thread of its own, for tests that are not asynchronous."""
    loop, stack = asyncio.new_event_loop(), AsyncExitStack()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result()

    try:
        yield run(stack.enter_async_context(mail_server(mailbox, folder)))
    finally:
        run(stack.aclose())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def trusted(monkeypatch: pytest.MonkeyPatch, mailbox: Mailbox) -> Iterator[None]:
    """Makes this process trust the server's certificate."""
    with monkeypatch.context() as patched:
        patched.setenv("SSL_CERT_FILE", str(mailbox.certificate))
        yield
