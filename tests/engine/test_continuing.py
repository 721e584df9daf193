"""What somebody began as a visitor goes on as the member's who signs in: no pair twice, no person twice."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from itertools import combinations
from typing import Any

import pytest

from datastore.dynamo import Table, iso
from datastore.voting.continuing import CONTINUATION, MOST_CONTINUED, Continuation
from datastore.voting.votes import VOTE, PairVerdict, read_latest_vote
from resolvers.requests.context import Role, utc_now
from resolvers.values.node_ids import node_id
from resolvers.voting.visits import open_visit, sign_visit
from tests.audits import breaches_in
from tests.client import Client, serving
from tests.conftest import settings_for
from tests.engines import RunningEngine
from tests.intercepted import intercepted
from tests.jobs import ended
from tests.lost_answers import ask_without_answer
from tests.queries import UPDATE_BOARD
from tests.sign_in import in_session, on_page, with_session
from tests.voting import add_contenders, settle_votes
from tests.voting import vote as cast

SHOP = "https://shop.example.com"
NAMES = ("Ann", "Ben", "Cat", "Dan")
PAIRS = {frozenset(pair) for pair in combinations(NAMES, 2)}
START = "mutation { startVisit(input: {}) { ... on Visit { token } } }"
DRAW = """mutation { drawMatchup(input: {}) {
  ... on Ballot { token left { name } right { name } } ... on Refused { code message } } }"""
CAST = """mutation ($token: ID!) { castVote(input: { token: $token, verdict: LEFT }) {
  ... on VoteCast { progress { seen remaining } } ... on Refused { code } } }"""
CONTINUE = """mutation ($visit: String!, $key: String) { continueVisit(input: { visit: $visit, idempotencyKey: $key }) {
  ... on VisitContinued { user { id } } ... on Refused { code path } } }"""
CONTINUE_INPUT = """mutation ($input: ContinueVisitInput!) { continueVisit(input: $input) {
  ... on VisitContinued { user { id } } ... on Refused { code path } } }"""
GUEST = """mutation ($visit: String) { signInAsGuest(input: { name: "Ann", visit: $visit }) {
  ... on SignedIn { token user { id } } ... on Refused { code path } } }"""
VOTES = '{ board(slug: "main") { votes } }'
PROGRESS = '{ board(slug: "main") { progress { seen remaining } } }'
VOID = """mutation ($voter: ID!) { voidVoter(input: { voter: $voter }) {
  ... on VoterVoided { votesRemoved } ... on Refused { code } } }"""
VOID_VOTERS = """mutation ($voter: ID!) { voidVoters(input: { board: "main", voters: [$voter] }) {
  ... on VotersVoided { job { id } } ... on Refused { code } } }"""
ERASE = """mutation ($user: ID!) { eraseMember(input: { user: $user, contributions: REMOVE }) {
  ... on MemberErasure { job { id } } ... on Refused { code message } } }"""


@pytest.fixture
async def api(table: Table, engine: RunningEngine) -> AsyncIterator[Client]:
    settings = settings_for(engine, table.name, cors_origins=(SHOP,), guests="comments")
    async with serving(settings) as visitor:
        await add_contenders(visitor, *NAMES)
        yield visitor


async def a_visit(api: Client) -> tuple[Client, str]:
    """A visitor on the shop's pages, and the token of their visit."""
    page = at_shop(Client(api.served, api.settings))
    token: str = (await page.ask(START))["token"]
    page.http.headers["authorization"] = f"Visitor {token}"
    return page, token


def at_shop(client: Client) -> Client:
    client.http.headers["origin"] = SHOP
    return client


async def vote(client: Client) -> frozenset[str]:
    drawn = await client.ask(DRAW)
    await client.ask(CAST, token=drawn["token"])
    return frozenset((drawn["left"]["name"], drawn["right"]["name"]))


