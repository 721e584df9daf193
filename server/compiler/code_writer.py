"""Python source written line by line, with the objects that its names refer to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_INDENT = "    "


class CodeWriter:
    """Functions in the order in which they were finished, and the namespace that they are executed in."""

    def __init__(self) -> None:
        self.namespace: dict[str, Any] = {}
        self._finished: list[str] = []
        self._lines: list[str] = []
        self._level = 0
        self._constants: dict[tuple[str, int], str] = {}
        self._counts: dict[str, int] = {}

    def line(self, line: str) -> None:
        self._lines.append(_INDENT * self._level + line)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """A line that ends with a colon, and the lines indented below it."""
        self.line(header)
        self._level += 1
        yield
        self._level -= 1

    @contextmanager
    def function(self, signature: str) -> Iterator[None]:
        """A function of the module; it may be begun while another one is being written."""
        outer_lines, outer_level = self._lines, self._level
        self._lines, self._level = [], 0
        with self.block(f"def {signature}:"):
            yield
        self._finished += [*self._lines, "", ""]
        self._lines, self._level = outer_lines, outer_level

    def new_name(self, prefix: str) -> str:
        """A name that is not taken: the prefix, which ends with an underscore, and a number."""
        number = self._counts[prefix] = self._counts.get(prefix, 0) + 1
        return f"{prefix}{number}"

    def constant(self, prefix: str, value: Any) -> str:
        """A name bound to an object; the same for the same object."""
        key = (prefix, id(value))
        if key not in self._constants:
            self._constants[key] = name = self.new_name(prefix)
            self.namespace[name] = value
        return self._constants[key]

    @property
    def source(self) -> str:
        return "\n".join(self._finished).rstrip() + "\n"

    def execute(self) -> dict[str, Any]:
        """The namespace, with the functions defined in it."""
        exec(compile(self.source, "<operation>", "exec"), self.namespace)  # noqa: S102 - our own source: names alone
        return self.namespace
