"""Services that are killed while they send an email to be confirmed: none is lost unnoticed, and none comes twice."""

import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import Table
from datastore.jobs.leases import LEASE_SECONDS
from datastore.vocabulary import lists
from datastore.vocabulary.lists import WordList
from resolvers.requests.context import utc_now
from resolvers.values.node_ids import node_id
from tests.command import on_table
from tests.confirmations import REQUEST_SUBSCRIPTION
from tests.engines import RunningEngine
from tests.mail_server import Mailbox, mail_server
from tests.service import Service, start_service
from tests.vocabulary import today
from tests.waiting import until

ADA = "ada@example.org"
SECRET = "a secret without commas that is long enough to be one"
WORDS = "01HZZZZZZZZZZZZZZZZZZZZZZZ"


class HoldingMailbox(Mailbox):
    """Holds every email at a step, until it is released; that of a killed sender is accepted then, too."""

    def __init__(self, step: str) -> None:
        super().__init__()
        self.step = step
        self.reached, self.released = asyncio.Event(), asyncio.Event()

    async def handle_RCPT(self, *arguments: Any) -> str:  # noqa: N802
        await self._hold("RCPT")
        return await super().handle_RCPT(*arguments)

    async def handle_DATA(self, *arguments: Any) -> str:  # noqa: N802
        await self._hold("DATA")
        return await super().handle_DATA(*arguments)

    async def _hold(self, step: str) -> None:
        if step == self.step:
            self.reached.set()
            await self.released.wait()


async def ask(service: Service) -> Any:
    query = {"query": REQUEST_SUBSCRIPTION, "variables": {"input": {"email": ADA, "list": node_id("WordList", WORDS)}}}
    async with httpx.AsyncClient(base_url=service.url, timeout=120) as http:
        return (await http.post("/graphql", json=query)).json()["data"]["requestSubscription"]


@pytest.mark.parametrize("step", [pytest.param("RCPT", marks=pytest.mark.soak), "DATA"])
async def test_a_killed_service_loses_no_email_unnoticed(
    one_table: Table, default_engine: RunningEngine, tmp_path: Path, step: str
) -> None:
    """Its lease lapses, and then asking sends the email.

    One that the mail server already had may come a second time, as the same email.
    """
    mailbox = HoldingMailbox(step)
    now = utc_now()
    word_list = WordList(WORDS, "Words", public=True, created_at=now)
    await lists.create_list(one_table, word_list, UnitOfWork.unkeyed(now))
    with ExitStack() as stack:
        async with mail_server(mailbox, tmp_path) as url:
            more = {"RINGSIDE_SECRETS": SECRET, "RINGSIDE_SMTP_URL": url, "RINGSIDE_REQUEST_TIMEOUT": "60"}
            variables = on_table(default_engine.url, one_table.name, **more)
            killed, other = [await start_service(variables, stack) for _ in range(2)]
            began = today()
            assert await ask(killed) == {"email": ADA}
            await mailbox.reached.wait()
            killed.process.kill()
            killed.process.wait()
            mailbox.released.set()
            assert await ask(other) == {"email": ADA}

            async def is_sent() -> bool:
                assert await ask(other) == {"email": ADA}
                return bool(mailbox.emails)

            await asyncio.sleep(LEASE_SECONDS + 1)
            await until(is_sent, "the other sends it, which has seen no sign of the holder for long enough", pause=2)
            assert await ask(other) == {"email": ADA}
            await asyncio.to_thread(other.stop)  # which sends what was promised
    if today() == began:
        assert len(mailbox.emails) == 1 if step == "RCPT" else len(mailbox.emails) <= 2
        assert len({str(email["Message-ID"]) for _, email in mailbox.emails}) == 1
