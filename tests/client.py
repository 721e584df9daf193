"""A client of the service in this process: `await client.member("ada").ask("{ viewer { id } }")`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import httpx
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from datastore.dynamo import Table
from resolvers.jobs.running import JobRunner
from resolvers.requests.context import Role, Services
from server.app import application
from server.auth.tokens import mint
from server.settings import Settings
from server.telemetry import Outcome
from tests.members import introduce
from tests.waiting import caught_up


class Asks(Protocol):
    """A client of the service, in this process or over the network."""

    async def ask(self, query: str, **variables: Any) -> Any:
        """The data of an answer without errors; of a single field, its value."""


class UnexpectedErrors(AssertionError):
    """The answer has errors where none were expected."""


@dataclass
class Served:
    """An application whose lifespan runs; its requests get the lifespan's state, as from a server."""

    app: ASGIApp
    state: dict[str, Any] = field(default_factory=dict)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app({**scope, "state": dict(self.state)}, receive, send)


@asynccontextmanager
async def lifespan(app: ASGIApp) -> AsyncIterator[Served]:
    """Starts the application, and shuts it down after the block."""
    served = Served(app)
    received: asyncio.Queue[Message] = asyncio.Queue()
    sent: asyncio.Queue[Message] = asyncio.Queue()
    running = asyncio.ensure_future(app({"type": "lifespan", "state": served.state}, received.get, sent.put))
    await received.put({"type": "lifespan.startup"})
    if (await sent.get())["type"] != "lifespan.startup.complete":
        await running  # raises what went wrong
    try:
        yield served
    finally:
        await received.put({"type": "lifespan.shutdown"})
        await running


class Client:
    """A visitor with a cookie, or a member with a token; a `user` is introduced by the first request."""

    def __init__(
        self, served: Served, settings: Settings, token: str | None = None, user: Mapping[str, Any] | None = None
    ) -> None:
        self.served = served
        self.settings = settings
        self._user = user
        headers = {"authorization": f"Bearer {token}"} if token else {}
        self.http = httpx.AsyncClient(
            transport=httpx.ASGITransport(served),
            base_url="http://ringside.test",
            headers=headers,
            timeout=120,
            event_hooks={"request": [self._introduce]},
        )

    async def _introduce(self, _: httpx.Request) -> None:
        user, self._user = self._user, None
        if user is not None:
            services = self.services
            made = await introduce(
                services.table, user["id"], name=user["name"], email=user["email"], now=services.clock()
            )
            for profile in made:  # the process that makes a member knows them
                services.profiles.put(profile.user, services.with_name(profile))

    @property
    def services(self) -> Services:
        """The service's own state, for tests that need more than its answers."""
        services: Services = self.served.state["services"]
        return services

    def member(self, user: str, *roles: Role, name: str | None = None, email: str | None = None) -> Client:
        """Another client, signed in as a member whose id is the name."""
        name = name or user.title()
        token = mint(self.settings, user, name=name, email=email, roles=roles)
        return Client(self.served, self.settings, token, {"id": user, "name": name, "email": email})

    def visitor(self) -> Client:
        """Another client, a new visitor."""
        return Client(self.served, self.settings)

    def keep_what_it_read(self) -> None:
        """Nothing that its cache knows, such as names, grows older, however slow the machine is."""
        now = self.services.cache.clock()
        self.services.cache.clock = lambda: now

    async def caught_up(self, promise: str) -> None:
        """Wait until indexes and plain reads show everything written so far; `promise` says what that makes true."""
        await caught_up(f"{self.settings.dynamodb_url}", promise)

    async def post(self, query: str, **variables: Any) -> httpx.Response:
        return await self.http.post("/graphql", json={"query": query, "variables": variables})

    async def answer(self, query: str, **variables: Any) -> dict[str, Any]:
        """The complete answer, with its errors."""
        body: dict[str, Any] = (await self.post(query, **variables)).json()
        return body

    async def ask(self, query: str, **variables: Any) -> Any:
        """The data of an answer without errors; of a single field, its value."""
        body = await self.answer(query, **variables)
        if "errors" in body:
            raise UnexpectedErrors(body["errors"])
        data = body["data"]
        return next(iter(data.values())) if len(data) == 1 else data

    async def counted(self, outcome: Outcome) -> int:
        """How many requests have ended so, as the service's metrics tell it."""
        lines = (await self.http.get("/metrics")).text.splitlines()
        ended = [line for line in lines if line.startswith("ringside_requests_total{") and f'"{outcome}"' in line]
        return sum(int(float(line.rpartition(" ")[2])) for line in ended)

    async def code(self, query: str, **variables: Any) -> str:
        """The code of the answer's first error, or of its refusal."""
        body = await self.answer(query, **variables)
        if "errors" in body:
            return str(body["errors"][0]["extensions"]["code"])
        refused = next(iter(body["data"].values()))
        return str(refused["code"])


@asynccontextmanager
async def serving(settings: Settings, table: Table | None = None) -> AsyncIterator[Client]:
    """The service of these settings in this process. Its table must exist; one that is passed is open already.

    A request waits for its job as long as it may, on a busy machine too. A test that wants less of it says so.
    """
    async with lifespan(application(settings, table)) as served:
        client = Client(served, settings)
        client.services.get(JobRunner).answer_seconds = settings.request_timeout
        yield client


async def pages(client: Asks, query: str, *, size: int = 2, **variables: Any) -> list[Any]:
    """All nodes of the connection that is the query's innermost field, read page by page."""
    nodes: list[Any] = []
    after = None
    while True:
        page = await client.ask(query, first=size, after=after, **variables)
        while "pageInfo" not in page:
            page = next(iter(page.values()))
        nodes += page["nodes"]
        after = next_cursor(page, after)
        if after is None:
            return nodes


def next_cursor(page: Mapping[str, Any], after: str | None) -> str | None:
    """What to ask for the next page with, or None; fails where a client would ask for the same page for ever."""
    if not page["pageInfo"]["hasNextPage"]:
        return None
    cursor = page["pageInfo"]["endCursor"]
    assert cursor not in (None, after), "there is a next page, but no cursor leads to it"
    return str(cursor)
