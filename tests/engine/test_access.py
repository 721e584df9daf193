"""The IAM policies: each role can do its work with its own, and none has a permission that it does not use."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from datastore.changes.occurrences import DELIVERY, Occurrence, new_delivery
from datastore.dynamo import Table, open_table
from datastore.dynamo.declaration import create
from datastore.values.ids import Ids
from resolvers.requests.context import utc_now
from resolvers.values.node_ids import node_id, parse_node_key
from server.settings import Settings
from tests.authorisation.rules import Viewer
from tests.authorisation.world import World
from tests.client import Client, serving
from tests.command import on_table, ringside
from tests.deployment_files import ROLES, policy
from tests.engines import RunningEngine
from tests.jobs import ended
from tests.mail_server import Mailbox, mail_server
from tests.queries import CAST_VOTE, DRAW_MATCHUP
from tests.restricting_proxy import ARN, RestrictingProxy, permissions
from tests.voting import add_contenders, let_settle_nothing, vote

SECRET = "a secret that has no comma and is long enough"
INDEXES = "{ leaderboard(first: 1) { nodes { rank } } topProducts(first: 1) { nodes { product } } }"
JOBS = (("emails",), ("score", "{scored}"), ("webhooks", "deliver"))
AUDITS = (("table", "check"), ("audit",), ("export", "comments"), ("export", "events"), ("export", "votes"))


@pytest.fixture
async def empty_table(default_engine: RunningEngine, table_name: str) -> AsyncIterator[Table]:
    """A table as CloudFormation creates it: without the item that names its layout."""
    async with open_table(table_name, url=default_engine.url) as table:
        await create(table)
        yield table
        await table.client.delete_table(TableName=table_name)


@asynccontextmanager
async def restricted(engine: RunningEngine, role: str) -> AsyncIterator[RestrictingProxy]:
    async with RestrictingProxy(engine.url, policy(role, ARN)) as proxy:
        yield proxy
    assert proxy.refused == set(), role


async def run(proxy: RestrictingProxy, table: Table, *arguments: str, **more: str) -> None:
    """A command, which must succeed."""
    variables = on_table(proxy.url, table.name, RINGSIDE_SECRETS=SECRET, COLUMNS="1000", **more)
    done = await asyncio.to_thread(ringside, *arguments, **variables)
    assert done.returncode == 0, f"{arguments} {done.stdout} {done.stderr} {proxy.refused}"


async def let_a_message_wait(table: Table, webhook: str) -> None:
    """That has failed for so long that it is given up when it fails again."""
    now = utc_now()
    since = now - timedelta(days=2)
    delivery = new_delivery(webhook, Occurrence(Ids().next(since), "member.erased", "User:admin"))
    await table.write(DELIVERY.put(replace(delivery, since=since, next_at=now)))


async def test_each_role_can_do_its_work_with_its_policy_and_has_no_other_permission(
    default_engine: RunningEngine, empty_table: Table, tmp_path: Path
) -> None:
    """The service from its first start on, with objects of all four parts; then commands on what it wrote."""
    used, mailbox = {}, Mailbox()
    async with restricted(default_engine, "service") as proxy:
        settings = Settings(dynamodb_url=proxy.url, table=empty_table.name, secrets=(SECRET,), introspection="on")
        async with serving(settings.model_copy(update={"request_timeout": 60.0})) as visitor:
            world = await World.create(visitor)
            await visitor.ask(INDEXES)
            ballot = await visitor.ask(DRAW_MATCHUP)
            assert "code" not in await visitor.ask(CAST_VOTE, token=ballot["token"], verdict="LEFT")
            erased = {"user": node_id("User", "stranger"), "contributions": "REMOVE"}
            job = await world.do(Viewer.ADMIN, "eraseMember", "MemberErasure job { id }", **erased)
            assert (await ended(world.clients[Viewer.ADMIN], job["id"]))["state"] == "DONE"
        used["service"] = proxy.used
    await let_a_message_wait(empty_table, parse_node_key("Webhook", world.ids["webhook"]))
    for role, commands in (("jobs", JOBS), ("auditor", AUDITS)):
        async with restricted(default_engine, role) as proxy, mail_server(mailbox, tmp_path) as url:
            for command in commands:
                await run(proxy, empty_table, *(part.format(**world.ids) for part in command), RINGSIDE_SMTP_URL=url)
            used[role] = proxy.used
    assert mailbox.recipients == ["author@example.org"]
    for role in ROLES:
        assert sorted(used[role]) == sorted(permissions(policy(role, ARN))), role


async def test_a_role_that_lacks_a_permission_is_refused_as_dynamodb_refuses_it(
    default_engine: RunningEngine, one_table: Table
) -> None:
    """The control of the test above: the proxy refuses, and the command says which permission is missing."""
    lacking = policy("jobs", ARN)
    lacking["Statement"][0]["Action"].remove("dynamodb:ConditionCheckItem")
    async with RestrictingProxy(default_engine.url, lacking) as proxy:
        with pytest.raises(AssertionError, match="is not authorized to perform: dynamodb:ConditionCheckItem"):
            await run(proxy, one_table, "emails")
        assert proxy.refused == {("dynamodb:ConditionCheckItem", ARN)}


@pytest.mark.parametrize("action", ["DescribeTable", "ConditionCheckItem", "GetItem"])
async def test_a_missing_permission_is_not_taken_for_a_missing_table_or_engine(
    default_engine: RunningEngine, one_table: Table, action: str
) -> None:
    """A role that lacks a permission is told of the policies, not to make a table or to choose another engine."""
    lacking = policy("auditor", ARN)
    lacking["Statement"][0]["Action"].remove(f"dynamodb:{action}")
    async with RestrictingProxy(default_engine.url, lacking) as proxy:
        variables = on_table(proxy.url, one_table.name, COLUMNS="1000")
        refused = await asyncio.to_thread(ringside, "table", "check", **variables)
    assert refused.returncode == 1
    assert f"not authorized to perform: dynamodb:{action}" in refused.stderr
    assert "deploy/iam" in refused.stderr
    assert "table create" not in refused.stderr
    assert "transactions" not in refused.stderr


async def test_an_auditor_is_told_of_votes_that_it_may_not_settle(
    one_client: Client, default_engine: RunningEngine, one_table: Table
) -> None:
    """A process that was killed has left them: the counts that the board shows are late, and none is wrong."""
    await add_contenders(one_client, "a", "b")
    let_settle_nothing(one_client)
    await vote(one_client.visitor())
    async with RestrictingProxy(default_engine.url, policy("auditor", ARN)) as proxy:
        variables = on_table(proxy.url, one_table.name, COLUMNS="1000")
        audited = await asyncio.to_thread(ringside, "audit", **variables)
    found = [line for line in audited.stderr.splitlines() if line.startswith("voting: ")]
    assert len(found) == 1
    assert "main: votes that a process has left are not settled" in found[0]
    assert "Ask the service for the board" in found[0]


def test_the_auditor_can_write_nothing() -> None:
    """ConditionCheckItem only compares an item, inside a transaction."""
    reads = {"BatchGetItem", "ConditionCheckItem", "DescribeTable", "DescribeTimeToLive", "GetItem", "Query", "Scan"}
    assert {action.removeprefix("dynamodb:") for action, _ in permissions(policy("auditor"))} == reads
