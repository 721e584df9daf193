"""Boards whose results are hidden until they close, or until the viewer has voted: through every field and stream."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

import pytest

from datastore.dynamo import Table, iso
from datastore.voting.votes import VOTE
from resolvers.requests.context import Context, Kind, Role, Viewer, utc_now
from resolvers.voting import boards as board_resolvers
from resolvers.voting import settling
from resolvers.voting.continuing import continue_walks
from server.auth.tokens import Tokens, mint
from tests.api_keys import create_api_key
from tests.client import Client, serving
from tests.conftest import settings_for
from tests.engines import RunningEngine
from tests.queries import CAST_VOTE, CREATE_BOARD, DRAW_MATCHUP, VOID_VOTER, mutation
from tests.voting import add_contenders, assert_consistent, editor, read_keys, settle_votes, vote
from tests.waiting import LONGEST

UPDATE = mutation("updateBoard", "BoardUpdated", "board { resultsVisible resultsHidden }")

COUNTS = "wins losses ties score winRate rank"
PAGE = "pageInfo { hasNextPage hasPreviousPage startCursor endCursor }"
CONTENDER = f"id name retired createdAt {COUNTS}"
MATCHUP = f"left {{ {CONTENDER} }} right {{ {CONTENDER} }} leftWins rightWins ties votes"
MATCHUPS = f"matchups {{ {PAGE} edges {{ cursor node {{ {MATCHUP} }} }} nodes {{ {MATCHUP} }} }}"
FULL_CONTENDER = f"{CONTENDER} {MATCHUPS} board {{ slug votes }}"
ROWS = f"rank wins losses ties score strength {{ value low high }} contender {{ {CONTENDER} }}"
LEADERBOARD = f"totalCount resultsHidden {PAGE} edges {{ cursor node {{ {ROWS} }} }} nodes {{ {ROWS} }}"
BOARD = f"""
  id slug title votes resultsVisible resultsHidden closed contenderCount pairCount progress {{ seen remaining }}
  contenders {{ totalCount {PAGE} edges {{ cursor node {{ {CONTENDER} }} }} }} leaderboard {{ {LEADERBOARD} }}"""
LEFT, BY_SLUG, BY_ID = "($left: ID!)", "($board: String!)", "($boardId: ID!)"
QUERIES = {
    "board": f"query {BY_SLUG} {{ board(slug: $board) {{ {BOARD} }} }}",
    "node": f"query {BY_ID} {{ node(id: $boardId) {{ ... on Board {{ {BOARD} }} }} }}",
    "boards": "{ boards { nodes { slug votes resultsHidden leaderboard(first: 5) { totalCount nodes { rank } } } } }",
    "contenderNode": f"query {LEFT} {{ node(id: $left) {{ ... on Contender {{ {FULL_CONTENDER} }} }} }}",
    "nodes": f"query {LEFT} {{ nodes(ids: [$left]) {{ ... on Contender {{ {FULL_CONTENDER} }} }} }}",
    "contender": f"query {LEFT} {{ contender(id: $left) {{ {FULL_CONTENDER} }} }}",
    "retired": f"query ($retired: ID!) {{ contender(id: $retired) {{ {FULL_CONTENDER} }} }}",
    "contenders": f"query {BY_SLUG} {{ contenders(board: $board) {{ totalCount {PAGE} nodes {{ {CONTENDER} }} }} }}",
    "leaderboard": f"query {BY_SLUG} {{ leaderboard(board: $board) {{ {LEADERBOARD} }} }}",
    "matchup": f"query ($left: ID!, $right: ID!) {{ matchup(left: $left, right: $right) {{ {MATCHUP} }} }}",
    "matchups": f"query {BY_SLUG} {{ matchups(board: $board) {{ {PAGE} nodes {{ {MATCHUP} }} }} }}",
    "of": f"query {LEFT} {{ matchups(contender: $left) {{ {PAGE} nodes {{ {MATCHUP} }} }} }}",
}
"""All that the schema shows of a board, through each query that leads to it."""


async def everything(client: Client, ids: dict[str, str]) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    for name, query in QUERIES.items():
        named = {key: value for key, value in ids.items() if f"${key}:" in query}
        answers[name] = await client.ask(query, **named)
    boards = answers["boards"]["nodes"]
    answers["boards"] = next(board for board in boards if board["slug"] == ids["board"])
    return answers


NAMES = ("a", "b", "c", "d")


async def change(client: Client, **fields: Any) -> dict[str, Any]:
    answer: dict[str, Any] = await editor(client).ask(UPDATE, input={"slug": "main", **fields})
    return answer


async def create(client: Client, board: str) -> dict[str, str]:
    """A board with four contenders, one of them retired; the variables of `QUERIES`."""
    made = (await editor(client).ask(CREATE_BOARD, input={"slug": board, "title": "Board"}))["board"]
    left, right, _, last = await add_contenders(client, *NAMES, board=board)
    retire = """mutation ($id: ID!) { retireContender(input: { contender: $id }) {
      ... on ContenderRetired { contender { id } } } }"""
    await editor(client).ask(retire, id=last)
    return {"board": board, "boardId": made["id"], "left": left, "right": right, "retired": last}


def without_ids(answer: Any, ids: dict[str, str]) -> str:
    """An answer as text, in which neither board has a name of its own."""
    text = json.dumps(answer)
    text = text.replace(f'"{ids["board"]}"', '"BOARD"')
    text = re.sub(r'"(id|startCursor|endCursor|cursor)": "[^"]*"', r'"\1": "…"', text)
    return re.sub(r'"createdAt": "[^"]*"', '"createdAt": "…"', text)


def numbers_in(answer: Any, names: frozenset[str] = frozenset(COUNTS.split()) | {"votes", "leftWins"}) -> set[Any]:
    """The values of all fields that show results."""
    if isinstance(answer, list):
        return set(chain.from_iterable(map(numbers_in, answer)))
    if not isinstance(answer, dict):
        return set()
    own = {value for name, value in answer.items() if name in names}
    return own | set(chain.from_iterable(map(numbers_in, answer.values())))


@asynccontextmanager
async def listening(client: Client, viewer: Viewer, board: str) -> AsyncIterator[asyncio.Queue[list[Any]]]:
    """What `leaderboardChanged` sends to a viewer."""
    told: asyncio.Queue[list[Any]] = asyncio.Queue()
    stream = board_resolvers.leaderboard_changed(Context(client.services, viewer), board=board)

    async def listen() -> None:
        async with aclosing(stream) as rows:
            async for each in rows:
                told.put_nowait([(row.contender.name, row.wins, row.ties) for row in each])

    task = asyncio.create_task(listen())
    try:
        yield told
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def next_rows(told: asyncio.Queue[list[Any]]) -> list[Any]:
    async with asyncio.timeout(LONGEST):
        return await told.get()


def visitor(name: str = "v") -> Viewer:
    return Viewer(f"visitor.{name}", Kind.VISITOR)


@pytest.mark.parametrize("mode", ["AFTER_CLOSE", "AFTER_VOTING"])
async def test_boards_that_differ_in_their_votes_only_are_the_same_to_a_visitor(client: Client, mode: str) -> None:
    """Byte for byte, ids and times of creation apart: without votes, with them, while some are cast and voided."""
    one, other = await create(client, "one"), await create(client, "other")
    for board in ("one", "other"):
        await editor(client).ask(UPDATE, input={"slug": board, "resultsVisible": mode})
    curious = client.visitor()
    member = client.member("bystander")
    moderator = client.member("mod", Role.MODERATOR)

    async def same(viewer: Client) -> None:
        seen = [without_ids(await everything(viewer, ids), ids) for ids in (one, other)]
        assert seen[0] == seen[1]
        assert numbers_in(json.loads(seen[0])) == {None}

    await same(curious)
    voters = [client.member(f"ada{number}") for number in range(4)]
    for voter, verdict in zip(voters, ("LEFT", "TIE", "RIGHT", "LEFT"), strict=True):
        await vote(voter, verdict, "other")
        await same(curious)
    await settle_votes(client, "other")
    for viewer in (curious, member, moderator):
        await same(viewer)
    draws = [without_ids(await curious.ask(DRAW_MATCHUP, board=ids["board"]), ids) for ids in (one, other)]
    shapes = [re.sub(r'"(token|expiresAt|name)": "[^"]*"', "", text) for text in draws]
    assert shapes[0] == shapes[1]
    assert (await everything(editor(client), other))["board"]["votes"] == 4
    await editor(client).ask(VOID_VOTER, input={"voter": "ada0", "board": "other"})
    await same(curious)


async def test_editors_and_admins_see_results_while_they_are_hidden(client: Client) -> None:
    """Also keys with these roles; moderators, members and keys without a role do not."""
    ids = await create(client, "cup")
    await editor(client).ask(UPDATE, input={"slug": "cup", "resultsVisible": "AFTER_CLOSE"})
    await vote(client.member("ada"), "LEFT", "cup")
    await settle_votes(client, "cup")
    keys = {role: (await create_api_key(client, role))["secret"] for role in (Role.EDITOR, Role.MODERATOR)}
    for viewer, sees in (
        (client.member("boss", Role.ADMIN), True),
        (editor(client), True),
        (Client(client.served, client.settings, keys[Role.EDITOR]), True),
        (client.member("mod", Role.MODERATOR), False),
        (Client(client.served, client.settings, keys[Role.MODERATOR]), False),
        (client.member("ada"), False),
        (client.visitor(), False),
    ):
        seen = await everything(viewer, ids)
        assert seen["board"]["resultsHidden"] is not sees
        assert seen["leaderboard"]["resultsHidden"] is not sees
        assert seen["board"]["votes"] == (1 if sees else None)
        assert seen["leaderboard"]["totalCount"] == (3 if sees else 0)
        assert len(seen["matchups"]["nodes"]) == (1 if sees else 0)


async def test_results_show_from_the_moment_of_closing(client: Client) -> None:
    """Not a millisecond before; and again not, if the board is opened again."""
    ids = await create(client, "cup")
    now = utc_now()
    closes = now + timedelta(minutes=1)
    settings = {"slug": "cup", "resultsVisible": "AFTER_CLOSE", "closesAt": iso(closes)}
    await editor(client).ask(UPDATE, input=settings)
    ada = client.member("ada")
    cast = await vote(ada, "LEFT", "cup")
    assert cast["matchup"] is None
    assert cast["winner"]["id"]
    await settle_votes(client, "cup")

    async def votes_at(moment: datetime) -> Any:
        client.services.clock = lambda: moment
        seen = await everything(client, ids)
        hidden = seen["board"]["resultsHidden"]
        assert seen["leaderboard"]["resultsHidden"] is hidden
        assert (numbers_in(seen) == {None}) is hidden
        return seen["board"]["votes"]

    assert await votes_at(closes - timedelta(milliseconds=1)) is None
    assert await votes_at(closes) == 1
    client.services.clock = utc_now
    await editor(client).ask(UPDATE, input={"slug": "cup", "closesAt": None})
    assert await votes_at(closes) is None
    await editor(client).ask(UPDATE, input={"slug": "cup", "resultsVisible": "ALWAYS"})
    assert await votes_at(closes) == 1


async def test_results_show_to_those_whose_vote_counts(client: Client) -> None:
    """A skip is none, a tie is one; each viewer by their own votes; the vote's own answer shows the pair's record."""
    ids = await create(client, "cup")
    await editor(client).ask(UPDATE, input={"slug": "cup", "resultsVisible": "AFTER_VOTING"})
    await vote(client.member("bob"), "LEFT", "cup")
    await settle_votes(client, "cup")
    ada = client.member("ada")

    async def hidden() -> bool:
        seen = await everything(ada, ids)
        assert (numbers_in(seen) == {None}) is seen["board"]["resultsHidden"]
        return bool(seen["board"]["resultsHidden"])

    assert await hidden()
    skipped = await vote(ada, "SKIP", "cup")
    assert skipped["matchup"] is None
    assert await hidden()
    tied = await vote(ada, "TIE", "cup")
    assert tied["matchup"]["ties"] == 1
    assert not await hidden()
    await vote(ada, "SKIP", "cup")
    assert not await hidden()
    assert (await everything(client, ids))["board"]["resultsHidden"]
    await editor(client).ask(VOID_VOTER, input={"voter": "ada", "board": "cup"})
    assert await hidden()
    await settle_votes(client, "cup")
    await vote(ada, "RIGHT", "cup")
    assert not await hidden()
    await assert_consistent(client, "cup")


async def test_a_repeated_vote_that_was_voided_shows_nothing(client: Client) -> None:
    """Its answer is the same as before but for the results."""
    await create(client, "cup")
    await editor(client).ask(UPDATE, input={"slug": "cup", "resultsVisible": "AFTER_VOTING"})
    ada = client.member("ada")
    token = (await ada.ask(DRAW_MATCHUP, board="cup"))["token"]
    counted = await ada.ask(CAST_VOTE, token=token, verdict="LEFT")
    assert counted["matchup"]["votes"] == 1
    await editor(client).ask(VOID_VOTER, input={"voter": "ada", "board": "cup"})
    again = await ada.ask(CAST_VOTE, token=token, verdict="LEFT")
    assert again == {**counted, "matchup": None}


async def test_who_was_an_editor_sees_no_hidden_results_in_an_answer_told_again(client: Client) -> None:
    """Its receipt is of a time when results were shown; whether they are hidden is asked of the board as it is now."""
    await create(client, "cup")
    await vote(client.member("ada"), "LEFT", "cup")
    await settle_votes(client, "cup")
    update, given = mutation("updateBoard", "BoardUpdated", f"board {{ {BOARD} }}"), {"slug": "cup", "title": "Cup"}
    told = await editor(client).ask(update, input={**given, "idempotencyKey": "once"})
    assert told["board"]["votes"] == 1
    await editor(client).ask(UPDATE, input={"slug": "cup", "resultsVisible": "AFTER_CLOSE"})
    assert await editor(client).ask(update, input={**given, "idempotencyKey": "once"}) == told
    told_again = (await client.member("editor").ask(update, input={**given, "idempotencyKey": "once"}))["board"]
    assert numbers_in(told_again) == {None}
    assert told_again["resultsHidden"] is told_again["leaderboard"]["resultsHidden"] is True


async def test_results_are_sent_to_who_goes_on_as_a_member(client: Client) -> None:
    """Who voted as a visitor and signs in sees them at once, and not only after somebody else's vote."""
    await create(client, "cup")
    await editor(client).ask(UPDATE, input={"slug": "cup", "resultsVisible": "AFTER_VOTING"})
    await vote(client, "LEFT", "cup")
    await settle_votes(client, "cup")
    [voter] = {one.voter async for one in client.services.table.scan(VOTE, consistent=True)}
    sees = Viewer("e", Kind.MEMBER, roles=frozenset({Role.EDITOR}))
    async with listening(client, Viewer("ada", Kind.MEMBER), "cup") as told, listening(client, sees, "cup") as begun:
        await next_rows(begun)
        assert told.empty()
        await continue_walks(client.services, voter, "ada")
        assert await next_rows(told)


