"""What the service tells of itself: logs, metrics, traces. None of them tells what was asked with which values."""

from server.telemetry.logs import configure_logging, tells, with_request_ids, with_request_ids_at_once
from server.telemetry.metrics import Metrics, Outcome, shared_metrics
from server.telemetry.traces import NoTraces, Traces, open_traces

__all__ = [
    "Metrics",
    "NoTraces",
    "Outcome",
    "Traces",
    "configure_logging",
    "open_traces",
    "shared_metrics",
    "tells",
    "with_request_ids",
    "with_request_ids_at_once",
]
