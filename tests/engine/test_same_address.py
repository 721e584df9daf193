"""Taking back all votes from a voter's network addresses: exactly those, once, however often it is repeated."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import orjson
import pytest

from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import Table
from datastore.dynamo.errors import Rejected
from datastore.voting import voiding
from datastore.voting import votes as vote_store
from datastore.voting.boards import Board
from datastore.voting.member_items import clear_addresses
from datastore.voting.voiding import ADDRESS_VOTER, LOOKBACK, ORIGIN
from datastore.voting.votes import Ballot, Verdict
from resolvers.requests.context import utc_now
from tests.client import Client
from tests.intercepted import intercepted
from tests.killed import Killed
from tests.queries import BOARD_COUNTS, DRAW_MATCHUP, VOID_VOTER
from tests.transfers import voted
from tests.voting import add_contenders, assert_consistent, editor, settle_votes, vote

HOME, SCHOOL, MOBILE, ELSEWHERE = "192.0.2.1", "192.0.2.2", "2001:db8:1:2::3", "198.51.100.1"


def at(client: Client, address: str) -> Client:
    """The same visitor or member at another address."""
    moved = Client(client.served, client.settings)
    transport = httpx.ASGITransport(client.served, client=(address, 1))
    moved.http = httpx.AsyncClient(transport=transport, base_url="http://ringside.test", headers=client.http.headers)
    moved.http.cookies = client.http.cookies
    return moved


async def void(client: Client, voter: str) -> int:
    answer = await editor(client).ask(VOID_VOTER, input={"voter": voter, "sameAddress": True})
    return int(answer["votesRemoved"])


def set_clock(client: Client, clock: Callable[[], datetime]) -> None:
    client.services.clock = clock


async def test_all_votes_from_a_voter_s_addresses_are_voided(client: Client) -> None:
    """Those of the addresses that the voter used, of visitors and members; the same voters' others stay."""
    await add_contenders(client, "a", "b", "c", "d")
    cheat, dropped, pupil, stranger = (client.visitor() for _ in range(4))
    for visitor in (cheat, dropped, pupil, stranger):
        await visitor.ask("{ __typename }")  # the cookie
    voter = (await at(cheat, HOME).ask(DRAW_MATCHUP))["voter"]
    for who, address in (
        *((cheat, place) for place in (HOME, MOBILE)),
        *((dropped, place) for place in (HOME, HOME, SCHOOL)),
        (pupil, SCHOOL),
        (stranger, ELSEWHERE),
        (client.member("ada"), "2001:db8:1:2:ffff::1"),
    ):
        await vote(at(who, address), "LEFT")
    await vote(at(stranger, HOME), "SKIP")
    await settle_votes(client)
    assert (await client.ask(BOARD_COUNTS))["votes"] == 8
    assert await void(client, voter) == 5
    assert await void(client, voter) == 0
    assert (await client.ask(BOARD_COUNTS))["votes"] == 3
    await vote(at(dropped, HOME), "RIGHT")  # the address goes on
    assert await void(client, voter) == 1
    await assert_consistent(client)


async def test_votes_of_a_week_are_found(one_client: Client) -> None:
    """Not older ones, and a week later none: although nothing has removed the expired items."""
    await add_contenders(one_client, "a", "b", "c", "d")
    now = utc_now()
    early, late, cheat = (one_client.visitor() for _ in range(3))
    set_clock(one_client, lambda: now - LOOKBACK - timedelta(minutes=1))
    await vote(at(early, HOME))
    set_clock(one_client, lambda: now - LOOKBACK + timedelta(minutes=1))
    await vote(at(late, HOME))
    set_clock(one_client, lambda: now)
    await vote(at(early, HOME))
    voter = (await vote(at(cheat, HOME)))["ballot"]["voter"]
    assert await void(one_client, voter) == 3
    last = one_client.visitor()
    await vote(at(last, HOME))
    set_clock(one_client, lambda: now + LOOKBACK + timedelta(days=1))
    assert await void(one_client, voter) == 0
    await assert_consistent(one_client)


async def test_the_table_and_exports_hold_no_address(one_client: Client) -> None:
    """Two items for a voter, an address, a board and a day, whatever the number of votes; no address is legible."""
    await add_contenders(one_client, "a", "b", "c")
    visitor = at(one_client, HOME)
    for _ in range(3):
        await vote(visitor)
    table = one_client.services.table
    items = [item async for item in table.scan_items(consistent=True)]
    stored = repr(items)
    assert HOME not in stored
    assert [item["sk"]["S"].split("#")[0] for item in items].count("ORIGIN") == 1
    found = [item async for item in table.scan(ADDRESS_VOTER)]
    assert len(found) == 1
    exported = await voted(table, "main")
    assert len(exported) == 3
    assert all(not {"origin", "address"} & line.keys() for line in exported)
    assert found[0].address not in orjson.dumps(exported).decode()