async def test_results_are_sent_to_who_becomes_a_member_by_voting(one_client: Client) -> None:
    """Their stream began with a token by which nobody had written anything yet."""
    await create(one_client, "cup")
    await editor(one_client).ask(UPDATE, input={"slug": "cup", "resultsVisible": "AFTER_VOTING"})
    nobody, _ = await Tokens(one_client.settings).member(mint(one_client.settings, "ada"))
    sees = Viewer("e", Kind.MEMBER, roles=frozenset({Role.EDITOR}))
    async with listening(one_client, nobody, "cup") as told, listening(one_client, sees, "cup") as begun:
        await next_rows(begun)
        assert told.empty()
        await vote(one_client.member("ada"), "LEFT", "cup")
        await settle_votes(one_client, "cup")
        assert await next_rows(told)


async def test_many_skips_do_not_hide_an_earlier_vote(one_client: Client) -> None:
    """The one vote that counts is found behind the skips of a whole cycle."""
    names = [f"c{number:02d}" for number in range(12)]
    await add_contenders(one_client, *names)
    await change(one_client, resultsVisible="AFTER_VOTING")
    ada = one_client.member("ada")
    await vote(ada)
    for _ in range(40):
        await vote(ada, "SKIP")
    one_client.services.cache.clock = lambda: asyncio.get_running_loop().time() + 1e6
    assert (await ada.ask("{ board { resultsHidden } }"))["resultsHidden"] is False


