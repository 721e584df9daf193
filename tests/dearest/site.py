"""A site with the demo's data, an object of every kind and state, and a hundred of each that visitors see."""

from __future__ import annotations

from resolvers.node import LOADERS
from server import demo
from tests.authorisation.rules import Viewer
from tests.authorisation.world import World
from tests.client import Client
from tests.dearest.documents import Schema, Sizes, templates
from tests.dearest.values import Ids, Kind

HUNDRED = 100
_ROUNDS = 2
_PAGES = Sizes(entries=20, outer=20, page=50)


async def fill(visitor: Client, schema: Schema) -> Ids:
    """Add the objects, and note the ids of all that admins and visitors find."""
    async for _ in demo.seed(visitor.services):
        pass
    world, ids = await World.create(visitor), Ids()
    for number in range(HUNDRED):
        slug = f"board-{number}"
        await world.do(Viewer.EDITOR, "createBoard", "BoardCreated board { id }", slug=slug, title=slug)
        await world.do(Viewer.EDITOR, "createWordList", "WordListCreated list { id }", name=slug, public=True)
        await world.event()
    ids.note(list(world.ids.values()))
    for _ in range(_ROUNDS):
        for template in templates(schema, ids, tuple(LOADERS)):
            if template.kind is Kind.EXISTING and not template.optional:
                document = template.document(_PAGES)
                ids.note(await world.clients[Viewer.ADMIN].answer(document.text, **document.variables))
    return ids
