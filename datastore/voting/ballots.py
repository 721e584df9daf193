"""Ballots: a drawn pair as a sealed token. Nothing is stored until the voter uses it.

    voter · board · number · lower and higher ordinal · whether the lower is left · expiry    as JSON
    the pair walk after this pair                                                             as bytes

A ballot is accepted from the voter it names, before it expires, and only if that voter has no vote of its number yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from math import isqrt

import orjson

from datastore.refusals import Refusal
from datastore.values.seal import Forged, Seal

# ── pairs ──


def pair_count(contenders: int) -> int:
    return contenders * (contenders - 1) // 2


def pair_number(low: int, high: int) -> int:
    return pair_count(high) + low


def pair_with_number(number: int) -> tuple[int, int]:
    high = (1 + isqrt(1 + 8 * number)) // 2
    return number - pair_count(high), high


@dataclass(frozen=True, slots=True)
class EligibleContenders:
    """The contenders that can be drawn: ordinals below `size` whose bit in `retired` is not set.

    `restorations` counts how often one came back from retirement; `latest_restored` has the ordinals of the latest.
    """

    size: int
    retired: int = 0
    restorations: int = 0
    latest_restored: tuple[int, ...] = ()

    def has(self, ordinal: int) -> bool:
        return not self.retired >> ordinal & 1

    def __len__(self) -> int:
        return self.size - self.retired.bit_count()

    @property
    def version(self) -> int:
        """The number of retirements and restorations so far. It identifies the set of retired contenders."""
        return self.retired.bit_count() + 2 * self.restorations

    def restored_since(self, restorations: int) -> frozenset[int]:
        """The eligible contenders among those restored after a number of restorations."""
        number = self.restorations - restorations
        latest = self.latest_restored[-number:] if number > 0 else ()
        return frozenset(ordinal for ordinal in latest if self.has(ordinal))

    def pairs(self, start: int, end: int) -> int:
        """The number of eligible pairs whose higher ordinal is from `start` to `end - 1`."""
        return pair_count(self._below(end)) - pair_count(self._below(start))

    def _below(self, ordinal: int) -> int:
        return ordinal - (self.retired & ((1 << ordinal) - 1)).bit_count()


# ── ballots ──

_PURPOSE = "ballot"


class TokenUnknown(Refusal):
    code = "TOKEN_UNKNOWN"
    explanation = "This pair was not drawn for you. Draw another one."


class TokenExpired(Refusal):
    code = "TOKEN_EXPIRED"
    explanation = "This pair was drawn too long ago. Draw again: the same pair comes."


class TokenSpent(Refusal):
    code = "TOKEN_SPENT"
    explanation = "You have decided about this pair before, and otherwise. Draw the next one."


class Verdict(Enum):
    """A voter's verdict on the pair as it was shown."""

    LEFT = "LEFT"
    RIGHT = "RIGHT"
    TIE = "TIE"
    SKIP = "SKIP"


@dataclass(frozen=True, slots=True)
class Ballot:
    """One pair issued to one voter: the ordinals of its sides, and the voter's walk after it."""

    voter: str
    board: str
    number: int
    left: int
    right: int
    expires_at: datetime
    walk: bytes
    order: str | None = None
    """The visitor in whose order of pairs a member goes on."""

    def sealed(self, seal: Seal) -> str:
        low, high = min(self.left, self.right), max(self.left, self.right)
        expires = round(self.expires_at.timestamp() * 1000)
        head = orjson.dumps([self.voter, self.board, self.number, low, high, self.left == low, expires, self.order])
        return seal.sign_text(_PURPOSE, len(head).to_bytes(2) + head + self.walk)

    @classmethod
    def opened(cls, seal: Seal, token: str) -> Ballot:
        """The ballot in a token; TokenUnknown if the token was not sealed here."""
        try:
            payload = seal.open_text(_PURPOSE, token)
        except Forged:
            raise TokenUnknown(path=("input", "token")) from None
        end = 2 + int.from_bytes(payload[:2])
        voter, board, number, low, high, low_is_left, expires, order = orjson.loads(payload[2:end])
        return cls(
            voter=voter,
            board=board,
            number=number,
            left=low if low_is_left else high,
            right=high if low_is_left else low,
            expires_at=datetime.fromtimestamp(expires / 1000, UTC),
            walk=payload[end:],
            order=order,
        )
