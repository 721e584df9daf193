"""moto's DynamoDB as a server on loopback: the fallback engine where dynoxide is not available.

Run as a script with a host and a port. It imports nothing of Ringside, only `moto[server]`. It answers one request at a
time, because moto loses concurrent updates, and closes the connection after each, or the next client would wait for
it. Its tables are lost when it stops.
"""

import sys

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server


class QuietRequestHandler(WSGIRequestHandler):
    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Log nothing: the service logs its own requests."""


if __name__ == "__main__":
    application = DomainDispatcherApplication(create_backend_app)
    make_server(sys.argv[1], int(sys.argv[2]), application, request_handler=QuietRequestHandler).serve_forever()
