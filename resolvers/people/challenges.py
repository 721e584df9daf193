"""Proof of work: what it costs a program to do something a thousand times, and a person nothing.

The scheme is ALTCHA's: the service hides a number behind a hash, and who wants something finds it by trying. Nothing is
stored before a solution is spent: what was asked, for whom and until when is in the signed token.
"""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import orjson

from datastore.people.challenges import ChallengeNeeded, spend
from datastore.values.seal import Forged
from resolvers.requests.address_limits import address_hash
from resolvers.requests.context import Context

MOST: Final = 250_000
"""The number is below this: half as many hashes on average, a quarter of a second in a browser."""
LIFETIME: Final = timedelta(minutes=10)
_PURPOSE: Final = "challenge"
_PATH: Final = ("input", "solution")


@dataclass(frozen=True, slots=True)
class Challenge:
    """A number is wanted whose hash, after the salt's letters, is the target."""

    token: str
    salt: str
    target: str
    expires_at: datetime


def new_challenge(ctx: Context) -> Challenge:
    """A challenge that counts for this viewer alone."""
    salt, expires = secrets.token_hex(12), ctx.now() + LIFETIME
    target = _hash(salt, str(secrets.randbelow(MOST)))
    stated = orjson.dumps([salt, target, _owners(ctx)[0], int(expires.timestamp())])
    return Challenge(ctx.services.seal.sign_text(_PURPOSE, stated), salt, target, expires)


async def require_solution(ctx: Context, solution: str | None) -> None:
    """Spend a solution: a challenge's token, a colon and the number. ChallengeNeeded if it is none of this viewer's."""
    if not solution:
        raise ChallengeNeeded(path=_PATH)
    token, _, number = solution.rpartition(":")
    try:
        salt, target, owner, ends = orjson.loads(ctx.services.seal.open_text(_PURPOSE, token))
    except Forged:
        raise ChallengeNeeded("What your browser sent is no solution of its puzzle. Try again.", path=_PATH) from None
    expires = datetime.fromtimestamp(ends, UTC)
    if expires <= ctx.now():
        raise ChallengeNeeded("Your browser's puzzle is too old. Try again.", path=_PATH)
    if owner not in _owners(ctx):
        raise ChallengeNeeded("Your browser's puzzle was somebody else's. Try again.", path=_PATH)
    if len(number) > len(str(MOST)) or _hash(salt, number) != target:
        raise ChallengeNeeded("Your browser's puzzle is not solved. Try again.", path=_PATH)
    await spend(ctx.table, salt, expires, ctx.unit)


def _owners(ctx: Context) -> tuple[str, ...]:
    """Whom a challenge of the viewer is for: the member; and the network, for those who are not yet one."""
    network = address_hash(ctx.services.seal, ctx.address)
    viewer = ctx.viewer
    return (viewer.id, network) if viewer.is_member and viewer.proven is None else (network,)


def _hash(salt: str, number: str) -> str:
    return hashlib.sha256(f"{salt}{number}".encode()).hexdigest()
