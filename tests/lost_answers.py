"""A mutation whose transaction is applied, while the engine's answer is lost."""

from collections.abc import Awaitable, Callable
from typing import Any

from tests.client import Client
from tests.intercepted import Send, begun_within, intercepted


async def ask_without_answer(
    client: Client, query: str, *, meanwhile: Callable[[], Awaitable[Any]] | None = None, **given: Any
) -> Any:
    """The mutation's payload; of its transactions, the first one's answer is lost.

    `meanwhile` is what others do before it is tried again.
    """
    lost = False

    async def call(_: str, send: Send) -> Any:
        nonlocal lost
        answer = await send()
        if not lost and is_asked():
            lost = True
            if meanwhile is not None:
                await meanwhile()
            raise TimeoutError
        return answer

    with begun_within() as is_asked, intercepted(client.services.table, ("transact_write_items",), call):
        return await client.ask(query, input=given)
