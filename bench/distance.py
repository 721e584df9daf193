"""How many engine calls each operation waits for, one after the other: its latency, divided by that of one call.

    python -m bench.distance [--delay 0.04] [--rounds 7] [--write]

A proxy delays each call of a real engine, so the time of a request is the number of its dependent calls; the service's
own time, measured without the delay, is subtracted. One client uses the demo data. `first` is the first request of its
kind after the service has started, `later` the median of the following rounds, which are so far apart that caches of
up to two seconds have expired.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

import httpx

from tests.command import ringside_process
from tests.engines import running_engine
from tests.fault.faults import Answer
from tests.fault.proxy import Proxy
from tests.service import start_service

RESULTS: Final = Path(__file__).parent / "results" / "distance.md"
HEAD: Final = """# Dependent engine calls

    python -m bench.distance --write

A request's latency, without the service's own time, divided by that of one engine call ({milliseconds} ms): how many
calls it waits for, one after the other. Embedded engine behind a proxy, demo data, one client.

| operation | first | later | goal, later |
|---|---|---|---|
"""
SECRET: Final = "a secret that is long enough for a benchmark"
PAUSE: Final = 2.1
"""Seconds between two rounds."""
MEMBER: Final = "ada"
SEASON: Final = "2026"
AUTHOR: Final = "author { id name avatarUrl }"
COMMENT: Final = f"id body rating language createdAt {AUTHOR}"
REFUSED: Final = "... on Refused { code message }"
CONTENDER: Final = "contender { id name score }"

Variables = Mapping[str, Any]
Prepare = Callable[["Client"], Awaitable[Variables]]


class DistantEngine(Proxy):
    """An engine whose every call takes longer by `delay` seconds."""

    delay = 0.0

    async def _forward(self, raw: bytes, headers: dict[str, str]) -> Answer:
        await asyncio.sleep(self.delay)
        return await super()._forward(raw, headers)


@dataclass
class Client:
    """One client of the service, signed in as a member, and the demo data's ids."""

    http: httpx.AsyncClient
    ids: Mapping[str, Any]
    pause: float = PAUSE
    number: int = 0

    async def ask(self, query: str, variables: Variables) -> Any:
        answer = (await self.http.post("/graphql", json={"query": query, "variables": variables})).json()
        if "errors" in answer or "code" in next(iter(answer["data"].values()), {}):
            raise RuntimeError(f"{query[:60]}: {answer}")
        return next(iter(answer["data"].values()))

    async def find_ids(self) -> dict[str, Any]:
        scored = await self.ask("{ events(state: SCORED, first: 1) { nodes { id } } }", {})
        upcoming = await self.ask("{ events(state: UPCOMING, first: 1) { nodes { id matches { id } } } }", {})
        lists = await self.ask("{ wordLists(first: 1) { nodes { id } } }", {})
        products = await self.ask("{ topProducts(first: 1) { nodes { product } } }", {})
        event = upcoming["nodes"][0]
        return {
            "scored": scored["nodes"][0]["id"],
            "upcoming": event["id"],
            "picks": [{"match": match["id"], "team": 0} for match in event["matches"]],
            "list": lists["nodes"][0]["id"],
            "product": products["nodes"][0]["product"],
        }


# ── operations ──


async def nothing(_: Client) -> Variables:
    return {}


async def a_product(client: Client) -> Variables:
    return {"product": client.ids["product"]}


async def a_scored_event(client: Client) -> Variables:
    return {"event": client.ids["scored"]}


async def some_picks(client: Client) -> Variables:
    return {"input": {"event": client.ids["upcoming"], "picks": client.ids["picks"]}}


async def a_new_comment(client: Client) -> Variables:
    client.number += 1
    text = f"Comment {client.number}, long enough to be one."
    return {"input": {"product": client.ids["product"], "language": "en", "rating": 4, "body": text}}


async def a_changed_comment(client: Client) -> Variables:
    posted = await client.ask(POST, await a_new_comment(client))
    await asyncio.sleep(client.pause)
    return {"input": {"comment": posted["comment"]["id"], "rating": 5}}


