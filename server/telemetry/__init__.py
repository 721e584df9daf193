"""Logs, metrics and traces. None of them contains variables or query values."""

from server.telemetry.logs import configure_logging, request_id, tells, with_request_ids
from server.telemetry.metrics import Metrics, Outcome, shared_metrics
from server.telemetry.traces import NoTraces, Traces, open_traces

__all__ = [
    "Metrics",
    "NoTraces",
    "Outcome",
    "Traces",
    "configure_logging",
    "open_traces",
    "request_id",
    "shared_metrics",
    "tells",
    "with_request_ids",
]
