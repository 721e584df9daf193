"""Errors of reads and writes.

DynamoError
├── Passing                     the same call may succeed later
│   ├── Throttled               the engine is overloaded; nothing was applied
│   ├── TransactionConflict     another transaction held an item; nothing was applied
│   └── EngineUnavailable       no usable answer; a write may have been applied
│       ├── CredentialsRefused  the credentials are missing, have expired or are being replaced
│       ├── StorageFailed       the embedded engine cannot use its file, and will not by itself
│       └── DeadlineExceeded    the request's own time was used up
├── ConditionFailed             a condition did not hold; has the items as they are
├── TooCostly                   the request has asked for more than one request may
├── TooManyWaiting              more calls wait for their turn than may
└── Rejected                    the engine refuses the request itself: a mistake of ours

`dynamo_error` translates the exceptions of botocore and aiohttp; other packages never see those.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from aiohttp import ClientError as HttpError
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
)

from datastore.dynamo.entity import Entity

R = TypeVar("R")


class DynamoError(Exception):
    """A read or a write failed."""


class Passing(DynamoError):
    """The same call may succeed later."""


class Throttled(Passing):
    """The engine is overloaded. Nothing was applied."""


class TransactionConflict(Passing):
    """Another transaction holds one of the items. Nothing was applied."""


class ConditionFailed(DynamoError):
    """At least one condition did not hold, and nothing was applied by this attempt.

    `failures` maps the index of each failed operation to its item as the engine saw it (None: there is none).
    `doubtful` is set if an earlier attempt of the same call got no answer, so that attempt may have been applied and
    made the condition fail.
    """

    def __init__(self, failures: Mapping[int, Mapping[str, Any] | None], *, doubtful: bool = False) -> None:
        super().__init__(f"condition failed for operation {', '.join(map(str, failures))}")
        self.failures = failures
        self.doubtful = doubtful

    def at(self, position: int) -> bool:
        return position in self.failures

    def stored(self, entity: Entity[R], position: int = 0) -> R | None:
        """The record that a failed operation found; None if there was none, or if the operation did not fail."""
        item = self.failures.get(position)
        return entity.read(item) if item else None

    def was_written(self, entity: Entity[R], record: R) -> bool:
        """Whether an earlier attempt, whose answer was lost, has written this record by the first operation."""
        return self.doubtful and self.stored(entity) == record


class EngineUnavailable(Passing):
    """The engine gave no usable answer. It is unknown whether a write was applied."""


class CredentialsRefused(EngineUnavailable):
    """There are no credentials, they have expired, or their replacements are not valid everywhere yet."""


class StorageFailed(EngineUnavailable):
    """The embedded engine cannot write or read its file. The message says why and what to do."""


class DeadlineExceeded(EngineUnavailable):
    """The request's own time was used up."""


class TooCostly(DynamoError):
    """The request has asked the engine for more than one request may."""


class TooManyWaiting(DynamoError):
    """More calls wait for their turn than may, of all clients or of this one. The call was not sent."""


class Rejected(DynamoError):
    """The engine refuses the request: a fault of this program, or of the table's definition."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code

    @property
    def is_denied(self) -> bool:
        """Whether it was refused because no policy allows it."""
        return self.code == "AccessDeniedException"


_BY_CODE: Mapping[str, type[DynamoError]] = {
    "ProvisionedThroughputExceededException": Throttled,
    "ThrottlingException": Throttled,
    "Throttling": Throttled,
    "RequestLimitExceeded": Throttled,
    "ThrottlingError": Throttled,
    "TransactionConflictException": TransactionConflict,
    "TransactionInProgressException": TransactionConflict,
    "ReplicatedWriteConflictException": TransactionConflict,
    "ExpiredToken": CredentialsRefused,
    "ExpiredTokenException": CredentialsRefused,
    "InvalidClientTokenId": CredentialsRefused,
    "InvalidSignatureException": CredentialsRefused,  # also if a clock is wrong, as after a pause of the machine
    "RequestExpired": CredentialsRefused,
    "UnrecognizedClientException": CredentialsRefused,
    "AccessDenied": CredentialsRefused,  # by STS, from which they come; the table's own is AccessDeniedException
    "IDPCommunicationError": CredentialsRefused,
    "InvalidIdentityToken": CredentialsRefused,
    "InternalServerError": EngineUnavailable,
    "InternalFailure": EngineUnavailable,
    "ServiceUnavailable": EngineUnavailable,
    "RequestTimeout": EngineUnavailable,
}

_STORAGE_FAILURES: Mapping[str, str] = {
    "disk is full": "the disk of the embedded engine is full; free some space",
    "disk image is malformed": "the embedded engine's file is damaged; restore a copy of it",
    "disk I/O error": "the disk of the embedded engine fails; see the system's log",
}
"""SQLite's messages in the embedded engine's answers, and what they mean."""

_FIRST_SERVER_FAULT = 500


def dynamo_error(error: BaseException) -> DynamoError | None:
    """The error for an exception of the client library; None if the exception has nothing to do with the engine."""
    if isinstance(error, ClientError):
        return _from_answer(error)
    if isinstance(error, NoCredentialsError | PartialCredentialsError | CredentialRetrievalError):
        return CredentialsRefused(f"the AWS SDK has no credentials ({type(error).__name__})")
    if isinstance(error, BotoCoreError | HTTPClientError | HttpError | TimeoutError | OSError):
        return EngineUnavailable(f"no answer from the engine ({type(error).__name__})")
    return None


def _from_answer(error: ClientError) -> DynamoError:
    details: Mapping[str, Any] = error.response
    code = str(details.get("Error", {}).get("Code", ""))
    if code == "ConditionalCheckFailedException":
        return ConditionFailed({0: details.get("Item")})
    if code == "TransactionCanceledException":
        return _from_cancellation(details.get("CancellationReasons") or ())
    message = str(details.get("Error", {}).get("Message", ""))
    for failure, meaning in _STORAGE_FAILURES.items():
        if failure in message:
            return StorageFailed(meaning)
    if (error_type := _BY_CODE.get(code)) is not None:
        return error_type(f"the credentials are refused ({code})" if error_type is CredentialsRefused else code)
    if int(details.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)) >= _FIRST_SERVER_FAULT:
        return EngineUnavailable(f"the engine answered {code or 'with a server fault'}")
    return Rejected(f"{code}: {message}", code)


def _from_cancellation(reasons: Sequence[Mapping[str, Any]]) -> DynamoError:
    """A conflict outweighs failed conditions, which may have been read in the middle of another transaction."""
    codes = [str(reason.get("Code") or "None") for reason in reasons]
    if "TransactionConflict" in codes:
        return TransactionConflict("TransactionConflict")
    if any(code in ("ThrottlingError", "ProvisionedThroughputExceeded") for code in codes):
        return Throttled("transaction throttled")
    failures = {
        index: reason.get("Item") or None
        for index, (code, reason) in enumerate(zip(codes, reasons, strict=True))
        if code == "ConditionalCheckFailed"
    }
    if failures:
        return ConditionFailed(failures)
    return Rejected(f"transaction cancelled: {', '.join(codes)}")
