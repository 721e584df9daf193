"""Sessions: what a browser or a program keeps after somebody has signed in.

| wanted                          | read or write                                                | requests   |
|---------------------------------|--------------------------------------------------------------|------------|
| sessions, and their members     | BatchGetItem of SESSION and PROFILE, consistent              | 1 for 50   |
| all sessions of a member        | Query USER#<id> SESSION#, consistent                         | 1          |
| a new session                   | Put, in the transaction of what it is begun by               | 0 more     |
| those that are too many         | that query; BatchWriteItem                                   | 1, seldom 2 |
| end a session                   | Delete                                                       | 1          |
| end all of a member             | that query; BatchWriteItem; the query until none is left     | 3, seldom more |
| end all by one of them          | all but that one; then all                                   | 4 or 6     |
| end all but one with something  | that query; Deletes in the transaction of it                 | 1          |
| used on another day             | Put, if it is still there                                    | 1 a day    |

    rst_ · member's id (26 letters) · secret (32 letters, 160 bits) · CRC-32 of all before (7 letters)

The token names its member, so one read finds it and one query ends all. Letters are base32's in lower case, the id's
Crockford's. Only the SHA-256 of a whole token is stored, as of API keys. A session ends 30 days after the last day on
which it was used, and 180 days after its sign-in at the latest; the engine removes ended ones late, so whoever reads
one checks it too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import ConditionFailed, Table
from datastore.dynamo.entity import Entity, Key
from datastore.dynamo.writes import present
from datastore.members.api_keys import CHECKSUM_LETTERS, hash_of, random_letters, with_checksum
from datastore.members.sign_in_codes import CodeSpent, ProofWrite
from datastore.people.profiles import PROFILE

# ── records ──

TOKEN_PREFIX = "rst_"  # noqa: S105 - what all tokens begin with
UNUSED = timedelta(days=30)
LONGEST = timedelta(days=180)
MOST_SESSIONS = 50
"""Of one member; with one more, the one that was used the longest ago ends."""
MOST_ENDED_AT_ONCE = 70
"""In a transaction of at most 100 writes. More there are only while somebody begins them."""
MOST_PASSES = 5
"""Over a member's sessions, to end them all. Somebody who keeps beginning new ones must not keep this going."""

_ID_LETTERS, _SECRET_LETTERS = 26, 32
_ID_END = len(TOKEN_PREFIX) + _ID_LETTERS
_FORM = re.compile(rf"{TOKEN_PREFIX}[0-9a-z]{{{_ID_LETTERS}}}[a-z2-7]{{{_SECRET_LETTERS + CHECKSUM_LETTERS}}}")


@dataclass(frozen=True, slots=True)
class Session:
    """That somebody is signed in, without the token that says so."""

    user: str
    token_hash: str
    method: str
    """How they signed in: the value of a `SignInMethod`."""
    signed_in_at: datetime
    used_on: date
    """The last day on which it was used."""
    expires: datetime
    origin: str | None = None
    """The origin on whose pages alone it counts; None for a cookie, and for a program's."""

    @property
    def key(self) -> SessionKey:
        return self.user, self.token_hash

    def used(self, day: date) -> Session:
        """The session when it is used on a day: it lasts longer for that."""
        return replace(self, used_on=day, expires=session_end(self.signed_in_at, day))


SessionKey = tuple[str, str]
"""The member and the hash of the token."""

SESSION = Entity(Session, Key("USER#{user}", "SESSION#{token_hash}"), ttl="expires")


def session_end(signed_in_at: datetime, used_on: date) -> datetime:
    """When a session ends that was last used on a day."""
    unused = datetime(used_on.year, used_on.month, used_on.day, tzinfo=signed_in_at.tzinfo) + UNUSED
    return min(unused, signed_in_at + LONGEST)


def latest_end(session: Session) -> datetime:
    """When a session ends that is used every day."""
    return session.signed_in_at + LONGEST


