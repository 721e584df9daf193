"""Sessions: finding that of a token, beginning one at a sign-in, and ending them.

A process remembers for `KNOWN_SECONDS` that there is a session, or that there is none. So one that was ended is refused
within half a minute in every process, and on open sockets and streams at their next check. Strangers cause no read
unless a text has a token's form and checksum, and then at most `LOOKUPS_PER_ADDRESS` besides those that are looked up
at the same moment. A session that there is counts towards no limit, or of a network's many members only some would be
let in after a process was started. API keys are found in the same way.
"""

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Final, TypeVar

import structlog

from datastore.dynamo import Reads, SingleFlight, deadline, shared_context
from datastore.members import sessions as session_store
from datastore.members.sessions import Session, SessionKey
from datastore.refusals import NotSignedIn
from resolvers.live.background import unless_failed
from resolvers.members.suspensions import Suspensions
from resolvers.requests.context import Context, Kind, Role, Services, SignedInBy, Viewer
from resolvers.values.network_addresses import network

KNOWN_SECONDS = 25.0
"""Together with the half minute after which open sockets are checked again, this is less than a minute."""

IN_USE_SECONDS = 24 * 3600.0
"""What was found here within this time is in use."""

LOOKUPS_PER_ADDRESS: Final = "60/minute"
"""Those that do not exist, of each kind per network address and process: a network may be a whole school's."""

MOST_KNOWN = 20_000
WRITE_SECONDS = 10.0
_log = structlog.get_logger("ringside.sessions")


K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=tuple[object, ...])


class SessionRefused(Exception):
    """A token that signs nobody in; the message says why."""


async def look_up(services: Services, kind: Reads[K, V], key: K, address: str) -> V | None:
    """What a token or key leads to: a tuple, which begins with None for nothing. RateLimited if that was too often."""
    limit = (LOOKUPS_PER_ADDRESS, kind.name, network(address))
    is_first = kind.known(key) is None and (kind.known(key, inf) or (None,))[0] is None
    if is_first:
        services.rates.check(*limit)
    found = await kind.load(key)
    if is_first and (found or (None,))[0] is None:
        services.rates.hit(*limit)
    return found


class Sessions:
    """The sessions that are used in this process."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._sessions = services.cache.batches(
            "sessions", self._read, age=KNOWN_SECONDS, kept=IN_USE_SECONDS, most=MOST_KNOWN
        )
        self._writes: SingleFlight[SessionKey, None] = SingleFlight(shared_context)
        self._grown: set[str] = set()
        """Members with a session that began after their sessions were last read, to end those that are too many."""

    async def find(self, token: str, address: str) -> tuple[Session, Viewer]:
        """The session of a token, and its member; or SessionRefused, RateLimited or a DynamoError."""
        key = session_store.key_in(token)
        if key is None:
            raise SessionRefused("This is not a session of a Ringside service: it was altered, or is incomplete.")
        session, is_guest = await look_up(self._services, self._sessions, key, address) or (None, False)
        if session is None:
            raise SessionRefused("This session has ended: sign in again.")
        now = self._services.clock()
        if session.expires <= now:
            raise SessionRefused("This session has expired: sign in again.")
        if session.used_on < now.date():
            session = session.used(now.date())
            self._note_use(session, is_guest=is_guest)
        return session, self.viewer(session, is_guest=is_guest)

    async def confirm(self, viewer: Viewer) -> None:
        """NotSignedIn if the viewer's session was ended, of which this process may have yet to hear."""
        if viewer.session is not None:
            session, _ = await self._sessions.load(viewer.session.key, 0) or (None, False)
            if session is None:
                raise NotSignedIn

    def viewer(self, session: Session, *, is_guest: bool) -> Viewer:
        """The member of a session. On pages of other origins they have roles only where the operator says so."""
        by = SignedInBy(session.key, session.signed_in_at, session.method, session.origin)
        acts = self._services.policy.gives_roles(session.origin)
        given = self._services.get(Suspensions).roles_of(session.user) if acts else frozenset()
        return Viewer(session.user, Kind.MEMBER, roles=given | {Role.MEMBER}, session=by, is_guest=is_guest)

    def began(self, session: Session, *, is_guest: bool) -> None:
        """Know a session that this process has just stored, and end those that its member has too many of."""
        self._sessions.put(session.key, (session, is_guest))
        self._grown.add(session.user)
        self._writes.begin((session.user, ""), partial(self._end_surplus, session.user))

    def ended(self, keys: Sequence[SessionKey]) -> None:
        """Refuse from now on what this process has just ended.

        They are in use until their next lookup, because lookups of sessions in use are not limited. Otherwise their
        holders could exhaust the limit and so keep a socket open.
        """
        for key in keys:
            self._sessions.outdate(key)

    async def close(self) -> None:
        await self._writes.close()

    async def _read(self, keys: Sequence[SessionKey]) -> Mapping[SessionKey, tuple[Session | None, bool]]:
        """A session's absence is an answer too, since absence is not kept; a token's is drawn once."""
        found = await session_store.read_sessions(self._services.table, keys)
        return {key: found.get(key, (None, False)) for key in keys}

    def _note_use(self, used: Session, *, is_guest: bool) -> None:
        """Store the day of the use in the background, once a day and process at most unless that fails."""
        self._sessions.amend(used.key, (used, is_guest))
        self._writes.begin(used.key, partial(self._record_use, used))

    async def _record_use(self, used: Session) -> None:
        with deadline(WRITE_SECONDS):
            write = session_store.record_use(self._services.table, used)
            await unless_failed(write, "the use of a session was not stored", _log)

    async def _end_surplus(self, user: str) -> None:
        while user in self._grown:
            self._grown.discard(user)
            with deadline(WRITE_SECONDS):
                work = session_store.end_surplus(self._services.table, user, self._services.clock())
                await unless_failed(work, "old sessions were not ended", _log)


# ── signing out ──


async def sign_out(ctx: Context, /, *, everywhere: bool = False) -> bool:
    """End the viewer's session, or all of the member's; False if the viewer has none.

    The bearer of a provider's or a site's token has none of their own, and ends those there are with `everywhere`.
    """
    sessions, current = ctx.services.get(Sessions), ctx.viewer.session
    if not everywhere and current is None:
        return False
    if everywhere:
        user, own = ctx.member().id, None if current is None else current.key
        ended = await session_store.end_sessions(ctx.table, user, but=own)
        if own is not None:  # last, since a repeat asks by it
            ended += await session_store.end_sessions(ctx.table, user)
    else:
        assert current is not None  # noqa: S101 - it was looked at above
        await session_store.end_session(ctx.table, current.key)
        ended = [current.key]
    sessions.ended(ended)
    if current is not None and current.origin is None:
        ctx.cookie_session = ("", ctx.now())
    has_ended = current is not None or bool(ended)
    await ctx.unit.store_receipt(ctx.table, has_ended)
    return has_ended
