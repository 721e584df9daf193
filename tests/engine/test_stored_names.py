"""Records with renamed fields on a real engine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import pytest

from datastore.dynamo import ConditionFailed, Table
from datastore.dynamo.attributes import StoredAs
from datastore.dynamo.conditions import less, where
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key
from tests.engines import RunningEngine
from tests.waiting import caught_up


@dataclass(frozen=True, slots=True)
class Book:
    """`name` and `value` are reserved words of DynamoDB."""

    id: str
    title: Annotated[str, StoredAs("name")]
    readers: Annotated[int, StoredAs("value")] = 0


BOOK = Entity(Book, Key("BOOKS", "{id}"), gsi1=Key("TITLES", "{title}#{id}"))


async def test_a_renamed_field_is_written_changed_and_found_by_its_stored_name(
    table: Table, engine: RunningEngine
) -> None:
    """By puts, updates, moves in an index, conditions and filters."""
    book, place = Book("1", "Emma"), BOOK.at(id="1")
    await table.transact(BOOK.put(book), BOOK.put(Book("2", "Persuasion")))
    await table.write(BOOK.change(place, add={"readers": 2}, when=where(title="Emma") & less("readers", 1)))
    with pytest.raises(ConditionFailed):
        await table.write(BOOK.change(place, values={"readers": 0}, when=where(readers=0)))
    book = replace(book, title="Sanditon")
    await table.write(BOOK.shift(book, "title", when=where(title="Emma")))
    await caught_up(engine.url, "the index shows what was written")
    assert await table.get(place) == Book("1", "Sanditon", readers=2)
    in_order = await table.query(BOOK.on("gsi1").where(where(readers=2)), limit=10)
    assert in_order.records == (Book("1", "Sanditon", readers=2),)
    item = (await table.client.get_item(TableName=table.name, Key=place.attributes))["Item"]
    assert item["name"] == {"S": "Sanditon"}
    assert item["value"] == {"N": "2"}
