"""The limits of a process's connections: some are settings, some the system's."""

from __future__ import annotations

import resource
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from server.settings import Settings

RESERVED_FILES = 128
"""Descriptors for everything but clients: the engine's connections, the listeners, the log, files of pages."""

LISTENERS = 6
"""How many sockets listen together, and so how many new connections one turn of the event loop accepts."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What the connections of a process may take."""

    connections: int
    header_bytes: int
    header_seconds: float
    body_seconds: float

    @classmethod
    def of(cls, settings: Settings) -> Self:
        open_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return cls(
            connections=min(settings.max_connections, max(open_files - RESERVED_FILES, open_files // 2)),
            header_bytes=settings.max_header_bytes,
            header_seconds=settings.header_timeout,
            body_seconds=settings.body_timeout,
        )


def raise_file_limit() -> None:
    """Raise the soft limit of open files, often 1,024, to the hard one. Child processes inherit it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # macOS refuses an unlimited number
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def limit_unaccepted_data(listening: socket.socket, seconds: float) -> None:
    """Let the system close connections whose clients read nothing of an answer for so long (on Linux).

    Accepted sockets inherit the option, so that it holds for WebSockets, streams and closing connections too.
    """
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(seconds * 1000))


def listeners(listening: socket.socket) -> list[socket.socket]:
    """The listening socket and copies of it, which accept new connections together.

    libuv accepts one connection for each socket in a turn of the event loop. Under load, when a turn takes tenths of a
    second, one socket leaves new clients waiting until they give up. With many, refusing them takes the time that the
    answers need: docs/decisions/http-server.md has the figures.
    """
    return [listening, *(listening.dup() for _ in range(LISTENERS - 1))]
