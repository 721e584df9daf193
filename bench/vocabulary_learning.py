"""Due cards of a member with 20,000 cards, and quizzes of 20 and 50 words: engine calls, rounds of them, and units.

    python -m bench.vocabulary_learning

Over HTTP, on the embedded engine in a temporary folder. A round is what a request waits for: calls that are made at the
same time are one.
"""

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from datastore.dynamo import metered
from datastore.vocabulary.quizzes import CARD, QUEUED_CARD, Card
from resolvers.requests.context import utc_now
from server.engine import run_engine
from server.settings import Level, Log, Settings
from tests.client import Client, serving
from tests.conftest import create_table
from tests.dependent_calls import dependent_calls
from tests.vocabulary import ANSWER_QUIZ, START_QUIZ, known_list, right_answers

CARDS, SECRET = 20_000, "a secret that is long enough to be one"
COUNT = "{ viewer { dueCount } }"
DUE = "{ viewer { due(first: %d) { nodes { due stability reviews } } } }"


async def measured(client: Client, what: str, request: Awaitable[Any]) -> Any:
    with metered() as spent:
        answer, rounds = await dependent_calls(client.services.table, request)
    units = f"{spent.read_units:g} | {spent.write_units:g}"
    print(f"| {what} | {spent.calls} | {rounds} | {units} |", flush=True)
    return answer


async def write_cards(client: Client, user: str) -> None:
    now = utc_now()
    cards = (
        Card(user, "l" * 26, number, now - timedelta(seconds=number), 2.3065, 5.1234, 2, now, 3)
        for number in range(1, CARDS + 1)
    )
    await client.services.table.write_many(kind.put(card) for card in cards for kind in (CARD, QUEUED_CARD))


async def quiz(client: Client, list_id: str, size: int) -> None:
    """Twice: the second time each word has a card."""
    ada = client.member("ada")
    for cards in ("new", "known"):
        wanted = {"list": list_id, "size": size, "kind": "MEANING"}
        asked = await measured(client, f"`startQuiz`, {size} words, {cards}", ada.ask(START_QUIZ, input=wanted))
        given = {"token": asked["token"], "answers": right_answers(asked)}
        await measured(client, f"`answerQuiz`, {size} words, {cards}", ada.ask(ANSWER_QUIZ, input=given))


async def run(url: str) -> None:
    settings = Settings(
        dynamodb_url=url, table="bench", secrets=(SECRET,), log=Log(Level.ERROR), quiz_seconds_per_question=0
    )
    async with create_table("bench", url), serving(settings) as client:
        ada = client.member("ada")
        await ada.ask('mutation { updateProfile(input: { name: "Ada" }) { __typename } }')
        print("| | calls | rounds | read units | write units |\n|---|---|---|---|---|")
        for size in (20, 50):
            await quiz(client, await known_list(client, f"{size} words", words=size), size)
        await write_cards(client, "ada")
        for what, query in (("due(first: 20)", DUE % 20), ("due(first: 100)", DUE % 100), ("dueCount", COUNT)):
            await ada.ask("{ viewer { name } }")  # the profile, which each of them reads first
            await measured(client, f"`{what}` of {CARDS:,} cards", ada.ask(query))


def main() -> None:
    with TemporaryDirectory() as folder, run_engine(Path(folder)) as engine:
        asyncio.run(run(engine.url))


if __name__ == "__main__":
    main()
