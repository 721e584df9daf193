"""moto's DynamoDB as a server on loopback, one request at a time: the fallback engine where dynoxide is not available.

Run as a script with a host and a port. It imports nothing of Ringside, only `moto[server]`. Its tables are lost when it
stops.
"""

import sys
from collections.abc import Iterable
from threading import Lock
from typing import TYPE_CHECKING

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


class SerializedApplication:
    """A WSGI application that answers one request at a time: moto loses concurrent updates and answers 500."""

    def __init__(self, application: "WSGIApplication") -> None:
        self._application = application
        self._lock = Lock()

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Finish one response before starting the next request."""
        with self._lock:
            response = self._application(environ, start_response)
            try:
                return [b"".join(response)]
            finally:
                getattr(response, "close", _do_nothing)()


def _do_nothing() -> None:
    """Stand in for `close`, which a WSGI response need not have."""


class QuietRequestHandler(WSGIRequestHandler):
    """Keeps connections open and logs no requests. With Nagle's algorithm each response would take 40 ms more."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Log nothing: the service logs its own requests."""


def main() -> None:
    """Serve until the process gets a signal."""
    application = SerializedApplication(DomainDispatcherApplication(create_backend_app))
    make_server(
        sys.argv[1], int(sys.argv[2]), application, threaded=True, request_handler=QuietRequestHandler
    ).serve_forever()


if __name__ == "__main__":
    main()
