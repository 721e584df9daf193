"""A quiz's questions, made of words: pure rules.

The choices of a question are the right answer and up to three of other words. A word whose prompt is the same could be
answered with either, so it provides no wrong answer; nor does one with the same answer. Texts are the same if they
differ in case, in spaces, or in whether accents and syllables are composed, which nobody sees.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate
from random import Random

import orjson

from datastore.values.folding import in_form
from datastore.vocabulary import Word

CHOICES = 4
MOST_BYTES = 300_000
"""Of a quiz's texts: the receipt for an idempotency key holds them all, as JSON in an item of 400 KB at most."""


class QuizKind(Enum):
    """What is asked about a word."""

    MEANING = "MEANING"
    READING = "READING"
    CHARACTERS = "CHARACTERS"


@dataclass(frozen=True, slots=True)
class QuizQuestion:
    """A question as it is asked; its answer is kept elsewhere."""

    number: int
    prompt: str
    choices: tuple[str, ...]


def prompt_and_answer(word: Word, kind: QuizKind) -> tuple[str, str] | None:
    """What is asked about a word and what is right; None for a word that cannot be asked about."""
    if kind is QuizKind.MEANING:
        return word.term, word.definition
    if kind is QuizKind.READING:
        return (word.term, word.reading) if word.reading else None
    return (word.definition, word.term) if word.chinese else None


def compared(text: str) -> str:
    """The form in which a text is compared with others."""
    return in_form("NFD", in_form("NFD", " ".join(text.split())).casefold())


def ask(
    words: Sequence[Word], size: int, kind: QuizKind, random: Random, fold: Callable[[str], str]
) -> list[tuple[Word, QuizQuestion]]:
    """Up to `size` questions about different words, each with two choices at least.

    `fold` is `compared`, cached by the caller: texts may be long, and a quiz may be tried with more and more words.
    """
    usable = [(word, pair) for word in words if (pair := prompt_and_answer(word, kind)) is not None]
    answers = {fold(answer): answer for _, (_, answer) in usable}
    right: defaultdict[str, set[str]] = defaultdict(set)
    for _, (prompt, answer) in usable:
        right[fold(prompt)].add(fold(answer))
    asked: list[tuple[Word, QuizQuestion]] = []
    for word, (prompt, answer) in random.sample(usable, len(usable)):
        if len(asked) == size:
            break
        of_prompt = right[fold(prompt)]
        if len(of_prompt) < len(answers):
            wrong = [text for folded, text in answers.items() if folded not in of_prompt]
            choices = [answer, *random.sample(wrong, min(len(wrong), CHOICES - 1))]
            random.shuffle(choices)
            asked.append((word, QuizQuestion(len(asked) + 1, prompt, tuple(choices))))
    return asked


def count_fitting(questions: Iterable[QuizQuestion]) -> int:
    """How many of these questions, from the first one on, a quiz may have."""
    sizes = accumulate(len(orjson.dumps([question.prompt, *question.choices])) for question in questions)
    return sum(size <= MOST_BYTES for size in sizes)
