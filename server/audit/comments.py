"""Statistics equal a recount of the published comments; indexes list each comment once; leaders follow the counts.

Threads count their replies, are marked on their comments, and stubs stand where they must. Numbers of members who found
a comment helpful equal their marks. Reviews have the places that they say they have, and nothing else has one.
"""

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from datastore.comments.counts import Leader, ProductTally
from datastore.comments.helpful import Helpful, all_marks
from datastore.comments.planner import RATINGS
from datastore.comments.records import Comment, Pointer, Status, pointer_to
from datastore.comments.reviews import ReviewPlace
from datastore.comments.threads import Hidden, Thread
from datastore.comments.transfer import all_records, listed_comments, listed_held, listed_latest, listed_replies
from datastore.comments.verified import all_entries
from resolvers.requests.context import Services

Counts: TypeAlias = Counter[tuple[str, str]]
"""By language: comments without a rating (`r0`), by rating (`r1` … `r5`), verified ones likewise, bytes, replies."""

_NUMBERS = tuple(f"r{rating}" for rating in (0, *RATINGS))
_VERIFIED = tuple(f"v{rating}" for rating in (0, *RATINGS))
_COUNTERS = (*_NUMBERS, *_VERIFIED, "bytes", "replies")


async def breaches(services: Services) -> AsyncIterator[str]:
    records = await _read(services)
    for product in sorted(records.recount.keys() | records.counted.keys() | records.leading.keys()):
        for breach in records.count_breaches(product):
            yield breach
        async for breach in _index_breaches(services, product, records.recount[product]):
            yield breach
    if records.unmatched_entries:
        yield "comments: the second entries of verified comments differ from the comments"
    queue, threads = _queue_breaches(services, records.held), records.threads.breaches(services)
    for found in (queue, threads, _pointer_breaches(services, records), _helpful_breaches(services, records.marked)):
        async for breach in found:
            yield breach


Place: TypeAlias = tuple[str, str]
"""A product and the id of a top-level comment there."""


