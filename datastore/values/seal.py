"""Signed bytes that clients keep and cannot alter: cursors, ballots, visitor cookies, unsubscribe links.

    key id (1) · payload · HMAC-SHA256 of both, cut to `size`

Each purpose and size has a key of its own, derived from the secret, so a ballot is not valid as a cookie. The payload
is signed, not encrypted. The first secret signs, and all of them are accepted. To rotate, add one at the end, and move
it to the front once all processes accept it. What a keyed hash finds never expires, so old secrets stay.
"""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence

LONGEST = 3072
"""4,096 characters of text, far more than anything sealed here. Longer texts are refused before they are hashed."""

MOST_SECRETS = 4
"""What is looked for by each secret's hash must fit into a few reads."""

SHORTEST_MAC = 8
"""64 bits: a thousand attempts a second for a century succeed with a chance of one in five million."""


class Forged(Exception):
    """Altered, sealed for another purpose, or not sealed with any of the secrets."""


class Seal:
    """Signs with the first secret, and opens with any of them."""

    def __init__(self, secrets: Sequence[str]) -> None:
        if not secrets or not all(secrets):
            raise ValueError("A seal needs at least one secret, and no empty one.")
        self._keys = [_Key(secret.encode()) for secret in secrets]
        self._first = self._keys[0]

    def sign(self, purpose: str, payload: bytes, *, size: int = 16) -> bytes:
        """Seal the payload with the first secret; `size` is the length of the MAC, 8 to 32 bytes."""
        if len(payload) > LONGEST - size - 1:
            raise ValueError(f"A payload of {len(payload)} bytes: a seal carries at most {LONGEST - size - 1}.")
        signed = self._first.id + payload
        return signed + self._first.mac(purpose, size, signed)

    def open(self, purpose: str, sealed: bytes, *, size: int = 16) -> bytes:
        """Return the payload, or raise Forged."""
        if not size < len(sealed) <= LONGEST:
            raise Forged
        signed, mac = sealed[:-size], sealed[-size:]
        # One pair of secrets in 256 shares an id: then both are tried.
        for key in self._keys:
            if key.id == signed[:1] and hmac.compare_digest(key.mac(purpose, size, signed), mac):
                return signed[1:]
        raise Forged

    def keyed_hash(self, purpose: str, payload: bytes, *, size: int = 16) -> bytes:
        """A hash of the payload that nobody can compute without the first secret."""
        return self._first.mac(purpose, size, payload)

    def keyed_hashes(self, purpose: str, payload: bytes, *, size: int = 16) -> list[bytes]:
        """The same by each secret, in their order: processes that know other secrets share one of them."""
        return [key.mac(purpose, size, payload) for key in self._keys]

    def sign_text(self, purpose: str, payload: bytes, *, size: int = 16) -> str:
        """Seal the payload as base64url without padding: fit for a URL, a cookie or a GraphQL string."""
        return urlsafe_b64encode(self.sign(purpose, payload, size=size)).rstrip(b"=").decode()

    def open_text(self, purpose: str, text: str, *, size: int = 16) -> bytes:
        """Return the payload, or raise Forged, even for another spelling of the same bytes."""
        return self.open(purpose, _canonical(text), size=size)


class _Key:
    """One secret: its id, and the keys derived from it so far."""

    def __init__(self, secret: bytes) -> None:
        self.id = hmac.digest(secret, b"ringside key id", "sha256")[:1]
        self._secret = secret
        self._derived: dict[tuple[str, int], bytes] = {}

    def mac(self, purpose: str, size: int, signed: bytes) -> bytes:
        # Purposes are constants of the program, so this dictionary stays small.
        key = self._derived.get((purpose, size)) or self._derive(purpose, size)
        return hmac.digest(key, signed, "sha256")[:size]

    def _derive(self, purpose: str, size: int) -> bytes:
        if not SHORTEST_MAC <= size <= 32:  # noqa: PLR2004 - all that SHA-256 gives
            raise ValueError(f"A MAC of {size} bytes: choose {SHORTEST_MAC} to 32.")
        key = hmac.digest(self._secret, f"ringside seal {size} {purpose}".encode(), "sha256")
        self._derived[purpose, size] = key
        return key


def _canonical(text: str) -> bytes:
    """Decode base64url, but refuse what Python's decoder accepts: padding, foreign characters, unused last bits."""
    if len(text) > LONGEST * 4 // 3:
        raise Forged
    try:
        encoded = text.encode("ascii")
        decoded = urlsafe_b64decode(encoded + b"=" * (-len(encoded) % 4))
    except ValueError:
        raise Forged from None
    if urlsafe_b64encode(decoded).rstrip(b"=") != encoded:
        raise Forged
    return decoded
