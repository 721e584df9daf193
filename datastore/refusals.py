"""Refusals: why a request was not carried out, in words for the person who made it.

Refusal
├── InvalidInput            a value is not acceptable; `path` is the input's path
│   └── InvalidCursor       a cursor of another list, altered, or of a retired secret
├── NotFound
├── NotSignedIn
├── NotAllowed
├── Conflict                the current state does not allow it
├── IdempotencyMismatch     the key was used before with another input
├── RateLimited             too many requests; `retry_after` is the time to wait
├── Unavailable             the table did not answer in time
├── Overloaded              this process has too many requests
└── the parts' own: TokenSpent, Locked, …

A mutation returns `Refused` with the refusal's code. A query fails with a GraphQL error whose `extensions.code` is the
refusal's, except that INVALID_INPUT is called BAD_USER_INPUT.
"""

from typing import ClassVar


class Refusal(Exception):
    """An expected reason not to carry out a request."""

    code: ClassVar[str]
    explanation: ClassVar[str] = "This was refused."

    def __init__(
        self,
        message: str | None = None,
        *,
        path: tuple[str, ...] = (),
        retry_after: float | None = None,
        existing: str | None = None,
    ) -> None:
        self.message = message or self.explanation
        super().__init__(self.message)
        self.path = path
        self.retry_after = retry_after
        self.existing = existing
        """The id of the object that is in the way."""


class InvalidInput(Refusal):
    code = "INVALID_INPUT"


class InvalidCursor(InvalidInput):
    code = "INVALID_CURSOR"
    explanation = "This cursor does not belong to this list and its filters. Start again without a cursor."


class NotFound(Refusal):
    code = "NOT_FOUND"
    explanation = "This does not exist, or not any more."


class NotSignedIn(Refusal):
    code = "NOT_SIGNED_IN"
    explanation = "Sign in first."


class NotAllowed(Refusal):
    code = "NOT_ALLOWED"
    explanation = "You may not do this."


class Conflict(Refusal):
    code = "CONFLICT"
    explanation = "Somebody changed this at the same time. Look at it again, then decide."


class IdempotencyMismatch(Refusal):
    code = "IDEMPOTENCY_MISMATCH"
    explanation = "This was sent before, with something else in it. Load the page again, then send it again."


class RateLimited(Refusal):
    code = "RATE_LIMITED"
    explanation = "Too many requests. Try again a little later."


class Unavailable(Refusal):
    code = "UNAVAILABLE"
    explanation = "This took too long. Nothing is lost; try again shortly."


class Overloaded(Refusal):
    code = "OVERLOADED"
    explanation = "The service is at its limit. Try again shortly."


def require_revision(current: int, seen: int | None) -> None:
    """Conflict if somebody has changed what an editor saw. One who names no revision changes whatever is there."""
    if seen is not None and seen != current:
        raise Conflict(
            "Somebody else has changed this in the meantime. Look at it again, then change it.",
            path=("input", "revision"),
        )
