"""Season ranks on an engine whose indexes lag, under two scorers, kills and corrections; and what scoring costs."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from datastore.dynamo import Table
from datastore.pickem import predictions, standings
from datastore.pickem.events import Event, Match
from datastore.pickem.predictions import RANKING_SHARDS, seed_event
from datastore.pickem.standings import SEASON, Histogram, read_standing, recount_season, store_histogram
from datastore.whole.layout import ensure_layout
from resolvers.pickem import scoring
from resolvers.pickem.cache import PickemCache
from resolvers.pickem.scoring import score
from resolvers.requests.context import Services
from resolvers.values.node_ids import node_id
from server.audit import find_suspects
from server.settings import Settings
from tests import bulk_predictions
from tests.client import Client, serving
from tests.killed import Killed, killed_at
from tests.lagging import Lag
from tests.lagging.tables import lagging
from tests.queries import SCORE_EVENT, STANDINGS
from tests.season import EventEditor, submit

MEMBERS = 40
ONCE_PER_SCORING = ("HISTOGRAM#", "SCHEDULE", "JOURNAL#", "OBJECT#")
"""Keys that a scoring writes to a few times, however many members it credits."""


async def seed(table: Table, name: str = "Crowded", members: int = MEMBERS) -> tuple[Event, Sequence[Match]]:
    event, matches = bulk_predictions.locked_event("2026", name)
    await seed_event(table, event, matches, bulk_predictions.generate_predictions(event, members))
    return event, matches


def expected_points(*events: tuple[Event, Sequence[Match]]) -> Counter[str]:
    """The points of every member, by a plain sum."""
    points: Counter[str] = Counter()
    for event, matches in events:
        winners = scoring.winners(event, {match.id: match for match in matches})
        for prediction in bulk_predictions.generate_predictions(event, MEMBERS):
            points[prediction.user] += scoring.worth(prediction.picks, winners).points
    return points


async def assert_exact_ranks(reader: Client, points: Counter[str]) -> None:
    """Of every member, by their own standing: the list of all comes from an index."""
    page = await reader.ask(STANDINGS, season="2026", first=1)
    assert page["totalCount"] == len(points)
    _, ranks = await reader.services.get(PickemCache).season_ranks("2026")
    for user, total in points.items():
        standing = await read_standing(reader.services.table, user, "2026")
        assert standing is not None
        assert standing.points == total
        assert ranks.rank(standing.points) == 1 + sum(other > total for other in points.values())


async def test_ranks_are_exact_as_soon_as_a_scoring_is_acknowledged(tmp_path: Path, settings: Settings) -> None:
    """Two processes score two events of a season at once, then one again after a correction; every index is behind."""
    async with lagging(tmp_path, seed=3, lag=Lag(mean=1.0, late=0.1)) as (engine, table):
        await ensure_layout(table)
        first, second = await seed(table), await seed(table, "Second")
        served = settings.model_copy(update={"dynamodb_url": engine.url, "table": table.name})
        async with serving(served) as one, serving(served) as other:
            await asyncio.gather(
                EventEditor(one).score(node_id("Event", first[0].id)),
                EventEditor(other).score(node_id("Event", second[0].id)),
                EventEditor(other).score(node_id("Event", first[0].id)),
            )
            await assert_exact_ranks(other, expected_points(first, second))
            event = bulk_predictions.corrected(first[0])
            match = event.card[0]
            winner = event.results[match].winner
            await EventEditor(one).result(node_id("Match", f"{event.id}:{match}"), winner)
            await EventEditor(other).score(node_id("Event", event.id))
            await assert_exact_ranks(one, expected_points((event, first[1]), second))
            await engine.catch_up()
            assert await find_suspects(Services(table, settings.seal()), "pickem") == []


async def test_a_scoring_may_be_killed_at_every_write(one_table: Table, settings: Settings) -> None:
    """Asking for it again completes it, here or in another process; the audit finds nothing."""
    services = Services(one_table, settings.seal())
    services.leases.patience = 0.0
    for write in range(100):
        event, _ = await seed(one_table, f"E{write}", 6)
        with killed_at(one_table, write) as writes:
            try:
                await score(services, event.id)
            except Killed:
                killed = True
            else:
                killed = False
        scored = await score(services, event.id)
        assert scored.done == 6
        if not killed:
            break
    assert writes[0] >= 6
    assert await find_suspects(Services(one_table, settings.seal()), "pickem") == []


async def test_scoring_again_repairs_ranks_and_points(one_client: Client) -> None:
    """Whatever was published or stored instead: by the mutation and by the command alike."""
    table, services = one_client.services.table, one_client.services
    event, _ = await seed(table)
    given: dict[str, Any] = {"event": node_id("Event", event.id)}
    editor = EventEditor(one_client)
    await editor.client.ask(SCORE_EVENT, input=given)
    await store_histogram(table, "STANDINGS:2026", 99, Histogram.of({1: 3}))
    season = SEASON.update(SEASON.at(season="2026"), values={"tickets": 99, "published": 99, "members": 3})
    await table.write(season)
    prediction = await predictions.read_prediction(table, event.id, "fan-0000007")
    assert prediction is not None
    other_team = 1 - prediction.picks.get(event.card[1], 0)
    await table.write(
        predictions.PREDICTION.update(
            predictions.PREDICTION.item_key(prediction),
            values={"picks": {**prediction.picks, event.card[1]: other_team}},
        )
    )
    broken = await find_suspects(services, "pickem")
    assert any("40 standings, 3 counted" in breach for breach in broken)
    assert any("a fresh scoring gives" in breach for breach in broken)
    await editor.client.ask(SCORE_EVENT, input=given)
    left = await find_suspects(services, "pickem")
    assert all("the gates and the predictions differ" in breach for breach in left)


async def test_a_count_that_began_earlier_and_ends_later_is_not_published(
    one_table: Table, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was held up before it could publish, and lacks the members of a scoring that has ended since."""
    services, held_up, go_on = Services(one_table, settings.seal()), asyncio.Event(), asyncio.Event()
    first, second = await seed(one_table), await seed(one_table, "Second", MEMBERS + 5)
    await score(services, first[0].id)
    count_season = standings.count_season

    async def held(table: Table, season: str) -> Histogram:
        histogram = await count_season(table, season)
        if not held_up.is_set():
            held_up.set()
            await go_on.wait()
        return histogram

    monkeypatch.setattr(standings, "count_season", held)
    early = asyncio.create_task(recount_season(one_table, "2026"))
    await held_up.wait()
    await score(services, second[0].id)
    go_on.set()
    assert (await early).total == MEMBERS
    _, ranks = await services.get(PickemCache).season_ranks("2026")
    assert ranks.total == MEMBERS + 5
    assert await find_suspects(Services(one_table, settings.seal()), "pickem") == []


