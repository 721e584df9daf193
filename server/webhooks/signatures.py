"""Signatures of messages as the Standard Webhooks specification defines them (version 1, symmetric)."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Sequence

PREFIX = "whsec_"


def sign(secrets: Sequence[str], message_id: str, timestamp: int, body: bytes) -> str:
    """One signature for each secret, separated by spaces: a receiver may know any of them."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return " ".join(f"v1,{_signature(secret, signed)}" for secret in secrets)


def _signature(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(PREFIX))
    return base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
