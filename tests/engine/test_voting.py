"""Boards, ballots and votes, over HTTP on every engine."""

from asyncio import Event, create_task, gather, sleep
from datetime import timedelta
from itertools import combinations
from typing import Any

import pytest

from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import StorageFailed, Table
from datastore.refusals import NotFound
from datastore.voting.editing import ContenderChange, add_contender
from datastore.voting.votes import read_latest_vote
from resolvers.requests.context import utc_now
from resolvers.values.node_ids import node_id, parse_node_id
from resolvers.voting.settling import BoardCache
from tests.client import Client
from tests.intercepted import intercepted
from tests.queries import (
    ADD_CONTENDER,
    BOARD_COUNTS,
    CAST_VOTE,
    CREATE_BOARD,
    DRAW_MATCHUP,
    LEADERBOARD,
    RESTORE_CONTENDER,
    RETIRE_CONTENDER,
    UPDATE_BOARD,
    UPDATE_CONTENDER,
    VOID_VOTER,
)
from tests.voting import add_contenders, assert_consistent, board_now, editor, pair_names, settle_votes, vote

CAST_ONLY = """
mutation ($token: ID!) { castVote(input: { token: $token, verdict: TIE }) {
  ... on VoteCast { progress { seen } } ... on Refused { code message } } }
"""
RECORDS = """
query ($after: String) { matchups(first: 1, after: $after) {
  nodes { left { id name } right { id name } leftWins rightWins ties votes } pageInfo { hasNextPage endCursor } } }
"""
RECORDS_OF_ONE = """
query ($id: ID!) {
  matchups(contender: $id) { nodes { ...Record } }
  contender(id: $id) { matchups { nodes { ...Record } } }
}
fragment Record on Matchup { left { id name } right { id name } leftWins rightWins ties votes }
"""


@pytest.mark.parametrize("slug", ["nope", "Not a slug"])
async def test_each_mutation_names_the_board_that_does_not_exist(one_client: Client, slug: str) -> None:
    """In the same words, whether a board could have the slug or not, and with the argument that holds it."""
    one = editor(one_client)
    refused = {
        "updateBoard": await one.ask(UPDATE_BOARD, input={"slug": slug, "title": "z"}),
        "addContender": await one.ask(ADD_CONTENDER, input={"board": slug, "name": "Cat"}),
        "voidVoter": await one.ask(VOID_VOTER, input={"board": slug, "voter": "ada"}),
        "drawMatchup": await one.ask(DRAW_MATCHUP, board=slug),
    }
    message = f"There is no board called {slug}."
    assert refused == {
        name: {
            "code": "NOT_FOUND",
            "message": message,
            "path": ["input", "slug" if name == "updateBoard" else "board"],
        }
        for name in refused
    }


