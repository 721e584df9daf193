"""The files that commands read and write, by one convention.

A file is an argument, and `-` stands for standard input or output. A command that writes prints unless it is given a
file. An option names a further file: the output of a command that reads several, a report of what was skipped.
"""

from __future__ import annotations

import codecs
import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import BinaryIO

from server.engine.folder import refuse_own_file
from server.failures import Failed

STANDARD = Path("-")
Opener = Callable[[str, int], int]


@contextmanager
def open_input(file: Path) -> Iterator[tuple[BinaryIO, int | None]]:
    """The file and its size, if it has one."""
    if file == STANDARD:
        yield sys.stdin.buffer, None
        return
    with open_regular(file) as source:
        yield source, os.fstat(source.fileno()).st_size


def open_regular(file: Path) -> BinaryIO:
    """A file to read. A pipe may have no writer and a device no end, so both are refused; `-` reads from a pipe."""
    try:
        return _regular(os.open(file, os.O_RDONLY | os.O_NONBLOCK))
    except OSError as error:
        raise Failed(f"{file} cannot be read: {error.strerror}.") from None
    except _NotRegular:
        raise Failed(f"{file} is not a file. To read from a pipe, pass - and connect it to standard input.") from None


def open_inside(folder: Path, name: str) -> BinaryIO:
    """A file to read that another file names: in a folder or below it, and reached by no link."""
    path = PurePath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise Failed(f"{name} is not in {folder}: only files in this folder and below it are read.")
    try:
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        for part in path.parts[:-1]:
            try:
                inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=place)
            finally:
                os.close(place)
            place = inner
        try:
            return _regular(os.open(path.name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW, dir_fd=place))
        finally:
            os.close(place)
    except OSError as error:
        linked = error.errno in {errno.ELOOP, errno.EMLINK} or (
            error.errno == errno.ENOTDIR and _has_link(folder, path)
        )
        reason = "it is a link, or behind one" if linked else error.strerror
        raise Failed(f"{name} cannot be read: {reason}.") from None
    except _NotRegular:
        raise Failed(f"{name} cannot be read: it is not a file.") from None


class _NotRegular(Exception):
    """A pipe, a socket, a device or a folder."""


def _regular(descriptor: int) -> BinaryIO:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _NotRegular
    return os.fdopen(descriptor, "rb")


def _has_link(folder: Path, path: PurePath) -> bool:
    """For the message only: a folder that is a link is reported as no folder."""
    return any((folder / parent).is_symlink() for parent in path.parents)


def read_text(file: Path) -> str:
    with open_input(file) as (source, _):
        return decode(source.read(), file)


def decode(data: bytes, file: Path) -> str:
    """Text in UTF-8, with or without a byte order mark, or in UTF-16 with one, as spreadsheets write it.

    Anything else is refused instead of guessed: a wrong guess would store wrong letters.
    """
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Failed(f"{file} cannot be read: line {line} is not text in UTF-8. Save the file as UTF-8.") from None
    if "\x00" in text:
        raise Failed(f"{file} cannot be read: it is not text in UTF-8, but has NUL characters. Save the file as UTF-8.")
    return text


def owner_only(file: str, flags: int) -> int:
    """The opener of files with members' data: nobody but the owner reads a new one. One that exists keeps its mode."""
    return os.open(file, flags, 0o600)


@contextmanager
def open_output(file: Path, opener: Opener | None = owner_only) -> Iterator[BinaryIO]:
    if file == STANDARD:
        with _standard_output() as target:
            yield target
        return
    refuse_own_file(file)
    try:
        with open(file, "wb", opener=opener) as target:
            yield target
    except OSError as error:
        raise Failed(f"{file} cannot be written: {error.strerror}.") from None


@contextmanager
def _standard_output() -> Iterator[BinaryIO]:
    try:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise  # whoever reads has enough, such as `head`: the command ends without a word
    except OSError as error:
        if error.filename is not None:
            raise  # of a file that was opened meanwhile
        discard_standard_output()
        raise Failed(f"{STANDARD} cannot be written: {error.strerror}.") from None


def discard_standard_output() -> None:
    """What is still in the buffer is written again when the process ends, and would fail again."""
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def write_text(file: Path, text: str) -> None:
    """For what is no member's, such as the schema, and may be for other users: the usual mode."""
    with open_output(file, None) as target:
        target.write(text.encode())
