"""Ringside's request pipeline, from socket to response, with a schema of records in memory.

It does everything the service does with a request: authentication (a visitor's cookie), limits, deadline, metrics, the
request's id. Only the schema differs, and the log is as quiet as the other servers'.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import strawberry
import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp

from bench.services import records
from resolvers.loading import batched
from resolvers.requests.context import Context, Services
from schema.framework.declarations import described, field, record_type
from server.auth.identification import Identification
from server.execution.documents import Documents
from server.http.browser_pages import Explorer
from server.http.endpoint import FastPath, GraphQLEndpoint, with_request_ids
from server.http.pipeline import Pipeline, Quota, most_of_address
from server.http.process import tune_process
from server.settings import Settings
from server.telemetry import Metrics, configure_logging


async def read_users(ids: Sequence[str]) -> Mapping[str, records.User]:
    return {user: records.USERS[user] for user in ids}


async def comments(_: Context, /, *, first: int) -> records.Page:
    return records.page(first)


async def leaderboard(_: Context, /, *, first: int) -> list[records.Row]:
    return records.ROWS[:first]


@batched
async def authors(ctx: Context, comments: Sequence[records.Comment], /) -> Sequence[Any]:
    return await ctx.services.profiles.load_many([comment.author_id for comment in comments])


@record_type(records.User, "A member.")
class User:
    id: strawberry.ID = described("The id.")
    name: str = described("The name.")
    avatar_url: str | None = described("A picture.")


@record_type(records.Comment, "A comment.")
class Comment:
    id: strawberry.ID = described("The id.")
    text: str = described("The text.")
    rating: int = described("1 to 5.")
    created_at: str = described("When.")
    edited: bool = described("Whether it was changed.")
    author: User = field(authors, "Who wrote it.")


@record_type(records.Contender, "A contender.")
class Contender:
    id: strawberry.ID = described("The id.")
    name: str = described("The name.")
    image_url: str | None = described("A picture.")


@record_type(records.Row, "A place on the leaderboard.")
class Row:
    rank: int = described("The rank.")
    score: int = described("Wins minus losses.")
    wins: int = described("Votes for.")
    losses: int = described("Votes against.")
    contender: Contender = described("Who.")


@strawberry.type
class CommentEdge:
    cursor: str = described("The position.")
    node: Comment = described("The comment.")


@strawberry.type
class PageInfo:
    has_next_page: bool = described("Whether more follows.")
    end_cursor: str | None = described("The last edge's cursor.")


@strawberry.type
class CommentConnection:
    edges: list[CommentEdge] = described("The page.")
    page_info: PageInfo = described("Where it stands.")
    total_count: int = described("How many there are.")


@strawberry.type
class Query:
    comments: CommentConnection = field(comments, "A page.", first="How many.")
    leaderboard: list[Row] = field(leaderboard, "The best.", first="How many.")


def application() -> ASGIApp:
    settings = Settings(
        dynamodb_url="http://127.0.0.1:1",
        secrets=("a secret for measuring, of length",),
        introspection="on",
        log="warning",
    )
    configure_logging(settings.log)
    seal = settings.seal()
    services = Services(SimpleNamespace(), seal)  # type: ignore[arg-type]  # nothing here asks the table
    # No cache across requests: every request loads its authors again, as on the other servers.
    services.profiles = services.cache.batches("users", read_users)  # type: ignore[arg-type]  # instead of profiles
    documents = Documents(strawberry.Schema(query=Query)._schema)  # noqa: SLF001 - where Strawberry keeps graphql-core's

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[dict[str, Any]]:
        identification = Identification(settings, services)
        most = settings.max_in_flight
        requests = Quota("requests", most, most_of_address(most))
        none = Quota("none", 0, 0)  # no benchmark opens sockets and subscriptions
        yield {
            "pipeline": Pipeline(
                documents, services, identification, settings, Metrics(), None, requests, none, none, asyncio.Event()
            )
        }

    graphql = GraphQLEndpoint(Explorer())
    tune_process()
    return with_request_ids(FastPath(FastAPI(lifespan=lifespan), "/graphql", graphql))


if __name__ == "__main__":
    uvicorn.run(
        application(),
        host="127.0.0.1",
        port=int(sys.argv[1]),
        log_config=None,
        access_log=False,
        server_header=False,
    )
