"""All codes that a client may meet, as the schema's description lists them."""

from __future__ import annotations

from typing import Final

from schema.framework.mutations import RefusalCode

ERROR_CODES: Final = {
    "BAD_REQUEST": "The request is not a GraphQL request that this address answers; the status says more.",
    "UNAUTHENTICATED": "The credentials are invalid or have expired. Status 401.",
    "OVERLOADED": "The process is at a limit. Try again after `retryAfterSeconds` or the header `Retry-After`.",
    "GRAPHQL_PARSE_FAILED": "The document is not GraphQL.",
    "GRAPHQL_VALIDATION_FAILED": "The document does not fit the schema.",
    "PERSISTED_QUERY_NOT_FOUND": "The manifest of trusted documents has no document with this hash.",
    "PERSISTED_QUERY_NOT_SUPPORTED": "There is no manifest, so a hash alone names no document: send the text.",
    "BAD_USER_INPUT": "A value is not acceptable, the document is too large or costly, or is not a trusted one. "
    "In a mutation's result this is INVALID_INPUT.",
    "INVALID_CURSOR": "The cursor does not belong to this list and its filters. Start again without one.",
    "INTERNAL": "A fault of the service. Its log has the details.",
}
"""Codes of errors alone, in `extensions.code`. A query or subscription may also have those of RefusalCode."""


def refusal_codes() -> dict[str, str]:
    """The codes of `Refused`, with their descriptions."""
    values = RefusalCode.__strawberry_definition__.values  # type: ignore[attr-defined]
    return {value.name: value.description for value in values}


def description() -> str:
    """The description of the schema."""
    lines = (f"- {code}: {meaning}" for code, meaning in {**refusal_codes(), **ERROR_CODES}.items())
    return "\n".join(
        (
            "Votes, predictions, comments and words. A mutation returns its payload or `Refused` with a code. Every",
            "other refusal is an error with its code in `extensions.code`; `retryAfterSeconds` says when to try again.",
            "",
            "The codes:",
            *lines,
        )
    )
