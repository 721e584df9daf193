"""graphql-core's suggestions ("Did you mean …?") for wrong names in any writing.

It compares names in lower case, in rows as long as the name was before. The lower case of `İ` is longer by one, so such
a name failed with an IndexError, as a fault of this program.
"""

from __future__ import annotations

import sys

from graphql.pyutils.suggestion_list import LexicalDistance


class _AnyDistance(LexicalDistance):
    """The distance to a name, in rows that are long enough."""

    def __init__(self, input_: str) -> None:
        super().__init__(input_)
        self._rows = [[0] * (len(self._input_lower_case) + 1) for _ in self._rows]


def suggest_for_any_name() -> None:
    """Let graphql-core use it. The package has a function of the module's name, so the module is not its attribute."""
    setattr(sys.modules[LexicalDistance.__module__], LexicalDistance.__name__, _AnyDistance)
