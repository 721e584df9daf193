"""Ballots: a drawn pair as a sealed text. Nothing of it is stored until it is voted.

    voter · board · number · lower and higher ordinal · who stands left · expiry    as JSON
    the walk behind this pair                                                       as bytes

The seal is the only thing that makes a ballot good: whoever casts it must be the voter it names, in time, and the
number must be free.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import orjson

from datastore.refusals import Refusal
from datastore.seal import Forged

if TYPE_CHECKING:
    from datastore.seal import Seal

_PURPOSE = "ballot"


class TokenUnknown(Refusal):
    code = "TOKEN_UNKNOWN"
    explanation = "This token was not given to you, or it was altered. Draw a matchup and use its token unchanged."


class TokenExpired(Refusal):
    code = "TOKEN_EXPIRED"
    explanation = "This token is too old. Draw again: the same pair comes with a new one."


class TokenSpent(Refusal):
    code = "TOKEN_SPENT"
    explanation = "This token was used before, with another verdict. Draw the next matchup."


@dataclass(frozen=True, slots=True)
class Ballot:
    """One pair issued to one voter, to be voted on once."""

    voter: str
    board: str
    number: int
    low: int
    high: int
    low_is_left: bool
    expires_at: datetime
    walk: bytes

    def sealed(self, seal: Seal) -> str:
        head = orjson.dumps(
            [
                self.voter, self.board, self.number, self.low, self.high, self.low_is_left,
                round(self.expires_at.timestamp() * 1000),
            ]
        )  # fmt: skip
        return seal.sign_text(_PURPOSE, len(head).to_bytes(2) + head + self.walk)

    @classmethod
    def opened(cls, seal: Seal, token: str) -> Ballot:
        """The ballot in a token, or TokenUnknown."""
        try:
            data = seal.open_text(_PURPOSE, token)
        except Forged:
            raise TokenUnknown(path=("input", "token")) from None
        end = 2 + int.from_bytes(data[:2])
        voter, board, number, low, high, low_is_left, expires = orjson.loads(data[2:end])
        expires_at = datetime.fromtimestamp(expires / 1000, UTC)
        return cls(voter, board, number, low, high, low_is_left, expires_at, data[end:])
