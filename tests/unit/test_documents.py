"""Documents and their cache: what a process keeps of them, however many there are."""

import gc
import re
import subprocess
import sys
import tracemalloc
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from graphql import (
    GraphQLField,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLString,
    GraphQLSyntaxError,
    Lexer,
    Source,
    TokenKind,
    execute_sync,
)
from graphql.language.parser import Parser
from hypothesis import given
from hypothesis import strategies as st

from schema import schema
from server.compiler import PreparedOperation
from server.execution.answers import format_error
from server.execution.documents import (
    HALVE_AFTER,
    REMEMBERED,
    DocumentCache,
    Documents,
    GraphQLRequest,
)
from server.execution.limits import MAX_LINE_ENDS, MAX_NAME, InvalidOperation, LimitExceeded, Limits, check_text
from tests.generated import ROOT
from tests.query_bombs import LARGEST_DOCUMENTS

CONTENDER = "{ id name score rank wins losses ties svg }"


def aliases(number: int, count: int) -> GraphQLRequest:
    """A document of its own for each number, with so many aliased objects."""
    return GraphQLRequest("{" + " ".join(f'a{number}_{n}: contender(id: "1") {CONTENDER}' for n in range(count)) + "}")


def test_a_request_without_a_document_waits_for_no_turn() -> None:
    """Its refusal depends on more than the document, so it is not shared."""
    documents = Documents(schema._schema)
    for request in (GraphQLRequest(None), GraphQLRequest(None, persisted_hash="0" * 64)):
        with pytest.raises(InvalidOperation):
            documents.find(request, introspection=True)


def test_the_cache_drops_what_was_used_least_recently() -> None:
    """Among newcomers, which have a quarter of the space."""
    cache: DocumentCache[str, int] = DocumentCache(40)
    for number, key in enumerate("abcd"):
        cache.put(key, number, 3)
    assert [cache.get(key) for key in "abcd"] == [None, 1, 2, 3]


def test_a_flood_evicts_no_frequent_entry() -> None:
    """Each newcomer is used twice, and so gives way to whatever is used more often."""
    cache: DocumentCache[int, str] = DocumentCache(400)
    for key in range(25):
        cache.put(key, "frequent", 10)
        for _ in range(3):
            assert cache.get(key) == "frequent"
    for key in range(1_000, 2_000):
        cache.put(key, "stranger", 10)
        assert cache.get(key) == "stranger"
    assert [cache.get(key) for key in range(25)] == ["frequent"] * 25


def test_what_is_no_longer_used_gives_way_in_the_end() -> None:
    """Counts are halved, so that a thousand uses in the past weigh less than ten today."""
    cache: DocumentCache[int, str] = DocumentCache(40)
    for key in range(3):
        cache.put(key, "old", 10)
        for _ in range(1_000):
            cache.get(key)
    for key in range(10, 13):
        cache.put(key, "new", 10)
        for _ in range(HALVE_AFTER):
            cache.get(key)
    assert [cache.get(key) for key in (10, 11, 12)] == ["new"] * 3


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from(["use", "grow"]), st.integers(0, 40)), max_size=200))
def test_the_cache_never_exceeds_its_bytes(steps: list[tuple[int, str, int]]) -> None:
    """Its count of them is the sum of the entries' sizes."""
    cache: DocumentCache[int, int] = DocumentCache(100)
    sizes: dict[int, int] = {}
    for key, step, size in steps:
        if step == "grow":
            cache.grow(key, size)
            sizes[key] = sizes.get(key, 0) + size
        elif cache.get(key) is None:
            cache.put(key, key, size)
            sizes[key] = size
        kept = [key for key in sizes if key in cache]
        assert cache.bytes == sum(sizes[key] for key in kept) <= 100
        sizes = {key: sizes[key] for key in kept}


@pytest.mark.parametrize(
    ("text", "is_postponed"),
    [
        ("{ contenders { nodes { name } } }", True),
        ("{ contenders(first: 100) { nodes { id name score rank wins losses ties svg retired winRate } } }", False),
        ("subscription { leaderboardChanged { rank } }", False),
    ],
)
def test_an_expensive_operation_is_compiled_at_its_first_use(text: str, is_postponed: bool) -> None:  # noqa: FBT001
    """Executing it by graphql-core would take as long, and each event of a subscription is one execution."""
    operation = Documents(schema._schema).operation(GraphQLRequest(text), introspection=True)
    assert operation.compiled.is_postponed is is_postponed


@pytest.mark.parametrize("name", LARGEST_DOCUMENTS)
def test_the_largest_documents_are_legal(name: str) -> None:
    """`bench.foundation` measures that checking and compiling them blocks nobody."""
    request = GraphQLRequest(LARGEST_DOCUMENTS[name], "Q0" if name == "operations" else None)
    Documents(schema._schema).operation(request, introspection=True)


def _searches_for_line_ends(call: Callable[[], Any]) -> int:
    """How often the call begins to look for the line ends of a text."""
    count = 0

    def profile(_: FrameType, event: str, called: Any) -> None:
        nonlocal count
        searched = getattr(called, "__self__", None)
        if event == "c_call" and isinstance(searched, re.Pattern):
            count += bool(searched.fullmatch("\r\n") and not searched.search("a"))

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


