"""Season files and scoring from the command line."""

import asyncio
from pathlib import Path
from typing import Any

import orjson

from datastore.changes.occurrences import MOST_WEBHOOKS, Webhook
from datastore.dynamo import Table
from datastore.journal.webhooks import add_webhook
from datastore.pickem.events import Event, create_event
from resolvers.pickem.rules import MOST_MATCHES
from resolvers.pickem.season_files import SeasonStore, read_season_events, season_document, season_rows
from resolvers.requests.context import Services, utc_now
from resolvers.transfer.loop import OnProblem, import_records
from resolvers.values.node_ids import node_id
from server.settings import Settings
from tests.audits import breaches_in
from tests.client import Client
from tests.command import on_table, ringside
from tests.conftest import create_table
from tests.engines import RunningEngine
from tests.killed import killed_at
from tests.lagging import Lag
from tests.lagging.service import lagging_services
from tests.queries import UPDATE_EVENT
from tests.season import EventEditor, in_hours, submit

SEASON: dict[str, Any] = {
    "events": [
        {
            "name": "Past",
            "season": "2026",
            "startsAt": "2026-11-01T20:00:00Z",
            "description": "The first evening.",
            "place": "Vienna",
            "imageUrl": "https://images.example.com/past.png",
            "tieBreak": {"question": "Minutes of the main event", "unit": "minutes", "answer": 21.5},
            "matches": [
                {
                    "name": "Main",
                    "points": 25,
                    "teams": [{"members": ["A"]}, {"members": ["B"]}],
                    "result": {"outcome": "WON", "winner": 0},
                }
            ],
        },
        {"name": "Next", "season": "2027", "startsAt": "2096-11-01T20:00:00Z"},
    ]
}


async def test_a_season_is_imported_and_exported(one_table: Table, settings: Settings, tmp_path: Path) -> None:
    """Imported, exported, scored; what cannot be read is named, and then nothing is written."""
    variables = on_table(settings.dynamodb_url, one_table.name, RINGSIDE_IMAGE_HOSTS="images.example.com")
    file, copy = tmp_path / "season.json", tmp_path / "copy.json"
    file.write_bytes(orjson.dumps(SEASON))
    assert "2 events were created, 0 existed already" in ringside("import", "events", str(file), **variables).stdout
    assert ringside("export", "events", "--season", "2026", str(copy), **variables).returncode == 0
    [event] = orjson.loads(copy.read_bytes())["events"]
    assert (event["name"], event["state"]) == ("Past", "LOCKED")
    assert event["matches"][0]["result"] == {"outcome": "WON", "winner": 0}
    assert (event["description"], event["place"]) == ("The first evening.", "Vienna")
    assert event["tieBreak"] == SEASON["events"][0]["tieBreak"]
    assert event["imageUrl"] == "https://images.example.com/past.png"
    unknown = ringside("export", "events", "--season", "nope", str(copy), **variables)
    assert (unknown.returncode, unknown.stderr.strip()) == (1, "There is no event of the season nope.")
    assert orjson.loads(copy.read_bytes())["events"] == [event]
    scored = ringside("score", event["id"], **variables)
    assert (scored.returncode, scored.stdout.strip()) == (0, "Past: 0 predictions are scored.")
    file.write_bytes(orjson.dumps({"events": [*SEASON["events"], {"name": "Broken"}]}))
    broken = ringside("import", "events", str(file), **variables)
    assert broken.returncode == 1
    assert (
        "events.2: startsAt: write a text, in quotation marks\nNot valid: 1 events. Nothing was imported."
        in broken.stderr
    )
    elsewhere = {**variables, "RINGSIDE_IMAGE_HOSTS": "other.example.com"}
    refused = ringside("import", "events", str(copy), **elsewhere)
    assert refused.returncode == 1
    assert "events.0: imageUrl: Pictures may come from these hosts only: other.example.com" in refused.stderr


