"""Refusals as mutations answer with them."""

from __future__ import annotations

from enum import Enum
from typing import Any

import strawberry

from datastore.refusals import Refusal
from schema.fields import described


def _code(name: str, description: str) -> Any:
    return strawberry.enum_value(name, description=description)


@strawberry.enum(description="Why a mutation was refused.")
class RefusalCode(Enum):
    INVALID_INPUT = _code("INVALID_INPUT", "A value cannot be accepted; `path` says which.")
    NOT_FOUND = _code("NOT_FOUND", "What the input names does not exist, or not for the viewer.")
    NOT_SIGNED_IN = _code("NOT_SIGNED_IN", "This needs a signed-in member.")
    NOT_ALLOWED = _code("NOT_ALLOWED", "The viewer's roles, or another one's ownership, forbid it.")
    CONFLICT = _code("CONFLICT", "The present state does not allow it; read again and decide anew.")
    LOCKED = _code("LOCKED", "The time for this is over.")
    TOKEN_UNKNOWN = _code("TOKEN_UNKNOWN", "No such token was ever given to this visitor, or it was altered.")
    TOKEN_EXPIRED = _code("TOKEN_EXPIRED", "The token is too old.")
    TOKEN_SPENT = _code("TOKEN_SPENT", "The token was used before, for something else.")
    EXHAUSTED = _code("EXHAUSTED", "There is nothing left to draw from.")
    IDEMPOTENCY_MISMATCH = _code("IDEMPOTENCY_MISMATCH", "The idempotency key was used before with another input.")
    RATE_LIMITED = _code("RATE_LIMITED", "Too many of these in a short time.")
    UNAVAILABLE = _code("UNAVAILABLE", "The table did not answer in time; nothing is lost, try again.")


@strawberry.type(description="Why a mutation was not carried out. Nothing was changed.")
class Refused:
    code: RefusalCode = described("The reason, for programs.")
    message: str = described("The reason, for people: what is wrong and what to do.")
    path: list[str] | None = described("The place in the input that is at fault.")
    retry_after_seconds: float | None = described("When a repeat may succeed.")


def refused(refusal: Refusal) -> Refused:
    code = RefusalCode.INVALID_INPUT if refusal.code == "INVALID_CURSOR" else RefusalCode[refusal.code]
    return Refused(
        code=code,
        message=refusal.message,
        path=list(refusal.path) or None,
        retry_after_seconds=refusal.retry_after,
    )
