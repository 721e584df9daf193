"""The lean way to the engine: what aioboto3 would send, signed and sent with a tenth of its work.

| step      | the SDK                                     | here                                                       |
|-----------|---------------------------------------------|------------------------------------------------------------|
| endpoint  | a rule set is evaluated for every call      | asked once, of the SDK's client (`Resolved`)               |
| request   | built and checked against the service model | orjson; bytes become base64                                |
| signature | SigV4 in general                            | SigV4 of this one form of request (`Signer`)               |
| sending   | aiohttp                                     | `connections`                                              |
| answer    | json, then walked against the service model | orjson; walked only if it holds binary attributes          |
| an error  | parsed against the service model            | by the SDK's own parser, raised as the SDK's `ClientError` |

Law: a `Wire` answers what the SDK's client would answer, without its ResponseMetadata, and fails as it fails. The
client stays in charge of settings, endpoint and credentials, which are asked of it anew for every request, so roles
and their refreshing work. Whatever is out of the ordinary (a proxy, a client certificate, another kind of signature)
is left to the client itself: `Resolved.plain`.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from base64 import b64decode, b64encode
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import ClientError
from botocore.parsers import ResponseParserError, create_parser
from yarl import URL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datastore.dynamo.transport.connections import Answered, Connections

# The calls for data, as the SDK's methods and as DynamoDB's operations.
OPERATIONS = {
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
WRITES = frozenset({"PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem"})
_FIRST_FAULT = 300
_SIGNED = "content-type;host;x-amz-date;x-amz-target"
_SIGNED_WITH_TOKEN = "content-type;host;x-amz-date;x-amz-security-token;x-amz-target"  # noqa: S105 - names of headers


# ── what the SDK's client would do, asked once ──


@dataclass(frozen=True, slots=True)
class Resolved:
    """Where and how the SDK's client sends its requests."""

    url: URL
    target: str
    content_type: str
    agent: str
    region: str
    service: str
    signature: str

    @property
    def plain(self) -> str | None:
        """Why requests must be left to the SDK's client; None if they need not."""
        if self.signature not in ("v4", "aws.auth#sigv4"):
            return f"requests are signed in another way: {self.signature}"
        if self.url.path != "/" or self.url.query_string:
            return "the address has a path"
        return None


async def resolved(client: Any, table: str) -> Resolved:
    """What the SDK's client makes of a request, seen through its `before-call` event; nothing is sent."""
    seen: dict[str, Any] = {}

    def look(params: Mapping[str, Any], context: Mapping[str, Any], **_: object) -> tuple[AWSResponse, dict[str, Any]]:
        seen.update(params=params, context=context)
        return AWSResponse(params["url"], 200, HTTPHeaders(), None), {}

    client.meta.events.register_first("before-call.dynamodb.GetItem", look)
    try:
        await client.get_item(TableName=table, Key={})
    finally:
        client.meta.events.unregister("before-call.dynamodb.GetItem", look)
    params, context = seen["params"], seen["context"]
    headers, signing = params["headers"], context.get("signing", {})
    return Resolved(
        url=URL(params["url"]),
        target=headers["X-Amz-Target"].removesuffix("GetItem"),
        content_type=headers["Content-Type"],
        agent=str(headers.get("User-Agent", "")),
        region=signing.get("region") or client.meta.region_name,
        service=signing.get("signing_name") or client.meta.service_model.signing_name,
        signature=str(context.get("auth_type") or client.meta.config.signature_version),
    )


# ── requests ──


def request_body(parameters: Mapping[str, Any]) -> bytes:
    """The parameters of a call as they travel."""
    try:
        return orjson.dumps(parameters, default=_base64)
    except TypeError:  # a lone surrogate: the SDK escapes it, and the engine decides
        return json.dumps(parameters, default=_base64).encode()


def _base64(value: Any) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return b64encode(value).decode()
    message = f"an attribute cannot hold {type(value).__name__}"
    raise TypeError(message)


