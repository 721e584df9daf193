"""Boards open and close at exact moments, by the clock of each process."""

import asyncio
from datetime import datetime, timedelta
from time import monotonic
from typing import Any

from datastore.dynamo import EngineUnavailable, Table, iso
from resolvers.requests.context import utc_now
from resolvers.voting import settling
from resolvers.voting.settling import BoardCache
from tests.client import Client, serving
from tests.conftest import settings_for
from tests.dependent_calls import dependent_calls
from tests.engines import RunningEngine
from tests.intercepted import beforehand
from tests.queries import BOARD_COUNTS, CAST_VOTE, DRAW_MATCHUP, UPDATE_BOARD, mutation
from tests.voting import (
    add_contenders,
    assert_consistent,
    editor,
    know_the_settled_board,
    let_cached_reads_expire,
    settle_votes,
    vote,
)

HOURS = "{ board { opensAt closesAt closed } }"
CREATE = mutation("createBoard", "BoardCreated", "board { slug opensAt closesAt closed }")


def at(client: Client, moment: datetime) -> None:
    """Sets the process's clock."""
    client.services.clock = lambda: moment


async def set_hours(client: Client, **hours: datetime | None) -> dict[str, Any]:
    given = {name: None if moment is None else iso(moment) for name, moment in hours.items()}
    answer: dict[str, Any] = await editor(client).ask(UPDATE_BOARD, input={"slug": "main", **given})
    return answer


async def test_a_board_takes_votes_in_its_hours_only(client: Client) -> None:
    """From opensAt to the millisecond before closesAt; also with a ballot that was drawn before."""
    await add_contenders(client, "a", "b", "c")
    now = utc_now()
    opens, closes = now + timedelta(minutes=1), now + timedelta(minutes=2)
    visitor = client.visitor()
    early = (await visitor.ask(DRAW_MATCHUP))["token"]
    board = (await set_hours(client, opensAt=opens, closesAt=closes))["board"]
    assert board == {"slug": "main", "title": "Main", "opensAt": iso(opens), "closesAt": iso(closes), "closed": True}
    for moment, is_open in (
        (opens - timedelta(milliseconds=1), False),
        (opens, True),
        (closes - timedelta(milliseconds=1), True),
        (closes, False),
    ):
        at(client, moment)
        assert (await client.ask(HOURS))["closed"] is not is_open
        drawn = await client.visitor().ask(DRAW_MATCHUP)
        assert drawn.get("code") == (None if is_open else "LOCKED")
        if moment == opens:
            assert (await visitor.ask(CAST_VOTE, token=early, verdict="LEFT"))["progress"]["seen"] == 1
        elif not is_open:
            fresh = client.visitor()
            assert await fresh.code(CAST_VOTE, token=early, verdict="LEFT") == "TOKEN_UNKNOWN"
    at(client, opens - timedelta(seconds=30))
    refused = await client.ask(
        """mutation { drawMatchup(input: {}) { ... on Refused { message retryAfterSeconds } } }"""
    )
    assert refused == {"message": f"Voting on this board opens at {iso(opens)}.", "retryAfterSeconds": 30}
    at(client, utc_now())
    await set_hours(client, opensAt=None, closesAt=None)
    await assert_consistent(client)


async def test_a_late_ballot_is_refused_and_a_counted_one_answered_again(client: Client) -> None:
    """After the end a new verdict is LOCKED, a skip too; the repeat of a counted vote gets its answer, counted once."""
    await add_contenders(client, "a", "b", "c")
    now = utc_now()
    await set_hours(client, closesAt=now + timedelta(minutes=1))
    ada, bob = client.member("ada"), client.member("bob")
    token = (await ada.ask(DRAW_MATCHUP))["token"]
    counted = await ada.ask(CAST_VOTE, token=token, verdict="RIGHT")
    late = (await bob.ask(DRAW_MATCHUP))["token"]
    at(client, now + timedelta(minutes=1))
    for verdict in ("LEFT", "TIE", "SKIP"):
        refused = await bob.ask(CAST_VOTE, token=late, verdict=verdict)
        assert (refused["code"], refused["path"]) == ("LOCKED", ["input", "token"])
        assert "ended at" in refused["message"]
    assert await ada.ask(CAST_VOTE, token=token, verdict="RIGHT") == counted
    assert await ada.code(CAST_VOTE, token=token, verdict="LEFT") == "TOKEN_SPENT"
    await settle_votes(client)
    assert (await client.ask(BOARD_COUNTS))["votes"] == 1
    await assert_consistent(client)


