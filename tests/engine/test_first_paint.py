"""The first request of an element, as its document asks it: how many engine calls a reader waits for."""

from __future__ import annotations

from typing import Any

from graphql import parse, print_ast, separate_operations

from tests.client import Client
from tests.comments import post
from tests.dependent_calls import dependent_calls
from tests.generated import ROOT


def document(name: str) -> str:
    """The text of an operation of the elements, with the fragments that it needs."""
    files = sorted((ROOT / "elements" / "documents").glob("*.graphql"))
    together = "\n".join(file.read_text(encoding="utf-8") for file in files)
    return print_ast(separate_operations(parse(together))[name])


async def test_comments_with_their_first_replies_wait_for_two_calls(one_client: Client) -> None:
    """A process that does not know the names of those who replied asks for them with a third."""
    writers = [one_client.member(f"writer {number}") for number in range(12)]
    roots = [await post(writer, rating=4) for writer in writers[:8]]
    for root in roots[::2]:
        for writer in writers[6:]:
            await post(writer, rating=None, inReplyTo=root["id"])
    given: dict[str, Any] = {"product": "42", "languages": [], "ratings": [], "order": "NEWEST"}
    for known, expected in ((set(), 3), ({"profiles"}, 2)):
        waited = []
        for _ in range(3):  # a busy machine may answer the calls of one round one after the other
            for kind in one_client.services.cache.kinds:
                if kind.name not in known:
                    kind.forget_all()
            asked = one_client.ask(document("Comments"), **given)
            answer, rounds = await dependent_calls(one_client.services.table, asked)
            nodes = answer["comments"]["nodes"]
            assert [len(node["replies"]["nodes"]) for node in nodes] == [0, 3] * 4
            assert all(reply["author"]["name"] for node in nodes for reply in node["replies"]["nodes"])
            waited.append(rounds)
        assert min(waited) == expected