async def test_a_member_goes_on_where_the_visitor_was(api: Client) -> None:
    """In the visitor's order of pairs, who votes no more, not even on a pair that was drawn before.

    Nor is the member's own first pair of before taken for decided.
    """
    (page, visit), ada = await a_visit(api), at_shop(api.member("ada"))
    seen = [await vote(page), await vote(page)]
    drawn_before, drawn_by_ada = [(await each.ask(DRAW))["token"] for each in (page, ada)]
    me = await ada.ask(CONTINUE, visit=visit, key="once")
    assert me == await ada.ask(CONTINUE, visit=visit, key="once") == await ada.ask(CONTINUE, visit=visit)
    assert await page.ask(DRAW) == {"code": "NOT_SIGNED_IN", "message": "Sign in to go on."}
    assert await page.code(CAST, token=drawn_before) == "NOT_SIGNED_IN"
    assert await ada.code(CAST, token=drawn_by_ada) == "TOKEN_EXPIRED"
    assert (await ada.ask(PROGRESS))["progress"] == {"seen": 2, "remaining": 4}
    seen += [await vote(ada) for _ in range(4)]
    assert (set(seen), len(seen)) == (PAIRS, 6)
    await settle_votes(api)
    assert (await api.ask(VOTES))["votes"] == 6
    editor = api.member("editor", Role.EDITOR)
    assert (await editor.ask(VOID, voter=me["user"]["id"]))["votesRemoved"] == 6
    assert await breaches_in(api.services) == []


async def test_a_walk_is_continued_once_although_the_answer_was_lost(api: Client) -> None:
    """The engine has carried the change out; when it is tried again, it finds nothing left to do."""
    (page, visit), ada = await a_visit(api), at_shop(api.member("ada"))
    user = (await ada.ask("{ viewer { id } }"))["id"]
    await vote(page)
    assert await ask_without_answer(ada, CONTINUE_INPUT, visit=visit) == {"user": {"id": user}}
    assert (await ada.ask(PROGRESS))["progress"] == {"seen": 1, "remaining": 5}


async def test_nobody_is_asked_to_sign_in_for_a_vote_that_is_over(api: Client) -> None:
    """A visitor whose walk a member has continued is told that it is over."""
    (page, visit), ada = await a_visit(api), at_shop(api.member("ada"))
    await vote(page)
    await ada.ask(CONTINUE, visit=visit)
    over = utc_now() + timedelta(minutes=1)
    await api.member("editor", Role.EDITOR).ask(UPDATE_BOARD, input={"slug": "main", "closesAt": iso(over)})
    api.services.clock = lambda: over
    assert await page.code(DRAW) == "LOCKED"


async def test_both_stay_counted_where_the_member_has_voted_before(api: Client) -> None:
    """The visitor draws no more; erasing the member with what they contributed takes back both, and breaks nothing."""
    (page, visit), ada = await a_visit(api), at_shop(await in_session(api, "ada"))
    ada_first = await vote(ada)
    for _ in range(2):
        await vote(page)
    drawn = (await page.ask(DRAW))["token"]
    user = (await ada.ask(CONTINUE, visit=visit))["user"]["id"]
    assert await page.code(DRAW) == "NOT_SIGNED_IN"
    assert (await ada.ask(PROGRESS))["progress"] == {"seen": 1, "remaining": 5}
    assert await vote(ada) != ada_first
    await settle_votes(api)
    assert (await api.ask(VOTES))["votes"] == 4
    job = (await ada.ask(ERASE, user=user))["job"]["id"]
    await ended(api.member("root", Role.ADMIN), job)
    assert (await api.ask(VOTES))["votes"] == 0
    left = [item async for item in api.services.table.scan_items() if user in str(item)]
    assert [item for item in left if "VOTE" in str(item)] == []
    await page.ask(CAST, token=drawn)  # by somebody else, as far as anybody can tell
    await settle_votes(api)
    await api.caught_up("the index of objects shows what was removed")
    assert await breaches_in(api.services) == []