async def test_the_longest_card_is_imported_where_ten_webhooks_want_to_know(one_client: Client) -> None:
    """A transaction has at most 100 writes; the event then takes predictions as any other."""
    services, table = one_client.services, one_client.services.table
    for _ in range(MOST_WEBHOOKS):
        webhook = Webhook(services.ids.next(utc_now()), "https://127.0.0.1:1/", (), utc_now(), "a secret")
        await add_webhook(table, webhook, services.unit())
    await services.journal.learn(table)
    match = {"name": "Main", "points": 25, "teams": [{"members": ["A"]}, {"members": ["B"]}]}
    long = {"name": "Long", "season": "2096", "startsAt": "2096-11-01T20:00:00Z", "matches": [match] * MOST_MATCHES}
    rows = season_rows({"events": [long]})
    assert (await import_records(rows, SeasonStore(services), OnProblem.REFUSE)).added == 1
    [card] = await read_season_events(table, None)
    assert len(card.matches) == MOST_MATCHES
    match_id = node_id("Match", f"{card.event.id}:{card.event.card[0]}")
    await submit(one_client.member("ada"), node_id("Event", card.event.id), [(match_id, 0)])
    assert await breaches_in(services) == []


async def test_of_two_imports_of_a_season_at_once_one_may_be_killed(one_client: Client) -> None:
    """Before, in or after one of its events: each event is there once, with its matches."""
    services = one_client.services
    match = {"name": "Main", "points": 25, "teams": [{"members": ["A"]}, {"members": ["B"]}]}
    events = [
        {"name": f"Evening {day}", "season": "2096", "startsAt": f"2096-11-0{day}T20:00:00Z", "matches": [match] * day}
        for day in range(1, 5)
    ]

    async def run() -> int:
        rows = season_rows({"events": events})
        return (await import_records(rows, SeasonStore(services), OnProblem.REFUSE)).added

    for write in range(3):
        with killed_at(services.table, write):
            await asyncio.gather(run(), run(), return_exceptions=True)
    await asyncio.gather(run(), run())
    assert [len(card.matches) for card in await read_season_events(services.table, None)] == [1, 2, 3, 4]
    assert await run() == 0


async def test_the_name_of_an_event_is_printed_as_it_is(one_client: Client, tmp_path: Path) -> None:
    """What looks like the console's markup, or the name of an emoji, is part of the name."""
    settings = one_client.settings
    variables = on_table(settings.dynamodb_url, settings.table, RINGSIDE_IMAGE_HOSTS="images.example.com")
    file = tmp_path / "season.json"
    file.write_bytes(orjson.dumps({"events": [{**SEASON["events"][0], "name": "Finale [/live] :cat:"}]}))
    assert ringside("import", "events", str(file), **variables).returncode == 0
    [event] = orjson.loads(ringside("export", "events", **variables).stdout)["events"]
    scored = ringside("score", event["id"], **variables)
    assert (scored.returncode, scored.stdout) == (0, "Finale [/live] :cat:: 0 predictions are scored.\n"), scored.stderr


async def test_an_event_that_has_a_control_character_in_its_name_is_scored_and_exported(
    one_client: Client, tmp_path: Path
) -> None:
    """Such names were accepted once. The terminal gets none of them, the file has the name as it is."""
    settings, services, name = one_client.settings, one_client.services, "Rev\u202eolution\x1b[31m"
    now = services.clock()
    event = Event(services.ids.next(now), name, "2026", now, now)
    await create_event(services.table, event.locked().reveal(now), (), services.unit())
    seen = await one_client.ask("query ($id: ID!) { event(id: $id) { name } }", id=node_id("Event", event.id))
    assert seen == {"name": name}
    variables = on_table(settings.dynamodb_url, settings.table)
    scored = ringside("score", event.id, **variables)
    assert (scored.returncode, scored.stdout) == (0, "Rev olution [31m: 0 predictions are scored.\n"), scored.stderr
    exported = ringside("export", "events", **variables)
    assert [found["name"] for found in orjson.loads(exported.stdout)["events"]] == [name]
    file = tmp_path / "season.json"
    file.write_text(exported.stdout, encoding="utf-8")
    refused = ringside("import", "events", str(file), **variables)
    assert "events.0: name: A name here has 1 to 200 characters" in refused.stderr


