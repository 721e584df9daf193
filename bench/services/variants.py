"""Many different requests for each page: more products, boards and events, and many wordings of one query."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain, combinations
from random import Random
from typing import Any

import orjson
from ulid import ULID

from bench.services import seeded_table
from datastore.comments.counts import count_updates
from datastore.comments.planner import RATINGS
from datastore.comments.records import COMMENT, Comment
from datastore.dynamo import Table, open_table
from resolvers.values.node_ids import node_id, parse_node_key
from server.demo.people import MEMBERS

PRODUCTS = 16
COMMENTS_EACH = 200
SHORT, LONG = 300, 3000
"""Bytes of a comment's item, about."""
BOARDS = 8
EVENTS = 8
WORDINGS = 32
RATING_SETS = [list(chosen) for size in RATINGS for chosen in combinations(RATINGS, size)]
LANGUAGES = (["en", "de"], ["de", "fr"])
NODE_FIELDS = ["id", "rating", "title", "body", "language", "createdAt", "editedAt"]
AUTHOR = "author { id name avatarUrl }"
COMMENTS = """query Comments%s($product: ID!, $languages: [String!], $ratings: [Int!], $after: String) {
  comments(product: $product, languages: $languages, ratings: $ratings, first: 20, after: $after) {
    edges { cursor node { %s } }
    pageInfo { hasNextPage endCursor }
  }
}"""
LEADERBOARD = """query Leaderboard($board: String!, $first: Int!) {
  leaderboard(board: $board, first: $first) { nodes { rank score wins losses ties contender { id name retired } } }
}"""
EVENT = """query Screen($event: ID!, $best: Int!) {
  event(id: $event) {
    id name season state startsAt
    matches { id name points preshow championships teams { name members champion } result { outcome winner } }
    predictions(first: $best) { nodes { rank points correct user { id name avatarUrl } } }
  }
}"""


def product(size: int, number: int) -> str:
    return f"item-{size}-{number:02d}"


async def seed(url: str) -> Sequence[str]:
    """Fill an engine's new table; return the ids of the scored events."""
    event = await seeded_table.seed(url)
    async with open_table(seeded_table.TABLE, url=url) as table:
        for size in (SHORT, LONG):
            await _write_comments(table, list(_comments(size)))
        for number in range(BOARDS):
            await table.write_many(seeded_table.board(f"board-{number}", f"Board {number}"))
        return [event, *await _copy_event(table, event)]


async def _write_comments(table: Table, written: Sequence[Comment]) -> None:
    await table.write_many(COMMENT.put(comment) for comment in written)
    for update in count_updates(((1, comment) for comment in written), shard=0):
        await table.write(update)


def _comments(size: int) -> Iterator[Comment]:
    random = Random(size)
    latest = datetime(2026, 11, 1, tzinfo=UTC)
    for number in range(PRODUCTS * COMMENTS_EACH):
        written_at = latest + timedelta(minutes=number)
        (language,) = random.choices(("en", "de", "fr"), (4, 3, 3))
        (rating,) = random.choices(RATINGS, (10, 5, 10, 20, 55))
        yield Comment(
            product=product(size, number % PRODUCTS),
            ulid=str(ULID(int(written_at.timestamp() * 1000).to_bytes(6, "big") + random.randbytes(10))),
            language=language,
            rating=rating,
            body=("The third round was the one to watch. " * 100)[: size - 200],
            author=random.choice(MEMBERS)[0],
            title="A fair fight" if random.random() < 0.4 else None,
        )


async def _copy_event(table: Table, event: str) -> list[str]:
    """Write a scored event's items again under other ids; return those as node ids."""
    old = parse_node_key("Event", event)
    items = [item async for item in table.scan_items() if old in item["pk"]["S"]]
    ids = [f"{old[:-2]}{number:02d}" for number in range(1, EVENTS)]
    for new in ids:
        copies = (_renamed(item, old, new) for item in items)
        await asyncio.gather(*(table.client.put_item(TableName=table.name, Item=item) for item in copies))
    return [node_id("Event", new) for new in ids]


def _renamed(value: Any, old: str, new: str) -> Any:
    """Return stored attributes with another text in place of one."""
    if isinstance(value, dict):
        return {name.replace(old, new): _renamed(inner, old, new) for name, inner in value.items()}
    if isinstance(value, list):
        return [_renamed(inner, old, new) for inner in value]
    return value.replace(old, new) if isinstance(value, str) else value


def comments_body(values: Mapping[str, Any], wording: int = 0) -> bytes:
    fields = [*NODE_FIELDS, AUTHOR]
    if wording:
        Random(wording).shuffle(fields)
    return _body(COMMENTS % (wording, " ".join(fields)), values)


def _body(text: str, values: Mapping[str, Any]) -> bytes:
    return orjson.dumps({"query": text, "variables": values})


def filtered(size: int) -> list[dict[str, Any]]:
    """Return the variables of 32 different filtered pages."""
    return [
        {"product": product(size, number), "languages": languages, "ratings": [4, 5]}
        for number in range(PRODUCTS)
        for languages in LANGUAGES
    ]


def bodies(events: Sequence[str]) -> dict[str, list[bytes]]:
    """Return the different bodies of every page but the second ones, whose cursors each service makes itself."""
    boards = [f"board-{number}" for number in range(BOARDS)]
    varied = [
        comments_body(
            {"product": product(SHORT, wording % PRODUCTS), "languages": ["en", "de"], "ratings": ratings}, wording
        )
        for ratings in RATING_SETS
        for wording in range(1, WORDINGS + 1)
    ]
    return {
        "filtered page, 300 B": [comments_body(values) for values in filtered(SHORT)],
        "filtered page, 3 KB": [comments_body(values) for values in filtered(LONG)],
        "varied wordings": varied,
        "unfiltered page": [
            comments_body({"product": product(SHORT, number)}, wording)
            for number, wording in chain.from_iterable(((number, 1), (number, 2)) for number in range(PRODUCTS))
        ],
        "leaderboard of 100": [
            _body(LEADERBOARD, {"board": board, "first": first}) for board in boards for first in range(97, 101)
        ],
        "event screen": [_body(EVENT, {"event": event, "best": best}) for event in events for best in range(7, 11)],
        "everyone asks for one page": [comments_body(filtered(SHORT)[0])],
    }
