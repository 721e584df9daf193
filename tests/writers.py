"""Members who write to all the parts whose counts the audit checks, without a pause."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from random import Random

from tests.client import Client
from tests.comments import post
from tests.queries import EDIT_COMMENT
from tests.season import EventEditor, submit
from tests.voting import add_contenders, vote

WRITERS = 4


@asynccontextmanager
async def writers(client: Client) -> AsyncIterator[None]:
    """Members who vote, comment, edit and predict without a pause while the block runs."""
    await add_contenders(client, "a", "b", "c", "d", "e", "f", "g", "h")
    event, (match,) = await EventEditor(client).card(10)
    tasks = [asyncio.create_task(_write(client, f"w{number}", event, match)) for number in range(WRITERS)]
    try:
        yield
        assert not [task for task in tasks if task.done()]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _write(client: Client, name: str, event: str, match: str) -> None:
    random = Random(name)
    for number in count():
        member = client.member(f"{name}-{number // 10}")
        await vote(member)
        comment = await post(member, "busy", random.randint(1, 5), random.choice(["en", "de"]))
        await member.ask(EDIT_COMMENT, input={"comment": comment["id"], "rating": random.randint(1, 5)})
        await submit(member, event, [(match, random.randrange(2))])
