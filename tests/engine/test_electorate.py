"""Boards on which members only may vote, or members since a date."""

from datetime import timedelta
from time import monotonic
from typing import Any

import httpx

from datastore.dynamo import Table, iso
from datastore.people.identities import SignInMethod, of_issuer
from resolvers.people.identities import Members
from resolvers.requests.context import PROFILE_AGE, Role, utc_now
from resolvers.voting import settling
from resolvers.voting.settling import BoardCache
from server.auth.tokens import mint
from tests.api_keys import create_api_key
from tests.client import Client, serving
from tests.conftest import settings_for
from tests.engines import RunningEngine
from tests.queries import BOARD_COUNTS, CAST_VOTE, DRAW_MATCHUP, UPDATE_PROFILE, mutation
from tests.service import Service
from tests.voting import add_contenders, assert_consistent, editor, read_keys, settle_votes, vote
from tests.websockets import open_socket, receive, send

UPDATE = mutation("updateBoard", "BoardUpdated", "board { electorate membersSince }")
CREATE = mutation("createBoard", "BoardCreated", "board { electorate membersSince }")


async def change(client: Client, **fields: Any) -> dict[str, Any]:
    answer: dict[str, Any] = await editor(client).ask(UPDATE, input={"slug": "main", **fields})
    return answer


async def test_only_members_vote_on_a_board_for_members(client: Client) -> None:
    """A visitor is asked to sign in, for a draw and for a ballot that was drawn before; an API key is nobody's."""
    await add_contenders(client, "a", "b", "c")
    visitor, ada = client.visitor(), client.member("ada")
    drawn = (await visitor.ask(DRAW_MATCHUP))["token"]
    assert await change(client, electorate="MEMBERS") == {"board": {"electorate": "MEMBERS", "membersSince": None}}
    for verdict in ("LEFT", "SKIP"):
        refused = await visitor.ask(CAST_VOTE, token=drawn, verdict=verdict)
        assert (refused["code"], refused["path"]) == ("NOT_SIGNED_IN", ["input", "token"])
    refused = await visitor.ask(DRAW_MATCHUP)
    assert (refused["code"], refused["path"]) == ("NOT_SIGNED_IN", ["input", "board"])
    key = (await create_api_key(client, Role.ADMIN))["secret"]
    assert await Client(client.served, client.settings, key).code(DRAW_MATCHUP) == "NOT_SIGNED_IN"
    assert (await vote(ada))["progress"]["seen"] == 1
    await change(client, electorate="EVERYBODY")
    assert (await visitor.ask(CAST_VOTE, token=drawn, verdict="LEFT"))["progress"]["seen"] == 1
    await assert_consistent(client)


async def test_nobody_is_asked_to_sign_in_for_a_vote_that_is_over(one_client: Client) -> None:
    """Before it has begun, they are; once it is over, a visitor is told that, as everybody is."""
    await add_contenders(one_client, "a", "b", "c")
    now, visitor = utc_now(), one_client.visitor()
    opens, closes = now + timedelta(hours=1), now + timedelta(hours=2)
    await change(one_client, electorate="MEMBERS", opensAt=iso(opens), closesAt=iso(closes))
    assert await visitor.code(DRAW_MATCHUP) == "NOT_SIGNED_IN"
    one_client.services.clock = lambda: closes
    told = {"code": "LOCKED", "message": f"Voting on this board ended at {iso(closes)}."}
    for viewer in (visitor, one_client.member("ada")):
        refused = await viewer.ask(DRAW_MATCHUP)
        assert {name: refused[name] for name in told} == told


async def test_a_member_who_joined_too_late_may_not_vote(client: Client) -> None:
    """The moment itself is in time, a millisecond later is not; it holds for ballots drawn before."""
    await add_contenders(client, "a", "b", "c")
    now = utc_now()
    client.services.clock = lambda: now - timedelta(days=1)
    early = client.member("early")
    await early.ask(UPDATE_PROFILE, input={"name": "Early"})
    client.services.clock = lambda: now
    late = client.member("late")
    drawn = (await late.ask(DRAW_MATCHUP))["token"]
    await change(client, electorate="MEMBERS", membersSince=iso(now - timedelta(milliseconds=1)))
    refused = await late.ask(CAST_VOTE, token=drawn, verdict="LEFT")
    assert (refused["code"], refused["path"]) == ("NOT_ALLOWED", ["input", "token"])
    assert await late.code(DRAW_MATCHUP) == "NOT_ALLOWED"
    assert (await vote(early))["progress"]["seen"] == 1
    await change(client, membersSince=iso(now))
    assert (await late.ask(CAST_VOTE, token=drawn, verdict="LEFT"))["progress"]["seen"] == 1
    await change(client, membersSince=iso(now - timedelta(days=1)))
    assert (await vote(early))["progress"]["seen"] == 2
    assert await late.code(DRAW_MATCHUP) == "NOT_ALLOWED"
    await change(client, membersSince=None)
    assert (await vote(late))["progress"]["seen"] == 2
    await assert_consistent(client)


