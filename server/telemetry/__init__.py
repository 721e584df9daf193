"""Logs, metrics and traces. None of them contains variables or query values."""

from server.telemetry.logs import configure_logging, request_id
from server.telemetry.metrics import Metrics, Outcome, shared_metrics
from server.telemetry.traces import Traces

__all__ = [
    "Metrics",
    "Outcome",
    "Traces",
    "configure_logging",
    "request_id",
    "shared_metrics",
]
