"""A field that was renamed in Python keeps its stored name."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as some

from datastore.dynamo.attributes import StoredAs, codec_for
from datastore.dynamo.conditions import absent, among, less, more, present, where
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key
from datastore.dynamo.writes import Write


@dataclass(frozen=True, slots=True)
class OldPage:
    no: int
    txt: str | None = None


@dataclass(frozen=True, slots=True)
class OldBook:
    shelf: str
    no: int
    gone: datetime
    n: int = 0
    pages: tuple[OldPage, ...] = ()
    lent: bool | None = None
    seen: int = 0


@dataclass(frozen=True, slots=True)
class Page:
    number: Annotated[int, StoredAs("no")]
    text: Annotated[str | None, StoredAs("txt")] = None


@dataclass(frozen=True, slots=True)
class Book:
    """`no` and `n` are stored names here, and `pages` has renamed fields of its own."""

    scope: Annotated[str, StoredAs("shelf")]
    number: Annotated[int, StoredAs("no")]
    expires: Annotated[datetime, StoredAs("gone")]
    readers: Annotated[int, StoredAs("n")] = 0
    pages: tuple[Page, ...] = field(default=())
    borrowed: Annotated[bool | None, StoredAs("lent")] = None
    views: Annotated[int, StoredAs("seen")] = 0


OLD = Entity(
    OldBook, Key("BOOK#{no:04d}", "BOOK"), ttl="gone", gsi1=Key("SHELF#{shelf}", "{n:best_first}#{no:04d}", when="lent")
)
NEW = Entity(
    Book,
    Key("BOOK#{number:04d}", "BOOK"),
    ttl="expires",
    gsi1=Key("SHELF#{scope}", "{readers:best_first}#{number:04d}", when="borrowed"),
)
PAGES = some.lists(some.builds(OldPage), max_size=3).map(tuple)
BOOKS = some.builds(
    OldBook,
    shelf=some.sampled_from(["a", "ü"]),
    no=some.integers(0, 9999),
    n=some.integers(0, 99),
    gone=some.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)).map(  # noqa: DTZ001 - made aware below
        lambda at: at.replace(microsecond=0, tzinfo=UTC)
    ),
    pages=PAGES,
    seen=some.integers(0, 99),
)


def renamed(old: OldBook) -> Book:
    pages = tuple(Page(page.no, page.txt) for page in old.pages)
    return Book(old.shelf, old.no, old.gone, old.n, pages, old.lent, old.seen)


@given(BOOKS)
def test_items_are_the_same_before_and_after_a_rename(old: OldBook) -> None:
    """Keys, index keys, the time to live and nested records included; each code reads what the other wrote."""
    new = renamed(old)
    assert NEW.item(new) == OLD.item(old)
    assert NEW.read(OLD.item(old)) == new


@given(BOOKS)
def test_writes_and_conditions_are_the_same_before_and_after_a_rename(old: OldBook) -> None:
    """Each names the field by its Python name."""
    new = renamed(old)
    key, new_key = OLD.item_key(old), NEW.item_key(new)
    pairs: list[tuple[Write, Write]] = [
        (
            OLD.change(key, values={"pages": old.pages}, add={"seen": 1}),
            NEW.change(new_key, values={"pages": new.pages}, add={"views": 1}),
        ),
        (OLD.shift(old, "lent", "pages", add={"n": 2}), NEW.shift(new, "borrowed", "pages", add={"readers": 2})),
        (
            OLD.check(key, where(shelf="a", lent=None) & less("n", 2) | more("n", 5) & ~among("shelf", "b", "c")),
            NEW.check(
                new_key,
                where(scope="a", borrowed=None) & less("readers", 2) | more("readers", 5) & ~among("scope", "b", "c"),
            ),
        ),
        (OLD.check(key, absent("lent") | present()), NEW.check(new_key, absent("borrowed") | present())),
    ]
    for before, after in pairs:
        assert after.parameters() == before.parameters()


@given(BOOKS)
def test_answers_in_receipts_are_the_same_before_and_after_a_rename(old: OldBook) -> None:
    """A receipt holds an answer as JSON, by its stored names."""
    receipt = orjson.dumps(codec_for(OldBook).encode(old))
    assert orjson.dumps(codec_for(Book).encode(renamed(old))) == receipt
    assert codec_for(Book).decode(orjson.loads(receipt)) == renamed(old)


def test_a_field_is_not_found_by_its_stored_name() -> None:
    """A name left over from before the rename is a mistake, not another attribute."""
    old_name: Any = {"seen": 1}
    with pytest.raises(KeyError):
        NEW.change(NEW.at(number=1), values=old_name)
    with pytest.raises(KeyError):
        NEW.check(NEW.at(number=1), absent("lent")).parameters()


@dataclass(frozen=True, slots=True)
class Twice:
    id: str
    name: str
    title: Annotated[str, StoredAs("name")]


@dataclass(frozen=True, slots=True)
class Holder:
    id: str
    inner: Twice | None = None


@pytest.mark.parametrize("record", [Twice, Holder])
def test_two_fields_under_one_stored_name_are_refused_when_the_entity_is_declared(record: type) -> None:
    """Also in a nested record."""
    with pytest.raises(TypeError, match="Twice stores two fields under one name"):
        Entity(record, Key("TWICE#{id}", "TWICE"))