async def test_a_vote_at_the_same_time_is_counted_before_or_refused(api: Client) -> None:
    """Twenty visitors vote while they sign in; each member then meets the other pairs once."""

    async def person(number: int) -> int:
        (page, visit), member = await a_visit(api), at_shop(api.member(f"fan{number}"))
        await member.ask("{ viewer { id } }")
        seen = [await vote(page)]
        drawn = await page.ask(DRAW)
        _, cast = await asyncio.gather(member.ask(CONTINUE, visit=visit), page.ask(CAST, token=drawn["token"]))
        if "progress" in cast:
            seen.append(frozenset((drawn["left"]["name"], drawn["right"]["name"])))
        while len(seen) < len(PAIRS):
            seen.append(await vote(member))
        assert set(seen) == PAIRS
        return len(seen)

    counted = sum(await asyncio.gather(*map(person, range(20))))
    await settle_votes(api)
    assert (await api.ask(VOTES))["votes"] == counted == 120
    assert await breaches_in(api.services) == []


async def test_signing_in_takes_the_visitor_along(api: Client) -> None:
    """By the cookie on the service's own pages, and by `visit` on those of another site."""
    own = on_page(api.visitor())
    await vote(own)
    await own.ask(GUEST)
    assert (await own.ask(PROGRESS))["progress"] == {"seen": 1, "remaining": 5}
    page, visit = await a_visit(api)
    await vote(page)
    del page.http.headers["authorization"]
    token = (await page.ask(GUEST, visit=visit))["token"]
    guest = at_shop(Client(api.served, api.settings, token))
    assert (await guest.ask(PROGRESS))["progress"] == {"seen": 1, "remaining": 5}


async def test_who_votes_all_the_time_is_signed_in_nevertheless(api: Client) -> None:
    """Their walk is not continued then; `continueVisit` may do that later."""
    page, visit = await a_visit(api)
    await vote(page)
    del page.http.headers["authorization"]
    table, visitor = api.services.table, open_visit(api.services.seal, visit).visitor

    async def call(_: str, send: Any) -> Any:
        if "CONTINUES#" in repr(send.keywords):
            latest = await read_latest_vote(table, visitor, "main")
            assert latest is not None
            await table.write(VOTE.put(replace(latest, number=latest.number + 1, verdict=PairVerdict.SKIP)))
        return await send()

    with intercepted(table, ("transact_write_items",), call):
        token = (await page.ask(GUEST, visit=visit))["token"]
    guest = at_shop(Client(api.served, api.settings, token))
    assert (await guest.ask(PROGRESS))["progress"]["seen"] == 0
    assert "user" in await guest.ask(CONTINUE, visit=visit)
    assert (await guest.ask(PROGRESS))["progress"]["seen"] == 1


async def test_a_visit_is_continued_on_its_own_pages_alone(api: Client) -> None:
    """With the member's token; by nobody else, and nowhere else."""
    (page, visit), ada = await a_visit(api), api.member("ada")
    await vote(page)
    seal, past = api.services.seal, utc_now() - timedelta(seconds=1)
    old = sign_visit(seal, "visitor.x", SHOP, past)
    refused: list[Any] = [await ada.ask(CONTINUE, visit=visit)]
    at_shop(ada)
    refused += [await ada.ask(CONTINUE, visit=text) for text in ("", "é", visit[:-1], visit + "A", old, "x" * 5000)]
    assert refused == [{"code": "INVALID_INPUT", "path": ["input", "visit"]}] * 7
    assert await page.code(CONTINUE, visit=visit) == "NOT_SIGNED_IN"
    assert await page.code(GUEST, visit=old) == "INVALID_INPUT"
    assert (await page.ask(PROGRESS))["progress"]["seen"] == 1
    await vote(page)


async def test_who_has_voted_before_signing_in_sees_results(api: Client) -> None:
    """On a board whose results show after one's first counted vote."""
    update = """mutation { updateBoard(input: { slug: "main", resultsVisible: AFTER_VOTING }) { __typename } }"""
    await api.member("editor", Role.EDITOR).ask(update)
    (page, visit), ada = await a_visit(api), at_shop(api.member("ada"))
    hidden = '{ board(slug: "main") { resultsHidden } }'
    await vote(page)
    assert (await ada.ask(hidden))["resultsHidden"] is True
    await ada.ask(CONTINUE, visit=visit)
    assert (await ada.ask(hidden))["resultsHidden"] is False


