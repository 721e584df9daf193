"""Tokens are graphql-core's, but for comments; long ones take no more steps than short ones."""

import gc
import sys
from types import FrameType
from typing import Any

import pytest
from graphql import GraphQLSyntaxError, Lexer, Source, TokenKind
from hypothesis import example, given, settings
from hypothesis import strategies as st

from server.execution.lexer import DocumentLexer, DocumentSource
from tests.examples import examples

PIECES = [
    *'"\\#{}()[]!$&:=@|.-+eEuU0123 \t\r\n,_aDd8cfF/b',
    *('""', '"""', '\\"""', "...", "\r\n", "\ufeff", "é", "😀", "\x00", "\x7f", "\u2028", "\ud800", "\udc00"),
    *("\ud83d\ude00", "\n  ", "\n\t"),
    *("\\n", "\\q", "\\u", "\\u0041", "\\u00g1", "\\ud83d", "\\ude00", "\\ud83d\\ude00", "\\uD83D\\u{DE00}"),
    *("\\u{", "\\u{}", "\\u{22}", "\\u{5c}", "\\u{000041}", "\\u{0000d800}", "\\u{D800}", "\\u{10FFFF}", "\\u{110000}"),
    *("\\u{000000041}", "\\u{00000041}", "1.5e-3", "-0", "00", "0x", "1.e", "1_", "name", "'", "?", "}"),
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)


def tokens(lexer: Lexer) -> tuple[list[Any], tuple[str, Any] | None]:
    """The tokens without comments, and the error that ended them."""
    found: list[Any] = []
    try:
        while (token := lexer.advance()).kind is not TokenKind.EOF:
            found.append((token.kind, token.start, token.end, token.value))
    except GraphQLSyntaxError as error:
        return found, (error.message, error.positions)
    return [*found, (token.start, token.end)], None


def are_equal(text: str) -> bool:
    return tokens(DocumentLexer(DocumentSource(text))) == tokens(Lexer(Source(text)))


@settings(max_examples=examples(1_000))
@given(TEXTS)
@example('"\\u{5c}n\\\\u{41}\\\\\\u{41}\\"\\u{22}"')
@example('"""\n    a\n  b\n\t\n  """')
def test_tokens_and_errors_are_those_of_graphql_core(text: str) -> None:
    """Of each text: kinds, places and values, or what is refused, and where."""
    assert are_equal(text)


@settings(max_examples=examples(1_000))
@given(TEXTS, st.sampled_from(['"{}"', '"""{}"""', '"{}', '"""{}', "#{}\na"]))
def test_so_are_those_of_strings_and_comments(text: str, form: str) -> None:
    """Which random texts hardly begin and end."""
    assert are_equal(form.format(text))


def steps(text: str) -> int:
    """The lines of Python that read the tokens."""
    count = 0

    def trace(_: FrameType, event: str, __: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    lexer, before = DocumentLexer(DocumentSource(text)), sys.gettrace()
    gc.disable()  # hypothesis counts collections by a function of its own
    sys.settrace(trace)
    try:
        tokens(lexer)
    finally:
        sys.settrace(before)
        gc.enable()
    return count


@pytest.mark.parametrize(
    ("form", "piece"),
    [
        ("# {}", "x"),
        ("# {}", "é"),
        ("{}", "#\n"),
        ("{}", " ,\r\n\t"),
        ("{}", "a"),
        ("{}", "1"),
        ("1.{}", "1"),
        ('"{}"', "x"),
        ('"{}"', "\\n"),
        ('"{}"', "\\u0041"),
        ('"{}"', "\\ud83d\\ude00"),
        ('"{}', "x\\n"),
        ('"{}\\q"', "x\\n"),
        ('"""{}"""', "x"),
        ('"""{}"""', '" '),
        ('"""{}"""', '\\"""'),
        ('"""{}', "x "),
    ],
)
def test_a_long_token_takes_as_many_steps_as_a_short_one(form: str, piece: str) -> None:
    """Its characters are looked at by regular expressions; graphql-core looks at each in Python."""
    assert steps(form.format(piece * 10_000)) == steps(form.format(piece * 10))


@pytest.mark.parametrize(("form", "piece"), [('"{}"', "\\u{41}"), ('"""{}"""', "  x\n"), ("{}", '"x"')])
def test_what_has_many_parts_takes_a_few_steps_for_each(form: str, piece: str) -> None:
    """Escapes in braces, lines of a block string, tokens."""
    assert steps(form.format(piece * 1_000)) < 60 * 1_000
