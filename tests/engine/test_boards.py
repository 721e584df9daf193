"""Settling, ranks and strengths in the life of a process, on the default engine."""

import asyncio
import json
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from datastore.dynamo import Rates, Table
from datastore.dynamo.entity import shard_of
from datastore.values.seal import Seal
from datastore.voting.boards import BOARD, DEFAULT_RATE, Board, read_board_with_marks, reshard, shard_count
from datastore.voting.contenders import CONTENDER, RESULTS, Contender, Counts, ResultsBlock
from resolvers.requests.context import Services, utc_now
from resolvers.values.node_ids import node_id
from resolvers.voting.settling import BoardCache
from server.settings import Settings
from tests.attack.serving import serving_on_a_socket
from tests.client import Client, serving
from tests.conftest import SECRET, settings_for
from tests.dependent_calls import dependent_calls
from tests.engines import RunningEngine
from tests.intercepted import Send, intercepted, is_of_request
from tests.lagging import Lag
from tests.lagging.service import lagging_services
from tests.queries import BOARD_COUNTS, CAST_VOTE, DRAW_MATCHUP, LEADERBOARD
from tests.voting import (
    add_contenders,
    assert_consistent,
    board_now,
    know_the_settled_board,
    let_cached_reads_expire,
    let_settle_nothing,
    pair_names,
    quiet,
    settle_votes,
    vote,
)
from tests.waiting import LONGEST, until

CAST_AND_SHOW = """
mutation ($token: ID!) { castVote(input: { token: $token, verdict: LEFT }) { ... on VoteCast {
  winner { id name } progress { seen remaining } matchup { leftWins rightWins ties votes } } } }
"""


async def soon(client: Client, expected: int) -> list[dict[str, Any]]:
    """The leaderboard once its wins are so many."""
    async with asyncio.timeout(120):
        while True:
            rows: list[dict[str, Any]] = (await client.ask(LEADERBOARD))["nodes"]
            if sum(row["wins"] for row in rows) == expected:
                return rows
            await asyncio.sleep(0.1)


async def test_votes_reach_the_leaderboard_without_a_request(one_client: Client) -> None:
    """Nobody has to ask for it; afterwards the board has no mark, so that readers settle nothing."""
    await add_contenders(one_client, "a", "b", "c")
    for number in range(3):
        await vote(one_client.member(f"v{number}"))
    await soon(one_client, 3)
    await quiet(one_client.services.table)
    await assert_consistent(one_client)


@pytest.mark.usefixtures("one_table")
async def test_a_killed_process_leaves_nothing_unsettled(default_engine: RunningEngine, table_name: str) -> None:
    """One process counts votes and is gone before it settles; another one's reader finds them."""
    settings = settings_for(default_engine, table_name)
    async with serving(settings) as first, serving(settings) as second:
        await add_contenders(first, "a", "b")
        assert (await second.ask(LEADERBOARD))["totalCount"] == 2
        let_settle_nothing(first)  # as kill -9 does: what was counted stays counted, what was to be done is not
        await vote(first.visitor())
        rows = await soon(second, 1)
        assert [row["score"] for row in rows] == [1, -1]
        later = second.services.clock() + timedelta(hours=1)
        second.services.clock = lambda: later
        assert (await second.ask(LEADERBOARD))["nodes"] == rows


async def test_two_processes_settle_to_the_same_result(default_engine: RunningEngine, one_table: Table) -> None:
    """Votes through both at once, both settling: every vote is counted, once."""
    settings = settings_for(default_engine, one_table.name)
    async with serving(settings) as first, serving(settings) as second:
        await add_contenders(first, "a", "b", "c", "d")
        voters = [
            client.member(f"v{number}-{place}") for number in range(12) for place, client in enumerate((first, second))
        ]
        await asyncio.gather(*map(vote, voters))
        await asyncio.gather(settle_votes(first), settle_votes(second), settle_votes(first), settle_votes(second))
        await soon(second, 24)
        await assert_consistent(first)


async def test_closing_a_service_settles_its_votes(default_engine: RunningEngine, one_table: Table) -> None:
    """A process that ends in good order leaves rows that are up to date, and no mark."""
    settings = settings_for(default_engine, one_table.name)
    async with serving(settings) as client:
        await add_contenders(client, "a", "b")
        await vote(client)
    now = await board_now(one_table)
    assert (now.board.votes, now.is_dirty) == (1, False)


