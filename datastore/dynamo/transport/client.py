"""Opens a client of DynamoDB: the one place that configures aioboto3.

aioboto3 reads the settings' chain, resolves the endpoint, fetches and renews credentials, and manages the table. The
data calls go directly to the same endpoint (`direct_client`), except in configurations that only the SDK handles, such
as a proxy; then the SDK's client makes them too. With `sdk_only` it always does: the tests compare both ways.

The SDK repeats nothing, since it does not know the request's deadline and repeats no cancelled transactions.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aioboto3
from aiobotocore.config import AioConfig
from aiobotocore.httpsession import AIOHTTPSession
from botocore.httpsession import get_cert_path

from datastore.dynamo.transport.connections import ANSWER_SECONDS, CONNECT_SECONDS, Connections
from datastore.dynamo.transport.direct_client import DirectClient
from datastore.dynamo.transport.signing import read_endpoint

_CONNECTIONS = 64
_log = logging.getLogger(__name__)


@asynccontextmanager
async def open_client(
    table: str, *, url: str | None = None, region: str | None = None, sdk_only: bool = False
) -> AsyncIterator[Any]:
    """A low-level client for a table at a URL; without a URL, at AWS by the SDK's own chain of settings."""
    http_settings: dict[str, Any] = {}
    config = AioConfig(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=ANSWER_SECONDS,
        max_pool_connections=_CONNECTIONS,
        retries={"total_max_attempts": 1},
        # Keys and values are made by Entity, which knows more about them than the SDK's own model does.
        parameter_validation=False,
        http_session_cls=_noting(http_settings),
    )
    # A local engine takes any credentials, but the protocol wants some.
    local = {} if url is None else {"aws_access_key_id": "ringside", "aws_secret_access_key": "ringside"}
    session = aioboto3.Session(region_name=region or ("us-east-1" if url else None), **local)
    async with session.client("dynamodb", endpoint_url=url, config=config) as sdk:
        if sdk_only:
            yield sdk
            return
        async with _direct(session, sdk, table, http_settings) as client:
            yield client


def _noting(settings: dict[str, Any]) -> type[AIOHTTPSession]:
    """The SDK's HTTP session, which also notes its settings: proxies and certificates."""

    class Noting(AIOHTTPSession):  # type: ignore[misc]
        def __init__(self, **given: Any) -> None:
            settings.update(given)
            super().__init__(**given)

    return Noting


@asynccontextmanager
async def _direct(
    session: aioboto3.Session, sdk: Any, table: str, http_settings: Mapping[str, Any]
) -> AsyncIterator[Any]:
    """A direct client, or the SDK's own where only that one can be used."""
    credentials = await session.get_credentials()
    endpoint = await read_endpoint(sdk, table)
    no_credentials = None if credentials else "there are no credentials"
    reason = endpoint.unsupported or _unsupported(http_settings) or no_credentials
    if reason:
        _log.warning("The SDK's own client reads and writes the table, at several times the work: %s", reason)
        yield sdk
        return
    tls = None
    if endpoint.url.scheme == "https":
        tls = ssl.create_default_context(cafile=get_cert_path(http_settings["verify"]))
    connections = Connections(endpoint.url.host or "", endpoint.url.port or 0, tls)
    try:
        yield DirectClient(sdk, connections, endpoint, credentials)
    finally:
        connections.close()


def _unsupported(http_settings: Mapping[str, Any]) -> str | None:
    if "verify" not in http_settings:
        return "the SDK uses another HTTP client"
    if http_settings.get("proxies"):
        return "there is a proxy"
    if http_settings["verify"] is False or http_settings.get("client_cert"):
        return "certificates are handled in another way"
    return None
