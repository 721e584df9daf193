"""Changes that are made again when somebody else's comes first, and work in batches and at once."""

import asyncio

import pytest

from datastore.dynamo import ConditionFailed, Stale, chunks, deadline, gather_or_cancel, optimistic, optimistic_from
from datastore.dynamo.retries import ATTEMPTS
from datastore.refusals import Conflict

CHANGED, UNCLEAR = ConditionFailed({0: None}), ConditionFailed({0: None}, doubtful=True)
A_LONG_TIME = 3600.0


class Record:
    """A number that is read and changed; the first changes fail."""

    def __init__(self, *failures: Exception) -> None:
        self.number, self.reads, self.changes = 0, 0, 0
        self._failures = iter(failures)

    async def read(self) -> int:
        self.reads += 1
        return self.number

    async def change(self, read: int) -> int:
        self.changes += 1
        if failure := next(self._failures, None):
            self.number += 10  # somebody else's change
            raise failure
        self.number = read + 1
        return self.number


@pytest.fixture(params=[0.0])
def pauses(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of so many seconds, whatever is drawn."""
    monkeypatch.setattr("datastore.dynamo.retries.random.uniform", lambda *_: request.param)


@pytest.mark.parametrize("conflict", [CHANGED, Stale()])
async def test_a_change_is_made_again_from_what_somebody_else_has_written(conflict: Exception) -> None:
    record = Record(conflict, conflict)
    assert await optimistic(record.read, record.change) == 21
    assert (record.reads, record.changes) == (3, 3)


async def test_a_change_of_what_is_known_reads_only_after_a_conflict() -> None:
    record = Record()
    assert await optimistic_from(5, record.read, record.change) == 6
    assert record.reads == 0
    record = Record(CHANGED)
    assert await optimistic_from(5, record.read, record.change) == 11
    assert record.reads == 1


@pytest.mark.usefixtures("pauses")
async def test_a_change_that_never_comes_first_is_refused_with_a_time_to_ask_again() -> None:
    record = Record(*[CHANGED] * (ATTEMPTS + 1))
    with pytest.raises(Conflict) as refused:
        await optimistic(record.read, record.change)
    assert refused.value.retry_after == 1.0
    assert record.changes == ATTEMPTS


@pytest.mark.parametrize("pauses", [A_LONG_TIME], indirect=True)
@pytest.mark.usefixtures("pauses")
async def test_no_attempt_follows_the_deadline() -> None:
    record = Record(CHANGED)
    with deadline(A_LONG_TIME / 2), pytest.raises(Conflict):
        await optimistic(record.read, record.change)
    assert record.changes == 1


async def test_an_unclear_answer_is_no_conflict() -> None:
    """The change may have been made: only one that finds this out by itself is made again."""
    record = Record(UNCLEAR)
    with pytest.raises(ConditionFailed):
        await optimistic(record.read, record.change)
    assert record.changes == 1
    record = Record(UNCLEAR)
    assert await optimistic(record.read, record.change, idempotent=True) == 11


async def test_a_refusal_is_not_repeated() -> None:
    record = Record(Conflict("There is no room."))
    with pytest.raises(Conflict, match="no room"):
        await optimistic(record.read, record.change)
    assert record.changes == 1


@pytest.mark.parametrize(("number", "sizes"), [(0, []), (5, [5]), (10, [5, 5]), (11, [5, 5, 1])])
def test_chunks_have_all_items_in_their_order(number: int, sizes: list[int]) -> None:
    found = list(chunks(iter(range(number)), 5))
    assert [len(chunk) for chunk in found] == sizes
    assert [item for chunk in found for item in chunk] == list(range(number))


async def test_no_more_than_the_limit_are_done_at_once_and_the_results_keep_their_order() -> None:
    at_once = most = 0

    async def work(number: int) -> int:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        for _ in range(20 - number):
            await asyncio.sleep(0)
        at_once -= 1
        return number

    assert await gather_or_cancel(map(work, range(20)), 3) == list(range(20))
    assert most == 3


@pytest.mark.parametrize("at_once", [None, 2])
async def test_after_a_failure_the_others_have_ended_and_what_waited_is_not_begun(at_once: int | None) -> None:
    begun, ended = list[int](), list[int]()

    async def work(number: int) -> None:
        begun.append(number)
        try:
            if number == 1:
                raise ValueError(number)
            await asyncio.Event().wait()
        finally:
            ended.append(number)

    with pytest.raises(ValueError, match="1"):
        await gather_or_cancel(map(work, range(5)), at_once)
    assert sorted(ended) == begun
    assert begun == list(range(at_once or 5))