@pytest.mark.lagging
async def test_an_editor_creates_and_changes_a_board(client: Client) -> None:
    """Boards and contenders are made by editors, found by everybody, and their names are unique."""
    one = editor(client)
    board = (await one.ask(CREATE_BOARD, input={"slug": "pets", "title": " Best  pet "}))["board"]
    await client.caught_up("the board is found")
    assert (board["slug"], board["title"], board["contenderCount"]) == ("pets", "Best pet", 0)
    assert await one.code(CREATE_BOARD, input={"slug": "pets", "title": "Again"}) == "CONFLICT"
    assert await one.code(CREATE_BOARD, input={"slug": "Not a slug", "title": "x"}) == "INVALID_INPUT"
    assert await client.code(CREATE_BOARD, input={"slug": "x", "title": "x"}) == "NOT_SIGNED_IN"
    assert await client.member("ada").code(ADD_CONTENDER, input={"name": "Cat", "board": "pets"}) == "NOT_ALLOWED"
    assert await one.code(ADD_CONTENDER, input={"name": "Cat", "board": "none"}) == "NOT_FOUND"
    svg = "<svg><script/><path d='M0 0h9'/></svg>"
    cat = (await one.ask(ADD_CONTENDER, input={"name": "Cat #1", "board": "pets", "svg": svg}))["contender"]
    assert (cat["name"], cat["rank"], cat["winRate"], cat["board"]["slug"]) == ("Cat #1", 1, None, "pets")
    assert "script" not in cat["svg"]
    assert await one.code(ADD_CONTENDER, input={"name": "cAT  #1", "board": "pets"}) == "CONFLICT"
    assert await one.code(ADD_CONTENDER, input={"name": "Dog", "board": "pets", "svg": "no picture"}) == "INVALID_INPUT"
    for unseen in ("\u3164", "a\u200bb", "a\u00adb", "a\u034fb", "a\u200eb", "a\u202eb", "a\U0010ffff"):
        assert await one.code(ADD_CONTENDER, input={"name": unseen, "board": "pets"}) == "INVALID_INPUT"
    renamed = await one.ask(UPDATE_CONTENDER, input={"contender": cat["id"], "name": "CAT #1", "svg": None})
    assert renamed["contender"] == {"id": cat["id"], "name": "CAT #1", "svg": None}
    dog = (await one.ask(ADD_CONTENDER, input={"name": "Dog", "board": "pets"}))["contender"]
    assert await one.code(UPDATE_CONTENDER, input={"contender": dog["id"], "name": "cat #1"}) == "CONFLICT"
    await one.ask(UPDATE_CONTENDER, input={"contender": cat["id"], "name": "Tiger"})
    await one.ask(UPDATE_CONTENDER, input={"contender": dog["id"], "name": "cat #1"})
    assert await client.ask("query ($id: ID!) { node(id: $id) { id ... on Contender { name } } }", id=dog["id"]) == {
        "id": dog["id"],
        "name": "cat #1",
    }
    await client.caught_up("the list of boards is up to date")
    found = await client.ask("{ boards { nodes { slug contenderCount pairCount } } }")
    assert found["nodes"] == [
        {"slug": "main", "contenderCount": 0, "pairCount": 0},
        {"slug": "pets", "contenderCount": 2, "pairCount": 1},
    ]
    await assert_consistent(client)


async def test_a_visitor_gets_every_pair_once(client: Client) -> None:
    """Progress counts verdicts; drawing again gives the same pair; behind the last one a new cycle begins."""
    await add_contenders(client, "a", "b", "c", "d")
    visitor, met = client.visitor(), []
    for seen in range(6):
        ballot, again = await visitor.ask(DRAW_MATCHUP), await visitor.ask(DRAW_MATCHUP)
        assert {**ballot, "token": 0, "expiresAt": 0} == {**again, "token": 0, "expiresAt": 0}
        assert ballot["progress"] == {"seen": seen, "remaining": 6 - seen}
        met.append(pair_names(ballot))
        verdict = ("LEFT", "SKIP", "TIE")[seen % 3]
        answer = await visitor.ask(CAST_VOTE, token=ballot["token"], verdict=verdict)
        assert answer["progress"] == {"seen": seen + 1, "remaining": 5 - seen}
        assert answer["winner"] == (ballot["left"] if verdict == "LEFT" else None)
        assert answer["matchup"]["leftWins"] == (verdict == "LEFT")
        assert answer["matchup"]["votes"] == (verdict != "SKIP")
    assert set(met) == {frozenset(pair) for pair in combinations("abcd", 2)}
    assert (await visitor.ask(BOARD_COUNTS))["progress"] == {"seen": 6, "remaining": 0}
    assert (await visitor.ask(DRAW_MATCHUP))["progress"] == {"seen": 0, "remaining": 6}
    await settle_votes(client)
    assert (await client.ask(BOARD_COUNTS))["votes"] == 4
    await assert_consistent(client)


