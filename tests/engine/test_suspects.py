"""Looking for suspects over the API: a job, what it shows, and voiding whom it found."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from datastore.dynamo import ConditionFailed, Table
from datastore.voting.suspects import SuspectSearch, read_search, search_put, show_search
from resolvers.requests.context import Role, utc_now
from resolvers.values.node_ids import node_id, parse_node_id
from resolvers.voting.suspect_search import by_voter
from tests.client import Client, serving
from tests.conftest import settings_for
from tests.engines import RunningEngine
from tests.erasing import ERASE, admin
from tests.jobs import ended
from tests.queries import CAST_VOTE, CREATE_BOARD, DRAW_MATCHUP, VOID_VOTER, mutation
from tests.voting import add_contenders, assert_consistent, editor, settle_votes, vote

FIND = mutation("findSuspects", "SuspectsSought", "job { id kind }")
SUSPECTS = """query ($atMost: Float!, $first: Int, $after: String) {
  suspects(atMost: $atMost, first: $first, after: $after) {
    computedAt votesSeen expectedHonest pageInfo { hasNextPage endCursor }
    nodes { voter votes reasons probability changes { contender { name } rank without } } } }"""
VOID = mutation("voidVoters", "VotersVoided", "job { id }")
SIDES = ("LEFT", "RIGHT")
JOURNAL = "{ journal(first: 100) { nodes { kind actor object } } }"


async def sought(client: Client, board: str = "main") -> dict[str, Any]:
    """The job of a search that has ended."""
    answer = await editor(client).ask(FIND, input={"board": board})
    return await ended(editor(client), answer["job"]["id"])


async def found(client: Client, at_most: float = 0.1, **page: Any) -> dict[str, Any]:
    answer: dict[str, Any] = await editor(client).ask(SUSPECTS, atMost=at_most, **page)
    return answer


async def click_left(client: Client, name: str, times: int = 30) -> None:
    voter = client.member(name)
    for _ in range(times):
        await vote(voter, "LEFT")


async def test_a_voter_who_always_clicks_left_is_a_suspect(client: Client) -> None:
    """Under a pseudonym, with the votes, a reason and the ranks without them; `voidVoters` takes the pseudonym."""
    names = [f"contender {number}" for number in range(9)]
    await add_contenders(client, *names)
    assert (await found(client))["computedAt"] is None
    await click_left(client, "bot")
    for verdict in ("LEFT", "RIGHT", "TIE", "SKIP"):
        await vote(client.member("ada"), verdict)
    await settle_votes(client)
    assert (await sought(client))["message"] == "Votes seen: 33. Voters to look at: 1."
    answer = await found(client, 0.01)
    [suspect] = answer["nodes"]
    assert answer["votesSeen"] == 33
    assert answer["computedAt"]
    assert answer["expectedHonest"] == 0.01 * 2
    assert suspect["votes"] == 30
    assert "30 of 30 votes for the left side." in suspect["reasons"]
    assert "bot" not in suspect["voter"]
    assert {change["contender"]["name"] for change in suspect["changes"]} <= set(names)
    job = (await editor(client).ask(VOID, input={"board": "main", "voters": [suspect["voter"]]}))["job"]["id"]
    assert (await ended(editor(client), job))["message"] == "Votes voided: 30."
    await assert_consistent(client)
    await sought(client)
    assert (await found(client, 0.01))["nodes"] == []
    await client.caught_up("the journal lists what was done")
    told = (await client.member("mod", Role.MODERATOR).ask(JOURNAL))["nodes"]
    searches = [(each["actor"], each["object"]) for each in told if each["kind"] == "suspects.sought"]
    assert searches == [(node_id("User", "editor"), node_id("Board", "main"))] * 2
    assert not any("bot" in parse_node_id(each["object"])[1] for each in told)


async def test_a_board_without_contenders_has_no_suspects(client: Client) -> None:
    """A search there ends like any other."""
    await editor(client).ask(CREATE_BOARD, input={"slug": "bare", "title": "Bare"})
    job = await sought(client, "bare")
    assert (job["state"], job["message"]) == ("DONE", "Votes seen: 0. Voters to look at: 0.")


async def test_a_group_is_told_by_the_contender_it_votes_for(client: Client) -> None:
    """And by its rank without the group; the reasons of its voters have numbers of their own only."""
    await add_contenders(client, *(f"contender {number}" for number in range(9)))
    now = client.services.clock()
    client.services.clock = lambda: now  # all votes are as fast as on a quick machine, which is a reason of its own

    async def walk(number: int) -> None:
        """Four vote for a favourite and skip all pairs without it. Of the eight others half take either side."""
        voter = client.member(f"voter {number}")
        for _ in range(30):
            ballot = await voter.ask(DRAW_MATCHUP, board="main")
            sides = [ballot["left"]["name"], ballot["right"]["name"]]
            if number < 4:
                verdict = SIDES[sides.index("contender 4")] if "contender 4" in sides else "SKIP"
            else:
                for_first = number in Random(str(sorted(sides))).sample(range(4, 12), 4)
                verdict = SIDES[sides.index(min(sides) if for_first else max(sides))]
            await voter.ask(CAST_VOTE, token=ballot["token"], verdict=verdict)

    await asyncio.gather(*map(walk, range(4, 12)))
    await asyncio.gather(*map(walk, range(4)))
    await settle_votes(client)
    message = (await sought(client))["message"]
    assert "A group seems to vote for contender 4: rank 1, " in message
    assert "voter" not in message.split("A group")[1]
    reasons = [reason for each in (await found(client))["nodes"] for reason in each["reasons"]]
    assert any("with a contender that a group votes for were votes for it." in reason for reason in reasons)
    assert not any("contender 4" in reason for reason in reasons)


async def test_pages_go_on_where_the_last_one_ended(client: Client) -> None:
    """Everybody is a bot: all of them are listed once, also on a board of two contenders."""
    await add_contenders(client, "a", "b")
    for name in ("x", "y", "z"):
        await click_left(client, name)
    await sought(client)
    first = await found(client, first=2)
    rest = await found(client, first=2, after=first["pageInfo"]["endCursor"])
    voters = [each["voter"] for page in (first, rest) for each in page["nodes"]]
    assert len(set(voters)) == 3
    assert len(voters) == 3
    assert not rest["pageInfo"]["hasNextPage"]
    assert (await found(client, at_most=1e-13))["nodes"] == []


async def test_two_searches_at_once_are_one(default_engine: RunningEngine, one_table: Table) -> None:
    """Of two processes, too."""
    settings = settings_for(default_engine, one_table.name)
    async with serving(settings) as first, serving(settings) as second:
        await add_contenders(first, "a", "b", "c")
        await click_left(first, "bot", 5)
        asking = [editor(each).ask(FIND, input={"board": "main"}) for each in (first, second, first)]
        jobs = [each["job"]["id"] for each in await asyncio.gather(*asking)]
        assert len(set(jobs)) == 1
        assert (await ended(editor(first), jobs[0]))["state"] == "DONE"


async def test_what_a_search_has_found_is_shown_although_the_next_one_begins_as_it_ends(one_table: Table) -> None:
    """It ends after the next one has read it and before that is stored: the next one reads again."""
    first = SuspectSearch("main", "first", 1)
    await one_table.transact(search_put(first, None))
    await show_search(one_table, "main", "first", utc_now(), votes=30, voters=1)
    with pytest.raises(ConditionFailed):
        await one_table.transact(search_put(replace(first, job="next", version=2), first))
    assert (found := await read_search(one_table, "main"))
    assert (found.shown, found.votes) == ("first", 30)


async def test_an_erased_voter_is_a_suspect_no_more(client: Client) -> None:
    """Nor does their pseudonym stand for anybody."""
    await add_contenders(client, *(f"contender {number}" for number in range(9)))
    await click_left(client, "bot")
    await sought(client)
    [suspect] = (await found(client))["nodes"]
    erased = await admin(client).ask(ERASE, input={"user": node_id("User", "bot"), "contributions": "REMOVE"})
    await ended(admin(client), erased["job"]["id"])
    assert (await found(client))["nodes"] == []
    assert await editor(client).code(VOID, input={"board": "main", "voters": [suspect["voter"]]}) == "NOT_FOUND"


async def test_a_suspect_s_votes_are_voided_with_those_of_their_addresses(client: Client) -> None:
    """`voidVoter` takes the pseudonym, too, and nobody's is no voter with nothing to void."""
    await add_contenders(client, *(f"contender {number}" for number in range(9)))
    await click_left(client, "bot")
    await settle_votes(client)
    await sought(client)
    [suspect] = (await found(client))["nodes"]
    voided = await editor(client).ask(VOID_VOTER, input={"voter": suspect["voter"], "sameAddress": True})
    assert voided["votesRemoved"] == 30
    refused = await editor(client).ask(VOID_VOTER, input={"voter": f"suspect.{'0' * 32}"})
    assert (refused["code"], refused["path"]) == ("NOT_FOUND", ["input", "voter"])


