"""What every process keeps whole: read again once another process has changed it, and not otherwise."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from datastore.changes.revisions import Watched
from datastore.dynamo import StorageFailed
from resolvers.live import watch
from resolvers.live.watch import Refresh, Watch
from resolvers.requests.context import Role, Services
from resolvers.values.node_ids import node_id
from tests.client import Client, serving
from tests.comments import post
from tests.queries import REINSTATE, SET_HOLD_RULES, SUSPEND, mutation
from tests.waiting import until

ADD_WEBHOOK = mutation("addWebhook", "WebhookAdded", "webhook { id }")
REMOVE_WEBHOOK = mutation("removeWebhook", "WebhookRemoved", "deletedId")
ROTATE_SECRET = mutation("rotateWebhookSecret", "WebhookSecretRotated", "secret")


class Looking:
    """A watch whose process keeps all of it, and what it has read since that was last asked."""

    def __init__(self, services: Services) -> None:
        self.failing: set[Watched] = set()
        self._read: list[Watched] = []
        everything: tuple[Watched, ...] = ("rights", "hold_rules", "webhooks")
        self._watch = Watch(
            services.table, services.journal, {watched: self._refresh(watched) for watched in everything}
        )

    def _refresh(self, watched: Watched) -> Refresh:
        async def refresh() -> None:
            self._read.append(watched)
            if watched in self.failing:
                raise StorageFailed("the disk is full")

        return refresh

    async def look(self) -> list[Watched]:
        self._read = []
        await self._watch.look()
        return self._read

    async def know_everything(self) -> None:
        await until(self._nothing_read, "nothing is left to read")

    async def _nothing_read(self) -> bool:
        return await self.look() == []


async def change(client: Client) -> AsyncIterator[Watched]:
    """Each kind of change, one after the other."""
    root, moderator = client.member("root", Role.ADMIN), client.member("mia", Role.MODERATOR)
    await post(client.member("ada"))
    ada = node_id("User", "ada")
    await moderator.ask(SUSPEND, input={"user": ada, "reason": "Spam"})
    yield "rights"
    await moderator.ask(REINSTATE, input={"user": ada})
    yield "rights"
    await root.ask(SET_HOLD_RULES, input={"rules": [{"name": "Links", "links": 1}], "revision": 0})
    yield "hold_rules"
    webhook = (await root.ask(ADD_WEBHOOK, input={"url": "https://8.8.8.8/", "kinds": []}))["webhook"]["id"]
    yield "webhooks"
    await root.ask(ROTATE_SECRET, input={"webhook": webhook})
    yield "webhooks"
    await root.ask(REMOVE_WEBHOOK, input={"webhook": webhook})
    yield "webhooks"


@pytest.mark.lagging
async def test_what_has_changed_is_read_and_nothing_else(client: Client) -> None:
    """At two looks, since the items of a transaction may be seen one after the other while it ends."""
    looking = Looking(client.services)
    assert await looking.look() == ["rights", "hold_rules", "webhooks"]
    await looking.know_everything()
    async for watched in change(client):
        assert [await looking.look() for _ in range(3)] == [[watched], [watched], []]


async def test_what_could_not_be_read_is_read_at_the_next_look(one_client: Client) -> None:
    """And holds up nothing else."""
    looking = Looking(one_client.services)
    await looking.know_everything()
    looking.failing.add("rights")
    async for _ in change(one_client):
        pass
    assert [await looking.look() for _ in range(3)] == [["rights", "hold_rules", "webhooks"]] * 2 + [["rights"]]
    looking.failing.clear()
    assert [await looking.look() for _ in range(3)] == [["rights"], ["rights"], []]


async def test_webhooks_stay_known_while_nothing_changes(one_client: Client) -> None:
    """A look that finds nothing new says so of all of them, at the moment when it began."""
    services = Services(one_client.services.table, one_client.services.seal)
    looking = Looking(services)
    assert await looking.look() != []
    await looking.know_everything()
    assert services.journal.is_current
    await services.close()


async def test_a_process_without_webhooks_learns_of_the_first_one(one_client: Client) -> None:
    """Added through another process; what happens in the first is told to it."""
    async with serving(one_client.settings) as elsewhere, _added(one_client):
        await until(lambda: elsewhere.services.journal.has_webhooks, "the other process knows it", pause=0.1)


@asynccontextmanager
async def _added(client: Client) -> AsyncIterator[None]:
    root = client.member("root", Role.ADMIN)
    added = await root.ask(ADD_WEBHOOK, input={"url": "https://8.8.8.8/", "kinds": []})
    yield
    await root.ask(REMOVE_WEBHOOK, input={"webhook": added["webhook"]["id"]})


def test_a_process_looks_often_enough() -> None:
    """Every process and open socket notices within half a minute: two looks, one of which may fail."""
    assert 2 * watch.LOOK_SECONDS < 30
