"""Node ids: an opaque text for every object that can be queried by id.

    base64url( type name ":" key  ·  CRC-32 of both cut to 3 bytes )

The checksum makes a mistyped or shortened id a clear error instead of an unknown object. It protects against accidents,
not against intent: nothing may depend on an id being hard to guess.
"""

import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import lru_cache

from datastore.refusals import InvalidInput

LONGEST = 1024
_CHECKSUM_BYTES = 3


@lru_cache(maxsize=8_192)  # the same objects are shown again and again
def node_id(type_name: str, key: str) -> str:
    return _encode(f"{type_name}:{key}".encode())


def parse_node_id(text: str) -> tuple[str, str]:
    """The type name and key of an id; InvalidInput if it is not an id of this service."""
    if len(text) <= LONGEST:
        try:
            decoded = urlsafe_b64decode(text + "=" * (-len(text) % 4))
            payload = decoded[:-_CHECKSUM_BYTES]
            type_name, colon, key = payload.decode().partition(":")
        except ValueError:
            pass
        else:
            if colon and decoded[-_CHECKSUM_BYTES:] == _checksum(payload) and _encode(payload) == text:
                return type_name, key
    raise InvalidInput("This is not an id of this service. Use an id exactly as an answer gave it.")


def parse_node_key(type_name: str, text: str) -> str:
    """The key in an id of this type; InvalidInput for an id of another type."""
    actual_type, key = parse_node_id(text)
    if actual_type != type_name:
        raise InvalidInput(f"This is an id of the type {actual_type}; one of the type {type_name} is needed here.")
    return key


def _encode(payload: bytes) -> str:
    return urlsafe_b64encode(payload + _checksum(payload)).rstrip(b"=").decode()


def _checksum(payload: bytes) -> bytes:
    return zlib.crc32(payload).to_bytes(4, "big")[:_CHECKSUM_BYTES]
