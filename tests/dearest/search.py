"""The search for the dearest accepted document about each field and list argument of a schema.

Small documents are run first, of each kind of objects and grown in each order. The dearest of them is then grown to the
limits of the service, and run.
"""

from collections.abc import AsyncIterator, Callable, Hashable, Sequence
from dataclasses import dataclass

from resolvers.whole.node import LOADERS
from server.http.pipeline import MAX_CALLS, MAX_READ_UNITS
from tests.dearest.costs import Cost, Counting
from tests.dearest.documents import LARGEST, Document, Schema, Sizes, Step, Template, templates
from tests.dearest.growing import ORDERS, Growing
from tests.dearest.values import Ids, Kind

PAGES = 600
"""The most CPU that a document may take, in pages of the leaderboard: 400 of the running service, whose HTTP, which is
not measured here, takes a third of a page's time."""
PARTS = 5
LISTS = (LARGEST.entries, 500, 100, 50, 20, 1)
"""The lengths of lists that are tried."""


@dataclass(frozen=True, slots=True)
class Found:
    """The dearest kind of document about a field, as large as it is accepted, and what it cost when it was run."""

    template: Template
    sizes: Sizes
    document: Document
    cost: Cost

    def another(self) -> Document:
        """An equal document with other invented ids."""
        return self.template.document(self.sizes)

    def __str__(self) -> str:
        cost = self.cost
        spent = f"{cost.calls} calls, {cost.read_units:g} units, {cost.cpu * 1000:.0f} ms of CPU"
        sizes = ", ".join(f"{name} {n}" for name, n in self.sizes._asdict().items() if n != getattr(Sizes(), name))
        return f"{spent}: {self.template.name}, {self.document.size} bytes ({sizes})"


@dataclass
class Search:
    """Runs documents on a service, and finds the dearest."""

    schema: Schema
    ids: Ids
    counting: Counting
    page: float
    """Seconds of CPU of the leaderboard's page."""

    def __post_init__(self) -> None:
        self._small = Growing(self.schema.graphql, small=True)
        self._full = Growing(self.schema.graphql)

    def weight(self, cost: Cost) -> float:
        """How close a document comes to one of the promises, whichever is closest."""
        return max(cost.calls / MAX_CALLS, cost.read_units / MAX_READ_UNITS, cost.cpu / (PAGES * self.page))

    async def dearest(self, wanted: Callable[[Step], bool] = lambda _: True, part: int = 0) -> AsyncIterator[Found]:
        """For each field, and each list argument and node type: the dearest document. Of many, one of `PARTS` parts."""
        groups: dict[Hashable, list[Template]] = {}
        for template in templates(self.schema, self.ids, tuple(LOADERS)):
            if wanted(template.target):
                groups.setdefault(_group(template), []).append(template)
        for group in list(groups.values())[part::PARTS] if len(groups) > PARTS else groups.values():
            template, order = await self._dearest_small(group)
            grown = self._full.grown(template, order)
            most = max(self.schema.largest_lists.get(Step(*step[:2]), 1) for step in (*template.path, template.target))
            sizes = grown._replace(entries=min(grown.entries, most))
            document = template.document(sizes)
            yield Found(template, sizes, document, await self.counting.cost(document))

    async def _dearest_small(self, group: Sequence[Template]) -> tuple[Template, Sequence[str]]:
        most = -1.0
        for template in group:
            for step in (*template.path, template.target):
                await self._measure_lists(step)
            tried: set[Sizes] = set()
            for order in ORDERS:
                if order[0] == "cycles" and not template.back:
                    continue
                sizes = self._small.grown(template, order)
                if sizes not in tried:
                    tried.add(sizes)
                    weight = self.weight(await self.counting.cost(template.document(sizes)))
                    if weight > most:
                        most, dearest = weight, (template, order)
        return dearest

    async def _measure_lists(self, step: Step) -> None:
        """Find how long a list may be: what is refused for its length is refused before anything is read."""
        plain = Step(step.parent, step.name)
        if plain in self.schema.largest_lists or not self.schema.takes_list(plain):
            return
        path = () if plain.parent == self.schema.query.name else self.schema.path(self.schema.query.name, plain.parent)
        template = Template(self.schema, path or (), plain, self.ids, Kind.EXISTING, "", optional=True)
        for entries in LISTS:
            self.schema.largest_lists[plain] = entries
            if not (await self.counting.cost(template.document(Sizes(entries=entries)))).is_refused:
                break


def _group(template: Template) -> Hashable:
    """What a document is found for: a field, or a list argument with ids of a type."""
    step = Step(template.target.parent, template.target.name)
    return (step, template.node_type, template.kind) if template.schema.takes_list(step) else step
