"""Refusals as mutations answer with them."""

from __future__ import annotations

from enum import Enum
from typing import Any

import strawberry

from datastore.refusals import Refusal
from schema.framework.fields import described


def _code(name: str, description: str) -> Any:
    return strawberry.enum_value(name, description=description)


@strawberry.enum(description="Why a mutation was refused.")
class RefusalCode(Enum):
    INVALID_INPUT = _code("INVALID_INPUT", "A value is not acceptable; `path` shows which.")
    NOT_FOUND = _code("NOT_FOUND", "An object in the input does not exist, or the viewer may not see it.")
    NOT_SIGNED_IN = _code("NOT_SIGNED_IN", "This needs a signed-in member.")
    NOT_ALLOWED = _code("NOT_ALLOWED", "The viewer lacks the role, or the object belongs to another member.")
    CONFLICT = _code("CONFLICT", "The current state does not allow it. Read it again before you decide.")
    LOCKED = _code("LOCKED", "It is closed: its deadline has passed, or it has not opened yet.")
    TOKEN_UNKNOWN = _code("TOKEN_UNKNOWN", "The token was not issued to this visitor, or was altered.")
    TOKEN_EXPIRED = _code("TOKEN_EXPIRED", "The token is too old.")
    TOKEN_SPENT = _code("TOKEN_SPENT", "The token was already used.")
    EXHAUSTED = _code("EXHAUSTED", "There is nothing left to draw.")
    IDEMPOTENCY_MISMATCH = _code("IDEMPOTENCY_MISMATCH", "The idempotency key was used before with another input.")
    RATE_LIMITED = _code("RATE_LIMITED", "Too many of these in a short time.")
    UNAVAILABLE = _code("UNAVAILABLE", "The table did not answer in time; nothing is lost, try again.")


@strawberry.type(description="Why a mutation was not carried out. Nothing was changed.")
class Refused:
    code: RefusalCode = described("The reason, for programs.")
    message: str = described("The reason, for people: what is wrong and what to do.")
    path: list[str] | None = described("The path of the input field at fault.")
    retry_after_seconds: float | None = described("Seconds after which a retry may succeed.")


def refused(refusal: Refusal) -> Refused:
    code = RefusalCode.INVALID_INPUT if refusal.code == "INVALID_CURSOR" else RefusalCode[refusal.code]
    return Refused(
        code=code, message=refusal.message, path=list(refusal.path) or None, retry_after_seconds=refusal.retry_after
    )