async def test_a_stream_sends_nothing_before_the_board_closes(one_client: Client) -> None:
    """Then the first rows, although no vote has changed them."""
    await create(one_client, "cup")
    closes = utc_now() + timedelta(hours=1)
    settings = {"slug": "cup", "resultsVisible": "AFTER_CLOSE", "closesAt": iso(closes)}
    await editor(one_client).ask(UPDATE, input=settings)
    async with (
        listening(one_client, visitor(), "cup") as told,
        listening(one_client, Viewer("e", Kind.MEMBER, roles=frozenset({Role.EDITOR})), "cup") as told_to_editor,
    ):
        assert await next_rows(told_to_editor) == [("a", 0, 0), ("b", 0, 0), ("c", 0, 0)]
        await vote(one_client.member("ada"), "LEFT", "cup")
        await settle_votes(one_client, "cup")
        rows = await next_rows(told_to_editor)
        assert sum(wins for _, wins, _ in rows) == 1
        assert told.empty()
        one_client.services.clock = lambda: closes
        assert await next_rows(told) == rows


async def test_a_stream_begins_with_the_viewer_s_own_vote(one_client: Client) -> None:
    """And ends to tell once that vote is voided."""
    await create(one_client, "cup")
    await editor(one_client).ask(UPDATE, input={"slug": "cup", "resultsVisible": "AFTER_VOTING"})
    member = Viewer("ada", Kind.MEMBER)
    async with listening(one_client, member, "cup") as told, listening(one_client, visitor(), "cup") as others:
        await vote(one_client.member("bob"), "LEFT", "cup")
        await settle_votes(one_client, "cup")
        await vote(one_client.member("ada"), "SKIP", "cup")
        await vote(one_client.member("ada"), "TIE", "cup")
        await settle_votes(one_client, "cup")
        rows = await next_rows(told)
        while not any(ties for _, _, ties in rows):  # a look between the vote and its settling
            rows = await next_rows(told)
        assert (sum(wins for _, wins, _ in rows), sum(ties for _, _, ties in rows)) == (1, 2)
        assert others.empty()
        await editor(one_client).ask(VOID_VOTER, input={"voter": "ada", "board": "cup"})
        while not told.empty():
            told.get_nowait()
        await vote(one_client.member("cleo"), "LEFT", "cup")
        await settle_votes(one_client, "cup")
        async with listening(one_client, Viewer("cleo", Kind.MEMBER), "cup") as third:
            assert await next_rows(third)
        assert told.empty()


