"""What readers read from: texts whose encoding is checked, and files that are files."""

from __future__ import annotations

import codecs
import errno
import os
import re
import stat
from pathlib import Path, PurePath
from typing import BinaryIO

from datastore.refusals import InvalidInput

_DECLARED_ENCODING = re.compile(rb"\s*<\?xml[^>]*\bencoding\s*=\s*[\"']([A-Za-z0-9._-]+)[\"']")


class Unreadable(InvalidInput):
    """A source as a whole cannot be read, so nothing of it is imported; the message says where and what to do."""


def decode(data: bytes, name: str) -> str:
    """A text in UTF-8, with or without a byte order mark, or in UTF-16 with one, as spreadsheets write it.

    Anything else is refused instead of guessed: a wrong guess would store wrong letters.
    """
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Unreadable(f"{name} cannot be read: line {line} is not text in UTF-8. Save the file as UTF-8.") from None
    if "\x00" in text:
        raise Unreadable(
            f"{name} cannot be read: it is not text in UTF-8, but has NUL characters. Save the file as UTF-8."
        )
    return text


def decode_xml(data: bytes, name: str) -> str:
    """A text in the encoding that it declares, if it does."""
    declared = _DECLARED_ENCODING.match(data)
    if declared is None:
        return decode(data, name)
    encoding = declared[1].decode()
    try:
        text = data.decode(codecs.lookup(encoding).name)
        text.encode()  # UTF-7 and Python's own escapes can write half a character
    except (LookupError, UnicodeError):
        raise Unreadable(f"{name} is not text in the encoding {encoding}, which it declares.") from None
    return text


class NotRegular(OSError):
    """A pipe, a socket, a device or a folder. A pipe may have no writer and a device no end, so they are not read."""

    def __init__(self) -> None:
        super().__init__(errno.EINVAL, "it is not a file")


def open_regular(name: Path | str, flags: int = 0, folder: int | None = None) -> BinaryIO:
    """A file to read; OSError if there is none."""
    descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | flags, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegular
    return os.fdopen(descriptor, "rb")


def read_inside(folder: Path, name: str, most: int) -> bytes:
    """A file of up to so many bytes that another file names: in a folder or below it, and reached by no link."""
    path = PurePath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise Unreadable(f"{name} is not in {folder}: only files in this folder and below it are read.")
    try:
        with _open_inside(folder, path) as source:
            data = source.read(most + 1)
    except OSError as error:
        # A folder that is a link is reported as no folder.
        behind_link = error.errno == errno.ENOTDIR and any((folder / parent).is_symlink() for parent in path.parents)
        linked = error.errno in {errno.ELOOP, errno.EMLINK} or behind_link
        reason = "it is a link, or behind one" if linked else error.strerror
        raise Unreadable(f"{name} cannot be read: {reason}.") from None
    if len(data) > most:
        raise Unreadable(f"{name} is larger than {most // 1024} KB.")
    return data


def _open_inside(folder: Path, path: PurePath) -> BinaryIO:
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in path.parts[:-1]:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=place)
            os.close(place)
            place = inner
        return open_regular(path.name, os.O_NOFOLLOW, place)
    finally:
        os.close(place)
