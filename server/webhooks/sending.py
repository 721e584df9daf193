"""Sending one message to a webhook, only to an address that was checked.

The check is where the socket is made, for exactly the address that it then connects to. So a name that is resolved
anew, or a number that the system reads as another address, cannot lead elsewhere. Redirects are not followed, no proxy
of the environment is used, no cookie is kept, and of the response at most 64 KB are read.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson

from datastore.changes.occurrences import Occurrence
from datastore.dynamo import iso
from datastore.refusals import InvalidInput
from resolvers.journal.occurrences import id_of
from resolvers.journal.webhooks import ForbiddenAddress, check_address, parse_destination
from resolvers.values.node_ids import node_id

# ── messages ──


def message(occurrence: Occurrence) -> bytes:
    """What is sent; the same bytes at every attempt, unless the member was erased meanwhile.

    Of two messages about an object, the one with the greater `sequence` is the later one, as a text.
    """
    data = {
        "id": node_id("Occurrence", occurrence.ulid),
        "at": iso(occurrence.at),
        "kind": occurrence.kind,
        "source": occurrence.source,
        "actor": id_of(occurrence.actor),
        "object": id_of(occurrence.object),
        "ground": occurrence.ground,
        "note": occurrence.note,
    }
    at = iso(occurrence.at)
    message = {"type": occurrence.kind, "timestamp": at, "occurredAt": at, "sequence": occurrence.ulid, "data": data}
    return orjson.dumps(message)


# ── signatures ──
# Signatures of messages as the Standard Webhooks specification defines them (version 1, symmetric).

PREFIX = "whsec_"


def sign(secrets: Sequence[str], message_id: str, timestamp: int, body: bytes) -> str:
    """One signature for each secret, separated by spaces: a receiver may know any of them."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return " ".join(f"v1,{_signature(secret, signed)}" for secret in secrets)


def _signature(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(PREFIX))
    return base64.b64encode(hmac.digest(key, signed, "sha256")).decode()


# ── sending ──

SEND_SECONDS = 10.0
MOST_RESPONSE_BYTES = 65_536
_SUCCESS = range(200, 300)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one attempt: the response's status, if there was one, and why it counts as failed."""

    status: int | None
    error: str | None = None


class Sender:
    """HTTP connections to webhooks: encrypted ones to public addresses, and any to the allowed networks."""

    def __init__(self, sessions: Mapping[bool, aiohttp.ClientSession], allowed: Sequence[str]) -> None:
        self._sessions = sessions
        self._allowed = allowed

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Outcome:
        try:
            destination = parse_destination(url, self._allowed)
            session = self._sessions[destination.secure]
            async with (
                asyncio.timeout(SEND_SECONDS),
                session.post(url, data=body, headers=headers, allow_redirects=False) as response,
            ):
                await _read_away(response)
                if response.status in _SUCCESS:
                    return Outcome(response.status)
                return Outcome(response.status, f"it answered {response.status}")
        except InvalidInput as refused:  # the allowed networks have changed since it was added
            return Outcome(None, refused.message)
        except TimeoutError:
            return Outcome(None, f"it did not answer within {SEND_SECONDS:.0f} s")
        except (aiohttp.ClientError, OSError) as error:
            return Outcome(None, _reason(error))


async def _read_away(response: aiohttp.ClientResponse) -> None:
    """Read a short response to its end, so that the connection can be used again; close it within a long one."""
    read = 0
    async for chunk in response.content.iter_any():
        read += len(chunk)
        if read > MOST_RESPONSE_BYTES:
            response.close()
            return


def _reason(error: Exception) -> str:
    forbidden: BaseException | None = error
    while forbidden is not None:
        if isinstance(forbidden, _ForbiddenSocket):
            return str(forbidden)
        forbidden = forbidden.__cause__ or forbidden.__context__
    return f"{type(error).__name__}: {error}"


class _ForbiddenSocket(OSError):
    """A connection that may not be made; aiohttp passes an OSError on."""


@asynccontextmanager
async def open_sender(allowed: Sequence[str]) -> AsyncIterator[Sender]:
    async with _session(allowed, secure=True) as secure, _session(allowed, secure=False) as plain:
        yield Sender({True: secure, False: plain}, allowed)


def _session(allowed: Sequence[str], *, secure: bool) -> aiohttp.ClientSession:
    def checked_socket(info: tuple[Any, ...]) -> socket.socket:
        family, kind, protocol, _, address = info
        try:
            check_address(address[0], allowed, secure=secure)
        except ForbiddenAddress as reason:
            raise _ForbiddenSocket(f"nothing is sent there: {reason}") from reason
        made = socket.socket(family, kind, protocol)
        made.setblocking(False)
        return made

    # Without a limit, since who sends has one for each webhook: a receiver that hangs holds up no other.
    connector = aiohttp.TCPConnector(limit=0, use_dns_cache=False, socket_factory=checked_socket)
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        skip_auto_headers=("Accept-Encoding",),
        headers={"User-Agent": "Ringside-Webhooks"},
    )
