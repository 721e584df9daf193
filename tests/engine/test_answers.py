"""The site's own answer to a comment."""

import io
from pathlib import Path
from typing import Any

import orjson
import pytest

from datastore.changes.occurrences import OCCURRENCE, Kind
from resolvers.requests.context import Role
from server import Failed
from server.audit import find_suspects
from server.commands.exports import write_comments
from tests.client import Client
from tests.comments import author_id, post
from tests.erasing import ERASE
from tests.jobs import ended
from tests.queries import ANSWER_COMMENT, DELETE_COMMENT, EDIT_COMMENT, MODERATE_COMMENT
from tests.transfers import import_lines

ANSWERED = "query ($id: ID!) { comment(id: $id) { body removed answer { body at by { id name } } } }"


async def answer(client: Client, comment: dict[str, Any], body: str) -> dict[str, Any]:
    editor = client.member("ed", Role.EDITOR)
    answered: dict[str, Any] = await editor.ask(ANSWER_COMMENT, input={"comment": comment["id"], "body": body})
    return answered


async def shown(client: Client, comment: dict[str, Any]) -> Any:
    return await client.ask(ANSWERED, id=comment["id"])


async def test_an_editor_answers_once(client: Client) -> None:
    """A second answer replaces the first, an empty one removes it, and the journal has each change."""
    comment = await post(client.member("ada"))
    first = await answer(client, comment, "Thank you.")
    assert first["comment"]["answer"]["by"]["name"] == "Ed"
    assert first["comment"]["editedAt"] is None
    assert (await shown(client, comment))["answer"] == first["comment"]["answer"]
    await answer(client, comment, "Thanks a lot.")
    assert (await shown(client, comment))["answer"]["body"] == "Thanks a lot."
    for _ in range(2):
        assert (await answer(client, comment, ""))["comment"]["answer"] is None
    assert (await shown(client, comment))["answer"] is None
    kinds = [one.kind async for one in client.services.table.scan(OCCURRENCE, consistent=True)]
    assert kinds.count(Kind.COMMENT_ANSWERED) == 3
    assert await find_suspects(client.services, "comments") == []


async def test_an_answer_that_another_editor_gave_meanwhile_is_not_replaced(one_client: Client) -> None:
    comment = await post(one_client.member("ada"))
    given = {"comment": comment["id"], "revision": 0}
    for name, body in (("ed", "Thank you."), ("eve", "Thanks a lot.")):
        refused = await one_client.member(name, Role.EDITOR).ask(ANSWER_COMMENT, input={**given, "body": body})
    assert (refused["code"], refused["path"]) == ("CONFLICT", ["input", "revision"])
    assert (await shown(one_client, comment))["answer"]["body"] == "Thank you."


async def test_a_bad_answer_is_refused(client: Client) -> None:
    ada = client.member("ada")
    comment = await post(ada)
    for body in (" ", "\u200b", "x" * 10_001):
        refused = await answer(client, comment, body)
        assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "body"])
    member = await ada.ask(ANSWER_COMMENT, input={"comment": comment["id"], "body": "I say so."})
    assert member["code"] == "NOT_ALLOWED"
    await ada.ask(DELETE_COMMENT, input={"comment": comment["id"]})
    assert (await answer(client, comment, "Thank you."))["code"] == "NOT_FOUND"


async def test_an_answer_goes_with_its_comment(client: Client) -> None:
    """An edit keeps it, a rejected comment hides it, a stub has none."""
    ada = client.member("ada")
    comment = await post(ada)
    await answer(client, comment, "Thank you.")
    await post(ada, rating=None, inReplyTo=comment["id"])
    await ada.ask(EDIT_COMMENT, input={"comment": comment["id"], "body": "Very well made."})
    assert (await shown(client, comment))["answer"]["body"] == "Thank you."
    moderator = client.member("mod", Role.MODERATOR)
    for status, body in (("REJECTED", None), ("PUBLISHED", {"body": "Thank you."})):
        await moderator.ask(MODERATE_COMMENT, input={"comment": comment["id"], "status": status})
        found = (await shown(client, comment))["answer"]
        assert (found and {"body": found["body"]}) == body
    await ada.ask(DELETE_COMMENT, input={"comment": comment["id"]})
    stub = await shown(client, comment)
    assert (stub["removed"], stub["answer"]) == (True, None)
    assert await find_suspects(client.services, "comments") == []


async def test_the_answer_of_an_erased_editor_stands_without_a_name(client: Client) -> None:
    comment = await post(client.member("ada"))
    await answer(client, comment, "Thank you.")
    admin = client.member("root", Role.ADMIN)
    editor = (await shown(client, comment))["answer"]["by"]["id"]
    job = await admin.ask(ERASE, input={"user": editor, "contributions": "REMOVE"})
    await ended(admin, job["job"]["id"])
    found = (await shown(client, comment))["answer"]
    assert (found["body"], found["by"]) == ("Thank you.", None)


async def test_an_export_has_the_answer(one_client: Client, tmp_path: Path) -> None:
    """An import brings it back, and refuses one that is none."""
    ada = one_client.member(author_id("ada"), name="Ada")
    comment = await post(ada)
    editor = one_client.member(author_id("ed"), Role.EDITOR, name="Ed")
    await editor.ask(ANSWER_COMMENT, input={"comment": comment["id"], "body": "Thank you."})
    before, file = await shown(one_client, comment), tmp_path / "comments.jsonl"
    assert await write_comments(one_client.services, file, None) == 1
    await ada.ask(DELETE_COMMENT, input={"comment": comment["id"]})
    assert (await import_lines(one_client.services, io.BytesIO(file.read_bytes())))[1] == 1
    assert await shown(one_client, comment) == before
    line = orjson.loads(file.read_bytes())
    for wrong in ("Thanks.", {"body": "Thanks."}, {**line["answer"], "by": "ed"}, {**line["answer"], "body": " "}):
        with pytest.raises(Failed, match=r"answer|body"):
            await import_lines(one_client.services, io.BytesIO(orjson.dumps({**line, "answer": wrong})))