@dataclass
class _Threads:
    """What one scan found of threads; of comments without one nothing is remembered."""

    counted: dict[Place, Thread] = field(default_factory=dict)
    replies: Counter[Place] = field(default_factory=Counter)
    marked: dict[Place, Hidden | None] = field(default_factory=dict)
    """The comments that say that they have a thread, and whether they are held."""
    stubs: set[Place] = field(default_factory=set)

    def add(self, record: Comment | Thread) -> None:
        match record:
            case Thread():
                self.counted[record.product, record.root] = record
            case Comment(removed=True):
                self.stubs.add((record.product, record.ulid))
            case Comment(root=str(root)):
                self.replies[record.product, root] += record.held is None
            case Comment(threaded=True):
                self.marked[record.product, record.ulid] = None if record.held is None else Hidden.HELD

    async def breaches(self, services: Services) -> AsyncIterator[str]:
        replies = {place: number for place, number in self.replies.items() if number}
        for place in sorted(self.counted.keys() | replies.keys() | self.marked.keys() | self.stubs):
            for breach in self._breaches_of(place, replies.get(place, 0)):
                yield f"comments: product {place[0]}, thread {place[1]}: {breach}"
        for place, number in sorted(replies.items()):
            listed = await listed_replies(services.table, *place)
            if listed != number:
                yield f"comments: product {place[0]}, thread {place[1]}: the index lists {listed} replies of {number}"

    def _breaches_of(self, place: Place, replies: int) -> Iterator[str]:
        thread = self.counted.get(place)
        if thread is None:
            yield "there is no item of it"
            return
        if thread.replies != replies:
            yield f"it counts {thread.replies} replies, but a recount gives {replies}"
        hidden = self.marked.get(place, Hidden.GONE)
        if thread.hidden is not hidden:
            yield f"its comment is {hidden or 'published'}, but it says {thread.hidden or 'published'}"
        if thread.has_stub != (place in self.stubs):
            yield "it needs a stub and has none" if thread.has_stub else "it has a stub and needs none"


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
    places: Counter[str] = field(default_factory=Counter)
    """The same of the places of reviews."""
    pointers: int = 0
    unmatched_entries: int = 0
    """The sum of the hashes of published, verified comments, minus those of their second entries."""
    threads: _Threads = field(default_factory=_Threads)
    marked: dict[Place, int] = field(default_factory=dict)
    """The comments that members have found helpful, as they say themselves; a hash of each that is published, or 0."""

    def add(self, record: Comment | ProductTally | Leader | Pointer | Thread | ReviewPlace) -> None:
        match record:
            case Comment():
                self._add_comment(record)
            case Thread():
                self.threads.add(record)
            case Pointer():
                self.pointers += 1
                self.unmatched[record.author] += hash(record)
            case ReviewPlace():
                self.places[record.author] += hash(record)
            case ProductTally():
                counted = {(record.language, name): getattr(record, name) for name in _COUNTERS}
                self.counted[record.product].update(counted)
                if record.unsettled:
                    self.unsettled.add(record.product)
            case Leader():
                self.leading[record.product] = record.five_stars

    def _add_comment(self, comment: Comment) -> None:
        self.threads.add(comment)
        if comment.removed:
            return
        if comment.marked:
            self.marked[comment.product, comment.ulid] = 0 if comment.held is not None else hash(comment)
        self.unmatched[comment.author] -= hash(pointer_to(comment))
        if comment.placed:
            self.places[comment.author] -= hash(ReviewPlace(comment.author, comment.product, comment.ulid))
        recount = self.recount[comment.product]
        if comment.held is not None:
            self.held[comment.status] += 1
        elif comment.root is not None:
            recount[comment.language, "replies"] += 1
        else:
            recount[comment.language, f"r{comment.rating or 0}"] += 1
            recount[comment.language, "bytes"] += comment.size
            if comment.verified_at is not None:
                recount[comment.language, f"v{comment.rating or 0}"] += 1
                self.unmatched_entries += hash(comment)

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
    async for entry in all_entries(services.table):
        records.unmatched_entries -= hash(entry)
    return records


async def _helpful_breaches(services: Services, marked: dict[Place, int]) -> AsyncIterator[str]:
    """A comment is marked if and only if it has a number, which counts the marks that belong to it and repeats it."""
    numbers: dict[Place, Helpful] = {}
    marks: Counter[tuple[Place, datetime]] = Counter()
    async for record in all_marks(services.table):
        place = (record.product, record.ulid)
        if isinstance(record, Helpful):
            numbers[place] = record
        else:
            marks[place, record.since] += 1
    for place in sorted(marked.keys() ^ numbers.keys()):
        yield f"comments: product {place[0]}, comment {place[1]}: its mark and its number do not go together"
    for place, number in sorted(numbers.items()):
        expected = marks[place, number.since]
        if marked.get(place, 0) != (0 if number.comment is None else hash(number.comment)):
            yield f"comments: product {place[0]}, comment {place[1]}: its number repeats another text"
        if number.number != expected:
            yield f"comments: product {place[0]}, comment {place[1]}: {number.number} found it helpful, not {expected}"


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
            if name in _NUMBERS and language in (None, of) and rating in (None, int(name[1:]))
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
    for author, difference in sorted(records.places.items()):
        if difference:
            yield f"comments: the places of {author}'s reviews differ from their comments by {difference:x}"
    listed = await listed_latest(services.table)
    if listed != records.pointers:
        yield f"comments: the index of the latest comments lists {listed} comments instead of {records.pointers}"


async def _queue_breaches(services: Services, held: Counter[Status]) -> AsyncIterator[str]:
    for status in (Status.PENDING, Status.REJECTED):
        listed = await listed_held(services.table, status)
        if listed != held[status]:
            yield f"comments: the moderation queue lists {listed} {status} comments instead of {held[status]}"
