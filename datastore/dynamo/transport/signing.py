"""Requests to an engine, built and signed as the SDK would (SigV4), for the one form that a data call has."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from yarl import URL

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
