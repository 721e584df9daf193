"""A quiz's questions, as rules."""

from random import Random
from unicodedata import normalize

from hypothesis import given
from hypothesis import strategies as some

from datastore.vocabulary.words import Word
from resolvers.vocabulary.quizzes import CHOICES, QuizKind, ask, compared

PAIRS = some.lists(some.tuples(some.sampled_from(["a", "A", "b", "c"]), some.sampled_from(["x", "X", "y", "z", "w"])))


@given(PAIRS, some.randoms(use_true_random=False))
def test_a_question_has_one_right_choice(pairs: list[tuple[str, str]], random: Random) -> None:
    """No other choice is an answer to the same prompt; a word is asked about if there is a wrong answer to it."""
    words = [Word("list", number, term, meaning) for number, (term, meaning) in enumerate(pairs)]
    answers = {meaning.casefold() for _, meaning in pairs}
    right = {term.casefold(): {m.casefold() for t, m in pairs if t.casefold() == term.casefold()} for term, _ in pairs}
    asked = ask(words, len(words), QuizKind.MEANING, random, compared)
    assert len(asked) == sum(right[term.casefold()] != answers for term, _ in pairs)
    for word, question in asked:
        folded = [choice.casefold() for choice in question.choices]
        assert word.definition in question.choices
        assert sum(choice in right[word.term.casefold()] for choice in folded) == 1
        assert 2 <= len(set(folded)) == len(folded) <= CHOICES


def test_choices_that_look_the_same_are_not_both_offered() -> None:
    """Nobody sees whether accents and syllables are composed: both would be right, and one counted as wrong."""
    meanings = ["Café", "한국어", "naïve ", "third", "fourth"]
    words = [Word("list", number, f"{number}", meaning) for number, meaning in enumerate(meanings)]
    words += [Word("list", 5 + number, f"{number}!", normalize("NFD", text)) for number, text in enumerate(meanings)]
    for _, question in ask(words, len(words), QuizKind.MEANING, Random(1), compared):
        assert len({normalize("NFC", choice).strip() for choice in question.choices}) == CHOICES


def test_words_that_are_alike_are_not_compared_one_by_one() -> None:
    """300 of them lend each other no wrong answer, and may be long."""
    words = [Word("list", number, "行", f"meaning {number}") for number in range(300)]
    folded: list[str] = []

    def fold(text: str) -> str:
        folded.append(text)
        return compared(text)

    assert ask(words, 10, QuizKind.CHARACTERS, Random(1), fold) == []
    assert len(folded) <= 3 * 2 * len(words)