async def test_a_voiding_that_stopped_is_continued(one_table: Table) -> None:
    """Calls that each stop after a few votes; together they void every vote of the address once."""
    now, day = datetime(2026, 5, 5, 12, tzinfo=UTC), datetime(2026, 5, 5, tzinfo=UTC).date()
    board = Board("main", "Main", now, size=2)
    for number in range(30):
        voter = f"v{number}"
        address = "feed" if number < 25 else "beef"
        tag = await voiding.remember_origin(one_table, voter, "main", address, day)
        for place in range(1 + number % 6):
            ballot = Ballot(voter, "main", place, 0, 1, now, b"")
            cast = vote_store.vote_on(ballot, board, Verdict.LEFT, now, tag)
            await vote_store.cast(one_table, cast, UnitOfWork(voter, None, "", now))
    editor_once = UnitOfWork("editor", None, "", now)
    calls, voided, finished = 0, 0, False
    while not finished:
        async with aclosing(voiding.void_votes_of_addresses(one_table, "v0", "main", editor_once)) as counts:
            # Votes voided by an earlier call count as none.
            count = await anext((count async for count in counts if count), 0)
        calls, voided, finished = calls + 1, voided + count, not count
    assert calls > 5
    assert voided == sum(1 + number % 6 for number in range(25))
    assert len([record async for record in one_table.scan(ORIGIN)]) == 30


async def test_a_voter_whose_addresses_were_forgotten_in_part_is_forgotten_by_a_repeat(one_table: Table) -> None:
    """The engine carries out a part of a batch, and the process is killed: what leads to the addresses stays."""
    day = datetime(2026, 5, 5, tzinfo=UTC).date()
    for address in ("feed", "beef", "feed"):
        await voiding.remember_origin(one_table, "v0", "main", address, day)

    async def of_origins_alone(_: str, send: Any) -> Any:
        [(name, requests)] = send.keywords["RequestItems"].items()
        done = [each for each in requests if each["DeleteRequest"]["Key"]["sk"]["S"].startswith("ORIGIN#")]
        if done:
            await send.func(*send.args, **{**send.keywords, "RequestItems": {name: done}})
        raise Killed

    with intercepted(one_table, ("batch_write_item",), of_origins_alone), pytest.raises(Killed):
        await clear_addresses(one_table, "v0", "main")
    await clear_addresses(one_table, "v0", "main")
    assert [record async for record in one_table.scan(ORIGIN, ADDRESS_VOTER)] == []


async def test_a_voiding_that_failed_voids_nothing_later(one_client: Client) -> None:
    """One voter's vote cannot be voided: the board counts as quiet soon, so no vote of another is voided after that."""
    await add_contenders(one_client, "a", "b", "c", "d")
    first, other = at(one_client.visitor(), HOME), at(one_client.visitor(), HOME)
    voter = (await vote(first))["ballot"]["voter"]
    for _ in range(6):
        others = (await vote(other))["ballot"]["voter"]
    table, begun = one_client.services.table, list[str]()

    async def failing(_: str, send: Any) -> Any:
        if f"VOTER#{voter}#" in str(send.keywords):
            raise Rejected("the engine takes no such request")
        assert f"VOTER#{others}#" in str(send.keywords)
        begun.append(others)
        return await send()

    before, unit = asyncio.all_tasks(), UnitOfWork.unkeyed(utc_now())
    with intercepted(table, ("transact_write_items",), failing), pytest.raises(Rejected):
        _ = [count async for count in voiding.void_votes_of_addresses(table, voter, "main", unit)]
    until_failure = len(begun)
    await asyncio.gather(*(asyncio.all_tasks() - before))
    assert len(begun) == until_failure


async def test_simultaneous_voiding_voids_once(one_client: Client) -> None:
    """Two editors at once: the sums are exact, and their answers add up."""
    await add_contenders(one_client, "a", "b")
    voters = [at(one_client.visitor(), HOME) for _ in range(9)]
    votes = await asyncio.gather(*(vote(visitor) for visitor in voters))
    voter = votes[0]["ballot"]["voter"]
    counts = await asyncio.gather(void(one_client, voter), void(one_client, voter))
    assert sum(counts) == 9
    await assert_consistent(one_client)