def _fail(*_: Any) -> str:
    raise ValueError


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.slow
def test_however_many_fields_fail_their_lines_are_found_once(times: int) -> None:
    """Also if each is asked for twice, so that an error has two locations."""
    schema = GraphQLSchema(GraphQLObjectType("Query", {"fails": GraphQLField(GraphQLString, resolve=_fail)}))
    text = "\n" * 9_000 + "{" + "\n".join(f"a{n}: fails" for _ in range(times) for n in range(20)) + "}"
    operation = Documents(schema).operation(GraphQLRequest(text), introspection=True)
    results: list[Any] = []
    assert _searches_for_line_ends(lambda: results.append(execute_sync(schema, operation.document))) == 1
    errors = [format_error(error) for error in results[0].errors]
    assert [[place["line"] for place in error["locations"]] for error in errors] == [
        [9_001 + n, 9_021 + n][:times] for n in range(20)
    ]


@pytest.mark.parametrize("text", ["{" + " ".join(f"a{n}" for n in range(40)) + "}", "{ a"])
def test_a_refused_document_s_lines_are_found_once(text: str) -> None:
    """However many errors validation finds, and if it does not parse."""

    def check() -> None:
        with pytest.raises(InvalidOperation) as refused:
            Documents(schema._schema).operation(GraphQLRequest("\n" * 9_000 + text), introspection=True)
        assert refused.value.errors[0].locations is not None

    assert _searches_for_line_ends(check) == 1


@pytest.mark.parametrize("line_end", ["\n", "\r", "\r\n"])
def test_a_document_has_so_many_lines_at_most(line_end: str) -> None:
    """To find the lines of an error takes time and memory for each."""
    documents = Documents(schema._schema)
    fits = line_end * MAX_LINE_ENDS + "{ __typename }"
    assert documents.operation(GraphQLRequest(fits), introspection=True)
    with pytest.raises(InvalidOperation, match=f"line ends: {MAX_LINE_ENDS + 1}. At most {MAX_LINE_ENDS} are accepted"):
        documents.operation(GraphQLRequest(line_end + fits), introspection=True)


@pytest.mark.parametrize("piece", ["!", "{}", '""', "é ", "\u00a0", "1 ", "a,", "...", '"""x""" ', "#\n!"])
def test_the_tokens_of_a_document_are_read_up_to_the_limit(piece: str) -> None:
    """Of a megabyte of them, the memory holds a small part at any time."""
    text = (piece * min(2**20 // len(piece), MAX_LINE_ENDS if "\n" in piece else 2**20)).ljust(2**20, "!")
    tracemalloc.start()
    try:
        with pytest.raises(LimitExceeded, match=r"tokens: more than 2000\. At most 2000 are accepted"):
            check_text(text, Limits())
        assert tracemalloc.get_traced_memory()[1] < 2**18
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "text",
    [
        " " * 2**20 + "{ __typename }",
        "," * 2**20 + "{ __typename }",
        "#" * 2**20 + "\n{ __typename }",
        '{ node(id: """' + '"" \\""" {' * 100_000 + '""") { id } }',
        '{ node(id: "' + r"\" {" * 100_000 + '") { id } }',
        "{ node(id: 1." + "0" * 100 + ") { id } }",
    ],
)
def test_what_is_no_token_or_inside_of_one_is_not_counted(text: str) -> None:
    """White space, commas, comments, and what strings hold."""
    check_text(text, Limits())
    Parser(text, max_tokens=Limits().tokens).parse_document()


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        ('"" {' * 61, "nested brackets: more than 60 levels"),
        (r'"\\" {' * 61, "nested brackets: more than 60 levels"),
        (r'"""\\"""""" {' * 61, "nested brackets: more than 60 levels"),
        ('"""""" [' * 61, "nested brackets: more than 60 levels"),
        ("#{\n(" * 61, "nested brackets: more than 60 levels"),
        ("{a(b: " + "9" * 21, "digits in a number: more than 20"),
    ],
)
def test_what_follows_a_string_or_a_comment_is_counted(text: str, counted: str) -> None:
    """Wherever graphql-core ends the string: the brackets within it do not count."""
    with pytest.raises(LimitExceeded, match=counted):
        check_text(text, Limits())


PIECES = ['"', '""', '"""', "\\", "x", "{ x }", " ", "#", "\n", "é", "1", "-", ".", "e", "..."]


@given(st.lists(st.sampled_from(PIECES), max_size=14))
def test_tokens_are_those_of_graphql_core(pieces: list[str]) -> None:
    """Of each text that it can read, wherever its strings and comments end."""
    text = "".join(pieces)
    lexer, tokens = Lexer(Source(text)), 0
    try:
        while lexer.advance().kind is not TokenKind.EOF:
            tokens += 1
    except GraphQLSyntaxError:
        return
    check_text(text, Limits(tokens=tokens))
    if tokens:
        with pytest.raises(LimitExceeded):
            check_text(text, Limits(tokens=tokens - 1))


