"""Folders for copies of what is imported or exported, which nothing leaves behind but a kill."""

import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from types import FrameType


@contextmanager
def temporary_folder() -> Iterator[str]:
    with TemporaryDirectory(prefix="ringside-") as folder, _removed_at_signals(folder):
        yield folder


@contextmanager
def _removed_at_signals(folder: str) -> Iterator[None]:
    """Signals that end the process remove the folder first; then they do what they would have done.

    An exception in their place would reach event loops and threads at steps that expect none.
    """

    def end(number: int, _: FrameType | None) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        signal.signal(number, before[signal.Signals(number)])
        signal.raise_signal(number)

    numbers = (signal.SIGTERM, signal.SIGHUP) if threading.current_thread() is threading.main_thread() else ()
    before = {number: signal.getsignal(number) for number in numbers}
    handled = [number for number in numbers if before[number] is not signal.SIG_IGN]  # as nohup has it
    for number in handled:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, before[number])
