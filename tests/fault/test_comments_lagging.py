"""Comments where indexes and reads are behind: all exact at the end, and every listener is told everything once."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from pathlib import Path
from random import Random

from datastore.comments.counts import settle_product
from datastore.values.ids import first_id
from resolvers.comments.pages import comment_posted
from resolvers.requests.context import Context, Kind, Role, Viewer
from server.audit import find_suspects
from tests.client import Client
from tests.comments import Traversal, post
from tests.engines import RunningEngine
from tests.lagging import Lag
from tests.lagging.service import lagging_services
from tests.queries import COMMENT_STATISTICS, DELETE_COMMENT, EDIT_COMMENT, mutation
from tests.waiting import LONGEST

TURNS = 40
LISTENED = 0.4
"""Seconds at first. On a busy machine a stream may take longer to tell anything: then twice as long each time."""
VISITOR = Viewer("v", Kind.VISITOR)


async def listen(client: Client, after: str | None) -> AsyncGenerator[tuple[str, str], None]:
    """Ids and bodies of the events of a stream."""
    ctx = Context(client.services, VISITOR)
    async with aclosing(comment_posted(ctx, product="42", after=after)) as comments:
        async for comment in comments:
            yield ctx.event_id or "", comment.body


async def come_and_go(clients: list[Client], start: str, told: list[str], chance: Random) -> None:
    """Listens for moments, each time on one of the services, and returns with the last event's id."""
    after, seconds = start, LISTENED
    while True:
        stream, before = listen(chance.choice(clients), after), len(told)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                async for event, body in stream:
                    told.append(body)
                    after = event
        await stream.aclose()
        seconds = LISTENED if len(told) > before else 2 * seconds


async def write(member: Client, source: Random, name: str, told: list[str]) -> tuple[list[str], int]:
    """Posts, edits, and deletes what was told; returns the bodies that were posted and how many comments are left."""
    posted, bodies = dict[str, str](), list[str]()
    for turn in range(TURNS):
        if turn < 3 or source.random() < 0.5:
            body = f"{name} {turn}"
            bodies.append(body)
            posted[(await post(member, rating=source.choice([4, 5]), body=body))["id"]] = body
        elif turn % 4 == 0 and (gone := [id_ for id_, body in posted.items() if body in told]) and len(posted) > 1:
            await member.ask(DELETE_COMMENT, input={"comment": gone[0]})
            del posted[gone[0]]
        else:
            change = {"comment": source.choice(list(posted)), "rating": source.randint(1, 5)}
            await member.ask(EDIT_COMMENT, input=change)
    return bodies, len(posted)


async def test_two_services_agree_and_listeners_miss_nothing(
    default_engine: RunningEngine, tmp_path: Path, table_name: str
) -> None:
    """Half of the reads are behind, by up to a second: counts, ranking, pages and streams are right all the same."""
    lag = Lag(mean=0.15, longest=1.0, stale=0.5)
    async with lagging_services(default_engine, tmp_path, table_name, lag=lag, services=2) as (engine, clients):
        services = clients[0].services
        start, told = f"{first_id(services.clock())}.", list[str]()
        returning = asyncio.create_task(come_and_go(clients, start, told, Random(1)))
        members = [
            (clients[number % 2].member(f"m{number}"), Random(number), f"m{number}", told) for number in range(4)
        ]
        written = await asyncio.gather(*(write(*each) for each in members))
        posted, left = [body for bodies, _ in written for body in bodies], sum(number for _, number in written)
        async with asyncio.timeout(LONGEST):
            while len(told) < len(posted):
                await asyncio.sleep(0.1)
        returning.cancel()
        await asyncio.gather(returning, return_exceptions=True)
        assert sorted(told) == sorted(posted)

        for client in clients:
            assert (await client.ask(COMMENT_STATISTICS, product="42"))["total"] == left
        await services.close()
        await clients[1].services.close()
        await settle_product(services.table, "42")
        await engine.catch_up()
        assert await find_suspects(services, "comments") == []
        for ratings in ([5], [1, 4], [1, 2, 3, 4, 5]):
            traversal = Traversal(clients[1], "42", {"ratings": ratings})
            assert await traversal.forwards(3) == await traversal.backwards(7)


async def test_an_answer_shows_the_reports_that_its_own_change_leaves(
    default_engine: RunningEngine, tmp_path: Path, table_name: str
) -> None:
    """A moderator sees the own report at once, and none after the decision, though plain reads show neither yet."""
    report = mutation("reportComment", "CommentReported", "comment { reportReasons }")
    decide = mutation("moderateComment", "CommentModerated", "comment { reportReasons }")
    lag = Lag(mean=60.0, longest=600.0, stale=1.0)
    async with lagging_services(default_engine, tmp_path, table_name, lag=lag) as (engine, (client,)):
        comment, moderator = (await post(client.member("ada")))["id"], client.member("mod", Role.MODERATOR)
        reported = await moderator.ask(report, input={"comment": comment, "reason": "Spam."})
        assert reported["comment"]["reportReasons"] == ["Spam."]
        await engine.catch_up()
        decided = await moderator.ask(decide, input={"comment": comment, "status": "PUBLISHED"})
        assert decided["comment"]["reportReasons"] == []
