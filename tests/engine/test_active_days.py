"""Days on which a member was active, while results are written and taken back at the same time."""

import asyncio
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

import pytest

from datastore.changes.unit_of_work import RECEIPT, Receipt, UnitOfWork
from datastore.dynamo import Table, metered
from datastore.vocabulary import member_items
from datastore.vocabulary.learning import (
    ACTIVE_DAYS,
    QUIZ,
    SENTENCE,
    ActiveDays,
    QuizResult,
    Sentence,
    read_profile_screen,
    record_result,
)
from resolvers.requests.context import Services, utc_now
from tests.audits import breaches_in
from tests.client import Client
from tests.queries import UPDATE_PROFILE, WRITE_SENTENCE

DAY = date(2026, 1, 1)


def result(services: Services, day: date) -> QuizResult:
    return QuizResult("eve", day, services.ids.next(utc_now()), "list", 1, 2, utc_now())


async def record(table: Table, new: QuizResult | Sentence, days: ActiveDays | None) -> None:
    """What a request does that read the days a while ago."""
    await record_result(table, new, days, lambda _: None, UnitOfWork.unkeyed(utc_now()))


async def read_days(table: Table) -> ActiveDays | None:
    return await table.get(ACTIVE_DAYS.at(user="eve"), consistent=True)


async def remove_all(table: Table, unit: UnitOfWork | None = None) -> int:
    unit = unit or UnitOfWork.unkeyed(utc_now())
    return len([one async for one in member_items.remove_results(table, "eve", lambda _: True, unit)])


async def active_and_with_results(table: Table) -> tuple[set[date], set[date]]:
    days = await read_days(table)
    results = [one async for one in table.iterate(QUIZ.on(None, user="eve"), consistent=True)]
    return set(days.dates() if days else ()), {one.date for one in results}


@pytest.mark.lagging
async def test_a_result_that_is_written_after_its_day_was_taken_back_makes_it_active_again(client: Client) -> None:
    """Its request read the days when the day was still active."""
    services, table = client.services, client.services.table
    await record(table, result(services, DAY), None)
    read_before = await read_days(table)
    assert await remove_all(table) == 1
    assert await active_and_with_results(table) == (set(), set())
    await record(table, result(services, DAY), read_before)
    assert await active_and_with_results(table) == ({DAY}, {DAY})


async def test_a_screen_reads_no_more_than_one_answer_holds(one_table: Table) -> None:
    """A member has a week of receipts between the days and the subscriptions, each of up to 300 KB."""
    in_a_week = utc_now() + timedelta(days=7)
    for number in range(8):
        await one_table.write(RECEIPT.put(Receipt("eve", f"key {number}", "", "x" * 300_000, in_a_week)))
    with metered() as spent:
        assert await read_profile_screen(one_table, "eve", DAY) is None
    assert spent.calls == 1


@pytest.mark.lagging
async def test_days_that_begin_anew_are_not_taken_for_those_that_were_read(client: Client) -> None:
    """They have the same version, and another day."""
    services, table = client.services, client.services.table
    first, second, third = (date(2026, 1, number) for number in (1, 2, 3))
    await record(table, result(services, first), None)
    read_before = await read_days(table)
    assert await remove_all(table) == 1
    await record(table, result(services, second), None)
    await record(table, result(services, third), read_before)
    assert await active_and_with_results(table) == ({second, third}, {second, third})


@dataclass(frozen=True)
class WritesFirst(UnitOfWork):
    """Somebody's removal, in the middle of which, once, the member records a result."""

    table: Any = None
    new: Any = None
    written: list[bool] = field(default_factory=list)

    async def apply(self, table: Table, *writes: Any) -> None:
        if not self.written:
            self.written.append(True)
            await record(self.table, self.new, await read_days(self.table))
        await UnitOfWork.unkeyed(self.now).apply(table, *writes)


@pytest.mark.lagging
async def test_a_result_that_is_written_while_its_day_is_taken_back_is_taken_back_or_keeps_it(client: Client) -> None:
    """It is stored between the removal's reads and its transaction."""
    services, table = client.services, client.services.table
    old, new = result(services, DAY), result(services, DAY)
    await record(table, old, None)
    unit = WritesFirst("", None, "", utc_now(), table=table, new=new)
    removed = member_items.remove_results(table, "eve", lambda one: one.id == old.id, unit)
    assert [one async for one in removed] == [old]
    assert await active_and_with_results(table) == ({DAY}, {DAY})
    assert await breaches_in(services) == []


@pytest.mark.lagging
async def test_a_day_that_changes_meanwhile_is_read_whole(client: Client) -> None:
    """Sentences too: a quiz result comes between, and all are taken back in the end."""
    services, table = client.services, client.services.table
    sentence = Sentence("eve", DAY, services.ids.next(utc_now()), "A sentence.", utc_now())
    await record(table, sentence, None)
    unit = WritesFirst("", None, "", utc_now(), table=table, new=result(services, DAY))
    assert await remove_all(table, unit) == 2
    assert [one async for one in table.scan(QUIZ, SENTENCE, ACTIVE_DAYS, consistent=True)] == []


@pytest.mark.every_engine
async def test_many_results_and_removals_at_once_leave_the_days_of_what_is_left(client: Client) -> None:
    """In either order, a day is active exactly if it has a result."""
    services, table = client.services, client.services.table
    days = [date(2026, 1, number) for number in (1, 2)]
    await record(table, result(services, days[0]), None)

    async def write(day: date) -> None:
        for _ in range(4):
            await record(table, result(services, day), await read_days(table))

    async def remove() -> None:
        for _ in range(4):
            await remove_all(table)

    await asyncio.gather(*map(write, days), remove())
    active, with_results = await active_and_with_results(table)
    assert active == with_results


@pytest.mark.every_engine
async def test_a_member_who_writes_twice_at_once_is_answered_twice(client: Client) -> None:
    """On a day that is active already, each sentence changes the days again."""
    eve = client.member("eve")
    await eve.ask(UPDATE_PROFILE, input={"name": "Eve"})
    await eve.ask(WRITE_SENTENCE, input={"text": "Before."})
    answers = await asyncio.gather(*(eve.ask(WRITE_SENTENCE, input={"text": f"Text {one}."}) for one in range(5)))
    assert len({answer["sentence"]["id"] for answer in answers}) == 5