async def test_another_process_knows_that_the_viewer_has_voted(default_engine: RunningEngine, one_table: Table) -> None:
    """At once where it has not looked before; and that the vote was voided, within seconds."""
    settings = settings_for(default_engine, one_table.name)
    async with serving(settings) as first, serving(settings) as second:
        await add_contenders(first, "a", "b", "c")
        await change(first, resultsVisible="AFTER_VOTING")
        ada = first.member("ada")
        elsewhere = second.member("ada")
        await vote(ada)
        assert (await elsewhere.ask("{ board { resultsHidden } }"))["resultsHidden"] is False
        await editor(first).ask(VOID_VOTER, input={"voter": "ada"})
        clock = second.services.cache.clock
        second.services.cache.clock = lambda: clock() + settling.VOTED_SECONDS
        assert (await elsewhere.ask("{ board { resultsHidden } }"))["resultsHidden"] is True


async def test_hidden_results_are_not_read(one_client: Client) -> None:
    """Nor waited for: how long a name takes would tell that somebody votes."""
    [contender, *_] = await add_contenders(one_client, "a", "b", "c")
    await change(one_client, resultsVisible="AFTER_CLOSE")
    await vote(one_client.member("ada"))
    await settle_votes(one_client)
    async with serving(one_client.settings) as second:
        with read_keys(second.services.table) as keys:
            shown = await second.ask("query ($id: ID!) { contender(id: $id) { name wins } }", id=contender)
    assert (shown["name"], shown["wins"]) == ("a", None)
    assert [key for key in keys if "RESULTS#" in key] == []


@pytest.mark.parametrize("mode", ["AFTER_CLOSE", "AFTER_VOTING"])
async def test_a_vote_does_not_look_for_earlier_ones(one_client: Client, mode: str) -> None:
    """Neither before it is counted nor for its answer: the vote itself says that there is one."""
    await add_contenders(one_client, "a", "b", "c")
    await change(one_client, resultsVisible=mode)
    voter = one_client.member("ada")
    token = (await voter.ask(DRAW_MATCHUP))["token"]
    with read_keys(one_client.services.table) as keys:
        answer = await voter.ask(CAST_VOTE, token=token, verdict="LEFT")
    assert answer["progress"]["seen"] == 1
    assert [key for key in keys if "VOTER#ada" in key] == []
