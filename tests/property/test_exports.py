"""Items as lines, numbers in one notation, and a file of which no changed or missing byte changes what is read."""

import gzip
import io
from decimal import Decimal
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from datastore.dynamo.bulk import BadLine, canonical_number, item_line, parse_line
from resolvers.transfer.readers import Unreadable
from server.commands.export_file import End, ExportReader, is_export, write_export

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBERS = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**30), max_value=10**30, places=8).map(str)
BINARY = st.binary(max_size=20)
SCALARS = st.one_of(
    st.builds(lambda value: {"S": value}, TEXT),
    st.builds(lambda value: {"N": value}, NUMBERS),
    st.builds(lambda value: {"B": value}, BINARY),
    st.builds(lambda value: {"BOOL": value}, st.booleans()),
    st.just({"NULL": True}),
    st.builds(lambda value: {"SS": value}, st.lists(TEXT, min_size=1, unique=True)),
    st.builds(lambda value: {"NS": value}, st.lists(NUMBERS, min_size=1, unique_by=Decimal)),
    st.builds(lambda value: {"BS": value}, st.lists(BINARY, min_size=1, unique=True)),
)
ATTRIBUTES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.builds(lambda value: {"L": value}, st.lists(inner, max_size=3)),
        st.builds(lambda value: {"M": value}, st.dictionaries(TEXT, inner, max_size=3)),
    ),
    max_leaves=8,
)
KEYS = st.builds(lambda text: {"S": text}, TEXT)
ITEMS = st.builds(
    lambda pk, sk, more: {**more, "pk": pk, "sk": sk}, KEYS, KEYS, st.dictionaries(TEXT, ATTRIBUTES, max_size=4)
)


def _meaning(attribute: Any) -> Any:
    """An attribute without what has no meaning: the order of a set, the notation of a number."""
    ((kind, value),) = attribute.items()
    match kind:
        case "N":
            return kind, Decimal(value)
        case "NS":
            return kind, frozenset(map(Decimal, value))
        case "SS" | "BS":
            return kind, frozenset(value)
        case "L":
            return kind, [_meaning(inner) for inner in value]
        case "M":
            return kind, {name: _meaning(inner) for name, inner in value.items()}
    return kind, value


@given(ITEMS)
def test_a_line_holds_the_whole_item_in_one_form(item: dict[str, Any]) -> None:
    """What is parsed means the same, and has the same line."""
    line = item_line(item)
    parsed = parse_line(line)
    assert {name: _meaning(value) for name, value in parsed.items()} == {
        name: _meaning(value) for name, value in item.items()
    }
    assert item_line(parsed) == line
    assert b"\n" not in line


@given(st.decimals(allow_nan=False, allow_infinity=False), st.integers(0, 5))
def test_a_number_has_one_notation(number: Decimal, zeros: int) -> None:
    """With all of its digits."""
    if len(number.as_tuple().digits) > 38:
        return
    written = canonical_number(str(number))
    assert Decimal(written) == number
    assert canonical_number(f"{number:e}") == written
    digits = str(number)
    if "." in digits and "E" not in digits:
        assert canonical_number(digits + "0" * zeros) == written


@pytest.mark.parametrize(
    "line",
    [
        b"", b"{}", b"[]", b"null", b'{"pk":{"S":"a"}}', b'{"pk":{"N":"1"},"sk":{"S":"a"}}',
        b'{"pk":{"S":"a"},"sk":{"S":"a"},"x":{"Q":"a"}}', b'{"pk":{"S":"a"},"sk":{"S":"a"},"x":{"N":"a"}}',
        b'{"b":{"B":"?"},"pk":{"S":"a"},"sk":{"S":"a"}}', b'{"sk":{"S":"a"},"pk":{"S":"a"}}',
        b'{"n":{"N":"1.0"},"pk":{"S":"a"},"sk":{"S":"a"}}', b'{"pk":{"S":"a","N":"1"},"sk":{"S":"a"}}',
        b'{"pk": {"S":"a"},"sk":{"S":"a"}}', b'{"pk":{"S":["a"]},"sk":{"S":"a"}}', b'{"pk":"a","sk":"b"}',
    ],
)  # fmt: skip
def test_what_is_not_an_items_line_is_refused(line: bytes) -> None:
    """Also an item in another form than an export's."""
    with pytest.raises(BadLine):
        parse_line(line)


