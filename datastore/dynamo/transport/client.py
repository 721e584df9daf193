"""A client of DynamoDB: the SDK's, with its data calls sent directly, for a seventh of the work.

This is the one place that configures aioboto3, which reads the settings' chain, resolves the endpoint, fetches and
renews credentials, and manages the table. `DirectClient` makes the data calls: it answers what the SDK's client would
answer, without its ResponseMetadata, and fails as it fails. Every request asks the SDK for credentials, so roles and
their renewal work.

| step      | the SDK                                     | here                                                       |
|-----------|---------------------------------------------|------------------------------------------------------------|
| endpoint  | a rule set, evaluated for every call        | the SDK's answer, asked for once                           |
| request   | built and checked by the service model      | orjson; SigV4 of exactly these headers (`Signer`)          |
| sending   | aiohttp                                     | `connections`                                              |
| answer    | json, then walked by the service model      | orjson; walked only if it holds binary attributes          |
| error     | parsed by the service model                 | by the SDK's own parser, raised as the SDK's `ClientError` |

In configurations that only the SDK handles, such as a proxy, the SDK's client makes the data calls too. With `sdk_only`
it always does: the tests compare both ways. It repeats nothing, since it does not know the request's deadline and
repeats no cancelled transactions.
"""

import hashlib
import hmac
import json
import logging
import re
import ssl
import time
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from typing import Any, TypeVar

import aioboto3
import orjson
from aiobotocore.config import AioConfig
from aiobotocore.credentials import AioRefreshableCredentials
from aiobotocore.httpsession import AIOHTTPSession
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import ClientError, CredentialRetrievalError
from botocore.httpsession import get_cert_path
from botocore.parsers import ResponseParserError, create_parser
from yarl import URL

from datastore.dynamo.transport.connections import ANSWER_SECONDS, CONNECT_SECONDS, Connections, Response

# ── requests ──

_SIGNED = "content-type;host;x-amz-date;x-amz-target"
_SIGNED_WITH_TOKEN = "content-type;host;x-amz-date;x-amz-security-token;x-amz-target"  # noqa: S105 - names of headers


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where and how the SDK's client sends its requests."""

    url: URL
    target: str
    content_type: str
    agent: str
    region: str
    service: str
    signature: str

    @property
    def unsupported(self) -> str | None:
        """Why only the SDK's client can send requests there, if so."""
        if self.signature not in ("v4", "aws.auth#sigv4"):
            return f"requests are signed in another way: {self.signature}"
        if self.url.path != "/" or self.url.query_string:
            return "the address has a path"
        return None


async def read_endpoint(client: Any, table: str) -> Endpoint:
    """The endpoint of the SDK's client, read from a request in its `before-call` event; nothing is sent."""
    seen: dict[str, Any] = {}

    def note(params: Mapping[str, Any], context: Mapping[str, Any], **_: object) -> tuple[AWSResponse, dict[str, Any]]:
        seen.update(params=params, context=context)
        return AWSResponse(params["url"], 200, HTTPHeaders(), None), {}

    client.meta.events.register_first("before-call.dynamodb.GetItem", note)
    try:
        await client.get_item(TableName=table, Key={})
    finally:
        client.meta.events.unregister("before-call.dynamodb.GetItem", note)
    params, context = seen["params"], seen["context"]
    headers, signing = params["headers"], context.get("signing", {})
    return Endpoint(
        url=URL(params["url"]),
        target=headers["X-Amz-Target"].removesuffix("GetItem"),
        content_type=headers["Content-Type"],
        agent=str(headers.get("User-Agent", "")),
        region=signing.get("region") or client.meta.region_name,
        service=signing.get("signing_name") or client.meta.service_model.signing_name,
        signature=str(context.get("auth_type") or client.meta.config.signature_version),
    )


def request_body(parameters: Mapping[str, Any]) -> bytes:
    """The JSON of a call's parameters."""
    try:
        return orjson.dumps(parameters, default=_base64)
    except TypeError:  # a lone surrogate: the SDK escapes it, and the engine decides
        return json.dumps(parameters, default=_base64).encode()


def _base64(value: Any) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return b64encode(value).decode()
    raise TypeError(f"an attribute cannot hold {type(value).__name__}")