async def planted(table: Table, size: int) -> None:
    """A board of so many contenders, written at once."""
    now = utc_now()
    rows = [Contender("main", place, f"contender {place:05d}", now) for place in range(size)]
    counts = {place: Counts(wins=place % 97) for place in range(size)}
    await table.write_many(CONTENDER.put(row) for row in rows)
    await table.write_many(RESULTS.put(ResultsBlock.of("main", block, counts)) for block in range(-(-size // 256)))
    await table.write(BOARD.put(Board("main", "Main", now, size=size, contender_changes=size)))


async def test_an_id_of_no_contender_troubles_nobody_who_asks_at_the_same_time(one_client: Client) -> None:
    """What several requests read together is read for each of them, whatever the others ask for."""
    await add_contenders(one_client, "a", "b")
    asked = """query ($a: ID!, $b: ID!, $c: ID!) {
      a: contender(id: $a) { name wins } b: contender(id: $b) { name } c: contender(id: $c) { name } }"""
    ids = {name: node_id("Contender", f"main/{ordinal}") for name, ordinal in (("a", 0), ("b", 25_600), ("c", 999_999))}
    assert await one_client.ask(asked, **ids) == {"a": {"name": "a", "wins": 0}, "b": None, "c": None}


async def test_a_leaderboard_of_two_thousand_costs_two_steps(one_client: Client, one_table: Table) -> None:
    """The board, then its eight blocks of contenders and the batch of its results, at once."""
    await planted(one_table, 2000)
    one_client.services.get(BoardCache).boards.age = 60.0  # else a busy machine reads the board once more
    reads: list[str] = []

    async def noted(name: str, send: Send) -> Any:
        if is_of_request():
            reads.append(name)
        return await send()

    with intercepted(one_client.services.table, ("get_item", "batch_get_item", "query"), noted):
        page = await one_client.ask(LEADERBOARD.replace("rank score }", "score }"), first=100)
    assert len(reads) == 1 + 8 + 1
    assert (page["totalCount"], page["nodes"][0]["rank"], page["nodes"][21]["rank"]) == (2000, 1, 21)
    after = page["pageInfo"]["endCursor"]
    following = await one_client.ask(LEADERBOARD, first=100, after=after)
    assert following["nodes"][0]["rank"] == 1 + sum(
        place % 97 > following["nodes"][0]["score"] for place in range(2000)
    )
    drawn = await one_client.ask(DRAW_MATCHUP)
    assert drawn["progress"] == {"seen": 0, "remaining": 1_999_000}


async def test_a_board_is_resharded_while_people_vote(one_client: Client) -> None:
    """More shards, then fewer: every reader sums them all."""
    await add_contenders(one_client, "a", "b", "c")
    table = one_client.services.table
    for number, rate in enumerate((1, 2000, 1)):
        current = await read_board_with_marks(table, "main")
        assert current is not None
        await reshard(table, current.board, rate)
        one_client.services.get(BoardCache).changed("main")
        await asyncio.gather(*(vote(one_client.member(f"v{number}-{n}")) for n in range(8)))
    found = await read_board_with_marks(table, "main")
    assert found is not None
    assert found.board.read_shards == shard_count(3, 2000) == 64
    await settle_votes(one_client)
    assert (await one_client.ask(BOARD_COUNTS))["votes"] == 24
    await assert_consistent(one_client)


@pytest.mark.parametrize(("contenders", "shards"), [(2, 64), (10, 20), (100, 8), (2000, 8)])
def test_small_boards_have_more_shards(contenders: int, shards: int) -> None:
    """At six hundred votes a second about one vote in ten meets another."""
    assert shard_count(contenders, DEFAULT_RATE) == shards


@pytest.mark.parametrize(
    ("contenders", "rate"), [(2, 600), (100, 600), (2000, 600), (100, 5000), (2000, 5000), (10_000, 5000)]
)
def test_no_shard_takes_more_than_700_units_a_second(contenders: int, rate: int) -> None:
    """A vote costs 6 units in its voter's shard; voters are many, and spread by chance."""
    shards = shard_count(contenders, rate)
    for second in range(20):
        votes = Counter(shard_of(f"voter {second}-{number}", shards) for number in range(rate))
        assert max(votes.values()) * 6 <= 700


async def test_many_draws_share_one_read_of_the_board(one_client: Client) -> None:
    """5,000 draws a second must not read one partition 5,000 times: a draw may be a moment behind.

    Neither at the same time nor one after the other.
    """
    await add_contenders(one_client, "a", "b", "c")
    boards = one_client.services.get(BoardCache).boards
    boards.age = 60.0  # in place of a moment, which may pass between two draws
    boards.forget("main")
    reads = Counter[str]()

    def of(word: str) -> list[str]:
        return [partition for partition in reads if partition.partition("#")[0] == word]

    async def noted(_: str, send: Any) -> Any:
        reads[next(iter(send.keywords["ExpressionAttributeValues"].values()))["S"]] += 1
        return await send()

    with intercepted(one_client.services.table, ("query",), noted):
        await asyncio.gather(*(one_client.visitor().ask(DRAW_MATCHUP) for _ in range(50)))
        assert len(of("VOTER")) == 50  # of which some may be read again: so many connections take a busy machine long
        assert sum(reads[partition] for partition in of("BOARD")) <= 5
        boards.forget("main")
        reads.clear()
        for _ in range(10):
            await one_client.visitor().ask(DRAW_MATCHUP)
    assert (len(of("VOTER")), [reads[partition] for partition in of("BOARD")]) == (10, [1])


async def test_a_draw_a_moment_behind_ends_no_cycle_early(default_engine: RunningEngine, one_table: Table) -> None:
    """A contender joins through another process between the last two draws of a cycle: its pairs come first."""
    settings = settings_for(default_engine, one_table.name)
    async with serving(settings) as first, serving(settings) as second:
        await add_contenders(first, "a", "b", "c")
        voter = second.member("ada")
        pairs = [pair_names((await vote(voter))["ballot"]) for _ in range(3)]
        second.services.get(BoardCache).boards.put("main", await board_now(one_table))
        await add_contenders(first, "d")
        ballots = [(await vote(voter))["ballot"] for _ in range(3)]
        assert ballots[0]["progress"] == {"seen": 3, "remaining": 3}
        assert len({*pairs, *map(pair_names, ballots)}) == 6
        await assert_consistent(first)


async def test_drawing_voting_and_looking_wait_for_two_calls(default_engine: RunningEngine, one_table: Table) -> None:
    """Once the process knows the board: nothing that is only shown, marked or settled delays an answer."""
    settings = settings_for(default_engine, one_table.name, votes_per_address="0", new_visitors_per_address="0")
    async with serving(settings) as client:
        await add_contenders(client, "a", "b", "c")
        voter = client.member("ada")
        await vote(voter)
        await know_the_settled_board(client)
        waits = []
        for _ in range(2):  # a vote is cast without what takes the engine too long, and reads it afterwards
            let_cached_reads_expire(client)
            drawn, rounds = await dependent_calls(client.services.table, voter.ask(DRAW_MATCHUP))
            assert rounds <= 2
            let_cached_reads_expire(client)
            cast = voter.ask(CAST_AND_SHOW, token=drawn["token"])
            waits.append((await dependent_calls(client.services.table, cast))[1])
        assert min(waits) <= 2
        let_cached_reads_expire(client)
        looking = client.visitor().ask("{ leaderboard { totalCount nodes { rank score contender { name } } } }")
        _, rounds = await dependent_calls(client.services.table, looking)
        assert rounds <= 2


async def test_votes_have_a_limit(one_table: Table, default_engine: RunningEngine) -> None:
    """Per voter and per address; told when to come back; others go on, also behind the same address."""
    settings = settings_for(default_engine, one_table.name, votes_per_visitor="3/minute", votes_per_address="8/minute")
    async with serving(settings) as client:
        now = client.services.clock()
        client.services.clock = lambda: now  # no minute ends meanwhile
        client.services.rates = Rates(lambda: 0.0)
        await add_contenders(client, "a", "b")
        flood = client.member("flood")
        token = (await flood.ask(DRAW_MATCHUP))["token"]
        for _ in range(3):
            await flood.ask(CAST_VOTE, token=token, verdict="LEFT")
        refused = await flood.ask(CAST_VOTE, token=token, verdict="LEFT")
        assert refused["code"] == "RATE_LIMITED"
        assert 0 < refused["retryAfterSeconds"] <= 60
        codes = [(await client.visitor().ask(CAST_VOTE, token=token, verdict="LEFT"))["code"] for _ in range(6)]
        assert codes == ["TOKEN_UNKNOWN"] * 5 + ["RATE_LIMITED"]
        assert [(await flood.ask(DRAW_MATCHUP)).get("code") for _ in range(12)][-1] == "RATE_LIMITED"
        assert (await client.visitor().ask(DRAW_MATCHUP))["token"]


async def test_strengths_are_shown_beside_the_record(one_client: Client) -> None:
    """Null before the first vote; then a finite value within its interval, also of somebody undefeated.

    A page waits a moment for a newer fit, and then shows the one before.
    """

    async def shown() -> list[dict[str, float]]:
        page = await one_client.ask("{ leaderboard { nodes { strength { value low high } } } }")
        return [row["strength"] for row in page["nodes"] if row["strength"]]

    await add_contenders(one_client, "a", "b", "c")
    assert await shown() == []
    for number in range(6):
        ballot = await one_client.member(f"v{number}").ask(DRAW_MATCHUP)
        verdict = "LEFT" if ballot["left"]["name"] < ballot["right"]["name"] else "RIGHT"
        await one_client.member(f"v{number}").ask(CAST_VOTE, token=ballot["token"], verdict=verdict)
    await settle_votes(one_client)
    rows = await until(shown, "the strengths are fitted to the votes")
    assert all(row["low"] < row["value"] < row["high"] for row in rows)


async def test_strengths_count_votes_that_replicas_do_not_have_yet(
    default_engine: RunningEngine, tmp_path: Path, table_name: str
) -> None:
    """They are kept until the next settling, so what they are fitted to is read consistently."""
    lag = Lag(mean=1e6, longest=1e6, stale=1.0)
    async with lagging_services(default_engine, tmp_path, table_name, lag=lag) as (_, [client]):
        await add_contenders(client, "a", "b")
        await vote(client.member("ada"), "LEFT")
        await settle_votes(client)

        async def shown() -> list[Any]:
            rows = (await client.ask("{ leaderboard { nodes { strength { value } } } }"))["nodes"]
            return [row["strength"] for row in rows if row["strength"]]

        assert len(await until(shown, "the strengths are fitted to the vote")) == 2


async def test_a_leaderboard_is_watched(one_table: Table, settings: Settings) -> None:
    """The rows at once; again after a vote, with one win more; a board that is not there is an error.

    Of a service of its own: on a shared one the votes of other tests may have yet to be shown.
    """
    assert one_table.name == settings.table
    query = "subscription { leaderboardChanged(first: 100) { rank wins contender { name } } }"
    headers = {"accept": "text/event-stream"}
    async with serving(settings) as client:
        await add_contenders(client, "a", "b", "c")
    async with (
        serving_on_a_socket(settings) as served,
        httpx.AsyncClient(base_url=served.url, timeout=LONGEST) as http,
    ):
        async with http.stream("POST", "/graphql", json={"query": query}, headers=headers) as response:
            lines = response.aiter_lines()
            before = await _event(lines)
            async with httpx.AsyncClient(base_url=served.url, timeout=LONGEST) as voter:
                drawn = (await voter.post("/graphql", json={"query": DRAW_MATCHUP})).json()["data"]["drawMatchup"]
                variables = {"token": drawn["token"], "verdict": "LEFT"}
                await voter.post("/graphql", json={"query": CAST_VOTE, "variables": variables})
            after = await _event(lines)
        assert sum(row["wins"] for row in after) == sum(row["wins"] for row in before) + 1
        missing = {"query": 'subscription { leaderboardChanged(board: "none") { rank } }'}
        answer = await http.post("/graphql", json=missing, headers=headers)
        assert "NOT_FOUND" in answer.text


async def _event(lines: Any) -> list[dict[str, Any]]:
    async for line in lines:
        if line.startswith("data: "):
            rows: list[dict[str, Any]] = json.loads(line[6:])["data"]["leaderboardChanged"]
            return rows
    raise AssertionError("the stream ended")


async def test_a_service_without_votes_closes(one_table: Table) -> None:
    """Nothing to settle, nothing to wait for."""
    services = Services(one_table, Seal([SECRET]))
    assert await services.get(BoardCache).board("main") is None
    await services.close()
