"""One span per operation, sent by OTLP if RINGSIDE_OTLP_ENDPOINT is set; otherwise OpenTelemetry is not imported.

A span has the operation's type, name, hash and outcome, never its variables. It continues the caller's `traceparent`.
OTEL_SERVICE_NAME, OTEL_TRACES_SAMPLER and OTEL_EXPORTER_OTLP_HEADERS work as OpenTelemetry documents them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from graphql import OperationType

EXPORT_TIMEOUT = 5
"""Seconds for one export. It runs in a thread and can only delay the service's shutdown."""

SetOutcome = Callable[[str], None]
RawHeaders = Iterable[tuple[bytes, bytes]]


class Traces:
    """Traces operations through OpenTelemetry."""

    def __init__(self, endpoint: str) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
        from opentelemetry.trace import SpanKind, StatusCode  # noqa: PLC0415
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

        resource = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "ringside"}
        self._provider = TracerProvider(resource=Resource.create(resource), shutdown_on_exit=False)
        exporter = OTLPSpanExporter(endpoint=_traces_url(endpoint), timeout=EXPORT_TIMEOUT)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("ringside")
        self._propagator = TraceContextTextMapPropagator()
        self._kind, self._error = SpanKind.SERVER, StatusCode.ERROR

    @contextmanager
    def operation(
        self, kind: OperationType, name: str | None, digest: str, headers: RawHeaders
    ) -> Iterator[SetOutcome]:
        """Trace the block; its `as` value is called with the outcome."""
        carrier = {key.decode("latin-1"): value.decode("latin-1") for key, value in headers if key.startswith(b"trace")}
        attributes = {
            "graphql.operation.type": kind.value,
            "graphql.operation.name": name,
            "graphql.document.hash": digest,
        }
        with self._tracer.start_as_current_span(
            f"{kind.value} {name}" if name else kind.value,
            context=self._propagator.extract(carrier),
            kind=self._kind,
            attributes={key: value for key, value in attributes.items() if value is not None},
            record_exception=False,  # a message may quote a value
            set_status_on_exception=False,
        ) as span:
            trace = format(span.get_span_context().trace_id, "032x")
            with structlog.contextvars.bound_contextvars(trace=trace):
                try:
                    yield lambda outcome: span.set_attribute("ringside.outcome", outcome)
                except BaseException as error:
                    span.set_status(self._error, type(error).__name__)
                    raise

    async def close(self) -> None:
        """Export what is left."""
        await asyncio.to_thread(self._provider.shutdown)


def _traces_url(endpoint: str) -> str:
    path = "/v1/traces"
    return endpoint if endpoint.endswith(path) else endpoint.rstrip("/") + path
