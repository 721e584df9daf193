"""Taking points back when processes are killed, and beside scorers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from datastore import pickem as pickem_store
from datastore.dynamo import Table
from datastore.pickem import Credit, Share
from datastore.pickem.auditing import all_predictions, all_standings
from datastore.pickem.predictions import read_prediction
from datastore.pickem.removal import remove_prediction
from datastore.pickem.seeding import seed_event
from datastore.receipts import Once
from datastore.refusals import Conflict
from resolvers.context import Services
from resolvers.pickem.removing import count_again
from resolvers.pickem.scoring import ScoringProgress, score
from resolvers.pickem.unscoring import unscore
from server.audit import pickem as audit
from server.settings import Settings
from tests import bulk_predictions
from tests.killed import Killed, killed_at

MEMBERS = 6


async def audited(services: Services) -> list[str]:
    return [breach async for breach in audit.breaches(services)]


async def sums(services: Services) -> dict[str, tuple[int, int, int]]:
    standings = all_standings(services.table)
    return {one.user: (one.points, one.correct, one.events_played) async for one in standings}


async def seed(table: Table, name: str) -> pickem_store.Event:
    event, matches = bulk_predictions.locked_event("2026", name)
    await seed_event(table, event, matches, bulk_predictions.generate_predictions(event, MEMBERS))
    return event


@pytest.mark.parametrize("then", ["unscored", "scored"])
async def test_an_unscoring_may_be_killed_at_every_write(one_table: Table, settings: Settings, then: str) -> None:
    """Unscored again, all is as before; scored in place of that, all is as after one scoring."""
    services = Services(one_table, settings.seal())
    event = await seed(one_table, "Killed")
    other = await seed(one_table, "Other")
    await score(services, other.id, ScoringProgress())
    before = await sums(services)
    await score(services, event.id, ScoringProgress())
    after = await sums(services)
    for write in range(100):
        killed = False
        with killed_at(one_table, write):
            try:
                await unscore(services, event.id)
            except Killed:
                killed = True
        if then == "unscored":
            # Its last write may have been the one that was applied: then a repeat finds nothing left to do.
            assert (await unscore(services, event.id)).state == "LOCKED"
            assert await sums(services) == before
            assert await audited(services) == []
        assert (await score(services, event.id, ScoringProgress())).predictions_scored == MEMBERS
        assert await sums(services) == after
        if not killed:
            break
    assert write >= 5
    assert await audited(services) == []


async def test_a_scorer_that_was_held_up_adds_nothing_afterwards(one_table: Table, settings: Settings) -> None:
    """It read the predictions before they lost their points, or reads them again: its generation is older."""
    services = Services(one_table, settings.seal())
    event = await seed(one_table, "Held up")
    read = [prediction async for prediction in all_predictions(one_table, event.id)]
    await score(services, event.id, ScoringProgress())
    await unscore(services, event.id)
    late = [Credit(prediction, Share(event.generation, 50, 3), event.starts_at) for prediction in read]
    await pickem_store.credit(one_table, event.season, late)
    assert await sums(services) == {}
    assert await audited(services) == []


async def begun(services: Services, name: str) -> pickem_store.Event:
    """An event that another process scores."""
    event = await seed(services.table, name)
    scoring = event.changed(begun=event.generation)
    await pickem_store.change_event(services.table, event, scoring, Once.unkeyed(services.clock()), scoring)
    return scoring


async def give_points(table: Table, event: pickem_store.Event, user: str) -> None:
    prediction = await read_prediction(table, event.id, user)
    assert prediction is not None
    await pickem_store.credit(
        table, event.season, [Credit(prediction, Share(event.generation, 50, 3), event.starts_at)]
    )


@contextmanager
def given_points_between_reads(table: Table, event: pickem_store.Event, user: str) -> Iterator[None]:
    """A scorer gives a member points just before their prediction is read, and after all reads that began with it."""
    client = table.client
    get, others, given = client.get_item, [0], False

    async def scored_before(**request: dict[str, dict[str, str]]) -> object:
        nonlocal given
        if given or not request["Key"]["pk"]["S"].startswith(f"EVENT#{event.id}#"):
            others[0] += 1
            answer = await get(**request)
            others[0] -= 1
            return answer
        given = True
        await asyncio.sleep(0)  # reads that were begun together with this one are under way then
        while others[0]:
            await asyncio.sleep(0.001)
        await give_points(table, event, user)
        return await get(**request)

    client.get_item = scored_before
    yield
    client.get_item = get
    assert given


async def test_a_share_that_a_scorer_adds_meanwhile_is_taken_back(one_table: Table, settings: Settings) -> None:
    """The prediction shows the share, so the standing must be one that has it already."""
    services = Services(one_table, settings.seal())
    event = await begun(services, "Scored meanwhile")
    first, second = [prediction async for prediction in all_predictions(one_table, event.id)][:2]
    unscoring = event.begin_unscoring()
    nothing = Share(unscoring.unscored or 0, 0, 0, counts=False)
    await give_points(one_table, event, second.user)  # so the transaction of both fails
    with given_points_between_reads(one_table, event, first.user):
        credits_ = [Credit(prediction, nothing, event.starts_at) for prediction in (first, second)]
        await pickem_store.credit(one_table, event.season, credits_)
    assert await sums(services) == {}


async def test_a_removed_prediction_takes_the_points_that_a_scorer_adds_meanwhile(
    one_table: Table, settings: Settings
) -> None:
    """They are in the standing that it is taken out of."""
    services = Services(one_table, settings.seal())
    event = await begun(services, "Removed meanwhile")
    [member, *_] = [prediction.user async for prediction in all_predictions(one_table, event.id)]
    with given_points_between_reads(one_table, event, member):
        await remove_prediction(one_table, event, member, Once.unkeyed(services.clock()))
    assert await sums(services) == {}


async def test_a_standing_that_was_made_again_is_not_taken_for_the_old_one(
    one_table: Table, settings: Settings
) -> None:
    """While one event is scored, another loses its points and a third gives some: only what counts is added up."""
    services, client = Services(one_table, settings.seal()), one_table.client
    scored, unscored, third = [await seed(one_table, name) for name in ("Scored", "Unscored", "Third")]
    [user, *_] = [prediction.user async for prediction in all_predictions(one_table, scored.id)]
    original = client.transact_write_items

    async def give(event: pickem_store.Event, share: Share) -> None:
        prediction = await read_prediction(one_table, event.id, user)
        assert prediction is not None
        await pickem_store.credit(one_table, "2026", [Credit(prediction, share, event.starts_at)])

    async def made_again_first(**request: object) -> object:
        client.transact_write_items = original
        await give(unscored, Share(unscored.generation + 1, 0, 0, counts=False))
        assert await sums(services) == {}
        await give(third, Share(third.generation, 20, 2))
        return await original(**request)

    await give(unscored, Share(unscored.generation, 50, 3))
    client.transact_write_items = made_again_first
    await give(scored, Share(scored.generation, 7, 1))
    assert await sums(services) == {user: (27, 3, 2)}


@contextmanager
def unscored_meanwhile(services: Services, event: str) -> Iterator[None]:
    """An editor takes the points back before the first transaction, which gives them."""
    client = services.table.client
    original, unscored = client.transact_write_items, False

    async def unscore_first(**request: object) -> object:
        nonlocal unscored
        if not unscored:
            unscored = True
            await unscore(services, event)
        return await original(**request)

    client.transact_write_items = unscore_first
    yield
    client.transact_write_items = original
    assert unscored


async def assert_unscored(services: Services, event: str) -> None:
    assert await sums(services) == {}
    stored = (await pickem_store.read_events(services.table, [event]))[event]
    assert (stored.state, stored.begun, stored.unscoring) == ("LOCKED", None, None)
    assert await audited(services) == []


async def test_a_scoring_under_way_ends_when_the_event_is_unscored(one_table: Table, settings: Settings) -> None:
    """It does not begin again and so undo what the editor has just done."""
    services = Services(one_table, settings.seal())
    event = await seed(one_table, "Under way")
    with unscored_meanwhile(services, event.id), pytest.raises(Conflict, match="unscored meanwhile"):
        await score(services, event.id, ScoringProgress())
    await assert_unscored(services, event.id)


async def test_counting_again_ends_when_the_event_is_unscored(one_table: Table, settings: Settings) -> None:
    """A job that removes or moves a member's predictions is not refused, and gives no points again."""
    services = Services(one_table, settings.seal())
    event = await seed(one_table, "Counted again")
    await score(services, event.id, ScoringProgress())
    with unscored_meanwhile(services, event.id):
        await count_again(services, event.id, services.once())
    await assert_unscored(services, event.id)
