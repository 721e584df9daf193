"""The log: one line per event, JSON for machines or plain text for people, each with the request's id.

Our own events and those of libraries go to the same stream in the same format. Variables, tokens, cookies and query
strings are never logged. This rules out uvicorn's access log, botocore's debug log (it prints items), local variables
in tracebacks, and Strawberry's error log (it quotes the query).
"""

import io
import json
import logging
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import TextIO

import orjson
import structlog
from structlog.typing import EventDict, ExcInfo, Processor, WrappedLogger

from server.settings import Format, Log

_NAME = "ringside"
_TERMINAL_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that begin a line, move a terminal's cursor, change its colours or turn the writing's direction."""
_CLOSED = "the handler is closed"
"""What uvloop says of a transport that it has closed already, before it tells the protocol."""
request_id: ContextVar[str] = ContextVar("ringside_request_id", default="")

_MIN_LEVELS = {
    "aioboto3": logging.WARNING,
    "aiobotocore": logging.WARNING,
    "aiohttp": logging.WARNING,
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
    renderers: list[Processor] = [
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(serializer=_json),
    ]
    if console:  # the default traceback prints local variables if rich is installed, which it is
        renderer = structlog.dev.ConsoleRenderer(colors=stream.isatty(), exception_formatter=_write_traceback)
        renderers = [_escape_texts, renderer]
    structlog.configure(
        processors=[*context, *renderers],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_: _Lines(stream),
        cache_logger_on_first_use=False,
    )
    _route_libraries(context, renderers, stream, level)


class _Lines(structlog.WriteLogger):
    """Writes lines. One that cannot be written is lost: the log's disk may be full, or its reader have ended."""

    def msg(self, message: str) -> None:
        with suppress(OSError):  # or the answer to what was carried out would be lost too
            super().msg(message)

    debug = info = warning = error = critical = msg


def _request_id(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    if request := request_id.get():
        event["request"] = request
    return event


def _escape_texts(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """What clients and mail servers send must not look like other lines on a terminal."""
    for name, value in event.items():
        if isinstance(value, str) and not value.isprintable():
            event[name] = _escape(value.replace("\n", "\\n").replace("\t", "\\t"))
    return event


def _write_traceback(stream: TextIO, exc_info: ExcInfo) -> None:
    traceback = io.StringIO()
    structlog.dev.plain_traceback(traceback, exc_info)
    stream.write(_escape(traceback.getvalue()))


def _escape(text: str) -> str:
    return _TERMINAL_CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _json(event: EventDict, default: Callable[[object], object]) -> str:
    try:
        return _escape(orjson.dumps(event, default=default).decode())
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
    logging.getLogger("uvicorn.error").addFilter(_edit_uvicorn)


def _edit_uvicorn(record: logging.LogRecord) -> bool:
    """Drop the lines that name clients' addresses, and shorten or drop the tracebacks that clients can cause."""
    if isinstance(record.args, tuple) and "WebSocket" in str(record.msg):
        return False  # who opens a socket from where; what is done over it is logged without an address
    if "Invalid UTF-8" in str(record.msg):  # that a client sends; one line says as much
        record.exc_info, record.levelno, record.levelname = None, logging.WARNING, "WARNING"
    error = record.exc_info[1] if record.exc_info else None  # of an answer whose client has just gone
    return not (isinstance(error, RuntimeError) and _CLOSED in str(error))
