"""Codes by email: asking for one, and what the asking window and the email's link hold.

Nothing depends on whose an address is: nobody looks it up before a code or link was right. So the answer to a request,
the work before it and the email after it are the same for members, for strangers, and for addresses that get no more
emails for now: those are sent none, and no digits are right.

The asking window keeps the `request`, the link has a text of its own. Both are sealed and name the address, so nothing
about it is stored, but in the receipt of an idempotency key. The digits count only together with their request: whoever
asks for a code in somebody else's name gets another request, whose guesses end nobody else's code.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hmac import compare_digest
from typing import Any, Final
from urllib.parse import urlsplit

import orjson
import structlog

from datastore.members import sign_in_codes as code_store
from datastore.members.sign_in_codes import KEPT, CodeExpired, CodeUnknown, SignInCode
from datastore.people.identities import SignInMethod
from datastore.refusals import InvalidInput, NotAllowed, Unavailable
from datastore.values.seal import Forged, Seal
from resolvers.live.background import Promised, unless_failed
from resolvers.people.confirmations import NotSent, PerhapsSent, email_hash
from resolvers.people.profile import validate_email_address
from resolvers.requests.address_limits import AddressLimits
from resolvers.requests.context import Context, Services
from resolvers.requests.policy import Policy, origin_of
from resolvers.values.languages import page_language
from resolvers.values.network_addresses import network
from resolvers.values.texts import ADDRESS_CHARACTERS

# ── return addresses ──
# Where a sign-in leads back to: a path of the service, or a page of a site that the operator lists. Nowhere else.

LONGEST = 2000


def parse_return_address(policy: Policy, text: str) -> str:
    """The address; InvalidInput for one that leads to anybody else."""
    is_path = text.startswith("/") and not text.startswith("//")
    if len(text) <= LONGEST and ADDRESS_CHARACTERS.fullmatch(text) and (is_path or origin_in(policy, text)):
        return text
    raise InvalidInput(
        f"returnTo is a path of this service such as /, or an address on a site that RINGSIDE_CORS_ORIGINS lists, of "
        f"at most {LONGEST} characters.",
        path=("input", "returnTo"),
    )


def origin_in(policy: Policy, text: str) -> str | None:
    """The listed origin of an address; None for a path, and for an address of any other origin."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and parts.username is None and parts.password is None
    except ValueError:
        return None
    origin = origin_of(text) if usable else ""
    return origin if origin in policy.page_origins else None


# ── sign in codes ──

PATH: Final = "/sign-in"
MINUTES: Final = 15
_LIFETIME = timedelta(minutes=MINUTES)
_REQUEST, _LINK = "sign-in request", "sign-in link"
_DIGITS = 6
_LONGEST_CODE = 100
"""Letters of what somebody gives as a code: each is looked at."""
_LONGEST_LANGUAGE = 35
TRIES: Final = "120/minute"
"""Codes and links that a network address tries, per process: even one that was used takes a call to the table."""
_MOST_SENDING = 32
"""Emails that one process sends or has waiting."""
_log = structlog.get_logger("ringside.sign_in")


