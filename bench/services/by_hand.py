"""The same pages by hand, without GraphQL: a plain ASGI application, signed requests by aiohttp, answers by orjson.

It makes the reads that the service makes: pages of comments by the same plans, boards with their rows. It keeps what
the service keeps, as long: profiles 10 seconds, counts 45 seconds, a board and its rows a quarter of a second, a card
for its event's version. Started with `--keep-nothing` it reads these each time. It does not join equal reads under way,
checks nobody's cookie, limits nothing and retries nothing. A request has the variables of a GraphQL request; its path
selects the page.
"""

import asyncio
import os
import sys
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import aiohttp
import orjson
import uvicorn
from yarl import URL

from datastore.comments.counts import PRODUCT_TALLY
from datastore.comments.planner import NO_COUNTS, RATINGS, CommentCounts, Filter, PartitionRead, plans
from datastore.comments.records import COMMENT
from datastore.dynamo.attributes import iso
from datastore.dynamo.entity import HIGHEST, Partition
from datastore.dynamo.paging import shard_limit
from datastore.dynamo.transport.client import Endpoint, Signer
from datastore.people.profiles import PROFILE
from datastore.pickem.events import EVENT, MATCH
from datastore.pickem.predictions import PREDICTION, RANKING_SHARDS
from datastore.values.ids import creation_time
from datastore.voting.boards import BLOCK_SIZE, BOARD
from datastore.voting.contenders import CONTENDER, RESULTS, folded_for_keys
from resolvers.values.node_ids import node_id, parse_node_key
from server.http.process import tune_process

KEYS = SimpleNamespace(access_key="bench", secret_key="bench", token=None)
TYPE = "application/x-amz-json-1.0"
PAGE = 20
Item = Mapping[str, Any]


@dataclass(slots=True)
class Part:
    """One partition of a merged page, and what was read of it."""

    partition: Partition[Any]
    limit: int
    narrowing: Mapping[str, Any] = field(default_factory=dict)
    items: list[Item] = field(default_factory=list)
    start: Item | None = None
    done: bool = False

    @property
    def sort(self) -> str:
        return self.partition.sort_attribute