async def a_drawn_ballot(client: Client) -> Variables:
    ballot = await client.ask("mutation { drawMatchup(input: {}) { ... on Ballot { token } } }", {})
    await asyncio.sleep(client.pause)
    return {"token": ballot["token"]}


async def a_recent_vote(client: Client) -> Variables:
    await client.ask(VOTE, await a_drawn_ballot(client))
    await asyncio.sleep(1)
    return {}


async def a_quiz(client: Client) -> Variables:
    return {"input": {"list": client.ids["list"], "correct": 8, "total": 9}}


async def a_name(client: Client) -> Variables:
    client.number += 1
    return {"input": {"name": f"Ada {client.number}"}}


POST = f"""mutation ($input: PostCommentInput!) {{ postComment(input: $input) {{
  ... on CommentPosted {{ comment {{ {COMMENT} }} }} {REFUSED} }} }}"""
VOTE = f"""mutation ($token: ID!) {{ castVote(input: {{ token: $token, verdict: LEFT }}) {{ ... on VoteCast {{
  winner {{ id name }} progress {{ seen remaining }} matchup {{ leftWins rightWins ties votes }} }} {REFUSED} }} }}"""


@dataclass(frozen=True, slots=True)
class Operation:
    """A request of the benchmark, and the number of calls it may wait for."""

    name: str
    goal: float
    query: str
    prepare: Prepare = nothing


OPERATIONS: Final = (
    Operation(
        "comments, filtered, with authors",
        2,
        f"""query ($product: ID!) {{ comments(product: $product, languages: ["en"], ratings: [4, 5], first: 20) {{
  edges {{ cursor node {{ {COMMENT} }} }} pageInfo {{ hasNextPage endCursor }} }} }}""",
        a_product,
    ),
    Operation(
        "comments, unfiltered, with authors",
        2,
        f"""query ($product: ID!) {{ comments(product: $product, first: 20) {{
  edges {{ cursor node {{ {COMMENT} }} }} pageInfo {{ hasNextPage endCursor }} }} }}""",
        a_product,
    ),
    Operation("postComment", 1.5, POST, a_new_comment),
    Operation(
        "editComment",
        2,
        f"""mutation ($input: EditCommentInput!) {{ editComment(input: $input) {{
  ... on CommentEdited {{ comment {{ {COMMENT} }} }} {REFUSED} }} }}""",
        a_changed_comment,
    ),
    Operation(
        "drawMatchup",
        1.5,
        """mutation { drawMatchup(input: {}) { ... on Ballot {
  token expiresAt left { id name } right { id name } progress { seen remaining } } } }""",
    ),
    Operation("castVote, with the pair's record and progress", 2, VOTE, a_drawn_ballot),
    Operation(
        "leaderboard of 20, shortly after votes",
        2,
        f"{{ leaderboard(first: 20) {{ totalCount nodes {{ rank score wins losses {CONTENDER} }} }} }}",
        a_recent_vote,
    ),
    Operation(
        "event screen, scored, with own and best predictions",
        2,
        """query ($event: ID!) { event(id: $event) { name state
  matches { id name points teams { members } result { outcome winner } pickCounts }
  viewerPrediction { points rank picks { match team correct } }
  predictions(first: 10) { nodes { rank points user { name } } } } }""",
        a_scored_event,
    ),
    Operation(
        "submitPrediction",
        2,
        f"""mutation ($input: SubmitPredictionInput!) {{ submitPrediction(input: $input) {{
  ... on PredictionSubmitted {{ prediction {{ submittedAt picks {{ match team }} }} }} {REFUSED} }} }}""",
        some_picks,
    ),
    Operation(
        "standings",
        1.5,
        f"""{{ standings(season: "{SEASON}", first: 20) {{
  totalCount nodes {{ rank points correct user {{ name }} }} }} }}""",
    ),
    Operation("dailyWords", 2, "{ dailyWords { date list { name } word { simplified pinyin definition } } }"),
    Operation("topProducts", 2, "{ topProducts(first: 10) { nodes { product fiveStars } } }"),
    Operation(
        "viewer's own page",
        1.5,
        """{ viewer { name streak { current longest } subscriptions { list { name } active }
  quizResults(from: "2026-01-01", first: 10) { nodes { date correct total } }
  sentences(from: "2026-01-01", first: 10) { nodes { text } } } }""",
    ),
    Operation(
        "statistics",
        1.2,
        """query ($product: ID!) { commentStatistics(product: $product) {
  total average histogram { rating count } languages { language count } } }""",
        a_product,
    ),
    Operation(
        "recordQuiz",
        2,
        f"""mutation ($input: RecordQuizInput!) {{ recordQuiz(input: $input) {{
  ... on QuizRecorded {{ result {{ date }} streak {{ current }} }} {REFUSED} }} }}""",
        a_quiz,
    ),
    Operation(
        "updateProfile",
        2,
        f"""mutation ($input: UpdateProfileInput!) {{ updateProfile(input: $input) {{
  ... on ProfileUpdated {{ user {{ name }} }} {REFUSED} }} }}""",
        a_name,
    ),
)


