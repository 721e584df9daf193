"""Proofs of work that were spent: each counts once.

| wanted   | read or write                          | requests |
|----------|----------------------------------------|----------|
| spend it | Put CHALLENGE#<salt> SPENT, if absent  | 1        |
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from datastore.dynamo import ConditionFailed, Table
from datastore.dynamo.entity import Entity, Key
from datastore.dynamo.writes import absent
from datastore.refusals import Refusal


class ChallengeNeeded(Refusal):
    code = "CHALLENGE_NEEDED"
    explanation = "This needs a proof of work: ask for a `challenge`, solve it, and send its `solution`."


@dataclass(frozen=True, slots=True)
class SpentChallenge:
    """A challenge whose solution was sent. It is kept for as long as the challenge counts."""

    salt: str
    expires: datetime


SPENT_CHALLENGE = Entity(SpentChallenge, Key("CHALLENGE#{salt}", "SPENT"), ttl="expires")


async def spend(table: Table, salt: str, expires: datetime) -> None:
    """ChallengeNeeded if it was spent before. An answer that was lost counts as this one."""
    try:
        await table.write(SPENT_CHALLENGE.put(SpentChallenge(salt, expires), when=absent()))
    except ConditionFailed as failed:
        if not failed.doubtful:
            raise ChallengeNeeded(
                "This solution was used before: ask for another `challenge`.", path=("input", "solution")
            ) from None
