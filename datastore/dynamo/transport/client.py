"""Opening the table: the one place that configures aioboto3.

aioboto3 is in charge: of the settings' chain, the endpoint, credentials and their refreshing, everything about the
table itself. The calls for data go a leaner way to the same place (see `wire`), unless something is out of the
ordinary: then they too are left to the SDK's client. `plain` leaves them to it in any case; the tests hold both ways
together.

Repeats are ours (see `retries`): the library's own would not know the request's deadline, and it repeats none of the
cancelled transactions.
"""

from __future__ import annotations

import logging
import ssl
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

import aioboto3
from aiobotocore.config import AioConfig
from aiobotocore.httpsession import AIOHTTPSession
from botocore.httpsession import get_cert_path

from datastore.dynamo.table import Table
from datastore.dynamo.transport import connections
from datastore.dynamo.transport import signing as wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

_CONNECTIONS = 64
_log = logging.getLogger(__name__)


@asynccontextmanager
async def open_table(
    name: str, *, url: str | None = None, region: str | None = None, plain: bool = False
) -> AsyncIterator[Table]:
    """The table at an engine's address; without an address, at AWS by the SDK's own chain of settings."""
    given: dict[str, Any] = {}
    config = AioConfig(
        connect_timeout=connections.CONNECT_SECONDS,
        read_timeout=connections.ANSWER_SECONDS,
        max_pool_connections=_CONNECTIONS,
        retries={"total_max_attempts": 1},
        # Keys and values are made by Entity, which knows more about them than the SDK's own model does.
        parameter_validation=False,
        http_session_cls=_noting(given),
    )
    # An engine on an address of its own takes any credentials, but the protocol wants some.
    local = {} if url is None else {"aws_access_key_id": "ringside", "aws_secret_access_key": "ringside"}
    session = aioboto3.Session(region_name=region or ("us-east-1" if url else None), **local)
    async with session.client("dynamodb", endpoint_url=url, config=config) as client:
        if plain:
            async with aclosing(Table(client, name)) as table:
                yield table
            return
        async with _lean(session, client, name, given) as lean, aclosing(Table(lean, name)) as table:
            yield table


def _noting(given: dict[str, Any]) -> type[AIOHTTPSession]:
    """The SDK's own HTTP, which also notes what the SDK's settings come to: proxies, certificates."""

    class Noting(AIOHTTPSession):  # type: ignore[misc]
        def __init__(self, **settings: Any) -> None:
            given.update(settings)
            super().__init__(**settings)

    return Noting


@asynccontextmanager
async def _lean(session: aioboto3.Session, client: Any, name: str, given: Mapping[str, Any]) -> AsyncIterator[Any]:
    """The client with a lean way to where it sends its requests; as it is, if only the client itself knows how."""
    credentials = await session.get_credentials()
    way = await wire.resolved(client, name)
    reason = way.plain or _unusual(given) or (None if credentials else "there are no credentials")
    if reason:
        _log.warning("Requests to the table take the SDK's own way, at several times the work: %s", reason)
        yield client
        return
    tls = None
    if way.url.scheme == "https":
        tls = ssl.create_default_context(cafile=get_cert_path(given["verify"]))
    origin = connections.Origin(way.url.host or "", way.url.port or 0, tls)
    kept = connections.Connections(origin, _CONNECTIONS)
    try:
        yield wire.Wire(client, kept, way, credentials)
    finally:
        kept.close()


def _unusual(given: Mapping[str, Any]) -> str | None:
    if "verify" not in given:
        return "the SDK has another client of HTTP"
    if given.get("proxies"):
        return "there is a proxy"
    if given["verify"] is False or given.get("client_cert"):
        return "certificates are handled in another way"
    return None