async def test_null_clears_a_time_and_absence_leaves_it(client: Client) -> None:
    """A title alone changes no hours; the same time may be sent again although it has passed."""
    await add_contenders(client, "a", "b")
    now = utc_now()
    opens, closes = now + timedelta(hours=1), now + timedelta(hours=2)
    await set_hours(client, opensAt=opens, closesAt=closes)
    titled = (await editor(client).ask(UPDATE_BOARD, input={"slug": "main", "title": " The  best "}))["board"]
    assert (titled["title"], titled["opensAt"], titled["closesAt"]) == ("The best", iso(opens), iso(closes))
    at(client, now + timedelta(hours=3))
    same = (await set_hours(client, opensAt=opens, closesAt=closes))["board"]
    assert (same["opensAt"], same["closed"]) == (iso(opens), True)
    cleared = (await set_hours(client, closesAt=None))["board"]
    assert (cleared["opensAt"], cleared["closesAt"], cleared["closed"]) == (iso(opens), None, False)
    assert (await set_hours(client, opensAt=None))["board"]["opensAt"] is None
    at(client, utc_now())
    assert (await vote(client.visitor()))["progress"]["seen"] == 1


async def test_wrong_hours_are_refused(client: Client) -> None:
    """Too soon, in the wrong order, of a board that does not exist, by those who may not."""
    await add_contenders(client, "a", "b")
    now = utc_now()
    for hours, path in (
        ({"opensAt": now - timedelta(days=1)}, "opensAt"),
        ({"closesAt": now + timedelta(seconds=8)}, "closesAt"),
        ({"opensAt": now + timedelta(hours=2), "closesAt": now + timedelta(hours=1)}, "closesAt"),
        ({"opensAt": now + timedelta(hours=1), "closesAt": now + timedelta(hours=1)}, "closesAt"),
    ):
        refused = await set_hours(client, **hours)
        assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", path])
    await set_hours(client, closesAt=now + timedelta(hours=1))
    refused = await set_hours(client, opensAt=now + timedelta(hours=2))
    assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "closesAt"])
    assert await client.code(UPDATE_BOARD, input={"slug": "main"}) == "NOT_SIGNED_IN"
    assert await client.member("ada").code(UPDATE_BOARD, input={"slug": "main"}) == "NOT_ALLOWED"
    one = editor(client)
    assert await one.code(UPDATE_BOARD, input={"slug": "none", "title": "x"}) == "NOT_FOUND"
    assert await one.code(UPDATE_BOARD, input={"slug": "No such!", "title": "x"}) == "NOT_FOUND"
    for title in ("\u200b", "\u3164", "a\U0010ffff"):
        assert await one.code(UPDATE_BOARD, input={"slug": "main", "title": title}) == "INVALID_INPUT"
    assert (await client.answer(UPDATE_BOARD, input={"slug": "main", "opensAt": "soon"}))["errors"]
    early = iso(now + timedelta(seconds=1))
    assert await one.code(CREATE, input={"slug": "x", "title": "x", "closesAt": early}) == "INVALID_INPUT"
    later = {"opensAt": iso(now + timedelta(hours=1)), "closesAt": iso(now + timedelta(hours=2))}
    assert (await one.ask(CREATE, input={"slug": "x", "title": "x", **later}))["board"]["closed"] is True


async def test_another_process_knows_new_hours_in_time(default_engine: RunningEngine, one_table: Table) -> None:
    """A process that last read the board seconds ago reads it again before it counts a vote."""
    settings = settings_for(default_engine, one_table.name)
    async with serving(settings) as first, serving(settings) as second:
        await add_contenders(first, "a", "b", "c")
        second.keep_what_it_read()
        voter, now = second.member("ada"), utc_now()
        await vote(voter)
        token = (await voter.ask(DRAW_MATCHUP))["token"]
        closes = now + timedelta(minutes=5)
        await set_hours(first, closesAt=closes)
        cache = second.services.get(BoardCache)
        board = cache.known("main")
        assert board is not None
        assert board.closes_at is None
        second.services.cache.clock = lambda: monotonic() + settling.KNOWN_SECONDS
        at(second, closes)
        assert await voter.code(CAST_VOTE, token=token, verdict="LEFT") == "LOCKED"
        at(second, closes - timedelta(milliseconds=1))
        assert (await voter.ask(CAST_VOTE, token=token, verdict="LEFT"))["progress"]["seen"] == 2


