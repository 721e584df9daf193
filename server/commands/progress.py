"""The progress bar of commands that take long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from server.commands import err


@contextmanager
def progress_bar(title: str, total: int | None = None) -> Iterator[Callable[..., None]]:
    """Yields what is told how much is done, and maybe of how much and of what."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done, total=total, title=title: bar.update(task, completed=done, total=total, description=title)