@pytest.mark.parametrize(
    "text",
    [
        "query NAME { __typename }",
        "{ NAME: __typename }",
        "{ NAME }",
        "query ($NAME: Int) { __typename }",
        "{ ...NAME } fragment NAME on Query { __typename }",
        "{ __typename @NAME }",
        "{ node(id: 1.NAME) { id } }",
        "{ node(id: -1.5e+NAME) { id } }",
    ],
)
def test_a_name_has_so_many_characters_at_most(text: str) -> None:
    """An operation's is written to the log, to traces and to metrics."""
    check_text(text.replace("NAME", "a" * MAX_NAME), Limits())
    with pytest.raises(InvalidOperation, match=r"characters in a name: more than 200\. At most 200 are accepted"):
        Documents(schema._schema).operation(GraphQLRequest(text.replace("NAME", "a" * 201)), introspection=True)


@pytest.mark.parametrize(("name", "told"), [("b", "'b'"), ("b" * 10_000, "'" + "b" * 200 + "…'")])
def test_an_operation_that_is_not_there_is_named_briefly(name: str, told: str) -> None:
    """Its name may have as many characters as a body."""
    with pytest.raises(InvalidOperation) as refused:
        Documents(schema._schema).operation(GraphQLRequest("query a { __typename }", name), introspection=True)
    assert str(refused.value) == f"There is no operation called {told} in the document."


def test_a_document_is_kept_from_its_second_use_on() -> None:
    """What strangers send once would fill memory, and the garbage collector would look through it again and again."""
    documents, kept = Documents(schema._schema), []
    for _ in range(3):
        operation = documents.operation(aliases(1, 8), introspection=True)
        document = weakref.ref(operation.document)
        del operation
        gc.collect()  # what validation leaves
        kept.append(document())
    assert kept[0] is None
    assert kept[1] is kept[2] is not None


def test_only_the_latest_first_uses_are_remembered() -> None:
    """A flood of new documents cannot fill memory with their hashes either."""
    cache: DocumentCache[int, str] = DocumentCache(40)
    assert [cache.remember(key) for key in (0, 0, *range(1, REMEMBERED))] == [False, True] + [False] * (REMEMBERED - 1)
    assert cache.remember(0)
    assert not cache.remember(REMEMBERED)
    assert not cache.remember(0)


def test_a_dropped_document_is_freed_without_the_garbage_collector() -> None:
    """Neither its syntax tree nor its compiled operation refers to itself."""
    documents = Documents(schema._schema, cache_bytes=2**20)
    parts = _use(documents, 0, 2)
    gc.collect()  # what validation leaves
    gc.disable()
    try:
        for number in range(1, 10):
            _use(documents, number, 4)
        assert [part() for part in parts] == [None, None]
    finally:
        gc.enable()


def test_a_document_counts_what_its_text_takes_in_memory() -> None:
    """A megabyte with one emoji takes four, and its strings as much again."""
    documents, kept = Documents(schema._schema, cache_bytes=10 * 2**20), list[weakref.ref[Any]]()
    for number in range(4):
        text = '{ comments(product: "\U0001f600%d%s") { totalCount } }' % (number, "a" * 1_000_000)
        for _ in range(3):
            operation = documents.operation(GraphQLRequest(text), introspection=True)
            kept.append(weakref.ref(operation.document))
    del operation
    gc.collect()
    assert len({id(part()) for part in kept} - {id(None)}) <= 1


def _use(documents: Documents, number: int, times: int) -> list[weakref.ref[Any]]:
    """Uses a document so often; what it is made of."""
    for _ in range(times):
        operation = documents.operation(aliases(number, 8), introspection=True)
        prepared = operation.compiled.prepare({}, suggestions=True)
    assert isinstance(prepared, PreparedOperation)
    return [weakref.ref(operation.document), weakref.ref(prepared.plan.roots[0][0])]


MEGABYTES = 8
DOCUMENTS = 30


@pytest.mark.soak
def test_memory_stays_bounded_whatever_strangers_send() -> None:
    """Thirty legal documents of 3 KB, each compiled and all kept, would take 28 MB."""
    command = [sys.executable, "-m", "tests.unit.test_documents"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert float(printed.stdout) < 2 * MEGABYTES


def _grown_by() -> float:
    """The megabytes by which many documents enlarge this process, after as many as the cache holds."""
    documents = Documents(schema._schema, cache_bytes=MEGABYTES * 2**20)
    before = 0.0
    for number in range(DOCUMENTS):
        for _ in range(2):
            operation = documents.operation(aliases(number, 40), introspection=True)
        operation.compiled.prepare({}, suggestions=True)
        if number == 0:
            before = _resident()
    return _resident() - before


def _resident() -> float:
    with open("/proc/self/statm", encoding="ascii") as statm:  # noqa: PTH123 - a file of the kernel
        return int(statm.read().split()[1]) * 4096 / 1e6


if __name__ == "__main__":
    print(_grown_by())  # noqa: T201 - read by the test