async def test_a_credit_costs_the_same_in_every_event_of_a_season(tmp_path: Path, settings: Settings) -> None:
    """At most 10 units, however long the season; 833 a second use 42 % of the hottest key's units."""
    costs, credits_at_833 = [], 0.0
    async with lagging(tmp_path, lag=Lag(mean=0.0)) as (engine, table):
        services = Services(table, settings.seal())
        for number in range(4):
            event, _ = await seed(table, f"E{number}")
            engine.ledger.writes.clear()
            await score(services, event.id)
            units: dict[str, float] = defaultdict(float)
            unit = (f"EVENT#{event.id}", "STANDINGS#2026")
            for (key, _), spent in engine.ledger.writes.items():
                if key.value not in unit and not key.value.startswith(ONCE_PER_SCORING):
                    units[f"{key.index_name} {key.value}"] += spent
            costs.append(sum(units.values()) / MEMBERS)
            # Per key of the ranking: with more members their shares even out.
            rankings = sum(spent for name, spent in units.items() if "RANKING#" in name) / RANKING_SHARDS
            credits_at_833 = 833 * rankings / MEMBERS
    assert max(costs[1:]) - min(costs[1:]) < 0.1  # the first event's standings are new in the ranking
    assert max(costs) <= 10
    assert credits_at_833 <= 700


async def test_scoring_reads_what_was_accepted_just_before_the_lock(tmp_path: Path, settings: Settings) -> None:
    """Its work comes from the table: a prediction whose index entry is seconds behind gets its points all the same."""
    async with lagging(tmp_path, lag=Lag(mean=1e6, longest=1e6, stale=1.0)) as (engine, table):
        served = settings.model_copy(update={"dynamodb_url": engine.url, "table": table.name})
        async with serving(served) as client:
            editor = EventEditor(client)
            event, [match] = await editor.card(10)
            await asyncio.gather(*(submit(client.member(f"m{one}"), event, [(match, one % 2)]) for one in range(9)))
            await editor.lock(event)
            await editor.result(match, 0)
            assert await editor.score(event) == 9
            assert (await editor.standings(first=1))["totalCount"] == 9
