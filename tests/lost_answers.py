"""A mutation whose transaction is applied, while the engine's answer is lost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tests.client import Client


async def ask_without_answer(
    client: Client, query: str, *, meanwhile: Callable[[], Awaitable[Any]] | None = None, **given: Any
) -> Any:
    """The mutation's payload; of its transactions, the first one's answer is lost.

    `meanwhile` is what others do before it is tried again.
    """
    table_client, lost = client.services.table.client, False
    original = table_client.transact_write_items

    async def lose_one_answer(**request: Any) -> Any:
        nonlocal lost
        answer = await original(**request)
        if not lost:
            lost = True
            if meanwhile is not None:
                await meanwhile()
            raise TimeoutError
        return answer

    table_client.transact_write_items = lose_one_answer
    try:
        return await client.ask(query, input=given)
    finally:
        table_client.transact_write_items = original