async def test_contenders_join_and_retire_during_a_cycle(one_client: Client) -> None:
    """No pair comes twice, none of those still possible is missed, and the drawn pair stands when others join."""
    ids = await add_contenders(one_client, "a", "b", "c")
    visitor, met = one_client.visitor(), list[frozenset[str]]()
    first = pair_names(await visitor.ask(DRAW_MATCHUP))
    ids += await add_contenders(one_client, "d")
    again = await visitor.ask(DRAW_MATCHUP)
    assert (pair_names(again), again["progress"]) == (first, {"seen": 0, "remaining": 6})
    met.append(pair_names((await vote(visitor))["ballot"]))
    ids += await add_contenders(one_client, "e")
    met.append(pair_names((await vote(visitor, "SKIP"))["ballot"]))
    retired = (await editor(one_client).ask(RETIRE_CONTENDER, input={"contender": ids[0]}))["contender"]
    assert (retired["retired"], retired["rank"]) == (True, None)
    assert (await editor(one_client).ask(RETIRE_CONTENDER, input={"contender": ids[0]}))["contender"] == retired
    possible = {frozenset(pair) for pair in combinations("bcde", 2)}
    progress = (await visitor.ask(BOARD_COUNTS))["progress"]
    assert progress == {"seen": 2, "remaining": len(possible - set(met))}
    for _ in range(progress["remaining"]):
        met.append(pair_names((await vote(visitor, "RIGHT"))["ballot"]))
    assert len(met) == len(set(met))
    assert possible <= set(met)
    assert (await visitor.ask(DRAW_MATCHUP))["progress"] == {"seen": 0, "remaining": 6}
    board = await one_client.ask(BOARD_COUNTS)
    assert (board["contenderCount"], board["pairCount"]) == (4, 6)
    await assert_consistent(one_client)


async def test_the_first_contender_makes_the_board_main(one_table: Table) -> None:
    """Before any service has started, as an import may; another board has to be created first."""
    now = utc_now()
    for ordinal, name in enumerate(("Ada", "Bob")):
        change = ContenderChange(name, name)
        assert (await add_contender(one_table, "main", change, now, UnitOfWork.unkeyed(now))).ordinal == ordinal
    assert (await board_now(one_table)).board.size == 2
    with pytest.raises(NotFound):
        await add_contender(one_table, "other", ContenderChange("1", "Ada"), now, UnitOfWork.unkeyed(now))


async def test_a_board_with_one_contender_is_exhausted(client: Client) -> None:
    """Fewer than two in the running: EXHAUSTED; no board: NOT_FOUND, or null, or nothing."""
    assert await client.code(DRAW_MATCHUP, board="none") == "NOT_FOUND"
    assert await client.ask('{ board(slug: "none") { slug } }') is None
    assert await client.ask('{ leaderboard(board: "none") { totalCount } }') == {"totalCount": 0}
    ids = await add_contenders(client, "a", "b")
    await editor(client).ask(RETIRE_CONTENDER, input={"contender": ids[1]})
    assert await client.code(DRAW_MATCHUP) == "EXHAUSTED"
    assert await client.code(DRAW_MATCHUP, board="No such!") == "NOT_FOUND"


@pytest.mark.quick
@pytest.mark.every_engine
async def test_a_ballot_counts_once(client: Client) -> None:
    """Ten at once with one ballot: one is counted, all get the same answer; another verdict is refused."""
    await add_contenders(client, "a", "b")
    visitor = client.visitor()
    ballot = await visitor.ask(DRAW_MATCHUP)
    answers = await gather(*(visitor.ask(CAST_VOTE, token=ballot["token"], verdict="RIGHT") for _ in range(10)))
    assert all(answer == answers[0] for answer in answers)
    assert answers[0]["winner"] == ballot["right"]
    for verdict in ("LEFT", "TIE", "SKIP"):
        assert await visitor.code(CAST_VOTE, token=ballot["token"], verdict=verdict) == "TOKEN_SPENT"
    await settle_votes(client)
    assert (await client.ask(BOARD_COUNTS))["votes"] == 1
    await assert_consistent(client)


