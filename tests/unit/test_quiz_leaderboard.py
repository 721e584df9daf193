"""The day's leaderboard, against a ranking written down a second way."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from fractions import Fraction
from time import process_time

from hypothesis import given
from hypothesis import strategies as st

from datastore.dynamo import Window
from datastore.values.seal import Seal
from datastore.vocabulary.learning import QuizResult, Sentence
from resolvers.vocabulary.quiz_leaderboard import QuizLeaderboard, Selection

ON, NOW = date(2026, 11, 20), datetime(2026, 11, 20, tzinfo=UTC)
SEAL = Seal(["a secret that is long enough to be one"])
QUIZZES = st.lists(
    st.tuples(st.sampled_from("abcdefg"), st.sampled_from("xy"), st.integers(0, 4), st.integers(0, 3)), max_size=40
)


def result(number: int, user: str, listed: str, correct: int, wrong: int) -> QuizResult:
    return QuizResult(user, ON, f"{number:026d}", listed, correct, correct + wrong + (correct + wrong == 0), NOW)


@given(quizzes=QUIZZES, listed=st.sampled_from([None, "x", "y"]), size=st.integers(1, 5))
def test_pages_are_the_ranking_cut_in_pieces(
    quizzes: list[tuple[str, str, int, int]], listed: str | None, size: int
) -> None:
    """Whatever the page size, all pages together rank everybody once, with ranks shared by equals."""
    day, sums = QuizLeaderboard(), dict[str, tuple[int, int, int]]()
    for number, quiz in enumerate(quizzes):
        one = result(number, *quiz)
        day.add(one)
        day.add(one)  # a result seen twice counts once
        if listed in (None, one.list):
            correct, total, count = sums.get(one.user, (0, 0, 0))
            sums[one.user] = (correct + one.correct, total + one.total, count + 1)

    def better(user: str) -> tuple[int, Fraction, int]:
        correct, total, count = sums[user]
        return (-correct, -Fraction(correct, total), count)

    expected = [(1 + sum(better(other) < better(user) for other in sums), user) for user in sums]
    found, after = [], None
    while True:
        page = day.page(Selection(listed), Window(size, SEAL, cursor=after).open("board"))
        found += [(row.rank, row.user) for row in page.nodes]
        if not page.has_next_page:
            break
        after = page.end_cursor
    assert found == sorted(expected)


def test_a_large_day_is_not_ranked_anew_for_each_result() -> None:
    """Somebody records results without end, and somebody looks: each look took as long as the first."""
    day, request = QuizLeaderboard(), Window(1, SEAL).open("board")
    for number in range(20_000):
        day.add(result(number, f"user {number}", "x", number % 5, 1))
    began = process_time()
    day.page(Selection(), request)
    first = process_time() - began
    began = process_time()
    for number in range(20_000, 20_100):
        day.add(result(number, f"user {number}", "x", 1, 1))
        day.page(Selection(), request)
    assert process_time() - began < 20 * first


def test_sentences_alone_make_no_row() -> None:
    """Who wrote sentences and took no quiz is not ranked; who did both is, with them."""
    day = QuizLeaderboard()
    for number, user in enumerate(("ada", "bob", "ada")):
        day.add(Sentence(user, ON, f"S{number:025d}", "text", NOW))
    day.add(result(1, "ada", "x", 1, 0))
    rows = day.page(Selection(), Window(20, SEAL).open("board")).nodes
    assert [(row.user, row.sentences) for row in rows] == [("ada", 2)]


@given(order=st.permutations(["old", "old", "new", "moved", "other"]))
def test_a_result_that_was_moved_counts_once_for_its_new_owner(order: Sequence[str]) -> None:
    """Whatever a read that is behind has shown before, shows meanwhile or shows afterwards."""
    day, old, other = QuizLeaderboard(), result(1, "ada", "x", 2, 1), result(2, "bob", "x", 1, 0)
    new = replace(old, user="former")
    for step in order:
        if step == "moved":
            day.discard(old)
            day.add(new)
        else:
            day.add({"old": old, "new": new, "other": other}[step])
    rows = day.page(Selection(), Window(20, SEAL).open("board")).nodes
    assert [(row.rank, row.user, row.correct, row.quizzes) for row in rows] == [(1, "former", 2, 1), (2, "bob", 1, 1)]


@given(order=st.permutations(["read", "read", "deleted", "other"]))
def test_a_result_that_was_deleted_counts_no_more(order: Sequence[str]) -> None:
    """Even if a read that is behind shows it afterwards."""
    day, gone, other = QuizLeaderboard(), result(1, "ada", "x", 2, 1), result(2, "bob", "x", 1, 0)
    for step in order:
        if step == "deleted":
            day.discard(gone)
        else:
            day.add(gone if step == "read" else other)
    rows = day.page(Selection(), Window(20, SEAL).open("board")).nodes
    assert [(row.rank, row.user, row.correct, row.quizzes) for row in rows] == [(1, "bob", 1, 1)]