class Signer:
    """Signature version 4 of a POST to `/` with exactly the headers of a DynamoDB call."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._host = endpoint.url.host_port_subcomponent or ""
        self._fixed = (
            f"POST / HTTP/1.1\r\nhost: {self._host}\r\ncontent-type: {endpoint.content_type}\r\n"
            f"user-agent: {endpoint.agent}\r\naccept-encoding: identity\r\n"
        )
        self._key: tuple[tuple[str, str], bytes] = (("", ""), b"")

    def request(self, operation: str, body: bytes, credentials: Any) -> bytes:
        """The whole request, signed now."""
        target = self._endpoint.target + operation
        moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        token = f"x-amz-security-token: {credentials.token}\r\n" if credentials.token else ""
        head = (
            f"{self._fixed}x-amz-date: {moment}\r\nx-amz-target: {target}\r\n{token}"
            f"authorization: {self.authorization(target, body, credentials, moment)}\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    def authorization(self, target: str, body: bytes, credentials: Any, moment: str) -> str:
        endpoint, day, token = self._endpoint, moment[:8], credentials.token
        names = _SIGNED_WITH_TOKEN if token else _SIGNED
        canonical = (
            f"POST\n/\n\ncontent-type:{endpoint.content_type}\nhost:{self._host}\nx-amz-date:{moment}\n"
            f"{f'x-amz-security-token:{token}' + chr(10) if token else ''}x-amz-target:{target}\n\n"
            f"{names}\n{hashlib.sha256(body).hexdigest()}"
        )
        scope = f"{day}/{endpoint.region}/{endpoint.service}/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        signature = hmac.digest(self._day_key(credentials.secret_key, day), text.encode(), "sha256").hex()
        holder = f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{scope}"
        return f"{holder}, SignedHeaders={names}, Signature={signature}"

    def _day_key(self, secret: str, day: str) -> bytes:
        """The signing key of a day, derived again when the day or the secret changes."""
        if self._key[0] != (secret, day):
            key = b"AWS4" + secret.encode()
            for part in (day, self._endpoint.region, self._endpoint.service, "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            self._key = ((secret, day), key)
        return self._key[1]


# ── direct client ──

_OPERATIONS = {
    "get_item": "GetItem",
    "batch_get_item": "BatchGetItem",
    "query": "Query",
    "scan": "Scan",
    "put_item": "PutItem",
    "update_item": "UpdateItem",
    "delete_item": "DeleteItem",
    "transact_write_items": "TransactWriteItems",
    "batch_write_item": "BatchWriteItem",
}
"""The data calls, as the SDK's methods and as DynamoDB's operations."""
_FIRST_ERROR = 300
_PARSER = create_parser("json")
_MENTIONS_BINARY = re.compile(rb'"BS?"')  # a third of the time that two `in` take, as answers are full of quotes


class DirectClient:
    """A low-level client: `await client.query(TableName=…)`. What is not a data call is the SDK's client's own."""

    def __init__(self, sdk: Any, connections: Connections, endpoint: Endpoint, credentials: Any) -> None:
        self._sdk = sdk
        self._connections = connections
        self._credentials = credentials
        self._signer = Signer(endpoint)
        for method, operation in _OPERATIONS.items():
            setattr(self, method, partial(self._send, operation))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sdk, name)

    async def _send(self, operation: str, /, **parameters: Any) -> dict[str, Any]:
        credentials = await self._credentials.get_frozen_credentials()
        request = self._signer.request(operation, request_body(parameters), credentials)
        response = await self._connections.send(request)
        if response.status >= _FIRST_ERROR:
            raise parse_error(self._sdk.meta.service_model, operation, response)
        try:
            return parse_answer(response.body)
        except ValueError as error:
            raise ConnectionError(f"the engine's answer is not JSON ({error})") from error


def parse_answer(body: bytes) -> dict[str, Any]:
    """An answer as the SDK would return it; ValueError if it is not JSON."""
    answer: dict[str, Any] = orjson.loads(body)
    if _MENTIONS_BINARY.search(body):
        _decode_binary(answer)
    return answer


def _decode_binary(value: Any) -> None:
    """Decode the base64 of binary attributes in place.

    Only an attribute has text under "B", or a list of texts under "BS": under an attribute's name is an object, and
    names of tables have three characters or more.
    """
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == "B" and isinstance(inner, str):
                value[name] = b64decode(inner)
            elif name == "BS" and isinstance(inner, list):
                value[name] = [b64decode(part) if isinstance(part, str) else part for part in inner]
            else:
                _decode_binary(inner)
    elif isinstance(value, list):
        for inner in value:
            _decode_binary(inner)


def parse_error(model: Any, operation: str, response: Response) -> ClientError:
    """An error response, read with the SDK's own parser and service model."""
    given = {
        "status_code": response.status,
        "headers": {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers},
        "body": response.body,
    }
    try:
        parsed = _PARSER.parse(given, model.operation_model(operation).output_shape)
        shape = model.shape_for_error_code(str(parsed.get("Error", {}).get("Code", "")))
        if shape is not None:
            parsed.update(_PARSER.parse(given, shape))
    except (AttributeError, TypeError, ValueError, ResponseParserError):  # a proxy's answer, not an engine's
        parsed = {"Error": {}, "ResponseMetadata": {"HTTPStatusCode": response.status}}
    return ClientError(parsed, operation)