@pytest.mark.parametrize("failure", [None, StorageFailed("its disk is full")])
async def test_a_vote_does_not_wait_for_its_board(one_client: Client, failure: Exception | None) -> None:
    """A process that has counted a vote on a board counts the next while it reads the board, and if it cannot."""
    await add_contenders(one_client, "a", "b", "c", "d")
    cache = one_client.services.cache
    clock = cache.clock
    one_client.keep_what_it_read()  # a vote five seconds later would read its board first
    visitor = one_client.visitor()
    voter = (await vote(visitor))["ballot"]["voter"]
    token = (await visitor.ask(DRAW_MATCHUP))["token"]
    boards, counted, held = one_client.services.get(BoardCache).boards, Event(), list[str]()

    async def read_later(_: str, send: Any) -> Any:
        if "BOARD#main" in str(send.keywords):
            held.append("the board")
            await counted.wait()
            if failure:
                raise failure
        return await send()

    async def votes() -> int:
        latest = await read_latest_vote(one_client.services.table, voter, "main")
        return latest.number if latest else 0

    with intercepted(one_client.services.table, ("query",), read_later):
        boards.outdate("main")
        voting = create_task(visitor.ask(CAST_ONLY, token=token))
        while await votes() < 2:
            await sleep(0.01)
        counted.set()
        assert (await voting)["progress"]["seen"] == 2
    assert held
    cache.clock = clock
    await assert_consistent(one_client)


async def test_a_ballot_is_valid_for_its_voter_only(one_client: Client) -> None:
    """Foreign, altered and old tokens are refused before the table is asked."""
    await add_contenders(one_client, "a", "b")
    visitor = one_client.visitor()
    token = (await visitor.ask(DRAW_MATCHUP))["token"]
    assert await one_client.visitor().code(CAST_VOTE, token=token, verdict="LEFT") == "TOKEN_UNKNOWN"
    assert await one_client.member("ada").code(CAST_VOTE, token=token, verdict="LEFT") == "TOKEN_UNKNOWN"
    for altered in (token[:-1] + ("A" if token[-1] != "A" else "B"), token[5:], token + "A", "", "x" * 9000, "é"):
        assert await visitor.code(CAST_VOTE, token=altered, verdict="LEFT") == "TOKEN_UNKNOWN"
    clock = one_client.services.clock
    one_client.services.clock = lambda: clock() + timedelta(hours=24, seconds=1)
    assert await visitor.code(CAST_VOTE, token=token, verdict="LEFT") == "TOKEN_EXPIRED"
    one_client.services.clock = clock
    assert (await visitor.ask(CAST_VOTE, token=token, verdict="TIE"))["winner"] is None


async def test_a_repeated_vote_shows_the_record_of_its_pair_now(client: Client) -> None:
    """With what others have voted meanwhile, and counted once itself; its winner is the same."""
    await add_contenders(client, "a", "b")
    ada = client.member("ada")
    first = await vote(ada, "LEFT")
    await vote(client.member("bob"), "TIE")
    repeat = await ada.ask(CAST_VOTE, token=first["ballot"]["token"], verdict="LEFT")
    assert repeat["winner"] == first["winner"]
    assert [answer["matchup"]["leftWins"] for answer in (first, repeat)] == [1, 1]
    assert [answer["matchup"]["votes"] for answer in (first, repeat)] == [1, 2]


async def test_a_counted_vote_is_answered_again_after_its_ballot_expired(client: Client) -> None:
    """The same verdict gets the same answer, another one is refused as spent, and an unused ballot as expired."""
    await add_contenders(client, "a", "b", "c")
    visitor = client.visitor()
    token = (await visitor.ask(DRAW_MATCHUP))["token"]
    counted = await visitor.ask(CAST_VOTE, token=token, verdict="LEFT")
    unused = (await visitor.ask(DRAW_MATCHUP))["token"]
    clock = client.services.clock
    client.services.clock = lambda: clock() + timedelta(hours=24, seconds=1)
    assert await visitor.ask(CAST_VOTE, token=token, verdict="LEFT") == counted
    for verdict in ("RIGHT", "TIE", "SKIP"):
        assert await visitor.code(CAST_VOTE, token=token, verdict=verdict) == "TOKEN_SPENT"
    assert await visitor.code(CAST_VOTE, token=unused, verdict="LEFT") == "TOKEN_EXPIRED"
    client.services.clock = clock
    await settle_votes(client)
    assert (await client.ask(BOARD_COUNTS))["votes"] == 1
    await assert_consistent(client)