# ── measuring ──


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured how often, and the seconds between two rounds."""

    delay: float
    rounds: int
    pause: float = PAUSE
    operations: Sequence[Operation] = OPERATIONS


async def time_operation(client: Client, operation: Operation) -> float:
    variables = await operation.prepare(client)
    began = time.perf_counter()
    await client.ask(operation.query, variables)
    return time.perf_counter() - began


async def measure(client: Client, plan: Plan) -> dict[str, list[float]]:
    """The seconds of each operation in each round."""
    seconds: dict[str, list[float]] = {operation.name: [] for operation in plan.operations}
    for _ in range(plan.rounds):
        for operation in plan.operations:
            seconds[operation.name].append(await time_operation(client, operation))
        await asyncio.sleep(plan.pause)
    return seconds


def variables(url: str) -> dict[str, str]:
    return {"RINGSIDE_DYNAMODB_URL": url, "RINGSIDE_SECRETS": SECRET, "RINGSIDE_TABLE": "ringside-distance"}


def prepare_table(url: str) -> None:
    for command in (("table", "create"), ("demo",)):
        result = ringside_process(*command, **variables(url))
        if result.returncode:
            raise RuntimeError(result.stdout + result.stderr)


async def measure_service(proxy: DistantEngine, delay: float, plan: Plan) -> dict[str, list[float]]:
    """The seconds of each operation in each round, in a new process of the service."""
    proxy.delay = 0.0
    with ExitStack() as stack:
        service = await start_service(variables(proxy.url), stack)
        token = await asyncio.to_thread(service.token, MEMBER)
        async with httpx.AsyncClient(
            base_url=service.url, timeout=30, headers={"authorization": f"Bearer {token}"}
        ) as http:
            client = Client(http, await demo_ids(proxy), plan.pause)
            proxy.delay = delay
            return await measure(client, plan)


async def demo_ids(proxy: DistantEngine) -> dict[str, Any]:
    """The demo data's ids, asked of another process, so that the measured one starts with empty caches."""
    with ExitStack() as stack:
        service = await start_service(variables(proxy.url), stack)
        async with httpx.AsyncClient(base_url=service.url, timeout=30) as http:
            return await Client(http, {}).find_ids()


async def run(plan: Plan) -> dict[str, tuple[float, float]]:
    """How many calls each operation waits for, at first and later."""
    with tempfile.TemporaryDirectory() as folder, running_engine("dynoxide", Path(folder)) as engine:
        await asyncio.to_thread(prepare_table, engine.url)
        async with DistantEngine(engine.url) as proxy:
            near = await measure_service(proxy, 0.0, plan)
            far = await measure_service(proxy, plan.delay, plan)
    return {
        name: (
            (far[name][0] - near[name][0]) / plan.delay,
            (median(far[name][1:]) - min(near[name])) / plan.delay,
        )
        for name in far
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--delay", type=float, default=0.04)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    distances = asyncio.run(run(Plan(options.delay, options.rounds)))
    goals = {operation.name: operation.goal for operation in OPERATIONS}
    rows = [f"| {name} | {first:.1f} | {later:.1f} | {goals[name]:g} |" for name, (first, later) in distances.items()]
    text = HEAD.format(milliseconds=round(options.delay * 1000)) + "\n".join(rows) + "\n"
    print(text)
    if options.write:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