async def test_who_has_only_skipped_as_a_member_sees_results_by_the_vote_before_signing_in(api: Client) -> None:
    """A vote that counts as theirs shows them the results, whichever of their two walks it is in."""
    update = """mutation { updateBoard(input: { slug: "main", resultsVisible: AFTER_VOTING }) { __typename } }"""
    await api.member("editor", Role.EDITOR).ask(update)
    (page, visit), ada = await a_visit(api), at_shop(api.member("ada"))
    hidden = '{ board(slug: "main") { resultsHidden } }'
    await cast(ada, "SKIP")
    await vote(page)
    assert (await ada.ask(hidden))["resultsHidden"] is True
    user = (await ada.ask(CONTINUE, visit=visit))["user"]["id"]
    assert (await ada.ask(hidden))["resultsHidden"] is False
    await api.member("editor", Role.EDITOR).ask(VOID, voter=user)
    assert (await ada.ask(hidden))["resultsHidden"] is True


async def test_who_was_voided_is_voided_again_with_a_visitor_whom_they_continue(api: Client) -> None:
    """An editor who voids the same member again gets a new job, which voids the visitor's votes too."""
    (page, visit), ada, editor = await a_visit(api), at_shop(api.member("ada")), api.member("editor", Role.EDITOR)
    await vote(ada)
    user = (await ada.ask("{ viewer { id } }"))["id"]
    first = (await editor.ask(VOID_VOTERS, voter=user))["job"]["id"]
    assert (await ended(editor, first))["message"] == "Votes voided: 1."
    await vote(page)
    await ada.ask(CONTINUE, visit=visit)
    second = (await editor.ask(VOID_VOTERS, voter=user))["job"]["id"]
    assert (await ended(editor, second))["message"] == "Votes voided: 1."
    assert second != first
    await settle_votes(api)
    assert (await api.ask(VOTES))["votes"] == 0


async def test_a_member_goes_on_with_so_many_visitors_and_is_voided_again_after_that(api: Client) -> None:
    """Further visitors go on by themselves. The votes of all are looked at a few at a time, or it would be refused."""
    (page, visit), ada = await a_visit(api), at_shop(await in_session(api, "ada"))
    editor, user, table = api.member("editor", Role.EDITOR), with_session("ada"), api.services.table
    await asyncio.gather(vote(ada), vote(page))
    visitors = (Continuation(user, "main", f"visitor{number}") for number in range(MOST_CONTINUED))
    await table.write_many(map(CONTINUATION.put, visitors))
    await ada.ask(CONTINUE, visit=visit)
    assert await vote(page)
    looking = list[int]()

    async def count(_: str, send: Any) -> Any:
        looking.append(1 + (looking[-1] if looking else 0))
        answer = await send()
        looking.append(looking[-1] - 1)
        return answer

    job = await editor.ask(VOID_VOTERS, voter=node_id("User", user))
    await ended(editor, job["job"]["id"])
    with intercepted(table, ("query",), count):
        assert await editor.ask(VOID_VOTERS, voter=node_id("User", user)) == job
    assert len(looking) > 2 * MOST_CONTINUED
    assert max(looking) <= 20


async def test_pairs_of_a_restored_contender_come_again_unless_they_were_seen(api: Client) -> None:
    """Also of those that the visitor saw."""
    editor, (page, visit), ada = api.member("editor", Role.EDITOR), await a_visit(api), at_shop(api.member("ada"))
    seen = [await vote(page) for _ in range(3)]
    await ada.ask(CONTINUE, visit=visit)
    contenders = await editor.ask('{ board(slug: "main") { contenders(first: 9) { nodes { id name } } } }')
    dan = next(node["id"] for node in contenders["contenders"]["nodes"] if node["name"] == "Dan")
    for change in ("retire", "restore"):
        text = f"mutation ($id: ID!) {{ {change}Contender(input: {{ contender: $id }}) {{ __typename }} }}"
        await editor.ask(text, id=dan)
    seen += [await vote(ada) for _ in range(3)]
    assert set(seen) == PAIRS
