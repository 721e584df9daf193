"""A span an operation, delivered to a real receiver; and nothing at all when nobody wants any."""

import subprocess
import sys
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from typing import Any

import pytest
import structlog
from graphql import OperationType
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from server.telemetry import Traces
from tests.http_server import Answering, serving_http

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
TRACEPARENT = [(b"host", b"x"), (b"traceparent", f"00-{TRACE}-{PARENT}-01".encode())]


class Receiver(ThreadingHTTPServer):
    """Takes OTLP over HTTP, as a collector does."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Delivery)
        self.deliveries: list[tuple[str, bytes]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"

    @property
    def services(self) -> list[str]:
        return [value for whole in self._whole() for key, value in _pairs(whole.resource) if key == "service.name"]

    @property
    def spans(self) -> list[Span]:
        return [span for whole in self._whole() for scope in whole.scope_spans for span in scope.spans]

    def _whole(self) -> Iterator[Any]:
        for _, body in self.deliveries:
            yield from ExportTraceServiceRequest.FromString(body).resource_spans


class Delivery(Answering):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.deliveries.append((self.path, body))
        self.answer(200)


def _pairs(holder: Any) -> list[tuple[str, str]]:
    return [(pair.key, pair.value.string_value) for pair in holder.attributes]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with serving_http(Receiver()) as server:
        yield server


async def test_an_operation_becomes_a_span(receiver: Receiver) -> None:
    """Its kind, name, hash and outcome, and nothing else of it."""
    traces = Traces(receiver.url)
    with traces.operation(OperationType.QUERY, "Leaderboard", "d41d8cd9", []) as ended:
        ended("ok")
    await traces.close()
    (span,) = receiver.spans
    assert span.name == "query Leaderboard"
    assert span.kind == Span.SPAN_KIND_SERVER
    assert dict(_pairs(span)) == {
        "graphql.operation.type": "query",
        "graphql.operation.name": "Leaderboard",
        "graphql.document.hash": "d41d8cd9",
        "ringside.outcome": "ok",
    }
    assert receiver.services == ["ringside"]
    assert [path for path, _ in receiver.deliveries] == ["/v1/traces"]


async def test_the_callers_trace_is_continued(receiver: Receiver) -> None:
    """W3C's traceparent; a broken one starts a trace of our own."""
    traces = Traces(f"{receiver.url}/v1/traces")
    with traces.operation(OperationType.QUERY, None, "d41d8cd9", TRACEPARENT):
        assert structlog.contextvars.get_contextvars() == {"trace": TRACE}
    with traces.operation(OperationType.MUTATION, None, "d41d8cd9", [(b"traceparent", b"00-\xff-x")]):
        pass
    await traces.close()
    continued, own = receiver.spans
    assert (continued.trace_id.hex(), continued.parent_span_id.hex(), continued.name) == (TRACE, PARENT, "query")
    assert own.parent_span_id == b""
    assert structlog.contextvars.get_contextvars() == {}


async def test_a_failure_shows_its_type_and_not_its_message(receiver: Receiver) -> None:
    """The message may quote a value."""
    traces = Traces(receiver.url)
    with pytest.raises(LookupError), traces.operation(OperationType.QUERY, "Comments", "d41d8cd9", []):
        raise LookupError("hush-hush")
    await traces.close()
    (span,) = receiver.spans
    assert (span.status.code, span.status.message) == (Status.STATUS_CODE_ERROR, "LookupError")
    assert b"hush-hush" not in receiver.deliveries[0][1]


async def test_the_operators_name_for_the_service_is_used(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """OTEL_SERVICE_NAME, as everywhere else."""
    monkeypatch.setenv("OTEL_SERVICE_NAME", "comments-eu")
    traces = Traces(receiver.url)
    with traces.operation(OperationType.QUERY, None, "d41d8cd9", []):
        pass
    await traces.close()
    assert receiver.services == ["comments-eu"]


async def test_two_applications_trace_separately(receiver: Receiver) -> None:
    """No provider is global, so none replaces the other."""
    with serving_http(Receiver()) as other:
        kinds = (receiver.url, OperationType.QUERY), (other.url, OperationType.MUTATION)
        for traces, kind in ((Traces(url), kind) for url, kind in kinds):
            with traces.operation(kind, None, "d41d8cd9", []):
                pass
            await traces.close()
    assert [span.name for span in receiver.spans] == ["query"]
    assert [span.name for span in other.spans] == ["mutation"]


@pytest.mark.slow
def test_without_an_endpoint_opentelemetry_is_not_even_imported() -> None:
    """It costs time at the start and memory ever after."""
    program = "import sys; import server.telemetry; print('opentelemetry' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "False\n"
