"""Statistics equal a recount of the published comments; indexes list each comment once; leaders follow the counts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from datastore.comments.counts import Leader, ProductTally
from datastore.comments.planner import RATINGS
from datastore.comments.records import Comment, Pointer, Status, pointer_to
from datastore.comments.transfer import all_records, listed_comments, listed_held, listed_latest
from resolvers.requests.context import Services

Counts: TypeAlias = Counter[tuple[str, str]]
"""Comments by language and rating (`r1` … `r5`), and their bytes by language."""

_COUNTERS = (*(f"r{rating}" for rating in RATINGS), "bytes")


async def breaches(services: Services) -> AsyncIterator[str]:
    records = await _read(services)
    for product in sorted(records.recount.keys() | records.counted.keys() | records.leading.keys()):
        for breach in records.count_breaches(product):
            yield breach
        async for breach in _index_breaches(services, product, records.recount[product]):
            yield breach
    async for breach in _queue_breaches(services, records.held):
        yield breach
    async for breach in _pointer_breaches(services, records):
        yield breach


@dataclass
class _Records:
    """What one scan of the table found, by product."""

    recount: dict[str, Counts] = field(default_factory=lambda: defaultdict(Counter))
    counted: dict[str, Counts] = field(default_factory=lambda: defaultdict(Counter))
    leading: dict[str, int] = field(default_factory=dict)
    unsettled: set[str] = field(default_factory=set)
    held: Counter[Status] = field(default_factory=Counter)
    unmatched: Counter[str] = field(default_factory=Counter)
    """By member: the sum of the hashes of the pointers that were found, minus those that their comments ask for."""
    pointers: int = 0

    def add(self, record: Comment | ProductTally | Leader | Pointer) -> None:
        match record:
            case Comment():
                self.unmatched[record.author] -= hash(pointer_to(record))
            case Pointer():
                self.pointers += 1
                self.unmatched[record.author] += hash(record)
        match record:
            case Comment(held=None):
                self.recount[record.product][record.language, f"r{record.rating}"] += 1
                self.recount[record.product][record.language, "bytes"] += record.size
            case Comment():
                self.held[record.status] += 1
            case ProductTally():
                counted = {(record.language, name): getattr(record, name) for name in _COUNTERS}
                self.counted[record.product].update(counted)
                if record.unsettled:
                    self.unsettled.add(record.product)
            case Leader():
                self.leading[record.product] = record.five_stars

    def count_breaches(self, product: str) -> Iterator[str]:
        recount, counted = self.recount[product], self.counted[product]
        for language, name in sorted(recount.keys() | counted.keys()):
            expected, actual = recount[language, name], counted[language, name]
            if actual != expected:
                yield f"comments: product {product}, {language}: {name} is {actual}, but a recount gives {expected}"
        five_stars = sum(number for (_, name), number in recount.items() if name == "r5")
        leading = self.leading.get(product, 0)
        if product not in self.unsettled and leading != five_stars:
            yield f"comments: product {product} is ranked with {leading} five-star comments and has {five_stars}"


async def _read(services: Services) -> _Records:
    records = _Records()
    async for record in all_records(services.table):
        records.add(record)
    return records


async def _index_breaches(services: Services, product: str, recount: Counts) -> AsyncIterator[str]:
    """Compare what the index of each language, each rating, and each of both lists with the recount."""
    languages = [None, *sorted({language for language, _ in recount})]
    ratings = [None, *RATINGS]
    for language, rating in ((language, rating) for language in languages for rating in ratings):
        if language is None and rating is None:
            continue
        listed = await listed_comments(services.table, product, language=language, rating=rating)
        expected = sum(
            number
            for (of, name), number in recount.items()
            if name != "bytes" and language in (None, of) and rating in (None, int(name[1:]))
        )
        if listed != expected:
            chosen = " and ".join([*([language] if language else []), *([f"rating {rating}"] if rating else [])])
            yield f"comments: product {product}: the index of {chosen} lists {listed} comments instead of {expected}"


async def _pointer_breaches(services: Services, records: _Records) -> AsyncIterator[str]:
    """Hashes take a few bytes a member, where the pointers themselves would take some hundred a comment."""
    for author, difference in sorted(records.unmatched.items()):
        if difference:
            # The number changes from pass to pass while the member writes.
            yield f"comments: the pointers of member {author} differ from their comments by {difference:x}"
    listed = await listed_latest(services.table)
    if listed != records.pointers:
        yield f"comments: the index of the latest comments lists {listed} comments instead of {records.pointers}"


async def _queue_breaches(services: Services, held: Counter[Status]) -> AsyncIterator[str]:
    for status in (Status.PENDING, Status.REJECTED):
        listed = await listed_held(services.table, status)
        if listed != held[status]:
            yield f"comments: the moderation queue lists {listed} {status} comments instead of {held[status]}"
