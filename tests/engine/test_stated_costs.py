"""What tables of access patterns say that a pattern costs, where it reads something before it writes."""

from collections.abc import Awaitable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any

from datastore import pickem, vocabulary
from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import Table
from datastore.dynamo.budgets import metered
from datastore.dynamo.writes import Put
from datastore.pickem import leagues
from datastore.pickem import member_items as of_pickem
from datastore.pickem.events import Event, create_event, read_events, read_matches
from datastore.pickem.predictions import PREDICTION, Prediction, Share, Submission, submit_prediction
from datastore.pickem.standings import Credit, credit
from datastore.vocabulary import member_items as of_vocabulary
from datastore.vocabulary.learning import Sentence, read_active_days, record_result
from datastore.vocabulary.lists import WordList, create_list
from datastore.vocabulary.quizzes import OpenQuiz, ask_quiz, read_list_and_words
from datastore.vocabulary.words import Word, WordBatch, add_words
from datastore.voting import continuing
from datastore.voting.votes import VOTE, PairVerdict, Vote

NOW = datetime(2026, 5, 5, 12, tzinfo=UTC)
UNIT = UnitOfWork.unkeyed(NOW)


async def calls(work: Awaitable[Any]) -> int:
    """How many calls of the engine something takes."""
    with metered() as spent:
        await work
    return spent.calls


async def _scored(table: Table, *seasons: str) -> list[Event]:
    """An event of each season, with the points of one member."""
    for season in seasons:
        event = Event(f"E{season}", "Event", season, NOW + timedelta(hours=1), NOW)
        await create_event(table, event, [], UNIT)
        prediction = Prediction(event.id, "ada", {}, NOW, NOW, event.starts_at, season)
        submission = Submission(prediction, None, event, await read_matches(table, event.id))
        await submit_prediction(table, submission, lambda: NOW, UNIT, None)
        await credit(table, season, [Credit(prediction, Share(1, 10, 1), event.starts_at)])
    return list((await read_events(table, [f"E{season}" for season in seasons])).values())


def stated(module: ModuleType, wanted: str) -> str:
    """The cost of a pattern in the table of a module."""
    rows = [[cell.strip() for cell in line.split("|")] for line in (module.__doc__ or "").splitlines()]
    [cost] = [row[3] for row in rows if len(row) > 3 and row[1] == wanted]
    return cost


async def test_a_walk_is_continued_at_its_stated_cost(one_table: Table) -> None:
    """Of a visitor, by a member who has not voted and by one who has; and whether the first one's votes count."""

    def vote(voter: str, verdict: PairVerdict = PairVerdict.SKIP) -> Put:
        return VOTE.put(Vote(voter, "main", 1, 0, 1, verdict, NOW, b""))

    await one_table.write_many([vote("visitor-a"), vote("visitor-b"), vote("bob"), vote("cyd", PairVerdict.TIE)])
    costs = [
        await calls(continuing.continue_walk(one_table, visitor, member, "main", NOW))
        for visitor, member in (("visitor-a", "ada"), ("visitor-b", "bob"))
    ]
    assert stated(continuing, "continue a walk") == "{} or {}".format(*costs)
    latest, more = [
        await calls(continuing.has_counted_vote(one_table, voter, "main")) for voter in ("cyd", "visitor-a")
    ]
    assert stated(continuing, "whether a vote of theirs counts") == f"{latest}; {more} and more"


async def test_words_are_added_and_asked_at_their_stated_cost(one_table: Table) -> None:
    """Of 80 words, and of a batch that takes two transactions; and of the words of a quiz."""
    await create_list(one_table, WordList("list", "List", True, NOW), UNIT)
    some = [Word("list", 0, f"{number}", "a word") for number in range(81)]
    few = await calls(add_words(one_table, "list", WordBatch("few", some[:80], 1000), UNIT))
    many = await calls(add_words(one_table, "list", WordBatch("many", some, 1000), UNIT))
    assert stated(vocabulary, "new words") == f"{few}; {many - 2}, 1 per 80"
    quiz = OpenQuiz("quiz", "ada", "list", NOW, NOW, NOW, ())
    asked = await calls(read_list_and_words(one_table, "ada", "list", range(22)))
    asked += await calls(ask_quiz(one_table, quiz, None, UNIT))
    assert stated(vocabulary, "a quiz that is asked") == f"{asked}"


async def test_results_of_a_day_are_removed_at_their_stated_cost(one_table: Table) -> None:
    """Some of them; and then those that are left, and the day with them. They are read before."""
    for number in range(2):
        sentence = Sentence("ada", NOW.date(), f"{number}", "text", NOW)
        await record_result(one_table, sentence, await read_active_days(one_table, "ada"), lambda _: None, UNIT)

    async def remove(wanted: str) -> None:
        async for _ in of_vocabulary.remove_results(one_table, "ada", lambda one: one.id == wanted, UNIT):
            pass

    some, last = await calls(remove("0")), await calls(remove("1"))
    assert stated(of_vocabulary, "remove some of a day") == f"{some - 1} for up to 90 writes"
    assert stated(of_vocabulary, "the last ones of a day") == f"{last - 1}"


async def test_predictions_are_credited_and_removed_at_their_stated_cost(one_table: Table) -> None:
    """A hundred of them; and one member's."""
    [event] = await _scored(one_table, "2026")
    predictions = [Prediction(event.id, f"u{place}", {}, NOW, NOW, event.starts_at, "token") for place in range(100)]
    await one_table.write_many(map(PREDICTION.put, predictions))
    credits_ = [Credit(one, Share(1, 10, 1), event.starts_at) for one in predictions]
    assert stated(pickem, "100 scored or unscored predictions") == f"{await calls(credit(one_table, '2026', credits_))}"
    assert stated(of_pickem, "remove one") == f"{await calls(of_pickem.take_out(one_table, 'ada', event, UNIT))}"


async def test_a_league_is_deleted_at_its_stated_cost(one_table: Table) -> None:
    """With a member besides its captain: their place takes one call more."""
    league = leagues.League("G", "Friends", "2026", leagues.Entry.OPEN, NOW, members=1, captains=1)
    captain = leagues.LeagueMember("G", "ada", leagues.Membership.CAPTAIN, NOW, "token")
    own = leagues.MemberLeagues("ada")
    await leagues.create_league(one_table, league, captain, own, UNIT, None)
    member = replace(captain, user="bob", membership=leagues.Membership.MEMBER)
    await leagues.join_league(one_table, league, member, leagues.MemberLeagues("bob"), UNIT, None)
    cost = await calls(leagues.delete_league(one_table, captain, league, UNIT, None))
    assert stated(leagues, "delete") == f"{cost - 2}, n, 1"


async def test_a_members_standings_of_all_seasons_are_one_batch(one_table: Table) -> None:
    """A file of three seasons takes as many calls as of one."""

    async def read() -> int:
        found: list[Any] = []

        async def records() -> None:
            found.extend([record async for _, record in of_pickem.MEMBER_ITEMS.read(one_table, "ada")])

        count = await calls(records())
        assert len(found) == 2 * len(seasons)
        return count

    seasons = ["2024"]
    await _scored(one_table, *seasons)
    of_one = await read()
    await _scored(one_table, "2025", "2026")
    seasons += ["2025", "2026"]
    assert await read() == of_one
