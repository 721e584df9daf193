"""Pick'em on bad days: nobody late, nobody missing, nobody miscounted."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from datastore.pickem.events import EVENT, read_events
from datastore.pickem.predictions import seed_event
from resolvers.pickem.cache import PickemCache
from resolvers.requests.context import Services
from resolvers.values.node_ids import node_id
from server.audit import find_suspects
from server.settings import Settings
from tests import bulk_predictions
from tests.client import Client, serving
from tests.command import ROOT, environment, on_table
from tests.engines import EnginePair
from tests.fault.deadline_race import TEAMS, run_race
from tests.fault.faults import Fault
from tests.lagging import LaggingEngine
from tests.lagging.tables import LaggingTable, lagging_table
from tests.queries import (
    ADD_MATCH,
    EVENT_BY_ID,
    REMOVE_MATCH,
    SCORE_EVENT,
    SUBMIT_PREDICTION,
    UPDATE_EVENT,
    UPDATE_MATCH,
    UPDATE_PROFILE,
)
from tests.season import EventEditor, in_hours, prediction_input, submit, teams
from tests.waiting import LONGEST


@pytest.fixture
async def lagged(engine_pair: EnginePair, table_name: str) -> AsyncIterator[LaggingTable]:
    """An engine that lags and does nothing worse yet."""
    async with lagging_table(engine_pair, table_name, seed=5, max_delay=0.1) as one:
        yield one


@pytest.fixture
def proxy(lagged: LaggingTable) -> LaggingEngine:
    return lagged.engine


@pytest.fixture
def through(settings: Settings, proxy: LaggingEngine) -> Settings:
    """Settings of a service on that engine."""
    return settings.model_copy(update={"dynamodb_url": proxy.url})


@pytest.fixture
async def bad_client(through: Settings) -> AsyncIterator[Client]:
    async with serving(through) as visitor:
        yield visitor


async def audited(client: Client) -> list[str]:
    await client.caught_up("standings and ranks are those of the stored predictions")
    return await find_suspects(client.services, "pickem")


@pytest.mark.parametrize("fault", [Fault.RESET_AFTER, Fault.FAILED_AFTER])
async def test_a_lost_answer_is_not_a_lost_prediction(bad_client: Client, proxy: LaggingEngine, fault: Fault) -> None:
    """The transaction was applied and its answer lost; the event is locked before the repeat: it was accepted."""
    editor, ada = EventEditor(bad_client), bad_client.member("ada")
    event, [match] = await editor.card(10)
    await submit(ada, event, [(match, 0)])
    proxy.inject(fault, "TransactWriteItems")
    proxy.inject(Fault.RESET_BEFORE, "TransactWriteItems")
    submitting = asyncio.create_task(ada.ask(SUBMIT_PREDICTION, input=prediction_input(event, [(match, 1)])))
    await asyncio.sleep(0)
    assert (await submitting)["prediction"]["picks"][0]["team"] == 1
    proxy.inject(fault, "TransactWriteItems")
    locked = await editor.lock(event)
    assert locked["matches"][0]["pickCounts"] == [0, 1]
    assert await audited(bad_client) == []


async def test_a_prediction_applied_before_a_lock_is_acknowledged_after_it(bad_client: Client) -> None:
    """Applied, unanswered, then locked by somebody else: the repeat meets a closed gate, and reads its own back."""
    editor, ada = EventEditor(bad_client), bad_client.member("ada")
    await ada.ask(UPDATE_PROFILE, input={"name": "Ada"})
    event, [match] = await editor.card(10)
    table = bad_client.services.table
    original = table.client.transact_write_items
    calls = 0

    async def lose_one_answer(**request: Any) -> Any:
        nonlocal calls
        calls += 1
        answer = await original(**request)
        if calls == 1:
            table.client.transact_write_items = original
            await editor.lock(event)
            raise TimeoutError
        return answer

    table.client.transact_write_items = lose_one_answer
    accepted = await submit(ada, event, [(match, 1)])
    assert accepted["picks"][0]["team"] == 1
    await bad_client.caught_up("the event shows its lock and its counts")
    seen = await bad_client.ask(EVENT_BY_ID, id=event)
    assert (seen["state"], seen["matches"][0]["pickCounts"]) == ("LOCKED", [0, 1])
    assert await ada.code(SUBMIT_PREDICTION, input=prediction_input(event, [(match, 0)])) == "LOCKED"


async def test_a_prediction_that_a_lock_overtakes_is_refused(one_client: Client) -> None:
    """It found the event open, and is sent once the lock is acknowledged, days before the start: its gate is closed."""
    editor, ada = EventEditor(one_client), one_client.member("ada")
    await ada.ask(UPDATE_PROFILE, input={"name": "Ada"})
    event, [match] = await editor.card(10)
    client = one_client.services.table.client
    original = client.transact_write_items

    async def lock_first(**request: Any) -> Any:
        client.transact_write_items = original
        assert (await editor.lock(event))["state"] == "LOCKED"
        return await original(**request)

    client.transact_write_items = lock_first
    assert await ada.code(SUBMIT_PREDICTION, input=prediction_input(event, [(match, 1)])) == "LOCKED"
    seen = await ada.ask(EVENT_BY_ID, id=event)
    assert (seen["viewerPrediction"], seen["matches"][0]["pickCounts"]) == (None, [0, 0])


@pytest.mark.parametrize("change", ["a match", "a team"])
async def test_a_prediction_for_what_has_just_left_the_card_is_refused(one_client: Client, change: str) -> None:
    """It found the card as it was, and is sent once that is smaller: nobody's pick means what is gone."""
    editor, ada = EventEditor(one_client), one_client.member("ada")
    await ada.ask(UPDATE_PROFILE, input={"name": "Ada"})
    event = (await editor.event())["id"]
    match = (await editor.match(event, "A", "B", "C"))["id"]
    client = one_client.services.table.client
    original = client.transact_write_items

    async def change_first(**request: Any) -> Any:
        client.transact_write_items = original
        fewer = (UPDATE_MATCH, {"match": match, "teams": teams("A", "B")})
        query, given = (REMOVE_MATCH, {"match": match}) if change == "a match" else fewer
        assert "code" not in await editor.client.ask(query, input=given)
        return await original(**request)

    client.transact_write_items = change_first
    assert await ada.code(SUBMIT_PREDICTION, input=prediction_input(event, [(match, 2)])) == "INVALID_INPUT"
    assert (await ada.ask(EVENT_BY_ID, id=event))["viewerPrediction"] is None
    assert await audited(one_client) == []


