"""The log: one line per event, JSON for machines or plain text for people, each with the request's id.

Our own events and those of libraries go to the same stream in the same format. Variables, tokens, cookies and query
strings are never logged. This rules out uvicorn's access log, botocore's debug log (it prints items), local variables
in tracebacks, and Strawberry's error log (it quotes the query).
"""

import json
import logging
import re
import sys
from collections.abc import Callable, Sequence
from typing import TextIO

import orjson
import structlog
from asgi_correlation_id import CorrelationIdMiddleware, correlation_id
from starlette.types import ASGIApp
from structlog.typing import EventDict, Processor, WrappedLogger

from server.settings import Format, Log

_NAME = "ringside"
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)

_MIN_LEVELS = {
    "aioboto3": logging.WARNING,
    "aiobotocore": logging.WARNING,
    "aiohttp": logging.WARNING,
    "asgi_correlation_id": logging.ERROR,  # warns about every id it refuses, so clients could fill the disk
    "boto3": logging.WARNING,
    "botocore": logging.WARNING,
    "httpcore": logging.WARNING,
    "httpx": logging.WARNING,
    "strawberry.execution": logging.CRITICAL,
    "urllib3": logging.WARNING,
    "uvicorn.error": logging.INFO,  # DEBUG has all headers of a WebSocket's handshake: tokens and cookies
    "websockets": logging.WARNING,
}


def configure_logging(log: Log, stream: TextIO | None = None) -> None:
    """Send all log lines of this process to the stream, standard error by default. May be called again."""
    stream = stream or sys.stderr
    level = logging.getLevelNamesMapping()[log.level.upper()]
    console = log.format is Format.CONSOLE or (log.format is None and stream.isatty())
    context: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        _request_id,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderers = _console_renderers(stream) if console else _json_renderers()
    structlog.configure(
        processors=[*context, *renderers],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
    _route_libraries(context, renderers, stream, level)


def with_request_ids(app: ASGIApp) -> ASGIApp:
    """Give each request an id, the caller's X-Request-ID if it is plain and short, and return it in the response."""
    return CorrelationIdMiddleware(app, update_request_header=False, validator=_is_valid_id)


def _is_valid_id(text: str) -> bool:
    return _REQUEST_ID.fullmatch(text) is not None


def _request_id(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    if request := correlation_id.get():
        event["request"] = request
    return event


def _json_renderers() -> Sequence[Processor]:
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(serializer=_json)]


def _console_renderers(stream: TextIO) -> Sequence[Processor]:
    # The default prints local variables if rich is installed, which it is.
    plain = structlog.dev.plain_traceback
    return [structlog.dev.ConsoleRenderer(colors=stream.isatty(), exception_formatter=plain)]


def _json(event: EventDict, default: Callable[[object], object]) -> str:
    try:
        return orjson.dumps(event, default=default).decode()
    except TypeError:  # a lone surrogate, a number beyond 64 bits
        return json.dumps(event, default=default)


def _route_libraries(context: Sequence[Processor], renderers: Sequence[Processor], stream: TextIO, level: int) -> None:
    handler = logging.StreamHandler(stream)
    handler.set_name(_NAME)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *context],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderers],
        )
    )
    root = logging.getLogger()
    root.handlers = [*(other for other in root.handlers if other.get_name() != _NAME), handler]
    root.setLevel(level)
    for name, minimum in _MIN_LEVELS.items():
        logging.getLogger(name).setLevel(max(level, minimum))
    _configure_uvicorn()


def _configure_uvicorn() -> None:
    for name in ("uvicorn", "uvicorn.error", "uvicorn.asgi", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [], True
    logging.getLogger("uvicorn.access").disabled = True
    logging.getLogger("uvicorn.error").addFilter(_cut_query_strings)


def _cut_query_strings(record: logging.LogRecord) -> bool:
    """Uvicorn logs the URL of each WebSocket including its query string; cut that off."""
    if isinstance(record.args, tuple) and "WebSocket" in str(record.msg):
        record.args = tuple(part.partition("?")[0] if isinstance(part, str) else part for part in record.args)
    return True
