"""Ariadne on uvicorn, with a minimal DataLoader because it has none. Runs in an environment of its own."""

import asyncio
import json
import os
import sys
from pathlib import Path

import uvicorn
from ariadne import ObjectType, QueryType, gql, make_executable_schema
from ariadne.asgi import GraphQL

DATA = json.loads(Path(os.environ["BENCH_DATA"]).read_text())
USERS = {user["id"]: user for user in DATA["users"]}
query, comment = QueryType(), ObjectType("Comment")


class Loader:
    """Looks up all keys requested in one turn of the event loop together."""

    def __init__(self):
        self.asked = {}

    def load(self, key):
        loop = asyncio.get_running_loop()
        if not self.asked:
            loop.call_soon(self.look_up)
        if key not in self.asked:
            self.asked[key] = loop.create_future()
        return self.asked[key]

    def look_up(self):
        asked, self.asked = self.asked, {}
        for key, future in asked.items():
            future.set_result(USERS[key])


@query.field("comments")
async def comments(*_, first):
    shown = DATA["comments"][:first]
    return {
        "edges": [{"cursor": one["cursor"], "node": one} for one in shown],
        "pageInfo": {"hasNextPage": True, "endCursor": shown[-1]["cursor"]},
        "totalCount": len(DATA["comments"]),
    }


@query.field("leaderboard")
async def leaderboard(*_, first):
    return [{**one, "contender": one} for one in DATA["contenders"][:first]]


@comment.field("author")
def author(record, info):
    return info.context["users"].load(record["authorId"])


schema = make_executable_schema(gql(Path(__file__).with_name("sdl.graphql").read_text()), query, comment)
app = GraphQL(schema, context_value=lambda request, _: {"request": request, "users": Loader()})

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
