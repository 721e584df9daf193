"""Visits: how the pages of other sites identify their visitors.

Browsers send our cookie to no other site's page. Such a page starts a visit and sends the visit's token instead, which
stands for one visitor as the cookie does. It is valid only with its page's `Origin`, a header that no page can choose,
so a token that leaks to another site is worth nothing there. Nothing is stored.

    visitor's id · origin's SHA-256, cut to 16 bytes · expiry in seconds, 5 bytes · sealed for this purpose

A token expires at midnight, so all tokens of a day for one visitor and origin are equal, and a repeated request gets
the same one. A page that sends its old token gets a new one for the same visitor.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from datastore.refusals import NotAllowed
from datastore.values.seal import Seal
from resolvers.requests.address_limits import AddressLimits
from resolvers.requests.context import Context

VALID_DAYS = 30
_PURPOSE = "visit"
_ORIGIN_BYTES = 16
_TIME_BYTES = 5


@dataclass(frozen=True, slots=True)
class Visit:
    """A visit's token, and when it expires."""

    token: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class OpenedVisit:
    """What a token says; its signature was verified."""

    visitor: str
    origin_hash: bytes
    expires_at: float

    def is_of(self, origin: str) -> bool:
        return self.origin_hash == _origin_hash(origin)


async def start_visit(ctx: Context, /) -> Visit:
    """A token for the viewer on the page's site, who counts as a new visitor of their network address."""
    if ctx.viewer.is_signed_in:
        raise NotAllowed("A visit is for people who are not signed in: your own token works on every site.")
    if not ctx.page_origin:
        raise NotAllowed("A visit belongs to the pages of one site, and this request names no Origin.")
    if not ctx.services.policy.admits_page(ctx.page_origin, ctx.own_origin):
        raise NotAllowed("This page may not start a visit: its site is not one that the service knows.")
    await ctx.services.get(AddressLimits).admit_visitor(ctx)
    today = ctx.now().astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    expires_at = today + timedelta(days=VALID_DAYS + 1)
    return Visit(sign_visit(ctx.services.seal, ctx.viewer.id, ctx.page_origin, expires_at), expires_at)


def sign_visit(seal: Seal, visitor: str, origin: str, expires_at: datetime) -> str:
    expiry = int(expires_at.timestamp()).to_bytes(_TIME_BYTES, "big")
    return seal.sign_text(_PURPOSE, visitor.encode() + _origin_hash(origin) + expiry)


def open_visit(seal: Seal, token: str) -> OpenedVisit:
    """What a token says; Forged if it was altered."""
    payload = seal.open_text(_PURPOSE, token)
    visitor, rest = payload[: -_ORIGIN_BYTES - _TIME_BYTES], payload[-_ORIGIN_BYTES - _TIME_BYTES :]
    return OpenedVisit(visitor.decode(), rest[:_ORIGIN_BYTES], int.from_bytes(rest[_ORIGIN_BYTES:], "big"))


def _origin_hash(origin: str) -> bytes:
    return sha256(origin.lower().encode()).digest()[:_ORIGIN_BYTES]
