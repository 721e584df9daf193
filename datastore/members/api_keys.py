"""API keys, by which machines sign in.

| wanted                 | read or write                                      | requests |
|------------------------|----------------------------------------------------|----------|
| one key                | GetItem APIKEY#<id> APIKEY, consistent             | 1        |
| several keys           | BatchGetItem, consistent                           | 1 a hundred |
| all keys               | gsi1 APIKEYS, newest first                         | 1 a page |
| issue a key            | Put if absent, with the request's receipt and a check of the admin | 1 or 2 |
| revoke a key           | Delete if present, with the request's receipt      | 1        |
| when a key was used    | Update if the last one is a minute old             | 1 a minute |

    rsk_ · id (10 letters, 50 bits) · secret (32 letters, 160 bits) · CRC-32 of all before (7 letters)

Letters are base32's in lower case. Only the SHA-256 of a whole key is stored: with 160 random bits nobody can find a
key from its hash. The checksum shows without a read that a key was mistyped or made up at random.
"""

import hmac
import re
import secrets
import zlib
from base64 import b32encode
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

from datastore.changes.occurrences import Kind
from datastore.changes.unit_of_work import AlreadyAnswered, UnitOfWork
from datastore.dynamo import ConditionFailed, Page, Table, Window
from datastore.dynamo.entity import Entity, Key
from datastore.dynamo.writes import Write, absent, less, more, present
from datastore.members.suspensions import still_admin
from datastore.refusals import NotAllowed, NotFound

# ── records ──

SECRET_PREFIX = "rsk_"  # noqa: S105 - what all secrets begin with
ID_PREFIX = "apikey-"
"""What the ids of keys begin with, and those of members do not."""

CHECKSUM_LETTERS = 7
_ID_LETTERS, _SECRET_LETTERS = 10, 32
_ID_END = len(SECRET_PREFIX) + _ID_LETTERS
_FORM = re.compile(rf"{SECRET_PREFIX}[a-z2-7]{{{_ID_LETTERS + _SECRET_LETTERS + CHECKSUM_LETTERS}}}")

USE_INTERVAL = timedelta(minutes=1)
"""The time between two writes of when a key was used."""
WRONG_CLOCK = timedelta(minutes=5)
"""A stored use that is further ahead than this comes from a wrong clock."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key, without its secret."""

    id: str
    name: str
    roles: tuple[str, ...]
    secret_hash: str
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = None

    @property
    def node_key(self) -> str:
        return self.id

    @property
    def prefix(self) -> str:
        """The beginning of its secret, by which people recognise it: this much is not secret."""
        return SECRET_PREFIX + self.id.removeprefix(ID_PREFIX)

    def has_secret(self, secret: str) -> bool:
        return hmac.compare_digest(self.secret_hash, hash_of(secret))


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A new key and its secret, which is shown once and never stored."""

    api_key: ApiKey
    secret: str | None = None


API_KEY = Entity(ApiKey, Key("APIKEY#{id}", "APIKEY"), gsi1=Key("APIKEYS", "{created_at}#{id}"))


# ── secrets ──


def new_secret() -> str:
    return with_checksum(SECRET_PREFIX + random_letters(27)[: _ID_LETTERS + _SECRET_LETTERS])


def id_in(secret: str) -> str | None:
    """The id of the key with this secret; None for a text that no secret can be."""
    if not _FORM.fullmatch(secret) or with_checksum(secret[:-CHECKSUM_LETTERS]) != secret:
        return None
    return ID_PREFIX + secret[len(SECRET_PREFIX) : _ID_END]


def id_of_prefix(prefix: str) -> str:
    """The id of the key whose secret begins with this text; more of the secret may follow."""
    return ID_PREFIX + prefix[len(SECRET_PREFIX) : _ID_END]


def hash_of(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()


def random_letters(size: int) -> str:
    """So many random bytes as letters."""
    return _base32(secrets.token_bytes(size))


def with_checksum(text: str) -> str:
    return text + _base32(zlib.crc32(text.encode()).to_bytes(4, "big"))


def _base32(data: bytes) -> str:
    return b32encode(data).decode().rstrip("=").lower()


# ── access patterns ──


async def read_api_key(table: Table, key_id: str) -> ApiKey | None:
    return await table.get(API_KEY.at(id=key_id), consistent=True)


async def read_api_keys(table: Table, key_ids: Sequence[str]) -> Mapping[str, ApiKey]:
    """The keys that exist, by id."""
    keys = [API_KEY.at(id=key_id) for key_id in key_ids]
    return {key.id: key for key in await table.find_many(keys, consistent=True)}


async def read_api_keys_page(table: Table, window: Window) -> Page[ApiKey]:
    """Newest first."""
    return await table.page([API_KEY.on("gsi1").newest_first()], window.open("api keys"))


def all_api_keys(table: Table) -> AsyncIterator[ApiKey]:
    """Newest first."""
    return table.iterate(API_KEY.on("gsi1").newest_first())


async def store_api_key(
    table: Table, issued: IssuedKey, unit: UnitOfWork, *, by_key: str | None = None, by_admin: str | None = None
) -> None:
    """Store the key. Neither the receipt nor the table has its secret.

    NotAllowed if the API key that asks for it was revoked, or the member is no admin here any more.
    """
    key, checks = issued.api_key, list[Write]()
    if by_key is not None:
        checks.append(API_KEY.check(API_KEY.at(id=by_key), present()))
    if by_admin is not None:
        checks.append(await still_admin(table, by_admin))
    try:
        occurrence = unit.occurred(Kind.API_KEY_CREATED, f"ApiKey:{key.node_key}")
        await unit.transact(table, IssuedKey(key), API_KEY.put(key, when=absent()), *checks, *occurrence)
    except (ConditionFailed, AlreadyAnswered) as failed:
        if await read_api_key(table, key.id) == key:
            return  # an attempt without an answer has stored it
        if checks and isinstance(failed, ConditionFailed) and failed.at(1):
            raise NotAllowed from None
        raise


async def revoke_api_key(table: Table, key_id: str, unit: UnitOfWork) -> ApiKey:
    """Delete the key and return it as it was; NotFound if there is none."""
    key = await read_api_key(table, key_id)
    if key is None:
        raise NotFound("There is no such key. It may already have been revoked.", path=("input", "key"))
    try:
        occurrence = unit.occurred(Kind.API_KEY_REVOKED, f"ApiKey:{key.node_key}")
        await unit.transact(table, key, API_KEY.delete(API_KEY.item_key(key), when=present()), *occurrence)
    except ConditionFailed as failed:
        if not failed.doubtful:
            raise NotFound("Somebody else has just revoked this key.", path=("input", "key")) from None
    return key


async def record_use(table: Table, key_id: str, now: datetime) -> None:
    """Store that a key is used now, unless it was revoked or the last use stored is less than a minute old."""
    is_old = less("last_used_at", now - USE_INTERVAL) | more("last_used_at", now + WRONG_CLOCK)
    is_due = present() & (absent("last_used_at") | is_old)
    await table.try_write(API_KEY.update(API_KEY.at(id=key_id), values={"last_used_at": now}, when=is_due))
