"""Frames of a WebSocket, as no library would send them."""

import json
import struct
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as some

from tests.attack.raw_http import head
from tests.websockets import PROTOCOL

HANDSHAKE = head(
    "GET",
    "/graphql",
    "connection: upgrade",
    "upgrade: websocket",
    "sec-websocket-version: 13",
    "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
    "sec-websocket-extensions: permessage-deflate",
    f"sec-websocket-protocol: {PROTOCOL}",
)
TEXT, BINARY, CLOSE, PING, PONG, CONTINUATION = 1, 2, 8, 9, 10, 0
MASK = b"\x01\x02\x03\x04"


def frame(payload: bytes, opcode: int = TEXT, *, first_bits: int = 0x80, masked: bool = True, more: int = 0) -> bytes:
    """A frame whose header announces `more` bytes than there are."""
    size = max(len(payload) + more, 0)
    mask_bit = 0x80 if masked else 0
    if size < 126:
        length = struct.pack("!B", mask_bit | size)
    elif size < 65_536:
        length = struct.pack("!BH", mask_bit | 126, size)
    else:
        length = struct.pack("!BQ", mask_bit | 127, size)
    if masked:
        payload = MASK + bytes(byte ^ MASK[place % 4] for place, byte in enumerate(payload))
    return bytes([first_bits | opcode]) + length + payload


def message(*values: Any) -> bytes:
    return b"".join(frame(json.dumps(value).encode()) for value in values)


def _subscribe(**payload: Any) -> dict[str, Any]:
    return {"id": "1", "type": "subscribe", "payload": payload}


_MESSAGES: some.SearchStrategy[Any] = some.sampled_from(
    [{"type": "connection_init"}, {"type": "connection_init", "payload": {"Authorization": "Bearer x"}},
     {"type": "connection_init", "payload": []}, {"type": "ping"}, {"type": "pong"}, {"type": "complete", "id": "1"},
     {"type": "complete"}, {"type": 7}, [], 0, None, "", {"id": [], "type": "subscribe"}, _subscribe(),
     _subscribe(query="{ __typename }"), _subscribe(query="{"), _subscribe(query="\ud800"), _subscribe(query=7),
     _subscribe(query='subscription { commentPosted(product: "p") { id } }'), _subscribe(documentId="x"),
     _subscribe(query="{ boards { nodes { slug } } }"), _subscribe(query="{ __typename }", variables=7)]
)  # fmt: skip
_OPENED = some.sampled_from([message({"type": "connection_init"}), b""])


@some.composite
def frames(draw: some.DrawFn) -> bytes:
    """One frame: a message of the protocol or nonsense, well formed or not."""
    payload = draw(some.one_of(_MESSAGES.map(lambda value: json.dumps(value).encode()), some.binary(max_size=200)))
    return frame(
        payload,
        draw(some.sampled_from([TEXT, TEXT, TEXT, BINARY, CONTINUATION, PING, PONG, CLOSE, 3, 15])),
        first_bits=draw(some.sampled_from([0x80, 0x80, 0x80, 0x00, 0xC0, 0xF0])),
        masked=draw(some.sampled_from([True, True, True, False])),
        more=draw(some.sampled_from([0, 0, 0, 1, -1, 100_000, 2**62])),
    )


@some.composite
def conversations(draw: some.DrawFn) -> Sequence[bytes]:
    """What a client sends after its handshake, in the pieces in which it arrives."""
    well_formed = _MESSAGES.map(message)
    sent = draw(_OPENED) + b"".join(draw(some.lists(frames() | well_formed, min_size=1, max_size=8)))
    cuts = sorted(draw(some.sets(some.integers(0, len(sent)), max_size=3)))
    return [sent[start:end] for start, end in zip([0, *cuts], [*cuts, len(sent)], strict=True)]
