"""Statistics are a recount of the published comments; every index holds them once; leaders follow the counts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

from datastore.comments import COMMENT, HELD, Comment, Status
from datastore.comments.counts import LEADER, TALLY, Leader, Tally
from datastore.comments.transfer import INTENT, Intent
from resolvers.context import Services

Numbers = Counter[tuple[str, str]]
"""Comments by language and rating (`r1` … `r5`), and their bytes by language."""


async def breaches(services: Services) -> AsyncIterator[str]:
    seen = await _scanned(services)
    for product in sorted(seen.found.keys() | seen.kept.keys() | seen.leading.keys()):
        for breach in seen.breaches(product):
            yield breach
        async for breach in _index_breaches(services, product, seen.found[product]):
            yield breach
    async for breach in _queue_breaches(services, seen.held):
        yield breach
    if seen.uncounted:
        yield f"comments: an import was interrupted with {seen.uncounted} comments not counted; give it again"


@dataclass
class _Seen:
    """What one scan of the table has found, by product."""

    found: dict[str, Numbers] = field(default_factory=lambda: defaultdict(Counter))
    kept: dict[str, Numbers] = field(default_factory=lambda: defaultdict(Counter))
    leading: dict[str, int] = field(default_factory=dict)
    unsettled: set[str] = field(default_factory=set)
    held: Counter[Status] = field(default_factory=Counter)
    uncounted: int = 0

    def breaches(self, product: str) -> Iterator[str]:
        found, kept = self.found[product], self.kept[product]
        for language, name in sorted(found.keys() | kept.keys()):
            counted, right = kept[language, name], found[language, name]
            if counted != right:
                yield f"comments: product {product}, {language}: {name} says {counted} and a recount {right}"
        five_stars = sum(number for (_, name), number in found.items() if name == "r5")
        if product not in self.unsettled and self.leading.get(product, 0) != five_stars:
            yield f"comments: product {product} leads with {self.leading.get(product, 0)}, and {five_stars} is right"


async def _scanned(services: Services) -> _Seen:
    seen = _Seen()
    async for one in services.table.scan(COMMENT, HELD, TALLY, LEADER, INTENT):
        if isinstance(one, Comment) and one.held is not None:
            seen.held[one.held] += 1
        elif isinstance(one, Comment):
            seen.found[one.product][one.language, f"r{one.rating}"] += 1
            seen.found[one.product][one.language, "bytes"] += one.size
        elif isinstance(one, Tally):
            seen.kept[one.product].update({(one.language, name): getattr(one, name) for name in _NUMBERS})
            if one.unsettled:
                seen.unsettled.add(one.product)
        elif isinstance(one, Leader):
            seen.leading[one.product] = one.five_stars
        elif isinstance(one, Intent) and not one.counted:
            seen.uncounted += len(one.new)
    return seen


_NUMBERS = ("r1", "r2", "r3", "r4", "r5", "bytes")


async def _index_breaches(services: Services, product: str, found: Numbers) -> AsyncIterator[str]:
    languages = {language for language, _ in found}
    for rating in range(1, 6):
        name = f"r{rating}"
        expected = sum(found[language, name] for language in languages)
        async for breach in _index_breach(services, "gsi2", expected, product=product, rating=rating):
            yield breach
        for language in languages:
            place = {"product": product, "language": language, "rating": rating}
            async for breach in _index_breach(services, "gsi3", found[language, name], **place):
                yield breach
    for language in languages:
        expected = sum(found[language, f"r{rating}"] for rating in range(1, 6))
        async for breach in _index_breach(services, "gsi1", expected, product=product, language=language):
            yield breach


async def _index_breach(services: Services, index: str, expected: int, **place: object) -> AsyncIterator[str]:
    listed = 0
    async for _ in services.table.iterate(COMMENT.on(index, **place)):
        listed += 1
    if listed != expected:
        yield f"comments: {index} lists {listed} of {place}, and there are {expected}"


async def _queue_breaches(services: Services, held: Counter[Status]) -> AsyncIterator[str]:
    for status in (Status.PENDING, Status.REJECTED):
        listed = 0
        async for _ in services.table.iterate(HELD.on("gsi1", status=status)):
            listed += 1
        if listed != held[status]:
            yield f"comments: the queue lists {listed} {status}, and there are {held[status]}"
