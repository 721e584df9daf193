"""A text of Python that is written line by line, and the objects that its names stand for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Text:
    """Lines, their indentation, and the namespace they are executed in."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._done: list[str] = []
        self.names: dict[str, Any] = {}
        self._known: dict[tuple[str, int], str] = {}
        self._counts: dict[str, int] = {}
        self._level = 0

    def __call__(self, line: str) -> None:
        self.lines.append("    " * self._level + line)

    @contextmanager
    def block(self, line: str) -> Iterator[None]:
        """A line that ends with a colon, and what stands under it."""
        self(line)
        self._level += 1
        yield
        self._level -= 1

    @contextmanager
    def function(self, signature: str) -> Iterator[None]:
        """A function of its own at the end of the text, written before the one it is needed in."""
        outer, level = self.lines, self._level
        self.lines, self._level = [], 0
        with self.block(f"def {signature}:"):
            yield
        self._done += [*self.lines, "", ""]
        self.lines, self._level = outer, level

    def name(self, prefix: str) -> str:
        """A name that is not taken."""
        self._counts[prefix] = number = self._counts.get(prefix, 0) + 1
        return f"{prefix}{number}"

    def constant(self, prefix: str, value: Any) -> str:
        """The name by which the text reaches an object; the same for the same object."""
        place = (prefix, id(value))
        if place not in self._known:
            self._known[place] = name = self.name(prefix)
            self.names[name] = value
        return self._known[place]

    def __str__(self) -> str:
        return "\n".join(self._done).rstrip() + "\n"
