"""API keys: issuing and revoking them, and finding the key of a machine that signs in, as `sessions` finds sessions."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated

from datastore.dynamo import DynamoError, Page, SingleFlight, Window, deadline, shared_context
from datastore.members import api_keys as api_key_store
from datastore.members.api_keys import USE_INTERVAL, WRONG_CLOCK, ApiKey, IssuedKey
from datastore.refusals import InvalidInput
from resolvers.members.sessions import IN_USE_SECONDS, KNOWN_SECONDS, WRITE_SECONDS, look_up
from resolvers.members.suspensions import parse_roles
from resolvers.requests.context import Context, Kind, NodeOf, Role, Services, Viewer
from resolvers.values.texts import parse_line

# ── refusals ──

ApiKeyId = Annotated[str, NodeOf("ApiKey")]

LONGEST_NAME = 80
LONGEST_DAYS = 3650


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
    """A new key. Somebody who has just ceased to be an admin gets none, since it might work for ever."""
    viewer = ctx.with_role(Role.ADMIN)
    issued = issue(name, roles, days, ctx.now())
    by_key = None if viewer.is_member else viewer.id
    by_admin = None if Role.ADMIN in viewer.token_roles else viewer.member_id
    await api_key_store.store_api_key(ctx.table, issued, ctx.unit, by_key=by_key, by_admin=by_admin)
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
        (key,) = await look_up(self._services, self._keys, key_id, address) or (None,)
        if key is None or not key.has_secret(secret):
            raise KeyRefused("There is no such API key. It may have been revoked.")
        now = self._services.clock()
        if key.expires_at is not None and key.expires_at <= now:
            raise KeyRefused("The API key has expired: create a new one.")
        self._note_use(key, now)
        roles = frozenset(role for role in Role if role in key.roles)
        return Viewer(id=key.id, kind=Kind.KEY, name=key.name, roles=roles), key.expires_at

    def forget(self, key_id: str) -> None:
        """Refuse from now on a key that this process has just revoked: in use until its next lookup, like a session."""
        self._keys.outdate(key_id)

    async def close(self) -> None:
        await self._writes.close()

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