@dataclass(frozen=True, slots=True)
class SignInRequested:
    """What the asking window is told; it keeps `request`, since the code counts only with it."""

    email: str
    request: str


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request, or the link in its email, says."""

    id: str
    email: str
    expires: datetime
    return_to: str | None = None

    def sealed(self, seal: Seal, purpose: str) -> str:
        fields = [self.id, self.email, int(self.expires.timestamp()), self.return_to]
        return seal.sign_text(purpose, orjson.dumps(fields))

    @classmethod
    def open(cls, seal: Seal, purpose: str, text: str) -> Asked | None:
        """None unless this service sealed the text for this purpose. It may have expired."""
        try:
            id_, email, expires, return_to = orjson.loads(seal.open_text(purpose, text))
        except Forged:
            return None
        return cls(id_, email, datetime.fromtimestamp(expires, UTC), return_to)

    def refuse_expired(self, now: datetime) -> None:
        if self.expires <= now:
            raise CodeExpired(path=("input",))


@dataclass(frozen=True, slots=True)
class CodeEmail:
    """The email of a code: six digits, and the text of a link."""

    id: str
    email: str
    digits: str
    link: str
    language: str


Send = Callable[[CodeEmail], Awaitable[None]]
"""Sends the email, or raises NotSent or PerhapsSent."""


class SignInCodes:
    """The codes that this process sends."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._send: Send | None = None
        self._sending = Promised()

    def start(self, send: Send) -> None:
        """Send codes from now on. Without this, nobody signs in by email."""
        self._send = send

    @property
    def can_send(self) -> bool:
        return self._send is not None

    async def ask(self, ctx: Context, email: str, return_to: str | None, language: str) -> SignInRequested:
        """Begin to sign in by an address: the email is sent after this has returned."""
        send = self._send
        if send is None:
            raise NotAllowed("Nobody signs in by email here.")
        if len(self._sending) >= _MOST_SENDING:
            raise Unavailable("Too many emails are waiting to be sent. Try again in a moment.", retry_after=5.0)
        limits, seal = self._services.get(AddressLimits), self._services.seal
        await limits.admit_email(ctx)
        may_send = await limits.admits_code(ctx, email_hash(seal, email))
        asked = Asked(secrets.token_hex(16), email, ctx.now() + _LIFETIME, return_to)
        digits = f"{secrets.randbelow(10**_DIGITS):0{_DIGITS}d}"
        hashed = _hashes(seal, asked.id, digits)[0]
        code = SignInCode(asked.id, asked.expires + KEPT, hashed if may_send else _NOBODYS)
        answer = SignInRequested(email, asked.sealed(seal, _REQUEST))
        await code_store.store_code(ctx.table, ctx.unit, answer, code)
        if may_send:
            link = asked.sealed(seal, _LINK)
            sending = send(CodeEmail(asked.id, email, digits, link, language))
            problem = "a code for a sign-in was not sent"
            self._sending.begin(unless_failed(sending, problem, _log, NotSent, PerhapsSent))
        return answer

    async def all_sent(self) -> None:
        """Wait until every email is sent, or certainly not, whose request was answered before."""
        await self._sending.all_ended()

    async def close(self) -> None:
        await self._sending.close()

    async def check(self, ctx: Context, request: str, digits: str) -> Asked:
        """Whose code these digits are; a refusal if they are not right, or not any more. They are not used up yet."""
        asked = self.open_request(request)
        if asked is None:
            raise CodeUnknown(path=("input", "request"))
        asked.refuse_expired(ctx.now())
        if len(digits) > _LONGEST_CODE:
            raise CodeUnknown(path=("input", "code"))
        count_try(ctx)
        code = await code_store.count_attempt(ctx.table, asked.id)
        hashes = _hashes(self._services.seal, asked.id, _ascii_digits(digits))
        if not any(compare_digest(hashed, code.digits or "") for hashed in hashes):
            raise CodeUnknown(path=("input", "code"))
        return asked

    def open_request(self, text: str) -> Asked | None:
        """What a request says; None if it is not one."""
        return Asked.open(self._services.seal, _REQUEST, text)

    def open_link(self, text: str) -> Asked | None:
        """What a link says; None if it is not one."""
        return Asked.open(self._services.seal, _LINK, text)


def count_try(ctx: Context) -> None:
    """RateLimited if codes and links are tried too often from where the request comes from."""
    ctx.services.rates.hit(TRIES, "codes tried", network(ctx.address))


_NOBODYS = "0" * 32
"""In place of a hash, where no digits are right."""


def _ascii_digits(text: str) -> str:
    """Digits as we send them: people may write those of their own script, and spaces between them."""
    return "".join(str(int(each)) if each.isdecimal() else each for each in text if not each.isspace())


def _hashes(seal: Seal, code_id: str, digits: str) -> list[str]:
    """Keyed by each secret, in their order: one may be replaced while somebody reads the email."""
    return [hashed.hex() for hashed in seal.keyed_hashes("sign-in code", f"{code_id} {digits}".encode())]


# ── asking ──


async def request_sign_in(
    ctx: Context, /, *, email: str, return_to: str | None = None, language: str | None = None
) -> SignInRequested:
    """Send a code and a link to an address, whether it is a member's or not."""
    address = validate_email_address(email.strip())
    if return_to is not None:
        return_to = parse_return_address(ctx.services.policy, return_to)
    if language is not None and not (language.isascii() and 0 < len(language) <= _LONGEST_LANGUAGE):
        raise InvalidInput("A language is a tag such as en or de-AT.", path=("input", "language"))
    shown = page_language(*([language] if language is not None else []), ctx.language)
    return await ctx.services.get(SignInCodes).ask(ctx, address, return_to, shown)


def receipt_owner(ctx: Context, values: Mapping[str, Any]) -> str:
    """Whose the receipt of a request is: the address's."""
    return f"signin-{email_hash(ctx.services.seal, values['email'])}"


# ── sign in methods ──
# By which methods people sign in here.


def offered_methods(services: Services) -> list[SignInMethod]:
    """Those that `/sign-in` offers, and the one of sites, in the order of the enum."""
    offered = set(services.policy.sign_in_methods)
    if services.get(SignInCodes).can_send:
        offered.add(SignInMethod.EMAIL.value)
    return [method for method in SignInMethod if method.value in offered]


async def sign_in_methods(ctx: Context, /) -> list[SignInMethod]:
    """What this deployment offers, perhaps nothing."""
    return offered_methods(ctx.services)