@pytest.mark.parametrize("what", ["a prediction", "a match", "a question"])
async def test_a_repetition_after_the_lock_is_refused(bad_client: Client, proxy: LaggingEngine, what: str) -> None:
    """Throttled until the start has passed: the time of each attempt counts, not that of the first."""
    editor, ada = EventEditor(bad_client), bad_client.member("ada")
    await ada.ask(UPDATE_PROFILE, input={"name": "Ada"})
    event, [match] = await editor.card(10, starts=in_hours(1))
    services: Services = bad_client.services
    start = datetime.now(UTC)
    late = False
    services.clock = lambda: start + timedelta(hours=2 if late else 0)
    original = services.table.client.transact_write_items

    async def throttle_once(**request: Any) -> Any:
        nonlocal late
        if not late:
            late = True
            raise TimeoutError
        return await original(**request)

    services.table.client.transact_write_items = throttle_once
    if what == "a prediction":
        assert await ada.code(SUBMIT_PREDICTION, input=prediction_input(event, [(match, 1)])) == "LOCKED"
    elif what == "a question":
        asked = {"event": event, "tieBreak": {"question": "How many minutes?"}}
        assert await editor.client.code(UPDATE_EVENT, input=asked) == "LOCKED"
    else:
        added = {"event": event, "name": "Too late", "points": 1, "teams": teams("A", "B")}
        assert await editor.client.code(ADD_MATCH, input=added) == "LOCKED"
    await bad_client.caught_up("what was stored shows, if anything was")
    seen = await ada.ask(EVENT_BY_ID, id=event)
    assert (seen["viewerPrediction"], [each["id"] for each in seen["matches"]]) == (None, [match])
    assert proxy.requests["TransactWriteItems"] > 0


