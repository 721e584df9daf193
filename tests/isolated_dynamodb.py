"""DynamoDB Local in a network namespace of its own, so that it is reachable through the loopback interface only.

DynamoDB Local listens on every interface and has no option against that. A socket stays in the namespace in which it
was opened: this process opens the port first, then moves to an empty namespace, starts the engine in there and forwards
the connections. Where a process may not create namespaces, as in most containers and for the ordinary users of Ubuntu,
the engine listens on all interfaces, at another port: other engines use the same port of other loopback addresses.

    python -P isolated_dynamodb.py HOST PORT COMMAND…        runs COMMAND… with `-port` and a port appended
"""

import asyncio
import ctypes
import fcntl
import os
import secrets
import socket
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import cast

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS = 0x8914
IFF_UP = 1


def enter_empty_network() -> None:
    """Move this process to a network namespace with loopback alone. Only root can do that without a user namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    flags = CLONE_NEWNET if os.geteuid() == 0 else CLONE_NEWNET | CLONE_NEWUSER
    if libc.unshare(flags) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))


def can_enter_empty_network() -> bool:
    """Whether a child process can. Ubuntu lets ordinary users enter one but not set up its loopback interface."""
    child = os.fork()
    if child == 0:
        try:
            enter_empty_network()
        except (OSError, AttributeError):
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def free_port() -> int:
    """Return a port that is free on every interface, and that nothing is given which does not ask for this one."""
    while True:
        with suppress(OSError), socket.create_server(("", 20_000 + secrets.randbelow(12_000))) as probe:
            return int(probe.getsockname()[1])


class Forwarder(asyncio.Protocol):
    """One side of a forwarded connection; writes what it receives to the other side."""

    def __init__(self, port: int | None = None, other: asyncio.Transport | None = None) -> None:
        self._port = port
        self._other = other
        self._buffered: list[bytes] = []
        self._opening: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Open the other side of a connection from outside."""
        if self._port is not None:
            self._opening = asyncio.create_task(self._open(cast("asyncio.Transport", transport), self._port))

    async def _open(self, incoming: asyncio.Transport, port: int) -> None:
        loop = asyncio.get_running_loop()
        try:
            other, _ = await loop.create_connection(lambda: Forwarder(other=incoming), "127.0.0.1", port)
        except OSError:
            incoming.abort()
            return
        other.writelines(self._buffered)
        self._other = other

    def data_received(self, data: bytes) -> None:
        """Forward, or buffer until the other side is open."""
        if self._other:
            self._other.write(data)
        else:
            self._buffered.append(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Close the other side too."""
        del exc
        if self._other:
            self._other.close()


async def run_engine(listening: socket.socket, port: int, command: Sequence[str]) -> int:
    """Run the engine at a port and forward connections to it; return its exit code."""
    engine = await asyncio.create_subprocess_exec(*command, "-port", str(port))
    server = await asyncio.get_running_loop().create_server(lambda: Forwarder(port), sock=listening)
    code = await engine.wait()
    server.close()
    return code


def main() -> None:
    """Open the port, then run the engine, in an empty network if possible."""
    host, port, *command = sys.argv[1:]
    with socket.create_server((host, int(port))) as listening:
        if can_enter_empty_network():
            enter_empty_network()
        else:
            print("Without a network namespace, DynamoDB Local listens on every interface.", file=sys.stderr)  # noqa: T201
        sys.exit(asyncio.run(run_engine(listening, free_port(), command)))


if __name__ == "__main__":
    main()
