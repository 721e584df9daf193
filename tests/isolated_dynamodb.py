"""DynamoDB Local in a network of its own, so that loopback is the only way to it.

It listens on every interface and has no option against that. A socket stays in the network it was opened in: so the
port is opened first, then this process leaves for an empty network, starts the engine in there, and hands on what
arrives. Where a process may not do that, as in some containers, the engine listens as it likes.

    python -P apart.py PORT COMMAND…        COMMAND… is given `-port PORT` in addition
"""

import asyncio
import ctypes
import fcntl
import os
import socket
import struct
import sys
from collections.abc import Sequence
from typing import cast

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS = 0x8914
IFF_UP = 1


def leave_for_an_empty_network() -> None:
    """Leave the machine's network for one that has loopback alone. Whoever is not root needs a user namespace too."""
    libc = ctypes.CDLL(None, use_errno=True)
    flags = CLONE_NEWNET if os.geteuid() == 0 else CLONE_NEWNET | CLONE_NEWUSER
    if libc.unshare(flags) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))


class Hand(asyncio.Protocol):
    """One side of a connection: what it receives, the other side sends."""

    def __init__(self, port: int | None = None, other: asyncio.Transport | None = None) -> None:
        self._port = port
        self._other = other
        self._early: list[bytes] = []
        self._opening: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Open the other side, if there is none."""
        if self._port is not None:
            self._opening = asyncio.create_task(self._open(cast("asyncio.Transport", transport), self._port))

    async def _open(self, mine: asyncio.Transport, port: int) -> None:
        try:
            other, _ = await asyncio.get_running_loop().create_connection(lambda: Hand(other=mine), "127.0.0.1", port)
        except OSError:
            mine.abort()
            return
        other.writelines(self._early)
        self._other = other

    def data_received(self, data: bytes) -> None:
        """Hand on."""
        if self._other:
            self._other.write(data)
        else:
            self._early.append(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Close both."""
        del exc
        if self._other:
            self._other.close()


async def hand_over(door: socket.socket, port: int, command: Sequence[str]) -> int:
    """Run the engine, and connect whoever knocks to it until it ends."""
    engine = await asyncio.create_subprocess_exec(*command)
    server = await asyncio.get_running_loop().create_server(lambda: Hand(port), sock=door)
    code = await engine.wait()
    server.close()
    return code


def main() -> None:
    """Open the port, leave, start."""
    port = int(sys.argv[1])
    command = [*sys.argv[2:], "-port", str(port)]
    with socket.create_server(("127.0.0.1", port)) as door:
        try:
            leave_for_an_empty_network()
        except (OSError, AttributeError) as failure:
            print(f"No network of its own ({failure}): it listens on every interface.", file=sys.stderr)  # noqa: T201
        else:
            sys.exit(asyncio.run(hand_over(door, port, command)))
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
