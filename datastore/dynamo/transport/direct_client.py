"""The SDK's client with its data calls sent directly: the same requests and answers for a tenth of the work.

| step      | the SDK                                     | here                                                       |
|-----------|---------------------------------------------|------------------------------------------------------------|
| endpoint  | a rule set, evaluated for every call        | the SDK's answer, asked for once                           |
| request   | built and checked by the service model      | orjson; SigV4 of exactly these headers (`signing`)         |
| sending   | aiohttp                                     | `connections`                                              |
| answer    | json, then walked by the service model      | orjson; walked only if it holds binary attributes          |
| error     | parsed by the service model                 | by the SDK's own parser, raised as the SDK's `ClientError` |

A `DirectClient` answers what the SDK's client would answer, without its ResponseMetadata, and fails as it fails. Every
request asks the SDK for credentials, so roles and their renewal work.
"""

from __future__ import annotations

import re
from base64 import b64decode
from functools import partial
from typing import Any

import orjson
from botocore.exceptions import ClientError
from botocore.parsers import ResponseParserError, create_parser

from datastore.dynamo.transport.connections import Connections, Response
from datastore.dynamo.transport.signing import Endpoint, Signer, request_body

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
