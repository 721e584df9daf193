"""Leases: one process at a time does the work, and only the holder of the latest term writes on its item."""

import asyncio
from random import Random
from typing import Any

import pytest

from datastore.dynamo import StorageFailed, Table, open_table
from datastore.jobs.leases import TURN, Held, LeaseLost, Leases, Turn
from tests.client import Client
from tests.engines import RunningEngine
from tests.fault.faults import Fault
from tests.fault.proxy import Proxy
from tests.intercepted import intercepted
from tests.waiting import until


@pytest.fixture
def table(client: Client) -> Table:
    return client.services.table


def leases_of(table: Table, seconds: float) -> Leases:
    """A process that takes others for dead after so many seconds."""
    leases = Leases(table)
    leases.patience = seconds
    return leases


async def held(leases: Leases, name: str = "work") -> Held[Turn]:
    lease = await leases.take_turn(name)
    assert lease is not None
    return lease


async def stored(table: Table, name: str = "work") -> Turn:
    turn = await table.get(TURN.at(name=name), consistent=True)
    assert turn is not None
    return turn


@pytest.mark.every_engine
async def test_of_many_processes_that_ask_at_once_one_gets_the_turn(table: Table) -> None:
    """And the others get none until it is released, when again one of them does."""
    processes = [Leases(table) for _ in range(10)]
    first = [one for one in await asyncio.gather(*(each.take_turn("work") for each in processes)) if one]
    assert len(first) == 1
    assert not any(await asyncio.gather(*(each.take_turn("work") for each in processes)))
    await first[0].release(place="half")
    second = [one for one in await asyncio.gather(*(each.take_turn("work") for each in processes)) if one]
    assert [(one.record.place, one.record.term) for one in second] == [("half", 2)]


@pytest.mark.every_engine
async def test_a_holder_that_is_silent_is_taken_for_dead_and_one_that_saves_is_not(table: Table) -> None:
    """By the clock of who looks: the holder's clock is never asked."""
    first, other = await held(Leases(table)), leases_of(table, 0.3)
    for _ in range(3):
        assert await other.take_turn("work") is None  # it sees a change each time, however long ago the last one is
        await asyncio.sleep(0.4)
        await first.save()
    assert await other.take_turn("work") is None
    assert await until(lambda: other.take_turn("work"), "the silent holder is taken for dead")


@pytest.mark.every_engine
async def test_an_old_holder_changes_nothing_once_another_one_has_taken_over(table: Table) -> None:
    """Neither by saving, nor by releasing, nor by finishing; what the new one has stored stays."""
    old, new = await held(Leases(table)), await held(leases_of(table, 0.0))
    await new.save(place="new")
    for attempt in (old.save(place="old"), old.release(), old.release(place="old")):
        with pytest.raises(LeaseLost):
            await attempt
    turn = await stored(table)
    assert (turn.place, turn.holder, turn.term) == ("new", new.record.holder, 2)
    await new.release()


@pytest.mark.parametrize("fault", [Fault.RESET_AFTER, Fault.FAILED_AFTER])
async def test_a_write_whose_answer_is_lost_is_read_back(
    one_table: Table, default_engine: RunningEngine, fault: Fault
) -> None:
    """Neither an acquisition, nor a renewal, nor a release is given up for it."""
    async with Proxy(default_engine.url) as proxy, open_table(one_table.name, url=proxy.url) as table:
        await (await held(Leases(table))).release()
        proxy.inject(fault, "UpdateItem")
        lease = await held(Leases(table))
        for step in (lease.save, lease.release):
            proxy.inject(fault, "UpdateItem")
            await step(place=step.__name__)
    assert (await stored(one_table)).place == "release"
    assert proxy.faults[fault] == 3


async def test_a_holder_that_cannot_renew_stops_before_another_may_begin(
    one_table: Table, default_engine: RunningEngine
) -> None:
    """Its work is cancelled, while the engine accepts calls and answers none."""
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with Proxy(default_engine.url) as proxy, open_table(one_table.name, url=proxy.url) as table:
        leases = Leases(table)
        leases.lasting = 0.6
        lease = await held(leases)
        async with proxy.silent():
            with pytest.raises(LeaseLost):
                await asyncio.wait_for(lease.renewed_during(work()), 120)
    assert ended.is_set()


async def test_a_renewal_that_fails_at_once_is_tried_again_in_time(one_table: Table) -> None:
    """As while the disk of the engine is full for a moment: the work is not given up for it."""
    leases, tries, renewed = Leases(one_table), list[str](), asyncio.Event()
    leases.lasting = 60.0
    lease = await held(leases)

    async def full_at_first(name: str, send: Any) -> Any:
        tries.append(name)
        if len(tries) == 1:
            raise StorageFailed("the disk is full")
        answer = await send()
        renewed.set()
        return answer

    with intercepted(one_table, ("update_item",), full_at_first):
        await lease.renewed_during(renewed.wait())
    assert len(tries) == 2


@pytest.mark.every_engine
async def test_a_holder_that_was_halted_learns_that_it_has_lost_its_lease(table: Table) -> None:
    """Its work ends at the next renewal, and what it has noted meanwhile is not stored."""
    halted, other = await held(Leases(table)), leases_of(table, 0.2)
    halted.note(place="of one who was halted")
    taken = await until(lambda: other.take_turn("work"), "another one takes over")
    await taken.save(place="of the new one")
    with pytest.raises(LeaseLost):
        await asyncio.wait_for(halted.renewed_during(asyncio.Event().wait()), 120)
    assert (await stored(table)).place == "of the new one"


@pytest.mark.every_engine
async def test_only_the_latest_term_writes_whatever_the_processes_do(table: Table) -> None:
    """Eight processes take over from each other at any moment: saved places follow the terms, and none is lost."""
    saved: list[tuple[int, int]] = []

    async def process(random: Random) -> None:
        leases = leases_of(table, 0.0)
        for _ in range(12):
            await asyncio.sleep(random.random() / 5)
            lease = await leases.take_turn("work")
            if lease is None:
                continue
            for _ in range(random.randrange(1, 5)):
                await asyncio.sleep(random.random() / 100)
                latest = max(saved, default=(0, 0))
                try:
                    await lease.save(place=f"{lease.record.term} {lease.record.beat + 1}")
                except LeaseLost:
                    break
                assert lease.record.term >= latest[0]
                saved.append((lease.record.term, lease.record.beat))

    await asyncio.gather(*(process(Random(seed)) for seed in range(8)))
    assert len(saved) == len(set(saved)) > 8
    assert (await stored(table)).place == "{} {}".format(*max(saved))
