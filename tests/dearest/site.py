"""A site with the demo's data, an object of every kind and state, and a hundred of each that visitors see."""

from datetime import timedelta

from graphql import get_named_type

from resolvers.pickem.cache import league_id
from resolvers.values.node_ids import node_id
from resolvers.whole.node import LOADERS
from server import demo
from server.demo.people import MEMBERS
from server.demo.pickem import LEAGUES, SEASON, demo_id
from tests.authorisation.rules import Viewer
from tests.authorisation.world import World
from tests.client import Client
from tests.dearest.documents import Schema, Sizes, Template, templates
from tests.dearest.values import Ids, Kind
from tests.vocabulary import some_words, today

HUNDRED = 100
LEAGUES_EACH = 40
"""Of the author; a member may have fifty."""
DAYS = 31
"""On which the author has taken a quiz."""
_ROUNDS = 2
_PAGES = Sizes(entries=20, outer=20, page=50)


async def fill(visitor: Client, schema: Schema) -> Ids:
    """Add the objects, and note the ids of all that admins and visitors find."""
    async for _ in demo.seed(visitor.services):
        pass
    world, ids = await World.create(visitor), Ids()
    ids.note([node_id("User", user) for user, _ in MEMBERS])
    ids.note([node_id("League", league_id(demo_id("league", name), SEASON)) for name, *_ in LEAGUES])
    for number in range(HUNDRED):
        slug = f"board-{number}"
        ids.note(await world.do(Viewer.EDITOR, "createBoard", "BoardCreated board { id }", slug=slug, title=slug))
        added = {"board": slug, "name": slug}
        ids.note(await world.do(Viewer.EDITOR, "addContender", "ContenderAdded contender { id }", **added))
        made = await world.do(Viewer.EDITOR, "createWordList", "WordListCreated list { id }", name=slug, public=True)
        await world.do(Viewer.EDITOR, "addWords", "WordsAdded list { id }", list=made["id"], words=some_words(1))
        ids.note(made)
        ids.note(await world.event())
    for day in range(DAYS):
        quiz = {"correct": 1, "total": 1, "on": str(today() - timedelta(days=day))}
        await world.do(Viewer.AUTHOR, "recordQuiz", "QuizRecorded result { id }", list=made["id"], **quiz)
    for _ in range(LEAGUES_EACH):
        ids.note(await world.league())
    ids.note(list(world.ids.values()))
    for _ in range(_ROUNDS):
        for template in templates(schema, ids, tuple(LOADERS)):
            if template.kind is Kind.EXISTING and not template.optional and _answers_nodes(template, schema):
                document = template.document(_PAGES)
                ids.note(await world.clients[Viewer.ADMIN].answer(document.text, **document.variables))
    return ids


def _answers_nodes(template: Template, schema: Schema) -> bool:
    """Whether the field answers a page of objects that have ids, without a detour to it."""
    answered = schema.graphql.get_type(get_named_type(schema.definition(*template.target[:2]).type).name)
    node = getattr(answered, "fields", {}).get("nodes")
    has_ids = node is not None and "id" in getattr(get_named_type(node.type), "fields", {})
    return has_ids and all(step.name == "nodes" for step in template.path)
