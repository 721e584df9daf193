"""What tests of vocabulary make: lists with words, and the texts of words."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

from resolvers.requests.context import Role
from tests.client import Client
from tests.queries import ADD_WORDS, CREATE_LIST

START_QUIZ = """
mutation ($input: StartQuizInput!) {
  startQuiz(input: $input) {
    ... on Quiz { token earliestAnswerAt expiresAt list { id } questions { number prompt choices } }
    ... on Refused { code message path retryAfterSeconds }
  }
}
"""
ANSWER_QUIZ = """
mutation ($input: AnswerQuizInput!) {
  answerQuiz(input: $input) {
    ... on QuizGraded {
      result { id date correct total proven list { id } }
      answers { number right given word { id term definition } }
      streak { current }
    }
    ... on Refused { code message path retryAfterSeconds }
  }
}
"""
QUIZ_LEADERBOARD = """
query ($on: Date!, $list: ID, $proven: Boolean) {
  quizLeaderboard(on: $on, list: $list, proven: $proven) { nodes { rank user { name } correct total quizzes } }
}
"""


def some_words(count: int, start: int = 0) -> list[dict[str, str]]:
    return [{"simplified": f"词{number}", "definition": f"word {number}"} for number in range(start, start + count)]


def right_answers(quiz: Mapping[str, Any]) -> list[str]:
    """Of lists made by `some_words`: 词7 means "word 7"."""
    return [question["prompt"].replace("词", "word ") for question in quiz["questions"]]


def today() -> date:
    return datetime.now(UTC).date()


async def public_list(client: Client, name: str = "First words", words: int = 5) -> str:
    """A public list with words; its id."""
    editor = client.member("eve", Role.EDITOR)
    made = await editor.ask(CREATE_LIST, input={"name": name, "public": True, "level": 1})
    if words:
        await editor.ask(ADD_WORDS, input={"list": made["list"]["id"], "words": some_words(words)})
    return str(made["list"]["id"])


async def known_list(client: Client, name: str = "First words", words: int = 5) -> str:
    """The same, once plain reads show it: a quiz on a list that they do not show yet is NOT_FOUND."""
    made = await public_list(client, name, words)
    await client.caught_up("the new list is known everywhere")
    return made


async def private_list(member: Client, name: str = "Mine", words: int = 3) -> str:
    made = await member.ask(CREATE_LIST, input={"name": name})
    if words:
        await member.ask(ADD_WORDS, input={"list": made["list"]["id"], "words": some_words(words)})
    return str(made["list"]["id"])


async def word_ids(client: Client, list_id: str) -> list[str]:
    found = await client.ask(
        "query ($id: ID!) { wordList(id: $id) { words(first: 100) { nodes { id } } } }", id=list_id
    )
    return [node["id"] for node in found["words"]["nodes"]]
