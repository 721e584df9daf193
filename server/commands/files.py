"""The files that commands read and write, by one convention.

A file is an argument, and `-` stands for standard input or output. A command that writes prints unless it is given a
file. An option names a further file: the output of a command that reads several, a report of what was skipped.
"""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import EDQUOT, EFBIG, ENOSPC
from pathlib import Path
from tempfile import gettempdir
from typing import BinaryIO

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from resolvers.transfer.readers import NotRegular, decode, open_regular
from resolvers.transfer.temporary import temporary_folder
from server import Failed
from server.commands import err
from server.engine.folder import refuse_own_file

# ── files ──

STANDARD = Path("-")
Opener = Callable[[str, int], int]


@contextmanager
def open_input(file: Path) -> Iterator[tuple[BinaryIO, int | None]]:
    """The file and its size, if it has one."""
    if file == STANDARD:
        yield sys.stdin.buffer, None
        return
    try:
        source = open_regular(file)
    except NotRegular:
        raise Failed(f"{file} is not a file. To read from a pipe, pass - and connect it to standard input.") from None
    except OSError as error:
        raise Failed(f"{file} cannot be read: {error.strerror}.") from None
    with source:
        yield source, os.fstat(source.fileno()).st_size


@contextmanager
def named_input(file: Path) -> Iterator[Path]:
    """For what is read by its name: the file, or a copy of standard input."""
    if file != STANDARD:
        yield file
        return
    with temporary_folder() as folder:
        received = Path(folder, "standard-input")
        keep_standard_input(received)
        yield received


def keep_standard_input(target: Path | int) -> None:
    """Copy standard input to a temporary file: by its name, or by its descriptor, which stays open."""
    try:
        with open_input(STANDARD) as (source, _), open(target, "wb", closefd=isinstance(target, Path)) as copy:
            shutil.copyfileobj(source, copy)
    except OSError as error:
        if error.errno not in (ENOSPC, EDQUOT, EFBIG):
            raise Failed(f"{STANDARD} cannot be read, or kept in {gettempdir()}: {error.strerror}.") from None
        raise Failed(
            f"{gettempdir()}, the folder for temporary files, cannot take standard input: {error.strerror}. "
            "Make room there, or name another folder with TMPDIR."
        ) from None


def read_text(file: Path) -> str:
    with open_input(file) as (source, _):
        return decode(source.read(), f"{file}")


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
def named_output(file: Path) -> Iterator[Path]:
    """For what is written by its name: the file, or one that goes to standard output once it is whole."""
    if file != STANDARD:
        yield file
        return
    with temporary_folder() as folder:
        whole = Path(folder, "standard-output")
        yield whole
        with whole.open("rb") as source, open_output(file) as target:
            shutil.copyfileobj(source, target)


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


# ── progress ──
# The progress bar of commands that take long.


@contextmanager
def progress_bar(title: str, total: int | None = None) -> Iterator[Callable[..., None]]:
    """Yields a function to tell how much is done, and perhaps of how much and of what."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done, total=total, title=title: bar.update(task, completed=done, total=total, description=title)
