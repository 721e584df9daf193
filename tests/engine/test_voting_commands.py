"""Boards and votes from the command line."""

from pathlib import Path
from typing import Any

import orjson

from datastore.dynamo import Table
from datastore.voting import boards
from datastore.voting.boards import shard_count
from resolvers.voting.transfer import open_votes
from server.settings import Settings
from tests.client import Client
from tests.command import on_table, ringside
from tests.engines import RunningEngine
from tests.intercepted import intercepted
from tests.lagging import Lag
from tests.lagging.service import lagging_services
from tests.queries import ADD_CONTENDER, BOARD_COUNTS, CREATE_BOARD, VOID_VOTER
from tests.transfers import voted
from tests.voting import add_contenders, assert_consistent, editor, vote


def variables(settings: Settings) -> dict[str, str]:
    return on_table(settings.dynamodb_url, settings.table)


async def test_a_board_is_resharded_while_people_vote(one_client: Client, settings: Settings, one_table: Table) -> None:
    """More shards for more votes, fewer again; every vote before, between and after is summed."""
    await add_contenders(one_client, "a", "b")
    voter = one_client.member("ada")
    for rate, least in ((2000, 16), (1, 1)):
        await vote(voter)
        done = ringside("board", "reshard", "main", "--votes-per-second", f"{rate}", **variables(settings))
        assert done.returncode == 0, done.stderr
        shards = shard_count(2, rate)
        assert shards >= least
        assert f"Votes on main are counted in {shards} shard" in done.stdout
        now = await boards.read_board_with_marks(one_table, "main")
        assert now is not None
        assert now.board.rate == rate
        assert now.board.read_shards >= shards
    await vote(voter)
    await assert_consistent(one_client)
    assert (await one_client.ask(BOARD_COUNTS))["votes"] == 3


async def test_an_unknown_board_cannot_be_resharded(one_table: Table, settings: Settings) -> None:
    """A readable refusal, and no board is made by it."""
    refused = ringside("board", "reshard", "none", **variables(settings))
    assert refused.returncode == 1
    assert "There is no board called none." in refused.stderr
    assert "Traceback" not in refused.stderr
    assert await boards.read_board_with_marks(one_table, "none") is None


async def test_votes_are_exported_as_lines(one_client: Client, settings: Settings, tmp_path: Path) -> None:
    """One line a vote, with names and what was said; voided ones say so; one board's alone on request."""
    await add_contenders(one_client, "a", "b")
    await editor(one_client).ask(CREATE_BOARD, input={"slug": "pets", "title": "Pets"})
    for name in ("Cat", "Dog"):
        await editor(one_client).ask(ADD_CONTENDER, input={"name": name, "board": "pets"})
    ada, bob = one_client.member("ada"), one_client.member("bob")
    left = (await vote(ada, "LEFT"))["ballot"]["left"]["name"]
    await vote(ada, "TIE", board="pets")
    await vote(bob, "SKIP", board="pets")
    await vote(bob, "TIE")
    await editor(one_client).ask(VOID_VOTER, input={"voter": "bob"})
    file = tmp_path / "votes.jsonl"
    written = ringside("export", "votes", str(file), **variables(settings))
    assert written.returncode == 0, written.stderr
    assert "4 votes." in written.stderr
    lines = {(line["voter"], line["board"]): line for line in map(orjson.loads, file.read_bytes().splitlines())}
    assert len(lines) == 4
    won = lines["ada", "main"]
    assert (won["pair"], won["verdict"], won["winner"], won["number"]) == (["a", "b"], "win", left, 1)
    tie, skip, void = lines["ada", "pets"], lines["bob", "pets"], lines["bob", "main"]
    assert (tie["pair"], tie["verdict"], tie["winner"], tie["void"]) == (["Cat", "Dog"], "tie", None, False)
    assert (skip["verdict"], skip["void"]) == ("skip", False)
    assert (void["verdict"], void["void"]) == ("tie", True)
    printed = ringside("export", "votes", "--board", "pets", **variables(settings))
    assert sorted(orjson.loads(line)["voter"] for line in printed.stdout.splitlines()) == ["ada", "bob"]
    lost = ringside("export", "votes", str(tmp_path / "no" / "folder"), **variables(settings))
    assert lost.returncode == 1
    assert "cannot be written" in lost.stderr


async def test_votes_on_an_unknown_board_are_not_exported(one_table: Table, settings: Settings, tmp_path: Path) -> None:
    """A readable refusal that leaves the file as it is; the board `main` is known before it has contenders."""
    file = tmp_path / "votes.jsonl"
    file.write_text("an earlier export")
    for name in ("nope", "No#pe"):
        refused = ringside("export", "votes", "--board", name, str(file), **variables(settings))
        assert (refused.returncode, refused.stderr.strip()) == (1, f"There is no board called {name}.")
        assert file.read_text() == "an earlier export"
    main = ringside("export", "votes", "--board", "main", str(file), **variables(settings))
    assert (main.returncode, file.read_text()) == (0, "")
    assert await boards.read_board_with_marks(one_table, "main") is None


async def test_an_export_has_the_names_of_a_board_that_no_index_shows_yet(
    default_engine: RunningEngine, table_name: str, tmp_path: Path
) -> None:
    """It was created a moment ago, and voted on at once."""
    lag = Lag(mean=1e6, longest=1e6, stale=0.0)
    async with lagging_services(default_engine, tmp_path, table_name, lag=lag) as (_, [client]):
        await editor(client).ask(CREATE_BOARD, input={"slug": "pets", "title": "Pets"})
        await add_contenders(client, "Cat", "Dog", board="pets")
        await vote(client.member("ada"), board="pets")
        lines = await voted(client.services.table, None)
    assert [line["pair"] for line in lines] == [["Cat", "Dog"]]


async def test_an_export_has_the_names_of_contenders_that_joined_while_it_ran(one_client: Client) -> None:
    """The winner's, too."""
    await add_contenders(one_client, "a", "b")
    ada, table = one_client.member("ada"), one_client.services.table
    await vote(ada)

    async def one_item(_: str, send: Any) -> Any:
        return await send(Limit=1)

    with intercepted(table, ("scan",), one_item):
        lines = await open_votes(table, None)
        await anext(lines)
        await add_contenders(one_client, "c")
        ballot = (await vote(ada))["ballot"]  # on another pair, so with the new one
        [line] = [orjson.loads(line) async for line in lines]
    assert set(line["pair"]) == {ballot["left"]["name"], ballot["right"]["name"]}
    assert line["winner"] == ballot["left"]["name"]
