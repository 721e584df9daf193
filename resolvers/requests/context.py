"""What a resolver may use: the services of the process, and the context of one request.

A resolver is a plain function. Its first parameter is the `Context`; a field of a record has the record second, both
positional-only; all other parameters are keyword arguments. A resolver returns records and raises refusals, and knows
nothing of GraphQL. `schema/framework/arguments.py` reads the annotations below to derive a field's arguments.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import Enum, StrEnum
from functools import partial
from typing import Annotated, Any, TypeVar, cast
from weakref import WeakValueDictionary

from datastore.changes.occurrences import Journal
from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import Rates, ReadCache, Reads, Table, Window, to_the_millisecond
from datastore.jobs.leases import Leases
from datastore.people import profiles as profile_store
from datastore.people.identities import IdentityKey, Proven
from datastore.people.profiles import Profile
from datastore.refusals import NotAllowed, NotSignedIn
from datastore.values.ids import Ids
from datastore.values.seal import Seal
from resolvers.live.topics import Live
from resolvers.requests.policy import Policy
from resolvers.values.network_addresses import network

# ── viewer ──

LONGEST_NAME = 80
FORMER_MEMBER = "Former member"
"""The name of those who wrote something and have no profile any more."""
NEW_PREFIX = "new-"
"""What the ids begin with of bearers who are not yet members."""
_LETTERS = "bcdfghjkmnpqrstvwxyz"
"""No vowels, so that four of them are hardly ever a word, and no l, which looks like other letters."""


class Role(StrEnum):
    """Permissions beyond reading. Every member is a MEMBER; an admin has all roles."""

    MEMBER = "member"
    MODERATOR = "moderator"
    EDITOR = "editor"
    ADMIN = "admin"


class Kind(StrEnum):
    """Identified by a token (member), by an API key (a machine), or by a cookie or the token of a visit (visitor)."""

    MEMBER = "member"
    KEY = "key"
    VISITOR = "visitor"


@dataclass(frozen=True, slots=True)
class SignedInBy:
    """The session by which a member is identified: what a browser or a program keeps after a sign-in."""

    key: tuple[str, str]
    at: datetime
    """When they signed in."""
    method: str
    """How they did: the value of a `SignInMethod`."""
    origin: str | None = None
    """The only origin on whose pages it counts; None for the service's own and for programs."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """A person or a machine, identified before the first resolver runs."""

    id: str
    kind: Kind
    name: str | None = None
    email: str | None = None
    roles: frozenset[Role] = frozenset()
    token_roles: frozenset[Role] = frozenset()
    """Those of `roles` that the token itself gives; the others can be taken away here."""
    verified_email: str | None = None
    """`email`, if the token's issuer, a provider or a site that is configured, says that it is the member's."""
    proven: Proven | None = None
    """Who they are, of a bearer who is nobody's member yet; `id` leads to nothing then."""
    identity: IdentityKey | None = None
    """By which the bearer of a token was found, who was a member before."""
    session: SignedInBy | None = None
    """None for the bearer of a provider's or a site's token."""
    is_guest: bool = False
    """Whether this member has a name alone."""

    @property
    def is_member(self) -> bool:
        """Whether this is a signed-in user, who may write in their own name."""
        return self.kind is Kind.MEMBER

    @property
    def member_id(self) -> str | None:
        """The id of the member; None for a visitor and the machine of an API key."""
        return self.id if self.is_member else None

    def is_user(self, user: str) -> bool:
        """Whether this is the member with this id, who may see and change what is their own."""
        return self.member_id == user

    @property
    def is_signed_in(self) -> bool:
        """Whether this is a member or the machine of an API key, either of which may have roles."""
        return self.kind is not Kind.VISITOR

    @property
    def node(self) -> str | None:
        """What the journal calls the viewer; None for a visitor."""
        if not self.is_signed_in:
            return None
        return f"{'User' if self.is_member else 'ApiKey'}:{self.id}"

    def may(self, role: Role) -> bool:
        """Whether the viewer has the role, or one that implies it. A visitor has no role, even if some are given."""
        if role is Role.MEMBER:
            return self.kind is Kind.MEMBER
        return self.kind is not Kind.VISITOR and (role in self.roles or Role.ADMIN in self.roles)


