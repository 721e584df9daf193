"""A shop's proof that a member has bought a product: a token that the shop has signed, for one comment.

It says `aud: "ringside-proof"`, the `product`, when it was signed and until when it is good, and whom it is for: a
member's id (`sub`) or an address that they have confirmed (`email`). Whatever does not hold refuses the comment.
"""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any, Final, TypeAlias

from datastore.comments.verified import ShownProof, read_proof
from datastore.people.identities import of_address
from datastore.refusals import InvalidInput
from resolvers.people.identities import Members
from resolvers.requests.context import Context, Services
from resolvers.values.node_ids import node_id

LONGEST: Final = 4096
LONGEST_LIFE: Final = timedelta(days=365)
_AHEAD: Final = timedelta(minutes=1)
"""By how much the shop's clock may be ahead."""
_PATH: Final = ("input", "proof")

Verify: TypeAlias = Callable[[str], Awaitable[Mapping[str, Any]]]
"""The claims of a token that one of the shops has signed; InvalidInput for any other."""


class Proofs:
    """The shops whose proofs count."""

    def __init__(self, _: Services) -> None:
        self._verify: Verify | None = None

    def start(self, verify: Verify) -> None:
        """Believe these from now on. Without this, no proof counts."""
        self._verify = verify

    async def read(self, proof: str) -> Mapping[str, Any]:
        if self._verify is None:
            raise refused("No shop's proofs count here.")
        if len(proof) > LONGEST:
            raise refused(f"A proof has at most {LONGEST:,} characters.")
        return await self._verify(proof)


def refused(message: str) -> InvalidInput:
    return InvalidInput(message, path=_PATH)


async def examine(ctx: Context, proof: str, product: str, ulid: str) -> ShownProof:
    """The proof as it is stored with a comment; InvalidInput if it does not hold for the viewer and the product."""
    claims = await ctx.services.get(Proofs).read(proof)
    expires = _expiry(claims, ctx.now())
    if claims.get("product") != product:
        raise refused("This proof is for another product.")
    await _require_holder(ctx, claims)
    return ShownProof(_digest(proof), product, ulid, expires)


async def require_unused(ctx: Context, proof: ShownProof) -> None:
    """InvalidInput if it was shown for another comment, which is still there."""
    shown = await read_proof(ctx.table, proof.digest)
    if shown is not None and shown.ulid != proof.ulid:
        raise refused("This proof was shown for another comment already.")


def _expiry(claims: Mapping[str, Any], now: datetime) -> datetime:
    try:
        signed, expires = _moment(claims.get("iat")), _moment(claims.get("exp"))
    except (ValueError, OverflowError, OSError):
        raise refused("A proof says when it was signed (`iat`) and until when it is good (`exp`).") from None
    if expires <= now:
        raise refused("This proof is too old.")
    if signed > now + _AHEAD:
        raise refused("This proof was signed in the future.")
    if expires - signed > LONGEST_LIFE:
        raise refused("A proof is good for at most 365 days.")
    return expires


def _moment(claim: object) -> datetime:
    seconds = claim if isinstance(claim, int | float) and not isinstance(claim, bool) else inf
    return datetime.fromtimestamp(seconds, UTC)


async def _require_holder(ctx: Context, claims: Mapping[str, Any]) -> None:
    member, address = claims.get("sub"), claims.get("email")
    if member is None and address is None:
        raise refused("A proof says whom it is for: a member's id (`sub`) or address (`email`).")
    if member is not None and member != node_id("User", ctx.member().id):
        raise refused("This proof is for another member.")
    if address is None:
        return
    profile = await ctx.services.profiles.load(ctx.member().id)
    own = set() if profile is None else await ctx.services.get(Members).addresses_of(profile)
    if not isinstance(address, str) or of_address(address).key not in own:
        raise refused("This proof is for another address than those that you have confirmed.")


def _digest(proof: str) -> str:
    """Of what was signed: a signature may be written in several ways."""
    signed, _, _ = proof.rpartition(".")
    return hashlib.sha256(signed.encode()).hexdigest()[:32]
