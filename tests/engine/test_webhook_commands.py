"""`ringside webhooks deliver`, and the example of a receiver, run as their users run them."""

import asyncio
import os
import runpy
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from time import time
from typing import Any

import httpx
import pytest

from resolvers.requests.context import Role
from tests.client import Client
from tests.command import ringside
from tests.generated import ROOT
from tests.queries import EDIT_COMMENT, POST_COMMENT, mutation
from tests.receiver import receiving
from tests.service import Service, start_service
from tests.waiting import LONGEST

ADD_WEBHOOK = mutation("addWebhook", "WebhookAdded", "webhook { id } secret")
COMMENT = "query ($id: ID!) { node(id: $id) { ... on Comment { status moderationNote } } }"
RECEIVER = runpy.run_path(str(ROOT / "examples/webhook_receiver.py"))
Ringside: Any = RECEIVER["Ringside"]
SETTINGS = {"RINGSIDE_WEBHOOK_NETWORKS": "127.0.0.0/8", "RINGSIDE_REQUEST_TIMEOUT": "60"}


async def ask(service: Service, token: str, document: str, **variables: Any) -> Any:
    async with httpx.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=60) as http:
        answer = await http.post(f"{service.url}/graphql", json={"query": document, "variables": variables})
    assert "errors" not in answer.json(), answer.text
    return next(iter(answer.json()["data"].values()))


async def post(service: Service, token: str, body: str) -> str:
    given = {"product": "42", "language": "en", "rating": 5, "body": body}
    answer = await ask(service, token, POST_COMMENT, input=given)
    return str(answer["comment"]["id"])


async def test_a_command_delivers_what_waits_and_ends(tmp_path: Path) -> None:
    """What was written while the receiver was away; a further run has nothing to do."""
    variables, available = {**SETTINGS, "RINGSIDE_DATA": str(tmp_path)}, False
    async with receiving(lambda _: 204 if available else 500) as receiver:
        with ExitStack() as stack:
            service = await start_service(variables, stack)
            admin, ada = service.token("root", "--role", "admin"), service.token("ada")
            await ask(service, admin, ADD_WEBHOOK, input={"url": receiver.url, "kinds": ["comment.posted"]})
            await post(service, ada, "Good.")
            await receiver.until(lambda: len(receiver.received) > 0)
        available, printed = True, ""
        while not receiver.accepted:  # until the pause after the failure is over
            done = await asyncio.to_thread(ringside, "webhooks", "deliver", **variables)
            assert done.returncode == 0, done.stderr
            printed = done.stdout
        assert "1 delivered, 0 to be tried again, 0 given up." in printed
        done = await asyncio.to_thread(ringside, "webhooks", "deliver", **variables)
        assert "0 delivered" in done.stdout
    assert len(receiver.accepted) == 1


@contextmanager
def reserved_port() -> Iterator[int]:
    """A port that only a server which shares addresses, as Python's do, may listen at meanwhile."""
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        yield reserved.getsockname()[1]


@contextmanager
def example(secret: str, api: str, token: str, port: int) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, "examples/webhook_receiver.py", api, str(port)],
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "RINGSIDE_WEBHOOK_SECRET": secret, "RINGSIDE_TOKEN": token},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    assert process.stdout.readline()
    try:
        yield
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


async def test_the_example_decides_about_comments_that_wait(tmp_path: Path) -> None:
    """It verifies who sent a message; what nobody signed is refused."""
    variables = {**SETTINGS, "RINGSIDE_DATA": str(tmp_path), "RINGSIDE_PREMODERATION": "true"}
    with ExitStack() as stack:
        port = stack.enter_context(reserved_port())
        service = await start_service(variables, stack)
        admin, ada = service.token("root", "--role", "admin"), service.token("ada")
        moderator = service.token("max", "--role", "moderator")
        url = f"http://127.0.0.1:{port}/"
        given = {"url": url, "kinds": ["comment.posted", "comment.edited"]}
        secret = (await ask(service, admin, ADD_WEBHOOK, input=given))["secret"]
        stack.enter_context(example(secret, f"{service.url}/graphql", moderator, port))
        good, bad = await post(service, ada, "Well made."), await post(service, ada, "Buy at https://spam.example")
        async with asyncio.timeout(LONGEST):
            while "PENDING" in {(await ask(service, ada, COMMENT, id=one))["status"] for one in (good, bad)}:
                await asyncio.sleep(0.2)
        assert (await ask(service, ada, COMMENT, id=good))["status"] == "PUBLISHED"
        assert await ask(service, ada, COMMENT, id=bad) == {
            "status": "REJECTED",
            "moderationNote": "Please leave out the link.",
        }
        async with httpx.AsyncClient(timeout=60) as http:
            for timestamp, signature in (
                ("1700000000", b"v1,AAAA"),
                (f"{time():.0f}", b"v1,\xc3\x84"),
                ("9" * 5_000, b""),
            ):
                forged = [(b"webhook-timestamp", timestamp.encode()), (b"webhook-signature", signature)]
                assert (await http.post(url, headers=forged, content=b"{}")).status_code == 401


def test_the_example_lets_a_message_come_again_whose_decision_was_refused() -> None:
    """A refusal is data: without an error the message would count as dealt with, and the comment would wait on."""
    answers = [
        {"node": {"id": "1", "status": "PENDING", "revision": 1, "title": None, "body": "Well made."}},
        {"moderateComment": {"code": "UNAVAILABLE", "message": "Try again shortly."}},
    ]

    class Busy(Ringside):  # type: ignore[misc]
        def ask(self, *_: Any, **__: Any) -> Any:
            return answers.pop(0)

    with pytest.raises(RuntimeError, match="Try again shortly"):
        Busy("http://127.0.0.1:1/graphql", "").decide("1")


async def test_the_example_decides_about_no_text_that_it_has_not_read(one_client: Client) -> None:
    """The author changes the comment between the receiver's question and its decision: the message comes again."""
    services, loop = one_client.services, asyncio.get_running_loop()
    services.policy = replace(services.policy, premoderation=True)
    ada, moderator = one_client.member("ada"), one_client.member("max", Role.MODERATOR)
    given = {"product": "42", "language": "en", "rating": 5, "body": "Well made."}
    comment = (await ada.ask(POST_COMMENT, input=given))["comment"]["id"]

    async def answer(document: str, variables: dict[str, Any]) -> Any:
        data = (await moderator.answer(document, **variables))["data"]
        if document == RECEIVER["COMMENT"]:
            await ada.ask(EDIT_COMMENT, input={"comment": comment, "body": "Buy at https://spam.example"})
        return data

    class Overtaken(Ringside):  # type: ignore[misc]
        def ask(self, document: str, **variables: Any) -> Any:
            return asyncio.run_coroutine_threadsafe(answer(document, variables), loop).result()

    with pytest.raises(RuntimeError):
        await asyncio.to_thread(Overtaken("http://127.0.0.1:1/graphql", "").decide, comment)
    assert (await ada.ask(COMMENT, id=comment))["status"] == "PENDING"