class Engine:
    """Signed requests to one table, and a cache of what was made from their answers."""

    def __init__(self, http: aiohttp.ClientSession, url: str, table: str, *, keeps: bool) -> None:
        self._http, self._url, self._table, self._keeps = http, url, table, keeps
        endpoint = Endpoint(URL(url), "DynamoDB_20120810.", TYPE, "by hand", "us-east-1", "dynamodb", "v4")
        self._signer = Signer(endpoint)
        self._cached: dict[Any, tuple[float, Any]] = {}
        self.calls = 0

    async def call(self, operation: str, parameters: dict[str, Any]) -> Any:
        self.calls += 1
        body = orjson.dumps({"TableName": self._table, **parameters})
        return await self._send("DynamoDB_20120810." + operation, body)

    async def batch_get(self, keys: Sequence[Item]) -> list[Item]:
        self.calls += 1
        body = orjson.dumps({"RequestItems": {self._table: {"Keys": keys}}})
        answer = await self._send("DynamoDB_20120810.BatchGetItem", body)
        items: list[Item] = answer["Responses"][self._table]
        return items

    async def _send(self, target: str, body: bytes) -> Any:
        moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        headers = {
            "content-type": TYPE,
            "x-amz-date": moment,
            "x-amz-target": target,
            "authorization": self._signer.authorization(target, body, KEYS, moment),
        }
        async with self._http.post(self._url, data=body, headers=headers) as response:
            answer = orjson.loads(await response.read())
            if response.status != 200:
                raise RuntimeError(answer)
            return answer

    async def query(self, part: Part, *, consistent: bool = False) -> None:
        """Read on in one partition, up to its limit."""
        partition, sort = part.partition, part.sort
        request: dict[str, Any] = {
            "KeyConditionExpression": f"{partition.index or ''}pk = :pk",
            "ScanIndexForward": not partition.descending,
            "Limit": part.limit,
        }
        values: dict[str, Any] = {":pk": {"S": partition.pk}}
        for name, comparison, bound in ((":low", ">=", partition.low), (":high", "<=", partition.high)):
            if bound is not None:
                values[name] = {"S": bound}
                request["KeyConditionExpression"] += f" AND {sort} {comparison} {name}"
        if partition.low is not None and partition.high is not None:
            request["KeyConditionExpression"] = f"{partition.index or ''}pk = :pk AND {sort} BETWEEN :low AND :high"
        if partition.index is not None:
            request["IndexName"] = partition.index
        if consistent:
            request["ConsistentRead"] = True
        if part.narrowing:
            request.update(part.narrowing)
            values.update(part.narrowing["ExpressionAttributeValues"])
        request["ExpressionAttributeValues"] = values
        if part.start is not None:
            request["ExclusiveStartKey"] = part.start
        answer = await self.call("Query", request)
        part.items += answer["Items"]
        part.start = answer.get("LastEvaluatedKey")
        part.done = part.start is None

    async def merged(self, parts: Sequence[Part], wanted: int) -> list[Item]:
        """Return the first items of several partitions in their common order."""
        sort, descending = parts[0].sort, parts[0].partition.descending
        while True:
            unfinished = [part for part in parts if not part.done]
            if len(unfinished) == 1:
                await self.query(unfinished[0])
            else:
                await asyncio.gather(*map(self.query, unfinished))
            items = [item for part in parts for item in part.items]
            items.sort(key=lambda item: item[sort]["S"], reverse=descending)
            edges = [part.start[sort]["S"] for part in parts if part.start is not None]
            if not edges:
                return items[:wanted]
            edge = max(edges) if descending else min(edges)
            certain = sum((item[sort]["S"] >= edge) if descending else (item[sort]["S"] <= edge) for item in items)
            if certain >= wanted:
                return items[:wanted]
            for part in parts:
                part.limit = wanted

    async def all(self, partition: Partition[Any], *, consistent: bool = False) -> list[Item]:
        part = Part(partition, 1000)
        while not part.done:
            await self.query(part, consistent=consistent)
        return part.items

    async def cached(self, key: Any, seconds: float, read: Callable[[], Awaitable[Any]]) -> Any:
        found = self._cached.get(key)
        if found is not None and found[0] > time.monotonic():
            return found[1]
        value = await read()
        if self._keeps:
            self._cached[key] = (time.monotonic() + seconds, value)
        return value

    async def members(self, ids: Sequence[str]) -> dict[str, Any]:
        """Return the public profiles of members, as an answer shows them."""
        now, found, missing = time.monotonic(), {}, set()
        for user in ids:
            entry = self._cached.get(user)
            if entry is not None and entry[0] > now:
                found[user] = entry[1]
            else:
                missing.add(user)
        if missing:
            for item in await self.batch_get([PROFILE.at(user=user).attributes for user in missing]):
                user = item["pk"]["S"].rpartition("#")[2]
                shown = {"id": node_id("User", user), "name": item["name"]["S"], "avatarUrl": text(item, "avatar_url")}
                found[user] = shown
                if self._keeps:
                    self._cached[user] = (now + 10, shown)
        return found


def text(item: Item, name: str) -> str | None:
    return item[name]["S"] if name in item else None


def number(item: Item, name: str) -> int:
    return int(item[name]["N"]) if name in item else 0


async def comments(engine: Engine, values: Mapping[str, Any]) -> Any:
    wanted = Filter.of(values["product"], values.get("languages"), values.get("ratings"))
    counts = NO_COUNTS
    if wanted.languages or wanted.ratings:
        counts = await engine.cached(("counts", wanted.product), 45, lambda: counts_of(engine, wanted.product))
    after = values.get("after")
    parts = []
    for read in plans(wanted, counts, PAGE + 1)[0].reads:
        fixed = {"product": wanted.product, "language": read.language, "rating": read.rating}
        named = {name: value for name, value in fixed.items() if value is not None}
        partition = COMMENT.on(read.index, **named).newest_first()
        if after is not None:
            ulid = urlsafe_b64decode(after).decode()
            partition = partition.past(ulid if read.index else f"COMMENT#{ulid}")
        parts.append(Part(partition, read.limit, narrowing(wanted, read)))
    found = await engine.merged(parts, PAGE + 1)
    shown = found[:PAGE]
    authors = await engine.members([item["author"]["S"] for item in shown])
    edges = [comment_edge(wanted.product, item, authors) for item in shown]
    ends = {"hasNextPage": len(found) > PAGE, "endCursor": edges[-1]["cursor"] if edges else None}
    return {"comments": {"edges": edges, "pageInfo": ends}}


