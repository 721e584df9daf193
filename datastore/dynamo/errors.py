"""Errors of reads and writes.

DynamoError
├── Throttled               the engine is overloaded; nothing was applied
├── TransactionConflict     another transaction held an item; nothing was applied
├── ConditionFailed         a condition did not hold; has the items as they are
├── EngineUnavailable       no usable answer; a write may have been applied
│   └── DeadlineExceeded    the request's own time was used up
└── Rejected                the engine refuses the request itself: a mistake of ours

`dynamo_error` translates the exceptions of botocore and aiohttp; other packages never see those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiohttp import ClientError as HttpError
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class DynamoError(Exception):
    """A read or a write failed."""


class Throttled(DynamoError):
    """The engine is overloaded. Nothing was applied."""


class TransactionConflict(DynamoError):
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


class EngineUnavailable(DynamoError):
    """The engine gave no usable answer. It is unknown whether a write was applied."""


class DeadlineExceeded(EngineUnavailable):
    """The request's own time was used up."""


class Rejected(DynamoError):
    """The engine refuses the request: a fault of this program, or of the table's definition."""


_BY_CODE: Mapping[str, type[DynamoError]] = {
    "ProvisionedThroughputExceededException": Throttled,
    "ThrottlingException": Throttled,
    "Throttling": Throttled,
    "RequestLimitExceeded": Throttled,
    "ThrottlingError": Throttled,
    "TransactionConflictException": TransactionConflict,
    "TransactionInProgressException": TransactionConflict,
    "InternalServerError": EngineUnavailable,
    "InternalFailure": EngineUnavailable,
    "ServiceUnavailable": EngineUnavailable,
    "RequestTimeout": EngineUnavailable,
}

_FIRST_SERVER_FAULT = 500


def dynamo_error(error: BaseException) -> DynamoError | None:
    """The error for an exception of the client library; None if the exception has nothing to do with the engine."""
    if isinstance(error, ClientError):
        return _from_answer(error)
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
    if code in _BY_CODE:
        return _BY_CODE[code](code)
    if int(details.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)) >= _FIRST_SERVER_FAULT:
        return EngineUnavailable(f"the engine answered {code or 'with a server fault'}")
    return Rejected(f"{code}: {details.get('Error', {}).get('Message', '')}")


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