# ── the file ──


def _rows(number: int) -> list[bytes]:
    return [
        item_line({"pk": {"S": f"P{place:04d}"}, "sk": {"S": "x"}, "n": {"N": str(place)}}) for place in range(number)
    ]


def _written(rows: list[bytes]) -> bytes:
    target = io.BytesIO()
    write_export(target, rows, 0, lambda *_, **__: None)
    return target.getvalue()


def _read(content: bytes) -> tuple[list[bytes], End | None]:
    reader = ExportReader(io.BytesIO(content), "FILE")
    return [row.raw for row in reader.rows()], reader.end


def _read_or_refusal(content: bytes) -> tuple[list[bytes], End | None] | str:
    try:
        return _read(content)
    except Unreadable as refused:
        return str(refused)


WHOLE = _written(_rows(50))
WHOLE_END = len(WHOLE) - 8
"""Where gzip's sum and length begin."""


@given(st.integers(0, 60))
def test_what_is_written_is_read(number: int) -> None:
    """And equal rows have equal files."""
    rows = _rows(number)
    content = _written(rows)
    assert _written(rows) == content
    read, end = _read(content)
    assert read == rows
    assert end is not None
    assert (end.items, end.changed) == (number, 0)
    assert is_export(io.BytesIO(content))


@given(st.integers(0, len(WHOLE) - 1))
def test_a_file_that_was_cut_anywhere_is_refused(length: int) -> None:
    """With what to do."""
    with pytest.raises(Unreadable, match=r"FILE is empty|incomplete|not an export"):
        _read(WHOLE[:length])


@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255))
@example(WHOLE_END - 1, 128)
def test_no_changed_byte_changes_what_is_read(place: int, change: int) -> None:
    """The file is refused, or the byte had no meaning, as some of gzip's header, and its last bits before the sum."""
    content = bytearray(WHOLE)
    content[place] ^= change
    read = _read_or_refusal(bytes(content))
    assert "FILE" in read if isinstance(read, str) else read == _read(WHOLE)


def _lines() -> list[bytes]:
    return gzip.decompress(WHOLE).splitlines(keepends=True)


def _refused(lines: list[bytes], message: str) -> None:
    with pytest.raises(Unreadable, match=message):
        _read(gzip.compress(b"".join(lines)))


def test_a_file_that_was_edited_is_refused_with_the_place() -> None:
    """Though it is whole gzip: an item was changed, removed, added, moved or repeated."""
    lines = _lines()
    _refused([*lines[:9], lines[9].replace(b'"8"', b'"9"'), *lines[10:]], "line 52.*checksum")
    _refused([*lines[:9], *lines[10:]], "it has 49 items, and should have 50")
    _refused([*lines[:9], lines[9], *lines[9:]], "it has 51 items, and should have 50")
    _refused([*lines[:9], lines[10], lines[9], *lines[11:]], "checksum")
    _refused([*lines[:9], b"{}\n", *lines[9:]], "line 10.*not an item")
    _refused([*lines, b"{}\n"], "follows its end")
    _refused(lines[:-1], "incomplete")
    with pytest.raises(Unreadable, match="follows its end"):
        _read(WHOLE + WHOLE)


def test_a_file_of_another_version_is_refused_with_what_to_do() -> None:
    """Of another format, of another layout, and of another program."""
    lines = _lines()
    header = orjson.loads(lines[0])
    for change, message in (
        ({"format": 2}, r"has format 2, of Ringside .*Import it with that release"),
        ({"layout": 2}, r"a table of layout 2, .*Import it with that release"),
        ({"format": None}, "is not an export"),
    ):
        _refused([orjson.dumps({**header, **change}) + b"\n", *lines[1:]], message)
    _refused([b"hello\n"], "is not an export")
    _refused([b"x" * 20_000_000], "longer than")
    assert not is_export(io.BytesIO(b"hello"))
    assert not is_export(io.BytesIO(gzip.compress(b"hello")))
