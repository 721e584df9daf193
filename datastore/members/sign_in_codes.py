"""Codes by email: six digits, and a link, by which somebody shows that an address is theirs.

| wanted                     | read or write                                                         | requests |
|----------------------------|-----------------------------------------------------------------------|----------|
| a new code                 | Put SIGNIN#<id> CODE                                                  | 1        |
| an attempt at the digits   | Update if it is unused and has fewer than five; compared afterwards   | 1        |
| a link that is still good  | GetItem SIGNIN#<id> CODE, consistent                                  | 1        |
| used                       | Update if it is unused, in the transaction of what it is used for     | 0 more   |
| used, where nothing was stored before | Put if absent, in that transaction                         | 0 more   |

Nothing here says whose a code is: the address stands only in the sealed texts that the asking window and the link have,
and the digits are kept as a keyed hash. An attempt is counted before it is compared, so that attempts at the same
moment, in whatever process, are five together.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import ConditionFailed, Table
from datastore.dynamo.entity import Entity, Key
from datastore.dynamo.writes import Write, absent, less, present
from datastore.refusals import Refusal

# ── refusals ──


class CodeUnknown(Refusal):
    code = "TOKEN_UNKNOWN"
    explanation = "This is not the code. Look at the newest email, or ask for another code."


class CodeExpired(Refusal):
    code = "TOKEN_EXPIRED"
    explanation = "This code is too old. Ask for another one."


class CodeSpent(Refusal):
    code = "TOKEN_SPENT"
    explanation = "This code was used, or guessed wrongly five times. Ask for another one."


# ── records ──

MOST_ATTEMPTS = 5
KEPT = timedelta(hours=1)
"""For longer than a code counts, so that a used one is known as used."""


@dataclass(frozen=True, slots=True)
class SignInCode:
    """What is known of a code that was sent, or of a sealed text that was used once."""

    id: str
    expires: datetime
    """When the engine may remove it."""
    digits: str | None = None
    """Their keyed hash; None if nobody was sent them."""
    attempts: int = 0
    used: datetime | None = None


SIGN_IN_CODE = Entity(SignInCode, Key("SIGNIN#{id}", "CODE"), ttl="expires")


# ── access patterns ──


async def store_code(table: Table, unit: UnitOfWork, answer: Any, code: SignInCode) -> None:
    await unit.transact(table, answer, SIGN_IN_CODE.put(code))


async def count_attempt(table: Table, code_id: str) -> SignInCode:
    """The code, after an attempt was counted; CodeSpent if there are no more, CodeExpired if it is gone."""
    may_be_tried = present() & absent("used") & less("attempts", MOST_ATTEMPTS)
    change = SIGN_IN_CODE.update(SIGN_IN_CODE.at(id=code_id), add={"attempts": 1}, when=may_be_tried)
    try:
        return await table.write_back(change, SIGN_IN_CODE)
    except ConditionFailed as failed:
        raise (CodeExpired if failed.stored(SIGN_IN_CODE) is None else CodeSpent) from None


async def refuse_used(table: Table, code_id: str) -> None:
    """CodeSpent if a code, or the link beside it, was used; CodeExpired if it is gone."""
    stored = await table.get(SIGN_IN_CODE.at(id=code_id), consistent=True)
    if stored is None:
        raise CodeExpired(path=("input",))
    if stored.used is not None:
        raise CodeSpent(path=("input",))


@dataclass(frozen=True, slots=True)
class ProofWrite:
    """What a proof adds to the transaction that relies on it, which fails if the proof does not hold.

    Other layers pass it on unread.
    """

    write: Write


def use_code(code_id: str, now: datetime) -> ProofWrite:
    """Use up a code, or the link beside it."""
    unused = present() & absent("used")
    return ProofWrite(SIGN_IN_CODE.update(SIGN_IN_CODE.at(id=code_id), values={"used": now}, when=unused))


def use_once(code_id: str, now: datetime) -> ProofWrite:
    """Use up a sealed text, of which nothing was stored before."""
    return ProofWrite(SIGN_IN_CODE.put(SignInCode(code_id, now + KEPT, used=now), when=absent()))