def new_session(
    user: str, method: str, origin: str | None, now: datetime, *, signed_in_at: datetime | None = None
) -> tuple[Session, str]:
    """A session that begins now, perhaps by a sign-in that was before; and its token."""
    token, at = with_checksum(TOKEN_PREFIX + user.lower() + random_letters(20)), signed_in_at or now
    return Session(user, hash_of(token), method, at, now.date(), session_end(at, now.date()), origin), token


# ── tokens ──


def key_in(token: str) -> SessionKey | None:
    """Where the session of a token is found; None for a text that no token can be."""
    if not _FORM.fullmatch(token) or with_checksum(token[:-CHECKSUM_LETTERS]) != token:
        return None
    return token[len(TOKEN_PREFIX) : _ID_END].upper(), hash_of(token)


# ── access patterns ──


async def read_sessions(table: Table, keys: Sequence[SessionKey]) -> Mapping[SessionKey, tuple[Session, bool]]:
    """The sessions that exist of members who were not erased, and whether each member is a guest."""
    sessions = [SESSION.at(user=user, token_hash=hashed) for user, hashed in keys]
    profiles = [PROFILE.at(user=user) for user, _ in keys]
    found: list[Any] = await table.get_many([*sessions, *profiles], consistent=True)
    pairs = zip(found[: len(keys)], found[len(keys) :], strict=True)
    return {session.key: (session, member.is_guest) for session, member in pairs if session and member}


async def read_sessions_of(table: Table, user: str) -> list[Session]:
    """Every session of a member, ended ones that the engine has not removed yet included."""
    return [session async for session in table.iterate(SESSION.on(user=user), consistent=True)]


def going_on(key: SessionKey) -> ProofWrite:
    """The proof of who is signed in already: it holds until that session is ended."""
    user, hashed = key
    return ProofWrite(SESSION.check(SESSION.at(user=user, token_hash=hashed), present()))


async def begin_session(table: Table, unit: UnitOfWork, answer: Any, session: Session, *proofs: ProofWrite) -> None:
    """Begin a session and use up what proves whose it is, if that counts once; CodeSpent if it holds no more."""
    try:
        await unit.transact(table, answer, SESSION.put(session), *(proof.write for proof in proofs))
    except ConditionFailed as failed:
        if not (failed.doubtful and await read_sessions(table, [session.key])):
            raise CodeSpent(path=("input",)) from None


async def end_surplus(table: Table, user: str, now: datetime) -> None:
    """End what is too many of a member's sessions, and remove those that have ended."""
    sessions = await read_sessions_of(table, user)
    valid = sorted(
        (each for each in sessions if each.expires > now), key=lambda each: (each.used_on, each.signed_in_at)
    )
    surplus = [each for each in sessions if each.expires <= now] + valid[: max(0, len(valid) - MOST_SESSIONS)]
    await table.write_many(SESSION.delete(SESSION.item_key(each)) for each in surplus)


async def end_session(table: Table, key: SessionKey) -> None:
    user, hashed = key
    await table.write(SESSION.delete(SESSION.at(user=user, token_hash=hashed)))


async def end_sessions(table: Table, user: str, *, but: SessionKey | None = None) -> list[SessionKey]:
    """End all sessions of a member, perhaps but one, and return which they were.

    One that has begun by another of them, after they were read, is ended in the next pass.
    """
    ended: list[SessionKey] = []
    for _ in range(MOST_PASSES):
        sessions = [each for each in await read_sessions_of(table, user) if each.key != but]
        if not sessions:
            break
        await table.write_many(SESSION.delete(SESSION.item_key(session)) for session in sessions)
        ended += [session.key for session in sessions]
    return ended


async def ending(table: Table, user: str, *, but: SessionKey | None) -> tuple[list[SessionKey], list[ProofWrite]]:
    """A member's sessions, perhaps but one, and what ends them in the transaction of what they must not outlive."""
    keys = [each.key for each in await read_sessions_of(table, user) if each.key != but][:MOST_ENDED_AT_ONCE]
    return keys, [ProofWrite(SESSION.delete(SESSION.at(user=user, token_hash=hashed))) for _, hashed in keys]


async def record_use(table: Table, used: Session) -> None:
    """Store that a session is used on a day, which is later than the stored one, unless it was ended."""
    await table.try_write(SESSION.put(used, when=present()))
