"""Opening the table: the one place that configures aioboto3.

Repeats are ours (see `deadline`): the library's own would not know the request's deadline, and it repeats none of the
cancelled transactions.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import aioboto3
from aiobotocore.config import AioConfig

from datastore.dynamo.table import Table

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_CONNECTIONS = 64
_CONNECT_SECONDS = 2
_READ_SECONDS = 10


@asynccontextmanager
async def open_table(name: str, *, url: str | None = None, region: str | None = None) -> AsyncIterator[Table]:
    """The table at an engine's address; without an address, at AWS by the SDK's own chain of settings."""
    config = AioConfig(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_READ_SECONDS,
        max_pool_connections=_CONNECTIONS,
        retries={"total_max_attempts": 1},
        # Keys and values are made by Entity, which knows more about them than the SDK's own model does.
        parameter_validation=False,
    )
    # An engine on an address of its own takes any credentials, but the protocol wants some.
    local = {} if url is None else {"aws_access_key_id": "ringside", "aws_secret_access_key": "ringside"}
    session = aioboto3.Session(region_name=region or ("us-east-1" if url else None), **local)
    async with session.client("dynamodb", endpoint_url=url, config=config) as client:
        yield Table(client, name)
