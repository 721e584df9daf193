"""API keys: issuing and revoking them, and finding the key of a machine that signs in.

A process remembers for `KNOWN_SECONDS` that there is a key, or that there is none. So a revoked key is refused within
half a minute in every process. Strangers cause no read unless a text has a key's form and checksum, and then at most
`LOOKUPS_PER_ADDRESS` besides those that are looked up at the same moment. A key that there is counts towards no limit.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from math import inf
from typing import Annotated, Final

from datastore.dynamo import DynamoError, Page, SingleFlight, Window, deadline, shared_context
from datastore.members import api_keys as api_key_store
from datastore.members.api_keys import USE_INTERVAL, WRONG_CLOCK, ApiKey, IssuedKey
from datastore.refusals import InvalidInput
from resolvers.members.suspensions import parse_roles
from resolvers.requests.context import Context, Kind, NodeOf, Role, Services, Viewer
from resolvers.values.network_addresses import network
from resolvers.values.texts import parse_line

# ── refusals ──

ApiKeyId = Annotated[str, NodeOf("ApiKey")]

LONGEST_NAME = 80
LONGEST_DAYS = 3650

KNOWN_SECONDS = 25.0
"""Together with the half minute after which open sockets are checked again, this is less than a minute."""

IN_USE_SECONDS = 24 * 3600.0
"""A key that was found here within this time is in use."""

LOOKUPS_PER_ADDRESS: Final = "60/minute"
"""Keys per network address and process that are looked up and do not exist."""

WRITE_SECONDS = 10.0


class KeyRefused(Exception):
    """A key that signs nobody in; the message says why."""


# ── fields ──


async def api_keys(ctx: Context, /, *, window: Window) -> Page[ApiKey]:
    """Newest first; for admins."""
    ctx.with_role(Role.ADMIN)
    return await api_key_store.read_api_keys_page(ctx.table, window)


async def api_key_node(ctx: Context, key: str) -> ApiKey | None:
    """For admins; nobody else learns which keys exist."""
    return await api_key_store.read_api_key(ctx.table, key) if ctx.viewer.may(Role.ADMIN) else None


async def create_api_key(ctx: Context, /, *, name: str, roles: list[str], days: int | None = None) -> IssuedKey:
    ctx.with_role(Role.ADMIN)
    issued = issue(name, roles, days, ctx.now())
    await api_key_store.store_api_key(ctx.table, issued, ctx.unit)
    return issued


async def revoke_api_key(ctx: Context, /, *, key: ApiKeyId) -> ApiKey:
    ctx.with_role(Role.ADMIN)
    revoked = await api_key_store.revoke_api_key(ctx.table, key, ctx.unit)
    ctx.services.get(ApiKeys).forget(key)
    return revoked


# ── rules for a key's values ──


def issue(name: str, roles: Sequence[str], days: int | None, now: datetime) -> IssuedKey:
    """A new key, not stored yet, or InvalidInput."""
    if days is not None and not 1 <= days <= LONGEST_DAYS:
        raise InvalidInput(f"A key is valid for 1 to {LONGEST_DAYS} days.", path=("input", "days"))
    given = parse_roles(roles)
    if not given:
        raise InvalidInput(f"A key needs at least one role: {', '.join(Role)}.", path=("input", "roles"))
    secret = api_key_store.new_secret()
    key = ApiKey(
        id=api_key_store.id_in(secret) or "",
        name=parse_line(name, LONGEST_NAME, "A key's name", ("input", "name")),
        roles=tuple(role.value for role in given),
        secret_hash=api_key_store.hash_of(secret),
        created_at=now,
        expires_at=None if days is None else now + timedelta(days=days),
    )
    return IssuedKey(key, secret)


# ── signing in ──


class ApiKeys:
    """The keys that machines use in this process."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._keys = services.cache.batches("api_keys", self._read, age=KNOWN_SECONDS, kept=IN_USE_SECONDS)
        self._writes: SingleFlight[str, None] = SingleFlight(shared_context)

    async def sign_in(self, secret: str, address: str) -> tuple[Viewer, datetime | None]:
        """The viewer with this secret and when the key expires; or KeyRefused, RateLimited or a DynamoError."""
        key_id = api_key_store.id_in(secret)
        if key_id is None:
            raise KeyRefused("This is not an API key of a Ringside service: it was altered, or is incomplete.")
        key = await self._find(key_id, address)
        if key is None or not key.has_secret(secret):
            raise KeyRefused("There is no such API key. It may have been revoked.")
        now = self._services.clock()
        if key.expires_at is not None and key.expires_at <= now:
            raise KeyRefused("The API key has expired: create a new one.")
        self._note_use(key, now)
        roles = frozenset(role for role in Role if role in key.roles)
        return Viewer(id=key.id, kind=Kind.KEY, name=key.name, roles=roles), key.expires_at

    def forget(self, key_id: str) -> None:
        """Refuse from now on a key that this process has just revoked.

        It is in use until its next lookup, because lookups of keys in use are not limited. Otherwise its holder could
        exhaust the limit and so keep a socket open.
        """
        self._keys.outdate(key_id)

    async def close(self) -> None:
        await self._writes.close()

    async def _find(self, key_id: str, address: str) -> ApiKey | None:
        (in_use,) = self._keys.known(key_id, inf) or (None,)
        limit = (LOOKUPS_PER_ADDRESS, "api key", network(address))
        if is_first := in_use is None and self._keys.known(key_id) is None:
            self._services.rates.check(*limit)
        (key,) = await self._keys.load(key_id) or (None,)
        if key is None and is_first:
            self._services.rates.hit(*limit)
        return key

    async def _read(self, key_ids: Sequence[str]) -> Mapping[str, tuple[ApiKey | None]]:
        """A key's absence is an answer too, since absence is not kept; ids are not chosen, so none appears later."""
        found = await api_key_store.read_api_keys(self._services.table, key_ids)
        return {key_id: (found.get(key_id),) for key_id in key_ids}

    def _note_use(self, key: ApiKey, now: datetime) -> None:
        """Store the use in the background, at most once a minute for all processes together."""
        if key.last_used_at is None or not now - USE_INTERVAL < key.last_used_at < now + WRONG_CLOCK:
            self._keys.amend(key.id, (replace(key, last_used_at=now),))
            self._writes.begin(key.id, partial(self._record_use, key.id, now))

    async def _record_use(self, key_id: str, now: datetime) -> None:
        with suppress(DynamoError), deadline(WRITE_SECONDS):  # it helps people only; the next use stores it
            await api_key_store.record_use(self._services.table, key_id, now)
