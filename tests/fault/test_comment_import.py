"""Imports that are killed at every step, while members go on: what they changed since stays as they left it."""

import asyncio
import io
from contextlib import suppress
from typing import Any

import orjson
import pytest

from resolvers.comments.transfer import parse_line
from resolvers.values.node_ids import node_id
from server.audit import find_suspects
from tests.client import Client
from tests.comments import post
from tests.intercepted import WRITES, Send, intercepted
from tests.queries import COMMENT_STATISTICS, DELETE_COMMENT, EDIT_COMMENT
from tests.transfers import import_lines

COMMENTS = 30
STEPS = 12
METHODS = ("batch_get_item", "batch_write_item", "get_item", "put_item", "query", "transact_write_items", "update_item")


ADA = "01KE0000000000000000000000"


class Killed(Exception):
    """The import's process ends here."""


def lines(product: str) -> list[bytes]:
    return [
        orjson.dumps({
            "product": product, "language": "en", "rating": 3, "body": f"Number {place}.",
            "author": ADA,
            "createdAt": f"2026-01-01T00:00:00.{place:03d}Z",
        })
        for place in range(COMMENTS)
    ]  # fmt: skip


async def run_import(client: Client, product: str, leave_out: int = 0) -> int:
    """How many comments are new."""
    _, new, _ = await import_lines(client.services, io.BytesIO(b"\n".join(lines(product)[leave_out:])))
    return new


def kill_at(client: Client, step: int, patch: pytest.MonkeyPatch, *, applied: bool) -> None:
    """Let an engine call be the process's last one; it is applied or not."""
    engine, calls = client.services.table.client, 0

    def killing(method: Any) -> Any:
        async def call(**parameters: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls > step or (calls == step and not applied):
                raise Killed
            answer = await method(**parameters)
            if calls == step:
                raise Killed
            return answer

        return call

    for name in METHODS:
        patch.setattr(engine, name, killing(getattr(engine, name)))


async def change_some(ada: Client, product: str) -> tuple[bool, bool]:
    """A member edits the first comment and deletes the last, as far as they are visible; returns which were."""
    first, last = (node_id("Comment", parse_line(line).node_key) for line in (lines(product)[0], lines(product)[-1]))
    edited = await ada.ask(EDIT_COMMENT, input={"comment": first, "rating": 5})
    visible = await ada.ask("query ($id: ID!) { comment(id: $id) { id } }", id=last)
    await ada.ask(DELETE_COMMENT, input={"comment": last})
    return "comment" in edited, visible is not None


@pytest.mark.parametrize("applied", [False, True])
async def test_an_import_killed_at_any_step_is_repeated_without_undoing_what_members_did(
    one_client: Client, monkeypatch: pytest.MonkeyPatch, *, applied: bool
) -> None:
    """Edits stay, what was deleted stays deleted, the rest is there, and every comment is counted once."""
    ada = one_client.member(ADA)
    await post(ada, "another")
    for step in range(1, STEPS):
        product = f"p{step}"
        with monkeypatch.context() as patch:
            kill_at(one_client, step, patch, applied=applied)
            with suppress(Killed):
                await run_import(one_client, product)
        edited, deleted = await change_some(ada, product)
        await run_import(one_client, product)
        await run_import(one_client, product)
        statistics = await one_client.ask(COMMENT_STATISTICS, product=product)
        expected = [int(edited), 0, COMMENTS - edited - deleted, 0, 0]
        assert [row["count"] for row in statistics["histogram"]] == expected, f"killed at step {step}"
    await one_client.services.close()
    assert await find_suspects(one_client.services, "comments") == []


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("write", range(4))
async def test_of_two_imports_at_once_one_may_be_killed(one_client: Client, write: int, *, applied: bool) -> None:
    """Before, in or after one of its batches: the other one and a repeat count every comment once."""
    writes = 0

    async def kill_one(_: str, send: Send) -> Any:
        nonlocal writes
        writes += 1
        if writes != write + 1:
            return await send()
        if applied:
            with suppress(Exception):
                await send()
        raise Killed

    with intercepted(one_client.services.table, WRITES, kill_one):
        ended = await asyncio.gather(*(run_import(one_client, "p") for _ in range(2)), return_exceptions=True)
    assert sum(isinstance(one, Killed) for one in ended) == 1
    await run_import(one_client, "p")
    statistics = await one_client.ask(COMMENT_STATISTICS, product="p")
    assert [row["count"] for row in statistics["histogram"]] == [0, 0, COMMENTS, 0, 0]
    await one_client.services.close()
    assert await find_suspects(one_client.services, "comments") == []


async def test_a_longer_file_leaves_what_it_repeats_alone(one_client: Client) -> None:
    """New lines before the old ones make other batches of them: edits stay, and every comment is counted once."""
    assert await run_import(one_client, "longer", leave_out=3) == COMMENTS - 3
    edited = node_id("Comment", parse_line(lines("longer")[10]).node_key)
    answer = await one_client.member(ADA).ask(EDIT_COMMENT, input={"comment": edited, "rating": 5})
    assert "comment" in answer
    assert await run_import(one_client, "longer") == 3
    statistics = await one_client.ask(COMMENT_STATISTICS, product="longer")
    assert [row["count"] for row in statistics["histogram"]] == [1, 0, COMMENTS - 1, 0, 0]
    await one_client.services.close()
    assert await find_suspects(one_client.services, "comments") == []