async def test_a_vote_on_a_known_board_does_not_read_it_first(one_client: Client) -> None:
    """Hours cost no call: a vote waits for its transaction and for the pair's record, as without hours."""
    await add_contenders(one_client, "a", "b", "c", "d")
    await set_hours(one_client, closesAt=utc_now() + timedelta(hours=1))
    at(one_client, utc_now())  # at the turn of a minute, its part of the limit is reserved again
    voter, table = one_client.member("ada"), one_client.services.table
    await vote(voter)
    await know_the_settled_board(one_client)
    waits = []
    for seen in range(2, 7):  # one is cast without a record that takes the engine too long, and reads it afterwards
        token = (await voter.ask(DRAW_MATCHUP))["token"]
        answer, rounds = await dependent_calls(table, voter.ask(CAST_VOTE, token=token, verdict="LEFT"))
        assert answer["progress"]["seen"] == seen
        waits.append(rounds)
    assert min(waits) <= 2


async def test_a_vote_waits_for_two_calls_when_nothing_is_kept(default_engine: RunningEngine, one_table: Table) -> None:
    """Its limit's share, its board and what its answer shows are read at once. Then it is cast."""
    settings = settings_for(default_engine, one_table.name, votes_per_address="60/minute")
    async with serving(settings) as first, serving(settings) as second:
        await add_contenders(first, "a", "b", "c", "d")
        now = utc_now()
        at(second, max(now, now.replace(second=2)))  # at the turn of a minute, its part of the limit is reserved again
        voter, elsewhere = first.member("ada"), second.member("ada")
        await vote(voter)
        await elsewhere.ask("{ viewer { name } }")
        waits = []
        for _ in range(5):  # one is cast without what takes the engine too long, and reads it afterwards
            token = (await voter.ask(DRAW_MATCHUP))["token"]
            await know_the_settled_board(second)
            let_cached_reads_expire(second)
            cast = elsewhere.ask(CAST_VOTE, token=token, verdict="LEFT")
            answer, rounds = await dependent_calls(second.services.table, cast)
            assert answer["matchup"]["votes"] == 1
            again = await elsewhere.ask(CAST_VOTE, token=token, verdict="LEFT")
            assert again["matchup"] == answer["matchup"]
            waits.append(rounds)
        assert min(waits) <= 2


async def test_an_attempt_after_the_end_is_refused(one_client: Client) -> None:
    """The engine refuses the first attempt, which is repeated after the end: LOCKED, and nothing is counted."""
    await add_contenders(one_client, "a", "b", "c")
    now = utc_now()
    closes = now + timedelta(minutes=1)
    await set_hours(one_client, closesAt=closes)
    voter = one_client.member("ada")
    token = (await voter.ask(DRAW_MATCHUP))["token"]

    async def close_and_fail() -> None:
        at(one_client, closes)
        raise EngineUnavailable("no answer")

    with beforehand(one_client.services.table, close_and_fail, about="VOTE#") as failed:
        assert await voter.code(CAST_VOTE, token=token, verdict="LEFT") == "LOCKED"
    assert failed
    await settle_votes(one_client)
    assert (await one_client.ask(BOARD_COUNTS))["votes"] == 0
    await assert_consistent(one_client)


async def test_two_editors_cannot_cross_the_hours(client: Client) -> None:
    """One sets the beginning and one the end, at once: the second is judged by what the first has set."""
    await add_contenders(client, "a", "b")
    now = utc_now()
    answers = await asyncio.gather(
        set_hours(client, opensAt=now + timedelta(hours=2)), set_hours(client, closesAt=now + timedelta(hours=1))
    )
    assert sorted(answer.get("code", "") for answer in answers) == ["", "INVALID_INPUT"]
