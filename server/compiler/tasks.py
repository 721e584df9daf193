"""The tasks of one execution, each with the path at or below which its values belong."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeAlias

from server.compiler.paths import ResponsePath

Task: TypeAlias = "asyncio.Task[None]"


class TaskTree:
    """Runs coroutines at once, and cancels those below a path that has become null.

    A coroutine begins and ends in one task, because a timeout inside belongs to the task that began it.
    """

    __slots__ = ("_by_ancestor", "_cancelled", "_paths")

    def __init__(self) -> None:
        self._paths: dict[Task, ResponsePath] = {}
        self._by_ancestor: dict[ResponsePath, list[Task]] | None = None
        self._cancelled: set[Task] = set()

    async def run(self, coroutines: Iterable[tuple[ResponsePath, Coroutine[Any, Any, None]]]) -> None:
        """Run all to their ends; raise what is not an error of a field."""
        tasks = [self._start(path, coroutine) for path, coroutine in coroutines]
        try:
            for outcome in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(outcome, BaseException) and not isinstance(outcome, asyncio.CancelledError):
                    raise outcome
            if any(task.cancelled() and task not in self._cancelled for task in tasks):
                raise asyncio.CancelledError
        finally:
            for task in tasks:
                self._paths.pop(task, None)
                self._cancelled.discard(task)

    def cancel_below(self, path: ResponsePath) -> None:
        """Cancel the tasks at or below a path, but for the one that asks."""
        current = asyncio.current_task()
        for task in self._tasks_below(path):
            if task is not current and not task.done():
                self._cancelled.add(task)
                task.cancel()

    def _start(self, path: ResponsePath, coroutine: Coroutine[Any, Any, None]) -> Task:
        task = asyncio.ensure_future(coroutine)
        self._paths[task] = path
        if self._by_ancestor is not None:
            _index(self._by_ancestor, task, path)
        return task

    def _tasks_below(self, path: ResponsePath) -> list[Task]:
        if path is None:
            return list(self._paths)
        if self._by_ancestor is None:  # made for the first error: the nulls of a long list then cost no search each
            self._by_ancestor = {}
            for task, task_path in self._paths.items():
                _index(self._by_ancestor, task, task_path)
        return self._by_ancestor.pop(path, [])


def _index(by_ancestor: dict[ResponsePath, list[Task]], task: Task, path: ResponsePath) -> None:
    while path is not None:
        by_ancestor.setdefault(path, []).append(task)
        path = path[0]
