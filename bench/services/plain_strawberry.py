"""Strawberry on FastAPI as documented, with its DataLoader."""

import sys
from typing import Any

import strawberry
import uvicorn
from fastapi import FastAPI
from strawberry.dataloader import DataLoader
from strawberry.fastapi import GraphQLRouter

from bench.services import records


async def load_users(ids: list[str]) -> list[records.User]:
    return [records.USERS[user] for user in ids]


@strawberry.type
class User:
    id: strawberry.ID
    name: str
    avatar_url: str | None


@strawberry.type
class Comment:
    id: strawberry.ID
    text: str
    rating: int
    created_at: str
    edited: bool

    @strawberry.field
    async def author(self, info: strawberry.Info) -> User:
        user: User = await info.context["users"].load(self.author_id)  # type: ignore[attr-defined]  # self is a record
        return user


@strawberry.type
class Contender:
    id: strawberry.ID
    name: str
    image_url: str | None


@strawberry.type
class Row:
    rank: int
    score: int
    wins: int
    losses: int
    contender: Contender


@strawberry.type
class CommentEdge:
    cursor: str
    node: Comment


@strawberry.type
class PageInfo:
    has_next_page: bool
    end_cursor: str | None


@strawberry.type
class CommentConnection:
    edges: list[CommentEdge]
    page_info: PageInfo
    total_count: int


@strawberry.type
class Query:
    @strawberry.field
    async def comments(self, first: int) -> CommentConnection:
        return records.page(first)  # type: ignore[return-value]  # records have the same fields

    @strawberry.field
    async def leaderboard(self, first: int) -> list[Row]:
        return records.ROWS[:first]  # type: ignore[return-value]  # records have the same fields


async def context() -> dict[str, Any]:
    return {"users": DataLoader(load_fn=load_users)}


app = FastAPI()
app.include_router(GraphQLRouter(strawberry.Schema(query=Query), context_getter=context), prefix="/graphql")

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
