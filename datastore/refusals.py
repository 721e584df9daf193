"""Why something was not done, in words for the person who asked.

Refusal
├── InvalidInput            a value that cannot be accepted; `path` says which
│   └── InvalidCursor       a cursor of another list, altered, or of a retired secret
├── NotFound
├── NotSignedIn
├── NotAllowed
├── Conflict                   what is there now does not allow it (CONFLICT)
├── IdempotencyMismatch     the key was used before with another input
├── RateLimited             too often; `retry_after` says when to come back
├── Unavailable                    the table did not answer in time (UNAVAILABLE)
├── Overloaded              more requests than this process takes on (OVERLOADED)
└── the parts' own: TokenSpent, Locked, …

A mutation answers with `Refused` and the refusal's code; a query with a GraphQL error whose `extensions.code` it is
(INVALID_INPUT is called BAD_USER_INPUT there).
"""

from __future__ import annotations

from typing import ClassVar


class Refusal(Exception):
    """An expected answer other than the one hoped for."""

    code: ClassVar[str]
    explanation: ClassVar[str] = "This was refused."

    def __init__(
        self, message: str | None = None, *, path: tuple[str, ...] = (), retry_after: float | None = None
    ) -> None:
        self.message = message or self.explanation
        super().__init__(self.message)
        self.path = path
        self.retry_after = retry_after


class InvalidInput(Refusal):
    code = "INVALID_INPUT"


class InvalidCursor(InvalidInput):
    code = "INVALID_CURSOR"
    explanation = "This cursor does not belong to this list and its filters. Start again without a cursor."


class NotFound(Refusal):
    code = "NOT_FOUND"
    explanation = "There is nothing with this id."


class NotSignedIn(Refusal):
    code = "NOT_SIGNED_IN"
    explanation = "Sign in first: send a bearer token in the Authorization header."


class NotAllowed(Refusal):
    code = "NOT_ALLOWED"
    explanation = "Your roles do not allow this."


class Conflict(Refusal):
    code = "CONFLICT"
    explanation = "Somebody changed this at the same time. Read it again and decide anew."


class IdempotencyMismatch(Refusal):
    code = "IDEMPOTENCY_MISMATCH"
    explanation = "This idempotencyKey was used before with another input. Choose a new key for a new request."


class RateLimited(Refusal):
    code = "RATE_LIMITED"
    explanation = "Too many requests. Come back a little later."


class Unavailable(Refusal):
    code = "UNAVAILABLE"
    explanation = "The table did not answer in time. Nothing is lost; try again shortly."


class Overloaded(Refusal):
    code = "OVERLOADED"
    explanation = "The service is at its limit. Try again shortly."
