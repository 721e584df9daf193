"""kill -9 while members post, edit and delete: what was acknowledged is there, and the counts are a recount."""

import asyncio
import signal
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from server.auth.tokens import mint
from server.settings import Settings
from tests.command import on_table, ringside_process
from tests.engines import EnginePair
from tests.lagging.tables import lagging_table
from tests.queries import COMMENTS_PAGE, DELETE_COMMENT, EDIT_COMMENT, POST_COMMENT
from tests.service import Service, start_service

pytestmark = pytest.mark.soak

LIVES = 2
WRITERS = 4
REQUESTS = 80
SECRET = "a secret for services that are killed"
Request = tuple[str, dict[str, Any]]


@dataclass
class Writer:
    """A member who remembers what was acknowledged, and asks again what was not."""

    token: str
    random: Random
    own: dict[str, int] = field(default_factory=dict)
    asked: int = 0
    unsure: Request | None = None

    async def write(self, url: str, *, until_done: bool = False) -> None:
        """Until the service is gone; or only until the last request is answered."""
        headers = {"authorization": f"Bearer {self.token}"}
        async with httpx.AsyncClient(base_url=url, headers=headers, timeout=20) as http:
            while self.unsure or not until_done:
                self.unsure = self.unsure or self._another()
                query, given = self.unsure
                try:
                    response = await http.post("/graphql", json={"query": query, "variables": {"input": given}})
                except httpx.HTTPError:
                    return
                self._note(query, given, next(iter(response.json()["data"].values())))
                self.unsure = None

    def _another(self) -> Request:
        self.asked += 1
        key, rating = f"request {self.asked}", self.random.randint(1, 5)
        what = self.random.random()
        if what < 0.4 or not self.own:
            return POST_COMMENT, {
                "product": "9",
                "language": "en",
                "rating": rating,
                "body": key,
                "idempotencyKey": key,
            }
        mine = self.random.choice(list(self.own))
        if what < 0.7:
            return EDIT_COMMENT, {"comment": mine, "rating": rating, "body": key, "idempotencyKey": key}
        return DELETE_COMMENT, {"comment": mine, "idempotencyKey": key}

    def _note(self, query: str, given: dict[str, Any], answer: dict[str, Any]) -> None:
        assert "code" not in answer, answer
        if query is DELETE_COMMENT:
            del self.own[answer["deletedId"]]
        else:
            self.own[answer["comment"]["id"]] = given["rating"]


async def shown(service: Service) -> tuple[dict[str, int], int]:
    """Every comment's rating, read page by page, and the number of all."""
    found: dict[str, int] = {}
    after = None
    async with httpx.AsyncClient(base_url=service.url, timeout=20) as http:
        while True:
            variables = {"product": "9", "first": 100, "after": after}
            response = await http.post("/graphql", json={"query": COMMENTS_PAGE, "variables": variables})
            page = response.json()["data"]["comments"]
            found |= {edge["node"]["id"]: edge["node"]["rating"] for edge in page["edges"]}
            if not page["pageInfo"]["hasNextPage"]:
                return found, page["totalCount"]
            after = page["pageInfo"]["endCursor"]


async def test_killing_the_service_loses_and_duplicates_no_comment(
    engine_pair: EnginePair, table_name: str, tmp_path: Path
) -> None:
    """Two lives of one service; what was not answered when it died is asked again, with its key, in the next."""
    async with lagging_table(engine_pair, table_name) as (engine, _, _):
        variables = on_table(engine.url, table_name, RINGSIDE_DATA=str(tmp_path), RINGSIDE_SECRETS=SECRET)
        settings = Settings(dynamodb_url=engine.url, table=table_name, secrets=(SECRET,))
        writers = [Writer(mint(settings, f"w{seed}"), Random(seed)) for seed in range(WRITERS)]
        with ExitStack() as stack:
            for _ in range(LIVES):
                service = await start_service(variables, stack)
                writing = [asyncio.create_task(writer.write(service.url)) for writer in writers]
                enough = sum(writer.asked for writer in writers) + REQUESTS
                while sum(writer.asked for writer in writers) < enough:
                    await asyncio.sleep(0.01)
                service.process.send_signal(signal.SIGKILL)
                await asyncio.gather(*writing)
            assert any(writer.unsure for writer in writers)
            service = await start_service(variables, stack)
            await asyncio.gather(*(writer.write(service.url, until_done=True) for writer in writers))
            await engine.catch_up()
            acknowledged = {id_: rating for writer in writers for id_, rating in writer.own.items()}
            assert await shown(service) == (acknowledged, len(acknowledged))
            await asyncio.to_thread(service.stop)
        audited = await asyncio.to_thread(lambda: ringside_process("audit", **variables))
        assert audited.returncode == 0, audited.stderr
