"""The text of a document, which tells the line and column of a position without reading the text again.

graphql-core reads the text from its start for each error, which takes up to 10 ms a megabyte on the event loop, and a
request can have thousands of errors. Here the line ends are found at the first error, and searched for the others. For
an error with several positions, graphql-core does not ask the `Source`, so its function is replaced.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property

from graphql import Source, SourceLocation
from graphql.language import location

LINE_END_BYTES = 4
_LINE_END = re.compile(r"\r\n?|\n")
_get_locations = location.get_locations


class DocumentSource(Source):
    """A source whose line ends are found once."""

    @cached_property
    def _line_ends(self) -> array[int]:
        return array("I", (match.start() for match in _LINE_END.finditer(self.body)))

    def get_location(self, position: int) -> SourceLocation:
        lines = bisect_left(self._line_ends, position)
        if not lines:
            return SourceLocation(1, position + 1)
        end = self._line_ends[lines - 1]
        begin = end + (2 if self.body.startswith("\r\n", end) else 1)
        return SourceLocation(lines + 1, position + 1 - begin)


def count_line_ends(text: str) -> int:
    return text.count("\n") + text.count("\r") - text.count("\r\n")


def _look_up_locations(locations: Sequence[tuple[Source, int]]) -> list[SourceLocation]:
    if all(isinstance(source, DocumentSource) for source, _ in locations):
        return [source.get_location(position) for source, position in locations]
    return _get_locations(locations)


location.get_locations = _look_up_locations