@pytest.mark.quick
@pytest.mark.lagging
async def test_ranks_are_shared_across_pages(client: Client) -> None:
    """1, 1, 3; ties by name without regard to case; pages put together are the whole."""
    ids = await add_contenders(client, "delta", "Bravo", "alpha", "charlie", "echo")
    for number in range(4):
        await vote(client.member(f"voter-{number}"))
    await settle_votes(client)
    await client.caught_up("the leaderboard has every contender in their place")
    whole = (await client.ask(LEADERBOARD))["nodes"]
    expected = sorted(whole, key=lambda row: (-row["score"], row["contender"]["name"].casefold()))
    assert whole == expected
    for row in whole:
        assert row["rank"] == 1 + sum(other["score"] > row["score"] for other in whole) == row["contender"]["rank"]
        assert row["score"] == row["wins"] - row["losses"]
    for size in (1, 2, 3):
        paged, after = [], None
        while True:
            page = await client.ask(LEADERBOARD, first=size, after=after)
            paged += page["nodes"]
            after = page["pageInfo"]["endCursor"]
            assert page["totalCount"] == 5
            if not page["pageInfo"]["hasNextPage"]:
                break
        assert paged == whole
    await editor(client).ask(RETIRE_CONTENDER, input={"contender": ids[0]})
    await client.caught_up("a retired contender leaves the leaderboard")
    assert "delta" not in [row["contender"]["name"] for row in (await client.ask(LEADERBOARD))["nodes"]]
    assert after is not None
    assert await client.code(LEADERBOARD, after=after[:-2] + "AA") == "INVALID_CURSOR"


@pytest.mark.lagging
async def test_a_name_is_listed_after_those_that_go_on_from_it_with_a_space(client: Client) -> None:
    """As the schema describes it: equal scores by name, character by character, whoever joined first."""
    names = ["Ana Maria", 'ana "Bee"', "Ana!", "Ana", "ana-Lena", "Anabel"]
    expected = sorted(names, key=lambda name: f"{name.casefold()}#")
    await add_contenders(client, *reversed(names))
    await client.caught_up("the leaderboard has every contender")
    listed = [row["contender"]["name"] for row in (await client.ask(LEADERBOARD))["nodes"]]
    assert listed == expected == ['ana "Bee"', "Ana Maria", "Ana!", "Ana", "ana-Lena", "Anabel"]


@pytest.mark.lagging
async def test_a_matchup_is_the_same_in_either_order(client: Client) -> None:
    """One pair's record, one contender's, the board's: the same numbers from every side."""
    ids = await add_contenders(client, "a", "b", "c")
    for number in range(3):
        for verdict in ("LEFT", "TIE", "SKIP"):
            await vote(client.member(f"voter-{number}"), verdict)
    query = """query ($left: ID!, $right: ID!) { matchup(left: $left, right: $right) {
      left { name } right { name } leftWins rightWins ties votes } }"""
    total = 0
    for left, right in combinations(ids, 2):
        one, other = await client.ask(query, left=left, right=right), await client.ask(query, left=right, right=left)
        assert (one["leftWins"], one["rightWins"], one["ties"]) == (
            other["rightWins"],
            other["leftWins"],
            other["ties"],
        )
        total += one["votes"]
    assert total == 6
    await client.caught_up("lists of matchups show every vote")
    listed: list[dict[str, Any]] = []
    after = None
    while True:
        page = await client.ask(RECORDS, after=after)
        listed += page["nodes"]
        after = page["pageInfo"]["endCursor"]
        if not page["pageInfo"]["hasNextPage"]:
            break
    assert sum(record["votes"] for record in listed) == 6
    for contender in ids:
        both = await client.ask(RECORDS_OF_ONE, id=contender)
        mine, own = both["matchups"], both["contender"]
        assert mine == own["matchups"]
        assert all(record["left"]["id"] == contender for record in mine["nodes"])
        assert sum(record["votes"] for record in mine["nodes"]) == sum(
            record["votes"] for record in listed if contender in (record["left"]["id"], record["right"]["id"])
        )
    strange = node_id("Contender", "main/77")
    lookup = "query ($left: ID!, $right: ID!) { matchup(left: $left, right: $right) { votes } }"
    assert await client.ask(lookup, left=ids[0], right=strange) is None
    assert await client.code(lookup, left=ids[0], right=ids[0]) == "BAD_USER_INPUT"