class Signer:
    """Signature version 4 of a POST to `/` with exactly the headers that a call of DynamoDB has."""

    def __init__(self, way: Resolved) -> None:
        self._way = way
        self._host = way.url.host_port_subcomponent or ""
        self._fixed = (
            f"POST / HTTP/1.1\r\nhost: {self._host}\r\ncontent-type: {way.content_type}\r\n"
            f"user-agent: {way.agent}\r\naccept-encoding: identity\r\n"
        )
        self._key: tuple[tuple[str, str], bytes] = (("", ""), b"")

    def request(self, operation: str, body: bytes, credentials: Any) -> bytes:
        """The whole request, signed now."""
        target = self._way.target + operation
        moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        token = f"x-amz-security-token: {credentials.token}\r\n" if credentials.token else ""
        head = (
            f"{self._fixed}x-amz-date: {moment}\r\nx-amz-target: {target}\r\n{token}"
            f"authorization: {self.authorization(target, body, credentials, moment)}\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    def authorization(self, target: str, body: bytes, credentials: Any, moment: str) -> str:
        way, day, token = self._way, moment[:8], credentials.token
        names = _SIGNED_WITH_TOKEN if token else _SIGNED
        canonical = (
            f"POST\n/\n\ncontent-type:{way.content_type}\nhost:{self._host}\nx-amz-date:{moment}\n"
            f"{f'x-amz-security-token:{token}' + chr(10) if token else ''}x-amz-target:{target}\n\n"
            f"{names}\n{hashlib.sha256(body).hexdigest()}"
        )
        scope = f"{day}/{way.region}/{way.service}/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        signature = hmac.digest(self._key_of(credentials.secret_key, day), text.encode(), "sha256").hex()
        holder = f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{scope}"
        return f"{holder}, SignedHeaders={names}, Signature={signature}"

    def _key_of(self, secret: str, day: str) -> bytes:
        """The key of a day; made anew when the day or the credentials change."""
        if self._key[0] != (secret, day):
            key = b"AWS4" + secret.encode()
            for part in (day, self._way.region, self._way.service, "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            self._key = ((secret, day), key)
        return self._key[1]


# ── answers ──


def answer_of(body: bytes) -> dict[str, Any]:
    """An answer as the SDK would hand it over."""
    answer: dict[str, Any] = orjson.loads(body)
    if b'"B"' in body or b'"BS"' in body:
        _lift(answer)
    return answer


def _lift(value: Any) -> None:
    """Turn base64 into bytes wherever an attribute is binary.

    Nothing but an attribute can have text under "B", or a list of texts under "BS": what an attribute's name leads to
    is an object, and tables have names of three characters or more.
    """
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == "B" and isinstance(inner, str):
                value[name] = b64decode(inner)
            elif name == "BS" and isinstance(inner, list):
                value[name] = [b64decode(one) if isinstance(one, str) else one for one in inner]
            else:
                _lift(inner)
    elif isinstance(value, list):
        for inner in value:
            _lift(inner)


class Faults:
    """Answers that say no, read by the SDK's own parser."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._parser = create_parser("json")

    def error(self, operation: str, answered: Answered) -> ClientError:
        response = {
            "status_code": answered.status,
            "headers": {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in answered.headers},
            "body": answered.body,
        }
        try:
            parsed = self._parser.parse(response, self._model.operation_model(operation).output_shape)
            shape = self._model.shape_for_error_code(str(parsed.get("Error", {}).get("Code", "")))
            if shape is not None:
                parsed.update(self._parser.parse(response, shape))
        except (AttributeError, TypeError, ValueError, ResponseParserError):  # not from an engine: something in between
            parsed = {"Error": {}, "ResponseMetadata": {"HTTPStatusCode": answered.status}}
        return ClientError(parsed, operation)


class Wire:
    """The SDK's low-level client, with its calls for data sent the lean way: `await wire.query(TableName=…)`."""

    def __init__(self, client: Any, connections: Connections, way: Resolved, credentials: Any) -> None:
        self._client = client
        self._connections = connections
        self._credentials = credentials
        self._signer = Signer(way)
        self._faults = Faults(client.meta.service_model)
        for method, operation in OPERATIONS.items():
            setattr(self, method, partial(self._ask, operation))

    def __getattr__(self, name: str) -> Any:
        """Whatever is not a call for data is the client's own."""
        return getattr(self._client, name)

    async def _ask(self, operation: str, /, **parameters: Any) -> dict[str, Any]:
        credentials = await self._credentials.get_frozen_credentials()
        request = self._signer.request(operation, request_body(parameters), credentials)
        answered = await self._connections.ask(request)
        if answered.status >= _FIRST_FAULT:
            raise self._faults.error(operation, answered)
        try:
            return answer_of(answered.body)
        except ValueError as error:
            message = f"the engine's answer is no JSON ({error})"
            raise ConnectionError(message) from error
