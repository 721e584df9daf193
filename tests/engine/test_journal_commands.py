"""What the command line changes is in the journal as what the API changes is, and webhooks are told of it."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from datastore.changes.occurrences import DELIVERY, OCCURRENCE, Delivery, Occurrence, Source, Webhook
from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import Table
from datastore.journal.webhooks import add_webhook
from resolvers.requests.context import utc_now
from resolvers.values.node_ids import node_id, parse_node_key
from server.settings import Settings
from tests.client import Client
from tests.command import on_table, ringside
from tests.jobs import SECRET
from tests.queries import UPDATE_PROFILE
from tests.season import EventEditor, in_hours, submit

COMMENT = {
    "product": "42",
    "language": "en",
    "rating": 5,
    "body": "Good.",
    "author": {"name": "Ada", "email": "ada@example.com"},
}


async def words(_: Client, folder: Path) -> list[str]:
    (folder / "Greetings.csv").write_text("term,definition\nhola,hello\ngracias,thanks\n")
    return ["import", "words", str(folder / "Greetings.csv")]


async def contenders(_: Client, folder: Path) -> list[str]:
    (folder / "contenders.csv").write_text("name\nAnn\nBea\n")
    return ["import", "contenders", str(folder / "contenders.csv")]


async def events(_: Client, folder: Path) -> list[str]:
    season = {"events": [{"name": "Show", "season": "2026", "startsAt": in_hours(24), "matches": []}]}
    (folder / "season.json").write_bytes(orjson.dumps(season))
    return ["import", "events", str(folder / "season.json")]


async def comments(_: Client, folder: Path) -> list[str]:
    lines = [{**COMMENT, "createdAt": f"2026-11-20T20:00:{number:02d}Z"} for number in range(30)]
    (folder / "comments.jsonl").write_bytes(b"\n".join(map(orjson.dumps, lines)))
    return ["import", "comments", str(folder / "comments.jsonl")]


async def score(client: Client, _: Path) -> list[str]:
    editor = EventEditor(client)
    event, [match] = await editor.card(10)
    await submit(client.member("ada"), event, [(match, 0)])
    await editor.lock(event)
    await editor.result(match, 0)
    return ["score", parse_node_key("Event", event)]


async def api_key(_: Client, __: Path) -> list[str]:
    return ["apikey", "create", "shop", "--role", "editor"]


def environment(settings: Settings, table: Table) -> dict[str, Any]:
    return on_table(settings.dynamodb_url, table.name, RINGSIDE_SECRETS=SECRET, RINGSIDE_LOG="error")


@pytest.mark.parametrize(
    ("prepare", "kinds"),
    [
        (words, {"wordList.created": 1, "words.added": 1}),
        (contenders, {"contender.added": 2}),
        (events, {"event.created": 1}),
        (comments, {"comments.imported": 2}),
        (score, {"event.scored": 1}),
        (api_key, {"apiKey.created": 1}),
    ],
)
async def test_commands_are_recorded_and_told(
    one_client: Client,
    settings: Settings,
    tmp_path: Path,
    prepare: Callable[[Client, Path], Awaitable[list[str]]],
    kinds: dict[str, int],
) -> None:
    """Each change in its own transaction, by no member; a webhook is told of it, also of a command's first change."""
    table = one_client.services.table
    command = await prepare(one_client, tmp_path)
    before = {occurrence.ulid async for occurrence in _occurrences(table)}
    hook = Webhook("h1", "https://receiver.invalid/", (), utc_now(), "secret")
    await add_webhook(table, hook, UnitOfWork.unkeyed(utc_now()))
    done = await asyncio.to_thread(ringside, *command, **environment(settings, table))
    assert done.returncode == 0, done.stderr
    recorded = [one async for one in _occurrences(table) if one.ulid not in before]
    assert Counter(one.kind for one in recorded) == kinds
    assert {(one.actor, one.source) for one in recorded} == {(None, Source.COMMAND)}
    deliveries: AsyncIterator[Delivery] = table.scan(DELIVERY, consistent=True)
    assert {one.ulid async for one in deliveries} == {one.ulid for one in recorded}


@pytest.mark.parametrize("prepare", [words, score])
async def test_a_command_is_recorded_as_the_operator_s_if_it_is_told_who_that_is(
    one_client: Client, settings: Settings, tmp_path: Path, prepare: Callable[[Client, Path], Awaitable[list[str]]]
) -> None:
    """`--as` takes the id of a member. An id of nobody, or of something else, is refused before anything is done."""
    table, ada = one_client.services.table, one_client.member("ada")
    member = (await ada.ask(UPDATE_PROFILE, input={"name": "Ada"}))["user"]["id"]
    command = await prepare(one_client, tmp_path)
    before = {occurrence.ulid async for occurrence in _occurrences(table)}
    for wrong in (node_id("User", "nobody"), node_id("Event", "ada"), "ada", ""):
        refused = await asyncio.to_thread(ringside, "--as", wrong, *command, **environment(settings, table))
        assert refused.returncode == 1, refused
        assert "id" in refused.stderr
    assert {occurrence.ulid async for occurrence in _occurrences(table)} == before
    done = await asyncio.to_thread(ringside, "--as", member, *command, **environment(settings, table))
    assert done.returncode == 0, done.stderr
    recorded = [one async for one in _occurrences(table) if one.ulid not in before]
    assert {(one.actor, one.source) for one in recorded} == {("User:ada", Source.COMMAND)}


def _occurrences(table: Table) -> AsyncIterator[Occurrence]:
    return table.scan(OCCURRENCE, consistent=True)