async def test_a_voter_s_votes_are_voided_once(client: Client) -> None:
    """All votes of one voter go, once; the others' stay, and the sums are exact."""
    await add_contenders(client, "a", "b", "c")
    good, bad = client.member("good"), client.visitor()
    for verdict in ("LEFT", "TIE", "RIGHT"):
        await vote(good, verdict)
        spent = await vote(bad, verdict)
    voter = spent["ballot"]["voter"]
    assert await good.code(VOID_VOTER, input={"voter": voter}) == "NOT_ALLOWED"
    one = editor(client)
    assert await one.ask(VOID_VOTER, input={"voter": voter, "idempotencyKey": "1"}) == {"votesRemoved": 3}
    assert await one.ask(VOID_VOTER, input={"voter": voter, "idempotencyKey": "1"}) == {"votesRemoved": 3}
    assert await one.ask(VOID_VOTER, input={"voter": voter}) == {"votesRemoved": 0}
    assert (await client.ask(BOARD_COUNTS))["votes"] == 3
    await assert_consistent(client)
    assert await one.ask(VOID_VOTER, input={"voter": node_id("User", "good")}) == {"votesRemoved": 3}
    assert (await client.ask(BOARD_COUNTS))["votes"] == 0
    for wrong in ("a#b", "x" * 129, node_id("User", "x" * 129), "x" * 3000):
        assert await one.code(VOID_VOTER, input={"voter": wrong}) == "INVALID_INPUT"
    assert await one.code(VOID_VOTER, input={"voter": "x", "board": "none"}) == "NOT_FOUND"
    await assert_consistent(client)


@pytest.mark.lagging
async def test_one_request_adds_one_contender(client: Client) -> None:
    """A repeat with the same key answers the same; ten at once with the same name, one joins."""
    one = editor(client)
    first = await one.ask(ADD_CONTENDER, input={"name": "Ada", "idempotencyKey": "k"})
    assert await one.ask(ADD_CONTENDER, input={"name": "Ada", "idempotencyKey": "k"}) == first
    assert await one.code(ADD_CONTENDER, input={"name": "Eve", "idempotencyKey": "k"}) == "IDEMPOTENCY_MISMATCH"
    answers = await gather(*(one.answer(ADD_CONTENDER, input={"name": "Bob"}) for _ in range(5)))
    codes = [answer["data"]["addContender"].get("code") for answer in answers]
    assert sorted(codes, key=str) == ["CONFLICT"] * 4 + [None]
    await gather(*(one.ask(ADD_CONTENDER, input={"name": f"n{number}"}) for number in range(5)))
    await client.caught_up("every contender is listed")
    listed = await client.ask("{ contenders { totalCount nodes { id name } } }")
    assert listed["totalCount"] == len(listed["nodes"]) == 7
    assert sorted(int(parse_node_id(node["id"])[1].split("/")[1]) for node in listed["nodes"]) == list(range(7))


@pytest.mark.lagging
async def test_a_repeated_retirement_changes_nothing_later(client: Client) -> None:
    """Its key is taken also when there was nothing to do: a repeat answers the same, another input is refused."""
    first, second = await add_contenders(client, "a", "b")
    one = editor(client)
    for key, do, undo in (("1", RETIRE_CONTENDER, RESTORE_CONTENDER), ("2", RESTORE_CONTENDER, RETIRE_CONTENDER)):
        await one.ask(do, input={"contender": first})
        answers = [await one.ask(do, input={"contender": first, "idempotencyKey": key})]
        undone = (await one.ask(undo, input={"contender": first}))["contender"]["retired"]
        answers.append(await one.ask(do, input={"contender": first, "idempotencyKey": key}))
        assert [answer["contender"]["retired"] for answer in answers] == [not undone, not undone]
        await client.caught_up("the contender is as it was left")
        assert await client.ask("query ($id: ID!) { contender(id: $id) { retired } }", id=first) == {"retired": undone}
        assert await one.code(do, input={"contender": second, "idempotencyKey": key}) == "IDEMPOTENCY_MISMATCH"