# ── client ──

R = TypeVar("R")

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
        proxies={} if url is not None and _is_loopback(url) else None,  # None for those of the environment
        # Keys and values are made by Entity, which knows more about them than the SDK's own model does.
        parameter_validation=False,
        http_session_cls=_noting(http_settings),
    )
    # A local engine takes any credentials, but the protocol wants some.
    local = {} if url is None else {"aws_access_key_id": "ringside", "aws_secret_access_key": "ringside"}
    session = aioboto3.Session(region_name=region or ("us-east-1" if url else None), **local)
    credentials = await session.get_credentials()
    if isinstance(credentials, AioRefreshableCredentials):
        for method in ("get_frozen_credentials", "get_account_id"):
            setattr(credentials, method, partial(_refreshed, getattr(credentials, method)))
    # Without TLS the SDK would load all authorities' certificates for nothing, which takes 25 ms.
    verify = False if url is not None and url.startswith("http:") else None
    async with session.client("dynamodb", endpoint_url=url, config=config, verify=verify) as sdk:
        if sdk_only:
            yield sdk
            return
        async with _direct(credentials, sdk, table, http_settings) as client:
            yield client


def _is_loopback(url: str) -> bool:
    """Whether an address is this machine's own: a proxy would connect to its own machine instead."""
    host = URL(url).host or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


async def _refreshed(read: Callable[[], Awaitable[R]]) -> R:
    """What either client reads of credentials. The SDK lets out whatever goes wrong while it fetches new ones."""
    try:
        return await read()
    except Exception as error:
        raise CredentialRetrievalError(provider="AWS", error_msg=str(error)) from error


def _noting(settings: dict[str, Any]) -> type[AIOHTTPSession]:
    """The SDK's HTTP session, which also notes its settings: proxies and certificates."""

    class Noting(AIOHTTPSession):  # type: ignore[misc]  # the SDK has no types
        def __init__(self, **given: Any) -> None:
            settings.update(given)
            super().__init__(**given)

    return Noting


@asynccontextmanager
async def _direct(credentials: Any, sdk: Any, table: str, http_settings: Mapping[str, Any]) -> AsyncIterator[Any]:
    """A direct client, or the SDK's own where only that one can be used."""
    endpoint = await read_endpoint(sdk, table)
    no_credentials = None if credentials else "there are no credentials"
    has_tls = endpoint.url.scheme == "https"
    reason = endpoint.unsupported or _unsupported(http_settings, has_tls=has_tls) or no_credentials
    if reason:
        _log.warning("The SDK's own client reads and writes the table, at several times the work: %s", reason)
        yield sdk
        return
    tls = None
    if has_tls:
        tls = ssl.create_default_context(cafile=get_cert_path(http_settings["verify"]))
    connections = Connections(endpoint.url.host or "", endpoint.url.port or 0, tls)
    try:
        yield DirectClient(sdk, connections, endpoint, credentials)
    finally:
        connections.close()


def _unsupported(http_settings: Mapping[str, Any], *, has_tls: bool) -> str | None:
    if "verify" not in http_settings:
        return "the SDK uses another HTTP client"
    if http_settings.get("proxies"):
        return "there is a proxy"
    if (has_tls and http_settings["verify"] is False) or http_settings.get("client_cert"):
        return "certificates are handled in another way"
    return None
