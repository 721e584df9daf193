"""Random seasons: after any picks, results and corrections in any order, the standings are the plain sums."""

from collections import Counter
from dataclasses import dataclass, field
from itertools import count

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from datastore.pickem.standings import Histogram
from server.audit import find_suspects
from tests.client import Client
from tests.examples import examples
from tests.queries import EVENT_BY_ID
from tests.season import EventEditor, submit

USERS = ("ada", "bob", "cleo", "dan", "eve")
OUTCOMES = ("WON", "WON", "WON", "DRAWN", "NO_CONTEST", "CANCELLED")
"""Random seasons in one run; each takes about a second. Before a release: 300."""
_seasons = count()


@dataclass
class Show:
    """The model of an event."""

    points: list[int]
    picks: dict[str, dict[int, int]]
    results: dict[int, tuple[str, int | None]] = field(default_factory=dict)

    def worth(self, user: str) -> tuple[int, int]:
        won = {place: winner for place, (outcome, winner) in self.results.items() if outcome == "WON"}
        right = [self.points[place] for place, team in self.picks[user].items() if won.get(place) == team]
        return sum(right), len(right)


picks = st.dictionaries(st.integers(0, 3), st.integers(0, 1))
shows = st.builds(
    Show,
    points=st.lists(st.integers(1, 3), min_size=1, max_size=4),
    picks=st.dictionaries(st.sampled_from(USERS), picks, max_size=5),
)
decisions = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 3), st.sampled_from(OUTCOMES), st.integers(0, 1), st.booleans()),
    max_size=10,
)


@settings(max_examples=examples(6), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(season=st.lists(shows, min_size=1, max_size=3), decisions=decisions)
async def test_standings_are_sums_of_scores(
    one_client: Client, season: list[Show], decisions: list[tuple[int, int, str, int, bool]]
) -> None:
    """Points, correct picks, events played and ranks, of the season and of each event."""
    editor = EventEditor(one_client, f"S{next(_seasons)}")
    cards = [await editor.card(*show.points) for show in season]
    for show, (event, matches) in zip(season, cards, strict=True):
        show.picks = {
            user: {place: team for place, team in chosen.items() if place < len(matches)}
            for user, chosen in show.picks.items()
        }
        for user, chosen in show.picks.items():
            await submit(one_client.member(user), event, [(matches[place], team) for place, team in chosen.items()])
        await editor.lock(event)
    for which, number, outcome, winner, score_now in decisions:
        show, (event, matches) = season[which % len(season)], cards[which % len(season)]
        place = number % len(matches)
        show.results[place] = (outcome, winner if outcome == "WON" else None)
        await editor.result(matches[place], show.results[place][1], outcome)
        if score_now:
            await editor.score(event, confirmMissing=True)
    for show, (event, _) in zip(season, cards, strict=True):
        assert await editor.score(event, confirmMissing=True) == len(show.picks)
    await _equal_sums(editor, season)
    for show, (event, _) in zip(season, cards, strict=True):
        await _equal_event(one_client, show, event)
    assert await find_suspects(one_client.services, "pickem") == []


async def _equal_sums(editor: EventEditor, season: list[Show]) -> None:
    sums: dict[str, list[int]] = {}
    for show in season:
        for user in show.picks:
            points, correct = show.worth(user)
            before = sums.setdefault(user.title(), [0, 0, 0])
            sums[user.title()] = [before[0] + points, before[1] + correct, before[2] + 1]
    page = await editor.standings(first=100)
    totals = {row["user"]["name"]: [row["points"], row["correct"], row["eventsPlayed"]] for row in page["nodes"]}
    assert totals == sums
    assert page["totalCount"] == len(sums)
    order = [(-row["points"], -row["correct"]) for row in page["nodes"]]
    assert order == sorted(order)
    for row in page["nodes"]:
        assert row["rank"] == 1 + sum(points > row["points"] for points, _, _ in sums.values())


async def _equal_event(client: Client, show: Show, event: str) -> None:
    seen = await client.ask(EVENT_BY_ID, id=event)
    rows = seen["predictions"]["nodes"]
    worth = {user.title(): show.worth(user) for user in show.picks}
    assert {row["user"]["name"]: (row["points"], row["correct"]) for row in rows} == worth
    for row in rows:
        assert row["rank"] == 1 + sum(points > row["points"] for points, _ in worth.values())
    counts = [[0, 0] for _ in show.points]
    for chosen in show.picks.values():
        for place, team in chosen.items():
            counts[place][team] += 1
    assert [match["pickCounts"] for match in seen["matches"]] == counts


@given(st.lists(st.integers(-50, 50)), st.integers(-60, 60))
def test_a_histograms_rank_is_one_more_than_the_number_of_higher_scores(scores: list[int], score: int) -> None:
    """For any scores, packed or not."""
    histogram = Histogram.unpack(Histogram.of(Counter(scores)).pack())
    assert histogram.rank(score) == 1 + sum(other > score for other in scores)
