"""A board's results: what is stored of the sums, and the order that follows from them."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from datastore.voting.contenders import BoardResults, Contender, Counts, ResultsBlock, counted

NOW = datetime(2026, 5, 5, tzinfo=UTC)
NUMBERS = st.integers(0, 10**6)
SUMS = st.dictionaries(st.integers(0, 300), st.builds(Counts, NUMBERS, NUMBERS, NUMBERS), max_size=40)


def blocks_of(sums: dict[int, Counts]) -> list[ResultsBlock]:
    return [ResultsBlock.of("main", block, sums) for block in range(2)]


@given(SUMS)
def test_every_contender_has_its_sums(sums: dict[int, Counts]) -> None:
    """Those without votes too, whichever block they are in."""
    blocks = blocks_of(sums)
    for ordinal in range(301):
        contender = Contender("main", ordinal, "name", NOW)
        shown = counted(contender, blocks[contender.block].counts)
        assert (shown.wins, shown.losses, shown.ties) == sums.get(ordinal, Counts())


@given(SUMS, st.sets(st.integers(0, 300)), st.integers(1, 50))
def test_pages_of_a_leaderboard_are_in_the_order_of_score_and_name(
    sums: dict[int, Counts], retired: set[int], size: int
) -> None:
    """Each page goes on after the last place of the one before; ranks count those with a higher score."""
    contenders = [Contender("main", each, f"c{each * 7919 % 301}", NOW, retired=each in retired) for each in range(301)]
    by_name = sorted(contenders, key=lambda each: each.place_by_name)
    results = BoardResults(by_name, [block.counts for block in blocks_of(sums)])
    found, after = [], None
    while page := results.leaders(after, size):
        found += page
        after = page[-1].place
    scores = [each.score for each in found]
    assert [each.ordinal for each in found] == [
        each.ordinal
        for each in sorted((each for each in found), key=lambda each: (-each.score, each.name.casefold() + "#"))
    ]
    assert {each.ordinal for each in found} == set(range(301)) - retired
    assert all(results.rank(score) == 1 + sum(other > score for other in scores) for score in set(scores))