async def counts_of(engine: Engine, product: str) -> CommentCounts:
    counts: dict[str, tuple[int, ...]] = {}
    sizes: dict[str, int] = {}
    for item in await engine.all(PRODUCT_TALLY.on(product=product)):
        language = item["sk"]["S"].split("#")[1]
        before = counts.get(language, (0,) * (1 + len(RATINGS)))
        counts[language] = tuple(count + number(item, f"r{rating}") for rating, count in enumerate(before))
        sizes[language] = sizes.get(language, 0) + number(item, "bytes")
    return CommentCounts(counts, sizes)


def narrowing(wanted: Filter, read: PartitionRead) -> dict[str, Any]:
    """Return the filter expression for what the partition's key leaves open."""
    conditions: list[str] = []
    names: dict[str, str] = {}
    values: dict[str, Any] = {}
    if wanted.languages is not None and read.language is None:
        places = {f":l{place}": {"S": language} for place, language in enumerate(wanted.languages)}
        conditions.append(f"#l IN ({','.join(places)})")
        names["#l"], values = "language", {**values, **places}
    if wanted.ratings is not None and read.rating is None:
        places = {f":r{rating}": {"N": str(rating)} for rating in wanted.ratings}
        conditions.append(f"#r IN ({','.join(places)})")
        names["#r"], values = "rating", {**values, **places}
    if not conditions:
        return {}
    return {
        "FilterExpression": " AND ".join(conditions),
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
    }


def comment_edge(product: str, item: Item, authors: Mapping[str, Any]) -> dict[str, Any]:
    ulid = item["sk"]["S"].rpartition("#")[2]
    return {
        "cursor": urlsafe_b64encode(ulid.encode()).decode(),
        "node": {
            "id": node_id("Comment", f"{product}#{ulid}"),
            "rating": int(item["rating"]["N"]),
            "title": text(item, "title"),
            "body": item["body"]["S"],
            "language": item["language"]["S"],
            "createdAt": iso(creation_time(ulid)),
            "editedAt": text(item, "edited_at"),
            "author": authors[item["author"]["S"]],
        },
    }


async def leaderboard(engine: Engine, values: Mapping[str, Any]) -> Any:
    slug, first = values["board"], values["first"]
    board = await engine.cached(("board", slug), 0.25, lambda: read_board(engine, slug))
    rows = await engine.cached(("rows", slug, number(board, "settled")), 0.25, lambda: read_rows(engine, board))
    nodes: list[dict[str, Any]] = []
    for place, (name, ordinal, wins, losses, ties) in enumerate(rows[:first]):
        score = wins - losses
        rank = nodes[-1]["rank"] if nodes and nodes[-1]["score"] == score else place + 1
        contender = {"id": node_id("Contender", f"{slug}/{ordinal}"), "name": name, "retired": False}
        nodes.append(
            {"rank": rank, "score": score, "wins": wins, "losses": losses, "ties": ties, "contender": contender}
        )
    return {"leaderboard": {"nodes": nodes}}


async def read_board(engine: Engine, slug: str) -> Item:
    key = BOARD.at(slug=slug)
    board_and_marks = Part(Partition(BOARD, None, key.pk, low=key.sk, high=f"{key.sk}#{HIGHEST}"), 64)
    await engine.query(board_and_marks, consistent=True)
    return {"slug": {"S": slug}, **board_and_marks.items[0]}


async def read_rows(engine: Engine, board: Item) -> list[tuple[str, int, int, int, int]]:
    """The active contenders of a board of up to 256 with their counts, best first."""
    slug = board["slug"]["S"]
    contenders = Part(CONTENDER.on(board=slug, block=0), BLOCK_SIZE + 1)
    _, results = await asyncio.gather(
        engine.query(contenders, consistent=True),
        engine.call("GetItem", {"Key": RESULTS.at(board=slug, block=0).attributes, "ConsistentRead": True}),
    )
    counts = orjson.loads(results["Item"]["numbers"]["S"])
    rows = []
    for item in contenders.items:
        if not item["retired"]["BOOL"]:
            name, ordinal = item["name"]["S"], int(item["sk"]["S"].rpartition("#")[2])
            wins, losses, ties = counts[3 * ordinal : 3 * ordinal + 3] or (0, 0, 0)
            rows.append((losses - wins, f"{folded_for_keys(name)}#{ordinal:06d}", (name, ordinal, wins, losses, ties)))
    return [row for _, _, row in sorted(rows)]


