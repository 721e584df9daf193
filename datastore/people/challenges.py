"""Proofs of work that were spent: each counts for one request, which may be repeated.

| wanted   | read or write                          | requests |
|----------|----------------------------------------|----------|
| spend it | Put CHALLENGE#<salt> SPENT, if absent  | 1        |
"""

from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256

from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import ConditionFailed, Table
from datastore.dynamo.entity import Entity, Key
from datastore.dynamo.writes import absent
from datastore.refusals import Refusal


class ChallengeNeeded(Refusal):
    code = "CHALLENGE_NEEDED"
    explanation = "Your browser has to solve a small puzzle first, which keeps programs out. Try again."


@dataclass(frozen=True, slots=True)
class SpentChallenge:
    """A challenge whose solution was sent. It is kept for as long as the challenge counts."""

    salt: str
    expires: datetime
    request: str | None = None
    """A hash of the request that it was sent with, if that has an idempotency key."""


SPENT_CHALLENGE = Entity(SpentChallenge, Key("CHALLENGE#{salt}", "SPENT"), ttl="expires")


async def spend(table: Table, salt: str, expires: datetime, unit: UnitOfWork) -> None:
    """ChallengeNeeded if it was spent before, but for this request. An answer that was lost counts as this one."""
    spent = SpentChallenge(salt, expires)
    if unit.key is not None:
        request = sha256(f"{unit.owner} {unit.key} {unit.input_hash}".encode()).hexdigest()
        spent = replace(spent, request=request)
    try:
        await table.write(SPENT_CHALLENGE.put(spent, when=absent()))
    except ConditionFailed as failed:
        stored = failed.stored(SPENT_CHALLENGE)
        is_repeat = spent.request is not None and stored is not None and stored.request == spent.request
        if not (failed.doubtful or is_repeat):
            raise ChallengeNeeded(
                "Your browser's puzzle was used before. Try again.", path=("input", "solution")
            ) from None
