"""All codes that a client may meet, listed in the schema's description and in the guide."""

from __future__ import annotations

from typing import Final

from schema.framework.refusals import RefusalCode

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

ADVICE: Final = {
    "INVALID_INPUT": "Show `message` beside the input that `path` names. Do not repeat it unchanged.",
    "NOT_FOUND": "Drop the id from your cache, and show that it is gone.",
    "NOT_SIGNED_IN": "Let the member sign in, then send the same again.",
    "NOT_ALLOWED": "Hide the button. A suspended member gets this too, with `retryAfterSeconds` if it ends.",
    "CONFLICT": "Read the object again and show it. With `retryAfterSeconds`, send the same again after that time.",
    "LOCKED": "Show it as closed. With `retryAfterSeconds`, it opens after that time.",
    "TOKEN_UNKNOWN": "Draw again, or start a new quiz.",
    "TOKEN_EXPIRED": "Draw again: the same pair comes with a new token. Or start a new quiz.",
    "TOKEN_SPENT": "The first use counts. Draw the next pair, or start a new quiz.",
    "EXHAUSTED": "Say that there is nothing to vote on yet.",
    "IDEMPOTENCY_MISMATCH": "A fault of the client: choose a new key for each new input.",
    "RATE_LIMITED": "Wait for `retryAfterSeconds`, then send the same again.",
    "UNAVAILABLE": "Send the same again after `retryAfterSeconds`, a mutation with the same `idempotencyKey`.",
    "BAD_REQUEST": "A fault of the client: `message` says what to send instead.",
    "UNAUTHENTICATED": "Get a new token, or a new visit, and send the same again.",
    "OVERLOADED": "Wait that long, then send the same again.",
    "GRAPHQL_PARSE_FAILED": "A fault of the client: correct the document.",
    "GRAPHQL_VALIDATION_FAILED": "A fault of the client: generate its types from the schema again.",
    "PERSISTED_QUERY_NOT_FOUND": "Deploy the manifest before the pages that use it.",
    "PERSISTED_QUERY_NOT_SUPPORTED": "Send the text, as persisted queries do by themselves.",
    "BAD_USER_INPUT": "As INVALID_INPUT. If the document is too large, ask for less, or send several requests.",
    "INVALID_CURSOR": "Read the list from its start.",
    "INTERNAL": "Show that it failed. Report the request's id, the header `x-request-id`.",
}
"""What a client does about each code, for the guide."""


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


def table() -> str:
    """The codes as the guide lists them, in Markdown."""
    rows = [
        (code, "`Refused`, errors" if code != "INVALID_INPUT" else "`Refused`", meaning)
        for code, meaning in refusal_codes().items()
    ]
    rows += [(code, "errors", meaning) for code, meaning in ERROR_CODES.items()]
    lines = (f"| `{code}` | {where} | {meaning} | {ADVICE[code]} |" for code, where, meaning in rows)
    return "\n".join(["| code | in | meaning | what to do |", "|---|---|---|---|", *lines])