async def test_an_export_is_imported_with_the_states_of_its_events(
    one_client: Client, default_engine: RunningEngine, settings: Settings, tmp_path: Path
) -> None:
    """Cancelled ones, and those that were locked, also scored, before their start."""
    editor = EventEditor(one_client)
    await editor.event("Next", starts=in_hours(10))
    cancelled, _ = await editor.card(10, name="Cancelled", starts=in_hours(20))
    await editor.client.ask(UPDATE_EVENT, input={"event": cancelled, "cancelled": True})
    for name, hours in (("Locked", 30), ("Scored", 40)):
        event, [match] = await editor.card(10, name=name, starts=in_hours(hours))
        await editor.lock(event)
        await editor.result(match, 1)
    await editor.score(event)
    file, twin = tmp_path / "season.json", f"{settings.table}-twin"
    document = season_document(await read_season_events(one_client.services.table, None))
    file.write_bytes(orjson.dumps(document))
    variables = {"RINGSIDE_DYNAMODB_URL": settings.dynamodb_url, "RINGSIDE_SECRETS": "s" * 48}
    async with create_table(twin, default_engine.url) as table:
        imported = ringside("import", "events", str(file), **variables, RINGSIDE_TABLE=twin)
        assert "4 events were created, 0 existed already" in imported.stdout, imported.stderr
        services = Services(table, settings.seal())
        again = season_document(await read_season_events(table, None))
        assert [event["state"] for event in again["events"]] == ["UPCOMING", "CANCELLED", "LOCKED", "LOCKED"]
        assert again["events"] == [*document["events"][:3], {**document["events"][3], "state": "LOCKED"}]
        assert await breaches_in(services) == []


async def test_scoring_without_all_results_must_be_confirmed(
    one_table: Table, settings: Settings, tmp_path: Path
) -> None:
    """The command refuses it like the mutation, and takes an option."""
    variables = on_table(settings.dynamodb_url, one_table.name)
    [past, _] = SEASON["events"]
    open_match = {name: value for name, value in past["matches"][0].items() if name != "result"}
    bare = {name: past[name] for name in ("name", "season", "startsAt")}
    file = tmp_path / "season.json"
    file.write_bytes(orjson.dumps({"events": [{**bare, "matches": [open_match]}]}))
    ringside("import", "events", str(file), **variables)
    event = orjson.loads(ringside("export", "events", **variables).stdout)["events"][0]["id"]
    refused = ringside("score", event, **variables)
    assert refused.returncode == 1
    assert "Matches without a result: 1 of 1 (1. Main)." in refused.stderr
    assert ringside("score", "--confirm-missing", event, **variables).returncode == 0


async def test_an_export_has_events_and_results_that_no_index_shows_yet(
    default_engine: RunningEngine, table_name: str, tmp_path: Path
) -> None:
    """One was created a moment ago, the other got its result then; the oldest comes first."""
    lag = Lag(mean=1e6, longest=1e6, stale=1.0)
    async with lagging_services(default_engine, tmp_path, table_name, lag=lag) as (engine, [client]):
        editor = EventEditor(client)
        later, [match] = await editor.card(10, name="Later", starts=in_hours(40))
        await engine.catch_up()
        await editor.lock(later)
        await editor.result(match, 1)
        await editor.event("Sooner", starts=in_hours(20))
        cards = await read_season_events(client.services.table, "2026")
    assert [card.event.name for card in cards] == ["Sooner", "Later"]
    [result] = cards[1].event.results.values()
    assert result.winner == 1