async def test_votes_cast_before_stay_and_are_answered_again(client: Client) -> None:
    """A board that becomes narrower keeps what was counted; the repeat of a counted vote has its answer."""
    await add_contenders(client, "a", "b", "c")
    visitor = client.visitor()
    token = (await visitor.ask(DRAW_MATCHUP))["token"]
    counted = await visitor.ask(CAST_VOTE, token=token, verdict="RIGHT")
    await change(client, electorate="MEMBERS")
    assert await visitor.ask(CAST_VOTE, token=token, verdict="RIGHT") == counted
    assert await visitor.code(CAST_VOTE, token=token, verdict="LEFT") == "TOKEN_SPENT"
    await settle_votes(client)
    assert (await client.ask(BOARD_COUNTS))["votes"] == 1


async def test_a_wrong_electorate_is_refused(client: Client) -> None:
    """A date is about members; with a board for everybody it goes away."""
    await add_contenders(client, "a", "b")
    since = iso(utc_now())
    path = ["input", "membersSince"]
    for refused in (
        await change(client, membersSince=since),
        await change(client, electorate="EVERYBODY", membersSince=since),
        await editor(client).ask(CREATE, input={"slug": "x", "title": "X", "membersSince": since}),
    ):
        assert (refused["code"], refused["path"]) == ("INVALID_INPUT", path)
    made = {"slug": "x", "title": "X", "membersSince": since, "electorate": "MEMBERS"}
    created = await editor(client).ask(CREATE, input=made)
    assert created["board"] == {"electorate": "MEMBERS", "membersSince": since}
    await change(client, electorate="MEMBERS", membersSince=since)
    assert (await change(client, title="Main"))["board"]["membersSince"] == since
    wider = await change(client, electorate="EVERYBODY")
    assert wider["board"] == {"electorate": "EVERYBODY", "membersSince": None}
    assert await client.member("ada").code(UPDATE, input={"slug": "main", "electorate": "MEMBERS"}) == "NOT_ALLOWED"


async def test_a_socket_is_no_way_around_it(service: Service) -> None:
    """A mutation over a WebSocket is judged as one over HTTP."""
    token = service.token("editor", "--role", "editor")
    given = {"slug": "members-only", "title": "Members", "electorate": "MEMBERS"}
    async with httpx.AsyncClient(
        base_url=service.url, headers={"authorization": f"Bearer {token}"}, timeout=60
    ) as http:
        await http.post("/graphql", json={"query": CREATE, "variables": {"input": given}})
    query = 'mutation { drawMatchup(input: { board: "members-only" }) { ... on Refused { code } } }'
    async with open_socket(service) as socket:
        await send(socket, {"type": "connection_init"})
        await receive(socket)
        await send(socket, {"id": "1", "type": "subscribe", "payload": {"query": query}})
        answer = await receive(socket)
    assert answer["payload"]["data"]["drawMatchup"] == {"code": "NOT_SIGNED_IN"}


async def test_another_process_knows_a_new_electorate_in_time(default_engine: RunningEngine, one_table: Table) -> None:
    """A process that last read the board seconds ago reads it again before it counts a vote."""
    settings = settings_for(default_engine, one_table.name)
    async with serving(settings) as first, serving(settings) as second:
        await add_contenders(first, "a", "b", "c")
        second.keep_what_it_read()
        visitor = second.visitor()
        await vote(visitor)
        token = (await visitor.ask(DRAW_MATCHUP))["token"]
        await settle_votes(second)  # else a read for it may be under way, and the vote waits for that one
        await change(first, electorate="MEMBERS")
        board = second.services.get(BoardCache).known("main")
        assert board is not None
        assert board.electorate == "EVERYBODY"
        second.services.cache.clock = lambda: monotonic() + settling.KNOWN_SECONDS
        assert await visitor.code(CAST_VOTE, token=token, verdict="LEFT") == "NOT_SIGNED_IN"


async def test_an_imported_author_joins_with_their_first_sign_in_for_every_process(
    default_engine: RunningEngine, one_table: Table
) -> None:
    """One that has shown their comments for long knows a profile that is older than that."""
    settings = settings_for(default_engine, one_table.name)
    async with serving(settings) as first, serving(settings) as second:
        await add_contenders(first, "a", "b", "c")
        author = await first.services.get(Members).introduce(of_issuer(SignInMethod.SITE, "", "ada"), name="Ada")
        assert await second.services.profiles.load(author) is not None
        await change(first, electorate="MEMBERS", membersSince=iso(utc_now()))
        token = mint(settings, "ada")
        await Client(first.served, settings, token).ask(UPDATE_PROFILE, input={"name": "Ada"})
        assert await Client(second.served, settings, token).code(DRAW_MATCHUP) == "NOT_ALLOWED"


async def test_a_vote_of_a_member_reads_nothing_for_it(one_client: Client) -> None:
    """When they joined is known since their draw, and never changes, however old a profile is by then."""
    await add_contenders(one_client, "a", "b", "c")
    await change(one_client, electorate="MEMBERS", membersSince=iso(utc_now() + timedelta(days=1)))
    voter = one_client.member("ada")
    token = (await voter.ask(DRAW_MATCHUP))["token"]
    known_at = one_client.services.cache.clock()
    one_client.services.cache.clock = lambda: known_at + PROFILE_AGE + 1
    with read_keys(one_client.services.table) as keys:
        answer = await voter.ask(CAST_VOTE, token=token, verdict="LEFT")
    assert answer["progress"]["seen"] == 1
    assert [key for key in keys if "USER#ada" in key] == []