async def test_no_prediction_is_late_and_none_is_missing(
    through: Settings, proxy: LaggingEngine, bad_client: Client
) -> None:
    """A deadline on three servers whose clocks differ by half a second, a fifth of all requests going wrong.

    The longer run of 10,000 tries is bench/pickem_deadline.py. Each server waits for the lock before it shows it: until
    that is stored, one whose clock is slow may still accept what one whose clock is fast shows as locked.
    """
    async with serving(through) as fast, serving(through) as slow:
        for server in (bad_client, fast, slow):
            server.services.get(PickemCache).patience = 60.0
        fast.services.clock = lambda: datetime.now(UTC) + timedelta(seconds=0.25)
        slow.services.clock = lambda: datetime.now(UTC) - timedelta(seconds=0.25)
        editor = EventEditor(bad_client)
        event = (await editor.event())["id"]
        names = [str(number) for number in range(TEAMS)]
        matches = [(await editor.match(event, *names))["id"] for _ in range(3)]
        proxy.fault_rate = 0.2
        outcome = await run_race(
            [bad_client, fast, slow], event, matches, [f"m{number}" for number in range(10)], accepted=60, seed=1
        )
        proxy.fault_rate = 0.0
        assert outcome.accepted >= 60
        assert outcome.late == []
        assert outcome.missing == []
        assert outcome.revealed_early == []
        assert await audited(bad_client) == []


@pytest.mark.soak
async def test_scoring_survives_kills_and_corrections(lagged: LaggingTable, through: Settings) -> None:
    """Three scorers in a row are killed on their way, a result is corrected in between: the end is a fresh scoring.

    100,000 predictions: bench/pickem_scoring.py.
    """
    event, matches = bulk_predictions.locked_event("2026")
    await seed_event(lagged.table, event, matches, bulk_predictions.generate_predictions(event, 240))
    for kills in range(3):
        process = await _scorer(through, event.id)
        try:
            async with asyncio.timeout(LONGEST):
                while await bulk_predictions.count_scored(lagged.leader, event) < 40 * (kills + 1):
                    assert process.returncode is None
                    await asyncio.sleep(0.05)
        finally:
            process.send_signal(signal.SIGKILL)
            await process.wait()
        if kills == 1:
            event = bulk_predictions.corrected(event)
            stored = (await read_events(lagged.table, [event.id]))[event.id]
            again = stored.changed(results=event.results, generation=stored.generation + 1)
            await lagged.table.write(EVENT.put(again))
    last = await _scorer(through, event.id)
    assert await last.wait() == 0
    assert await bulk_predictions.count_wrong_scores(lagged.leader, event, matches) == 0
    assert await bulk_predictions.count_wrong_standings(lagged.leader, event, matches, 240) == 0
    await lagged.engine.catch_up()
    services = Services(lagged.table, through.seal())
    assert await find_suspects(services, "pickem") == []


async def _scorer(settings: Settings, event: str) -> asyncio.subprocess.Process:
    variables = environment(**on_table(settings.dynamodb_url, settings.table))
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "server", "score", node_id("Event", event),
        env=variables, cwd=ROOT, stdout=asyncio.subprocess.DEVNULL,
    )  # fmt: skip


async def test_scoring_completes_despite_faults(bad_client: Client, lagged: LaggingTable, proxy: LaggingEngine) -> None:
    """A fifth of all requests fail, before and after they are applied: the sums are exact all the same."""
    event, matches = bulk_predictions.locked_event("2026")
    predictions = bulk_predictions.generate_predictions(event, 120)
    await seed_event(bad_client.services.table, event, matches, predictions)
    proxy.fault_rate = 0.2
    editor = EventEditor(bad_client)
    given = {"event": node_id("Event", event.id)}
    async with asyncio.timeout(LONGEST):
        while (await editor.client.ask(SCORE_EVENT, input=given)).get("job", "refused") is not None:
            await asyncio.sleep(0.1)
    proxy.fault_rate = 0.0
    assert await bulk_predictions.count_wrong_scores(lagged.leader, event, matches) == 0
    assert await audited(bad_client) == []
