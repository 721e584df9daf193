"""What bounded connections and checked hosts cost a request: `python -m bench.protocol [--turns N]`.

A protocol object receives a POST request of 250 bytes from a transport without a socket, for an application that says
"ok". The figures are CPU per request: the lowest and the median of alternating turns.
"""

import argparse
import asyncio
import statistics
import time
from typing import Any

import uvicorn
import uvloop
from pydantic import SecretStr
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from server.http.endpoint import AllowedHosts
from server.http.protocol import LimitedProtocol, ServerConfig
from server.settings import Settings

REQUESTS = 3000
"""In a turn."""

BODY = b'{"query":"{ __typename }"}'
REQUEST = b"\r\n".join(
    [
        b"POST /graphql HTTP/1.1",
        b"host: 127.0.0.1:8000",
        b"content-type: application/json",
        b"accept: application/json",
        b"accept-encoding: gzip",
        b"user-agent: bench",
        b"cookie: ringside_visitor=none",
        b"content-length: %d" % len(BODY),
        b"",
        BODY,
    ]
)


class NoSocket(asyncio.Transport):
    """A transport that drops what is written."""

    def write(self, data: object) -> None: ...

    def is_closing(self) -> bool:
        return False

    def close(self) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


async def answer(_: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


async def turn(protocol: type[Any], config: uvicorn.Config) -> float:
    """Microseconds of CPU per request."""
    connection = protocol(config, ServerState(), {})
    connection.connection_made(NoSocket())
    began = time.process_time()
    for _ in range(REQUESTS):
        connection.data_received(REQUEST)
        await asyncio.sleep(0)  # the application answers
        await asyncio.sleep(0)
    took = time.process_time() - began
    connection.connection_lost(None)
    return took / REQUESTS * 1e6


async def measure(turns: int) -> dict[str, list[float]]:
    settings = Settings(secrets=(SecretStr("x" * 40),))
    options: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False}
    hosts = AllowedHosts(answer, ("127.0.0.1", "localhost"))
    setups: dict[str, tuple[type[Any], uvicorn.Config]] = {
        "uvicorn": (HttpToolsProtocol, uvicorn.Config(answer, http=HttpToolsProtocol, **options)),
        "bounded": (LimitedProtocol, ServerConfig(answer, settings, **options)),
        "bounded, hosts": (LimitedProtocol, ServerConfig(hosts, settings, **options)),
    }
    took: dict[str, list[float]] = {name: [] for name in setups}
    for _, config in setups.values():
        config.load()
    for _ in range(turns):
        for name, (protocol, config) in setups.items():
            took[name].append(await turn(protocol, config))
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--turns", type=int, default=15)
    took = uvloop.run(measure(parser.parse_args().turns))
    print(f"{'µs of CPU per request':24}{'lowest':>8}{'median':>8}")
    for name, figures in took.items():
        print(f"{name:24}{min(figures):8.1f}{statistics.median(figures):8.1f}")


if __name__ == "__main__":
    main()
