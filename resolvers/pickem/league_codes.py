"""Codes of leagues: easy to read aloud, hard to guess.

A code is nine syllables such as `bakomi-ratuse-fidogu`, of letters no two of which sound alike: 60^9 codes. Every use
of a code is counted before it is looked up, over all processes: a member has 30 an hour, a network address 1,000. With
10,000 leagues, an attacker with 10,000 addresses, and accounts enough to use them up, finds one in some ten years.
"""

from __future__ import annotations

import asyncio
import secrets

from datastore.people.address_use import AddressUse, reserve
from datastore.refusals import RateLimited
from resolvers.requests.context import Context
from resolvers.requests.rate_limits import Rate, address_hash

_CONSONANTS = "bdfgklmrstvz"
_VOWELS = "aeiou"
_GROUPS, _SYLLABLES = 3, 3
_KIND = "CODES"
PER_MEMBER = Rate(30, 3600)
PER_ADDRESS = Rate(1000, 3600)


def new_code() -> str:
    """A random code as it is stored."""
    return "".join(secrets.choice(_CONSONANTS) + secrets.choice(_VOWELS) for _ in range(_GROUPS * _SYLLABLES))


def spelled(code: str) -> str:
    """A stored code as it is shown: in groups."""
    size = 2 * _SYLLABLES
    return "-".join(code[start : start + size] for start in range(0, len(code), size))


def parse_code(text: str) -> str | None:
    """A code as somebody typed it; None if there is no such code."""
    code = "".join(letter for letter in text.lower() if letter not in " -\t\n")
    is_code = len(code) == 2 * _GROUPS * _SYLLABLES and set(code[::2]) <= set(_CONSONANTS)
    return code if is_code and set(code[1::2]) <= set(_VOWELS) else None


async def admit_attempt(ctx: Context) -> None:
    """Count the use of a code; RateLimited if the member or their network address has used too many."""
    seal, member = ctx.services.seal, ctx.member()
    subjects = [(seal.keyed_hash("member's codes", member.id.encode()).hex(), PER_MEMBER)]
    if ctx.address:
        subjects.append((address_hash(seal, ctx.address), PER_ADDRESS))
    await asyncio.gather(*(_admit(ctx, subject, rate) for subject, rate in subjects))


async def _admit(ctx: Context, subject: str, rate: Rate) -> None:
    period, elapsed = divmod(ctx.now().timestamp(), rate.seconds)
    use = AddressUse(subject, _KIND, int(period), ttl=(int(period) + 2) * rate.seconds)
    admitted, _ = await reserve(ctx.table, use, 1, rate.limit)
    if not admitted:
        raise RateLimited(
            "Too many codes were tried. Ask a captain of the league for its code, and try again later.",
            retry_after=float(rate.seconds - int(elapsed)),
        )