def member_name(seal: Seal, user: str, name: str | None) -> str:
    """The name shown to others. Without one, or one that repeats the id, "Member" and four letters of a keyed hash."""
    if name and name[:LONGEST_NAME] != user[:LONGEST_NAME]:
        return name[:LONGEST_NAME]
    number = int.from_bytes(seal.keyed_hash("member name", user.encode()))
    return "Member " + "".join(_LETTERS[number // len(_LETTERS) ** place % len(_LETTERS)] for place in range(4))


# ── context ──

K = TypeVar("K", bound=Hashable)
P = TypeVar("P")
V = TypeVar("V")

PROFILE_AGE = 10.0
"""Seconds for which others may see an old profile; the process that changes one shows the change at once."""
CHANGE_RATE = "600/minute"
RECENT = timedelta(minutes=15)
"""How old the sign-in of a session may be for what is worth more than a session."""
MEMBER_AGE = 24 * 3600.0
"""Seconds for which a profile is kept for those who ask for what does not change in it."""


@dataclass(frozen=True, slots=True)
class NodeOf:
    """Marks a parameter that takes the id of a node of this GraphQL type and receives its key.

    Without a type name it is an ID whose text the resolver parses itself: the id of any node, or an external name.
    """

    type_name: str | None = None


@dataclass(frozen=True, slots=True)
class BothWays:
    """Marks a window that also takes `last` and `before`."""


class Unset(Enum):
    """The value of an argument that the client left out, where that differs from null."""

    UNSET = "unset"


UNSET = Unset.UNSET
AnyId = Annotated[str, NodeOf()]
UserId = Annotated[str, NodeOf("User")]
BothWaysWindow = Annotated[Window, BothWays()]


def parse_given(**given: tuple[Any, Callable[[Any], Any]]) -> dict[str, Any]:
    """Of values with their parsers, those that the client has not left out, parsed; null stays null."""
    return {
        name: None if value is None else parse(value) for name, (value, parse) in given.items() if value is not UNSET
    }


def utc_now() -> datetime:
    return to_the_millisecond(datetime.now(UTC))


class Services:
    """The state that all requests of a process share."""

    def __init__(
        self,
        table: Table,
        seal: Seal,
        policy: Policy | None = None,
        *,
        clock: Callable[[], datetime] = utc_now,
        of_command: bool = False,
    ) -> None:
        self.table = table
        self.seal = seal
        self.policy = policy or Policy()
        self.clock = clock
        self.rates = Rates()
        self.live = Live()
        self.ids = Ids()
        self.operator: str | None = None
        """Whom the journal names for what a command does."""
        self.journal = Journal(self.policy.journal_days, lambda: self.ids.next(clock()), of_command=of_command)
        self.leases = Leases(table)
        self.activity: Counter[str] = Counter()
        """What this process has counted since it last reported it: `votes`, `comments` …"""
        self.cache = ReadCache()
        self.profiles: Reads[str, Profile] = self.cache.batches(
            "profiles", self._read_profiles, age=PROFILE_AGE, kept=MEMBER_AGE
        )
        self._parts: dict[Callable[..., Any], Any] = {}
        self._turns: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    async def _read_profiles(self, users: Sequence[str]) -> Mapping[str, Profile]:
        profiles = await profile_store.read_profiles(self.table, users)
        return {user: self.with_name(profile) for user, profile in profiles.items()}

    def with_name(self, profile: Profile) -> Profile:
        """The profile with the name that others see, which is never the id."""
        name = member_name(self.seal, profile.user, profile.name)
        return profile if name == profile.name else replace(profile, name=name)

    def unit(self, actor: str | None = None) -> UnitOfWork:
        """For a change outside of requests, by an actor that the journal names: without one, by the operator."""
        return UnitOfWork.unkeyed(self.clock(), self.journal, actor or self.operator)

    def get(self, kind: Callable[[Services], P]) -> P:
        """The process's instance of a part's cache or background task, created at the first call."""
        if kind not in self._parts:
            self._parts[kind] = kind(self)
        return cast("P", self._parts[kind])

    def reads(self, name: str, read: Callable[[Table, Sequence[K]], Awaitable[Mapping[K, V]]]) -> Reads[K, V]:
        """A kind of read that a part makes in one batch for all records of a page; declared at the first call."""
        if read not in self._parts:
            self._parts[read] = self.cache.batches(name, partial(read, self.table))
        return cast("Reads[K, V]", self._parts[read])

    def turn(self, kind: str, key: str) -> asyncio.Lock:
        """Held by one request at a time: transactions on the same items would only make each other fail."""
        return self._turns.setdefault((kind, key), asyncio.Lock())

    async def close(self) -> None:
        """End all subscriptions, then let the parts finish their background work."""
        await self.live.close()
        number = 0
        while number < len(self._parts):  # the work of one may be the first to use another
            part = list(self._parts.values())[number]
            if hasattr(part, "close"):
                await part.close()
            number += 1
        await self.journal.close()
        await self.cache.close()


def addressed_origin(scheme: str, host: str) -> str:
    """The origin that a request is addressed to: its scheme, or that of a socket's handshake, and its Host header."""
    return f"{scheme.replace('ws', 'http')}://{host.lower()}"


@dataclass(slots=True)
class Context:
    """One request: its viewer, the services, and its idempotency key."""

    services: Services
    viewer: Viewer
    address: str = ""
    """The client's network address; for rate limits only."""
    page_origin: str = ""
    """The `Origin` of the page that sends the request, which no page can choose; programs need not name one."""
    own_origin: str = ""
    """The origin that the request is addressed to."""
    language: str = ""
    """The `Accept-Language` of the client."""
    sets_cookies: bool = False
    """Whether the answer can set a cookie, as one over HTTP can."""
    cookie_session: tuple[str, datetime] | None = None
    """The session that the answer's cookie holds from now on, and until when; without a token the cookie is deleted.

    It is kept for as long as the session may last. One that has ended is deleted by the next answer.
    """
    unit: UnitOfWork = field(init=False)
    notes: dict[str, Any] = field(default_factory=dict)
    """Content of the answer's `extensions`, for viewers who may see it (the comments' plan)."""
    refused: bool = False
    """Whether a mutation of the request was refused."""
    table_failure: str = ""
    """If the table failed a mutation of the request: the code that a query gets then, OVERLOADED or UNAVAILABLE."""
    explain: bool = False
    """Whether the answer explains how it was read."""
    selected: Callable[[], frozenset[str]] = frozenset
    """The fields that the client asks of the mutation's answer, so that they can be read before it is carried out."""
    last_event: str | None = None
    """The id of the last event that the client of a stream received before it reconnected."""
    event_id: str | None = None
    """The id of the event that a stream sends; a client that reconnects returns it as `last_event`."""

    @property
    def table(self) -> Table:
        return self.services.table

    @property
    def client(self) -> str:
        """For whom the request's calls to the table take turns: a member, an API key, or a visitor's network."""
        return self.viewer.id if self.viewer.is_signed_in else network(self.address)

    def now(self) -> datetime:
        return self.services.clock()

    def new_id(self) -> str:
        return self.services.ids.next(self.services.clock())

    @property
    def is_own_page(self) -> bool:
        """Whether a page of the service's own origin sends the request."""
        return self.services.policy.is_own(self.page_origin, self.own_origin)

    def signed_in(self) -> Viewer:
        """The viewer, who must be a member or the machine of an API key."""
        if not self.viewer.is_signed_in:
            raise NotSignedIn
        return self.viewer

    def member(self) -> Viewer:
        """The viewer, who must be a member."""
        if not self.signed_in().is_member:
            raise NotSignedIn("This needs a signed-in member, which an API key is not.")
        return self.viewer

    def count_change(self, of: str) -> None:
        """Count a change by the viewer; RateLimited if they have made too many of these. Each leaves something."""
        self.services.rates.hit(CHANGE_RATE, of, self.viewer.id)

    def with_role(self, role: Role) -> Viewer:
        """The viewer, who must have this role."""
        viewer = self.signed_in()
        if not viewer.may(role):
            raise NotAllowed(f"This is for {role.value}s only.")
        return viewer

    def require_recent_sign_in(self) -> None:
        """NotSignedIn if the viewer's session is older than what is about to be done allows.

        A session may be left open on a machine that others use. Other credentials are not asked, nor are guests, who
        cannot sign in again.
        """
        session = None if self.viewer.is_guest else self.viewer.session
        if session is not None and self.now() - session.at > RECENT:
            raise NotSignedIn(
                f"Sign in again first: this asks for a sign-in of the last {RECENT // timedelta(minutes=1)} minutes."
            )


def server_time(ctx: Context, /) -> datetime:
    return ctx.now()
