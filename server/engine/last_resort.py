"""moto's DynamoDB as a server on loopback, one request at a time: the engine where dynoxide cannot be had.

Run by its path with a port: it needs nothing of ours, only `moto[server]`. Its tables live and die with it.
"""

import sys
from collections.abc import Iterable
from threading import Lock
from typing import TYPE_CHECKING

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


class OneAtATime:
    """A WSGI application behind a lock: with two requests inside, moto loses updates and answers 500."""

    def __init__(self, application: "WSGIApplication") -> None:
        self._application = application
        self._turn = Lock()

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Answer in full before the next request gets its turn."""
        with self._turn:
            answer = self._application(environ, start_response)
            try:
                return [b"".join(answer)]
            finally:
                getattr(answer, "close", _nothing)()


def _nothing() -> None:
    """WSGI lets an answer be without a way to close it."""


class Quiet(WSGIRequestHandler):
    """Connections are kept and requests are not logged. With Nagle's delay each answer would take 40 ms more."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing: the service logs what it asks."""


def main() -> None:
    """Serve until a signal."""
    application = OneAtATime(DomainDispatcherApplication(create_backend_app))
    make_server("127.0.0.1", int(sys.argv[1]), application, threaded=True, request_handler=Quiet).serve_forever()


if __name__ == "__main__":
    main()
