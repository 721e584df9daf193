"""What a resolver may reach: the house it works in, and who is asking.

A resolver is a plain function. Its first parameter is the `Context`; a field of a record has the record second, both
positional-only; everything else is an argument by name. It returns records and raises refusals, and knows nothing of
GraphQL. `schema/arguments.py` reads the annotations below to make arguments of a resolver's parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Annotated, Any, TypeVar, cast

from datastore import people as people_store
from datastore.dynamo import Table, Window
from datastore.ids import Ids
from datastore.people import Profile
from datastore.receipts import Once
from datastore.refusals import NotAllowed, NotSignedIn
from datastore.seal import Seal
from resolvers.live.topics import Live
from resolvers.loading.loader import Loader
from resolvers.loading.registry import Loaders
from resolvers.policy import Policy
from resolvers.rate_limits import Rates
from resolvers.viewer import Role, Viewer

P = TypeVar("P")

PROFILES_KEPT = 10.0
"""Seconds a profile may be stale for others; its owner sees changes at once."""


@dataclass(frozen=True, slots=True)
class NodeOf:
    """Marks a parameter that takes the id of a node of this GraphQL type and receives its key.

    Without a type name it is an ID whose text the resolver reads itself: any node's, or a name from outside.
    """

    type_name: str | None = None


@dataclass(frozen=True, slots=True)
class BothWays:
    """Marks a window that can also be asked for from the end (`last`, `before`)."""


class Unset(Enum):
    """What a parameter holds when the client did not give it, where that differs from giving null."""

    UNSET = "\x00unset"  # in the hashes of receipts, where no text that was validated equals it


UNSET = Unset.UNSET
AnyId = Annotated[str, NodeOf()]
UserId = Annotated[str, NodeOf("User")]
BothWaysWindow = Annotated[Window, BothWays()]


def utc_now() -> datetime:
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)


class Services:
    """What all requests of a process share."""

    def __init__(
        self, table: Table, seal: Seal, policy: Policy | None = None, *, clock: Callable[[], datetime] = utc_now
    ) -> None:
        self.table = table
        self.seal = seal
        self.policy = policy or Policy()
        self.clock = clock
        self.rates = Rates()
        self.live = Live()
        self.ids = Ids()
        self.loaders = Loaders()
        profiles: Loader[str, Profile] = Loader(self._read_profiles, ttl=PROFILES_KEPT)
        self.profiles = self.loaders.add("profiles", profiles)
        self._parts: dict[Callable[..., Any], Any] = {}

    async def _read_profiles(self, users: Sequence[str]) -> Mapping[str, Profile]:
        return await people_store.profiles(self.table, users)

    def get(self, kind: Callable[[Services], P]) -> P:
        """What one part keeps for this process (a cache, a background task's state), made when first asked for."""
        if kind not in self._parts:
            self._parts[kind] = kind(self)
        return cast("P", self._parts[kind])

    async def close(self) -> None:
        """Ends what listens, and lets parts finish what they do in the background."""
        await self.live.close()
        for part in self._parts.values():
            if hasattr(part, "close"):
                await part.close()
        await self.loaders.close()


@dataclass(slots=True)
class Context:
    """One request: who asks, in which house, and its claim to be carried out once."""

    services: Services
    viewer: Viewer
    address: str = ""
    """Where the request came from; for limits only."""
    once: Once = field(init=False)
    notes: dict[str, Any] = field(default_factory=dict)
    """What the answer's `extensions` tell those who may know (the comments' plan)."""
    explain: bool = False
    """Whether the answer tells how it came about."""
    last_event: str | None = None
    """The mark of the last event that a client of a stream has received before."""
    mark: str | None = None
    """Where a stream stands: sent with its event, and what the client sends back as `last_event`."""

    @property
    def table(self) -> Table:
        return self.services.table

    def now(self) -> datetime:
        return self.services.clock()

    def new_id(self) -> str:
        return self.services.ids.next(self.services.clock())

    def member(self) -> Viewer:
        """Who is asking, if signed in."""
        if not self.viewer.is_member:
            raise NotSignedIn
        return self.viewer

    def with_role(self, role: Role) -> Viewer:
        """Who is asking, if they have this role."""
        viewer = self.member()
        if not viewer.may(role):
            message = f"This needs the role {role.value}."
            raise NotAllowed(message)
        return viewer
