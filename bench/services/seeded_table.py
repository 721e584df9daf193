"""Fills a table like a running service's: the demo's members, comments and season, and a board of 100 contenders."""

from collections.abc import Iterator

from datastore.dynamo import open_table
from datastore.dynamo.declaration import create
from datastore.dynamo.writes import Put
from datastore.values.seal import Seal
from datastore.voting import contenders
from datastore.voting.boards import BOARD, MAIN, Board
from datastore.voting.contenders import CONTENDER, NAME, RESULTS, Contender, Counts, ResultsBlock
from datastore.whole.layout import ensure_layout
from resolvers.requests.context import Services, utc_now
from resolvers.values.node_ids import node_id
from server.demo import comments, people, pickem

SECRET = "a secret for measuring that is long enough"
TABLE = "ringside"
PRODUCTS = comments.PRODUCTS
PRODUCT = PRODUCTS[0]
CONTENDERS = 100


async def seed(url: str) -> str:
    """Fill an engine's new table; return the id of the scored event."""
    async with open_table(TABLE, url=url) as table:
        await create(table)
        await ensure_layout(table)
        services = Services(table, Seal([SECRET]))
        for seed_part in (people.seed, comments.seed, pickem.seed, pickem.seed_points):
            await seed_part(services)
        await table.write_many(board(MAIN, "Who is best?"))
        await services.close()
    return node_id("Event", pickem.demo_id(pickem.SCORED_EVENT))


def cookie() -> str:
    """Return the cookie of a returning visitor, as all requests but a visitor's first have one."""
    return f"ringside_visitor={Seal([SECRET]).sign_text('visitor', bytes(16))}"


def environment(url: str) -> dict[str, str]:
    """Return the settings of a Ringside on that table, with as little logging as the other servers."""
    return {
        "RINGSIDE_DYNAMODB_URL": url,
        "RINGSIDE_TABLE": TABLE,
        "RINGSIDE_SECRETS": SECRET,
        "RINGSIDE_LOG": "warning",
    }


def board(slug: str, title: str) -> Iterator[Put]:
    """Yield the writes of a board whose votes are settled."""
    now = utc_now()
    for ordinal in range(CONTENDERS):
        contender = Contender(slug, ordinal, f"Contender {ordinal:03d}", now)
        yield CONTENDER.put(contender)
        yield NAME.put(contenders.Name(slug, contender.sort_name, contender.ordinal, "bench"))
    counts = {ordinal: Counts(900 - ordinal, 400 + ordinal // 2, 3) for ordinal in range(CONTENDERS)}
    yield RESULTS.put(ResultsBlock.of(slug, 0, counts))
    yield BOARD.put(Board(slug, title, now, CONTENDERS, contender_changes=CONTENDERS, votes=50_000))