async def test_a_search_knows_no_address_that_has_expired(one_client: Client) -> None:
    """Although the engine has not removed it yet."""
    await add_contenders(one_client, "a", "b")
    await vote(one_client.member("ada"))
    for days, known in ((7, 1), (9, 0)):
        [(_, networks)] = [
            each async for each in by_voter(one_client.services.table, "main", utc_now() + timedelta(days))
        ]
        assert len(networks) == known


async def test_a_search_of_a_month_ago_shows_nothing(client: Client) -> None:
    """What it found has been removed: there is not "nobody" among the votes."""
    await add_contenders(client, *(f"contender {number}" for number in range(9)))
    await click_left(client, "bot")
    await sought(client)
    assert (await found(client))["votesSeen"] == 30
    client.services.clock = lambda: utc_now() + timedelta(days=30)
    answer = await found(client)
    assert (answer["computedAt"], answer["votesSeen"], answer["nodes"]) == (None, 0, [])


async def test_who_may_not_look_for_suspects_is_refused(client: Client) -> None:
    """And so are boards that do not exist, and probabilities that are none."""
    await add_contenders(client, "a", "b")
    assert await editor(client).code(FIND, input={"board": "none"}) == "NOT_FOUND"
    assert await client.code(FIND, input={"board": "main"}) == "NOT_SIGNED_IN"
    assert await client.member("ada").code(FIND, input={"board": "main"}) == "NOT_ALLOWED"
    for at_most in (0, -1, 0.2):
        answer = await editor(client).answer(SUSPECTS, atMost=at_most)
        assert answer["errors"][0]["extensions"]["code"] == "BAD_USER_INPUT"
    voters = ["ada", f"suspect.{'0' * 32}"]
    refused = await editor(client).ask(VOID, input={"board": "main", "voters": voters})
    assert (refused["code"], refused["path"]) == ("NOT_FOUND", ["input", "voters", "1"])
