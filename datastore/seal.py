"""Bytes that strangers carry for us and cannot alter: cursors, ballots, visitor cookies, unsubscribe links.

    key id (1) · payload · HMAC-SHA256 of both, cut to `size`

A secret is never used as it stands: each purpose and size has a key of its own, so a ballot is worth nothing as a
cookie. The payload is signed, not hidden. Secrets are given newest first: the first one signs, all of them open,
which makes rotation a matter of adding one in front and dropping the last when its seals have aged.
"""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence

LONGEST = 3072
"""4,096 characters of text. Nothing sealed here comes near it; anything longer is refused before it is hashed."""

SHORTEST_MAC = 8
"""64 bits: a forger who tries a thousand a second for a century finds one with a chance of one in five million."""


class Forged(Exception):
    """Not sealed by us, for another purpose, by a secret no longer known, or altered on the way."""


class Seal:
    """Signs and opens, per purpose, with the newest of the secrets or any of them."""

    def __init__(self, secrets: Sequence[str]) -> None:
        if not secrets or not all(secrets):
            message = "A seal needs at least one secret, and no empty one."
            raise ValueError(message)
        self._keys = [_Key(secret.encode()) for secret in secrets]
        self._newest = self._keys[0]

    def sign(self, purpose: str, payload: bytes, *, size: int = 16) -> bytes:
        """Seal the payload with the newest secret; `size` is what is kept of the MAC, 8 to 32 bytes."""
        if len(payload) > LONGEST - size - 1:
            message = f"A payload of {len(payload)} bytes: a seal carries at most {LONGEST - size - 1}."
            raise ValueError(message)
        signed = self._newest.id + payload
        return signed + self._newest.mac(purpose, size, signed)

    def open(self, purpose: str, sealed: bytes, *, size: int = 16) -> bytes:
        """Return the payload, or raise Forged."""
        if not size < len(sealed) <= LONGEST:
            raise Forged
        signed, mac = sealed[:-size], sealed[-size:]
        # Two secrets may share an id, one pair in 256 does: then both are tried.
        for key in self._keys:
            if key.id == signed[:1] and hmac.compare_digest(key.mac(purpose, size, signed), mac):
                return signed[1:]
        raise Forged

    def sign_text(self, purpose: str, payload: bytes, *, size: int = 16) -> str:
        """Seal the payload as base64url without padding: fit for an address, a cookie or a GraphQL string."""
        return urlsafe_b64encode(self.sign(purpose, payload, size=size)).rstrip(b"=").decode()

    def open_text(self, purpose: str, text: str, *, size: int = 16) -> bytes:
        """Return the payload, or raise Forged: also for a second spelling of the same bytes."""
        return self.open(purpose, _canonical(text), size=size)


class _Key:
    """One secret: its id, and the keys derived from it so far."""

    def __init__(self, secret: bytes) -> None:
        self.id = hmac.digest(secret, b"ringside key id", "sha256")[:1]
        self._secret = secret
        self._derived: dict[tuple[str, int], bytes] = {}

    def mac(self, purpose: str, size: int, signed: bytes) -> bytes:
        # Purposes are constants of the program, so this dictionary stays as small as their number.
        key = self._derived.get((purpose, size)) or self._derive(purpose, size)
        return hmac.digest(key, signed, "sha256")[:size]

    def _derive(self, purpose: str, size: int) -> bytes:
        if not SHORTEST_MAC <= size <= 32:  # noqa: PLR2004 - all that SHA-256 gives
            message = f"A MAC of {size} bytes: choose {SHORTEST_MAC} to 32."
            raise ValueError(message)
        key = hmac.digest(self._secret, f"ringside seal {size} {purpose}".encode(), "sha256")
        self._derived[purpose, size] = key
        return key


def _canonical(text: str) -> bytes:
    """Decode base64url, refusing what Python's decoder forgives: padding, foreign characters, loose last bits."""
    if len(text) > LONGEST * 4 // 3:
        raise Forged
    try:
        asked = text.encode("ascii")
        decoded = urlsafe_b64decode(asked + b"=" * (-len(asked) % 4))
    except ValueError:
        raise Forged from None
    if urlsafe_b64encode(decoded).rstrip(b"=") != asked:
        raise Forged
    return decoded
