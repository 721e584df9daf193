"""Reads the tokens of a document, each by a regular expression.

graphql-core looks at each character in Python: a comment of a megabyte takes it 120 ms, names and white space as long.
Here comments are skipped like white space, and nothing but the values of tokens is copied. What does not match is left
to graphql-core, from the character at which it is refused, so the errors are graphql-core's.

Tokens have no line and column: `DocumentSource` finds those of errors.
"""

from __future__ import annotations

import re
import sys
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from json import JSONDecoder

from graphql import Lexer, Source, SourceLocation, Token, TokenKind
from graphql.language import location
from graphql.language.lexer import is_punctuator_token_kind
from graphql.pyutils.suggestion_list import LexicalDistance

# ── lexer ──

_SURROGATES = r"\ud800-\udfff"
_PAIR = r"[\ud800-\udbff][\udc00-\udfff]"
_IGNORED = re.compile(rf"(?: [\ \t\r\n,\ufeff]++ | \# (?: [^\r\n{_SURROGATES}]++ | {_PAIR} )*+ )*+", re.VERBOSE)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*+")
_NUMBER = re.compile(r"-?+(?:0|[1-9][0-9]*+)(\.[0-9]++)?([eE][+-]?[0-9]++)?(?![0-9A-Za-z_.])")
_STRING = re.compile(
    rf"""
    " ( (?: [^"\\\r\n{_SURROGATES}]++
          | {_PAIR}
          | \\ ["\\/bfnrt]
          | \\u (?! [dD][89a-fA-F] ) [0-9a-fA-F]{{4}}
          | \\u [dD][89abAB][0-9a-fA-F]{{2}} \\u [dD][c-fC-F][0-9a-fA-F]{{2}}
          | \\u \{{ (?= [0-9a-fA-F]{{1,8}}\}} ) 0*+
            (?: (?! [dD][89a-fA-F][0-9a-fA-F]{{2}}\}} ) [0-9a-fA-F]{{0,4}}
              | [1-9a-fA-F][0-9a-fA-F]{{4}} | 10[0-9a-fA-F]{{4}} ) \}}
        )*+ )
    """,
    re.VERBOSE,
)
"""Up to its end, or to what is refused."""
_BLOCK_STRING = re.compile(
    rf'''
    """ ( (?: [^"\\{_SURROGATES}]++ | {_PAIR} | \\ (?:""")?+ | " (?!"") )*+ )
    ''',
    re.VERBOSE,
)
_BRACED_ESCAPE = re.compile(r"\\u\{([0-9a-fA-F]++)\}")
_PUNCTUATORS = {kind.value: kind for kind in TokenKind if is_punctuator_token_kind(kind) and kind is not TokenKind.DOT}
_ESCAPED = {'"': r"\"", "\\": r"\\"}
_JSON = JSONDecoder(strict=False)
"""Reads the escapes of a string, which are those of JSON but for `\\u{1F600}`."""


class DocumentLexer(Lexer):
    """graphql-core's lexer, in linear time and without comments."""

    def read_next_token(self, start: int) -> Token:
        body = self.source.body
        ignored = _IGNORED.match(body, start)
        position = ignored.end() if ignored else start
        if match := _NAME.match(body, position):
            return _token(TokenKind.NAME, position, match.end(), match[0])
        if kind := _PUNCTUATORS.get(body[position : position + 1]):
            return _token(kind, position, position + 1)
        if match := _NUMBER.match(body, position):
            is_float = match.lastindex is not None
            return _token(TokenKind.FLOAT if is_float else TokenKind.INT, position, match.end(), match[0])
        return super().read_next_token(position)

    def read_string(self, start: int) -> Token:
        body = self.source.body
        match = _STRING.match(body, start)
        end = match.end() if match else start + 1
        if match is None or not body.startswith('"', end):
            return super().read_string(end - 1)
        return _token(TokenKind.STRING, start, end + 1, _unescaped(match[1]))

    def read_block_string(self, start: int) -> Token:
        body = self.source.body
        match = _BLOCK_STRING.match(body, start)
        end = match.end() if match else start + 3
        if match is None or not body.startswith('"""', end):
            return super().read_block_string(end - 3)
        return _token(TokenKind.BLOCK_STRING, start, end + 3, _block_value(match[1].replace('\\"""', '"""')))


def _token(kind: TokenKind, start: int, end: int, value: str | None = None) -> Token:
    return Token(kind, start, end, 0, 0, value)


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    if r"\u{" in text:
        # Without escaped backslashes, each backslash that is left begins an escape.
        pieces = _BRACED_ESCAPE.split(text.replace(r"\\", r"\u005c"))
        characters = [chr(int(digits, 16)) for digits in pieces[1::2]]
        pieces[1::2] = [_ESCAPED.get(character, character) for character in characters]
        text = "".join(pieces)
    value: str = _JSON.decode(f'"{text}"')
    return value


def _block_value(text: str) -> str:
    """The lines without their common indentation, and without empty ones at both ends."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    indents = [len(line) - len(line.lstrip(" \t")) for line in lines]
    filled = [number for number, line in enumerate(lines) if indents[number] < len(line)]
    if not filled:
        return ""
    common = min((indents[number] for number in filled if number), default=0)
    dedented = [line[common:] if number else line for number, line in enumerate(lines)]
    return "\n".join(dedented[filled[0] : filled[-1] + 1])


# ── document source ──
# The text of a document, which tells the line and column of a position without reading the text again.
#
# graphql-core reads the text from its start for each error, which takes up to 10 ms a megabyte on the event loop, and a
# request can have thousands of errors. Here the line ends are found at the first error, and searched for the others.
# For an error with several positions, graphql-core does not ask the `Source`, so its function is replaced.

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


# ── suggestions ──
# graphql-core's suggestions ("Did you mean …?") for wrong names in any writing.
#
# It compares names in lower case, in rows as long as the name was before. The lower case of `İ` is longer by one, so
# such a name failed with an IndexError, as a fault of this program.


class _AnyDistance(LexicalDistance):
    """The distance to a name, in rows that are long enough."""

    def __init__(self, input_: str) -> None:
        super().__init__(input_)
        self._rows = [[0] * (len(self._input_lower_case) + 1) for _ in self._rows]


def suggest_for_any_name() -> None:
    """Let graphql-core use it. The package has a function of the module's name, so the module is not its attribute."""
    setattr(sys.modules[LexicalDistance.__module__], LexicalDistance.__name__, _AnyDistance)
