"""Small HTTP servers in threads of this process, which stand for other people's."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeVar

AnyServer = TypeVar("AnyServer", bound=ThreadingHTTPServer)


class Answering(BaseHTTPRequestHandler):
    """Answers quietly, and says how long each answer is."""

    def answer(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: the test prints what matters."""


@contextmanager
def serving_http(server: AnyServer) -> Iterator[AnyServer]:
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