async def event(engine: Engine, values: Mapping[str, Any]) -> Any:
    key, first = parse_node_key("Event", values["event"]), values["best"]
    found, best = await asyncio.gather(
        engine.call("GetItem", {"Key": EVENT.at(id=key).attributes, "ConsistentRead": True}),
        best_predictions(engine, key, first),
    )
    item = found["Item"]
    card = await engine.cached(("card", key, number(item, "version")), 3600, lambda: read_card(engine, key))
    results = item["results"]["M"]
    matches = [{**card[match["S"]], "result": result_of(results.get(match["S"]))} for match in item["card"]["L"]]
    return {
        "event": {
            "id": values["event"],
            "name": item["name"]["S"],
            "season": item["season"]["S"],
            "state": item["state"]["S"],
            "startsAt": item["starts_at"]["S"],
            "matches": matches,
            "predictions": {"nodes": best},
        }
    }


async def read_card(engine: Engine, event: str) -> dict[str, Any]:
    """Return the matches of an event by id, as an answer shows them."""
    matches = {}
    for item in await engine.all(MATCH.on(event=event), consistent=True):
        match = item["sk"]["S"].rpartition("#")[2]
        matches[match] = {
            "id": node_id("Match", f"{event}:{match}"),
            "name": item["name"]["S"],
            "points": number(item, "points"),
            "preshow": item["preshow"]["BOOL"],
            "championships": [one["S"] for one in item["championships"]["L"]],
            "teams": [
                {
                    "name": text(team["M"], "name"),
                    "members": [one["S"] for one in team["M"]["members"]["L"]],
                    "champion": team["M"]["champion"]["BOOL"],
                }
                for team in item["teams"]["L"]
            ],
        }
    return matches


def result_of(stored: Item | None) -> Any:
    if stored is None:
        return None
    result = stored["M"]
    return {"outcome": result["outcome"]["S"], "winner": int(result["winner"]["N"]) if "winner" in result else None}


async def best_predictions(engine: Engine, event: str, first: int) -> list[Any]:
    limit = shard_limit(first + 1, RANKING_SHARDS)
    shards = [PREDICTION.on("gsi2", event=event, ranking_shard=shard) for shard in range(RANKING_SHARDS)]
    items = (await engine.merged([Part(shard, limit) for shard in shards], first + 1))[:first]
    users = [item["sk"]["S"].rpartition("#")[2] for item in items]
    members = await engine.members(users)
    rows: list[dict[str, Any]] = []
    for place, (item, user) in enumerate(zip(items, users, strict=True)):
        share = item["share"]["M"]
        points = number(share, "points")
        rank = rows[-1]["rank"] if rows and rows[-1]["points"] == points else place + 1
        rows.append({"rank": rank, "points": points, "correct": number(share, "correct"), "user": members[user]})
    return rows


async def calls(engine: Engine, _: Mapping[str, Any]) -> Any:
    return {"calls": engine.calls}


class Application:
    """The ASGI application."""

    pages: Mapping[str, Callable[[Engine, Mapping[str, Any]], Awaitable[Any]]] = {
        "/comments": comments,
        "/leaderboard": leaderboard,
        "/event": event,
        "/graphql": calls,
    }

    def __init__(self) -> None:
        self._engine: Engine | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        if self._engine is None:
            http = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=64))
            url, table = os.environ["BENCH_ENGINE"] + "/", os.environ["BENCH_TABLE"]
            self._engine = Engine(http, url, table, keeps="--keep-nothing" not in sys.argv)
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message.get("more_body", False)
        page = await self.pages[scope["path"]](self._engine, orjson.loads(body).get("variables") or {})
        answer = orjson.dumps({"data": page})
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})


if __name__ == "__main__":
    tune_process()
    uvicorn.run(
        Application(),
        host="127.0.0.1",
        port=int(sys.argv[1]),
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
    )
