"""How much is done, by day and by operation: what all processes have reported, whichever of them has stopped."""

import asyncio
import socket
from datetime import timedelta

import pytest

from datastore.dynamo import DeadlineExceeded, Table, deadline
from datastore.journal.usage import OperationFigures
from resolvers.journal.usage import UsageReports
from resolvers.requests.context import Role, Services, utc_now
from server.auth.tokens import mint
from server.settings import Settings
from tests.client import Client, serving
from tests.comments import post
from tests.queries import RECORD_QUIZ
from tests.vocabulary import public_list
from tests.voting import add_contenders, vote
from tests.waiting import LONGEST

ACTIVITY = """query ($from: Date!, $to: Date!) { activity(from: $from, to: $to) {
  day votes comments predictions quizzes newMembers } }"""
OPERATIONS = """query ($from: DateTime!, $to: DateTime!) { operations(from: $from, to: $to) {
  name requests refusals units dollars } }"""
LAG = "{ lag { settlingSeconds oldestJobSeconds } }"
REFUSED = """mutation Refusal { postComment(input: { product: "tee", language: "en", rating: 9, body: "Good" }) {
  ... on Refused { code } } }"""
WINDOW = timedelta(hours=1)


def newcomer(client: Client, name: str) -> Client:
    """Whom nobody has introduced: their first write makes them a member."""
    return Client(client.served, client.settings, mint(client.settings, name))


def admin(client: Client) -> Client:
    return client.member("root", Role.ADMIN)


async def today(client: Client) -> dict[str, int]:
    """The activity of today and yesterday, since the day may change during the test."""
    now = utc_now().date()
    days = await admin(client).ask(ACTIVITY, **{"from": str(now - timedelta(days=1)), "to": str(now)})
    assert [day["day"] for day in days] == [str(now - timedelta(days=1)), str(now)]
    return {name: sum(day[name] for day in days) for name in days[0] if name != "day"}


async def test_activity_is_what_all_processes_have_counted_also_those_that_have_stopped(
    one_table: Table, settings: Settings
) -> None:
    """A reply is a comment, and a quiz that the site set is one. A repeat, a skip and a refusal count as nothing."""
    assert one_table.name == settings.table
    async with serving(settings) as first, serving(settings) as second:
        await add_contenders(first, *"abcd")
        await vote(first.visitor())
        await vote(second.visitor())
        await vote(second.visitor(), verdict="SKIP")
        comment = await post(newcomer(first, "ada"), "tee")
        await post(newcomer(second, "bob"), "tee", rating=None, inReplyTo=comment["id"])
        assert await newcomer(first, "ada").code(REFUSED) == "INVALID_INPUT"
        quiz = {"list": await public_list(first), "correct": 3, "total": 5, "idempotencyKey": "1"}
        for served in (first, second):
            await newcomer(served, "ada").ask(RECORD_QUIZ, input=quiz)
    async with serving(settings) as third:
        counted = await today(third)
    assert counted == {"votes": 2, "comments": 2, "predictions": 0, "quizzes": 1, "newMembers": 2}


async def test_operations_show_requests_refusals_units_and_dollars(one_table: Table, settings: Settings) -> None:
    assert one_table.name == settings.table
    async with serving(settings) as served:
        for _ in range(3):
            await newcomer(served, "ada").code(REFUSED)
    async with serving(settings) as later:
        now = utc_now()
        shown = await admin(later).ask(
            OPERATIONS, **{"from": (now - WINDOW).isoformat(), "to": (now + WINDOW).isoformat()}
        )
    (refusal,) = [one for one in shown if one["name"] == "Refusal"]
    assert (refusal["requests"], refusal["refusals"]) == (3, 3)
    assert refusal["units"] > 0
    assert 0 < refusal["dollars"] < 0.001


@pytest.mark.soak
async def test_a_process_that_stops_reports_although_its_traces_cannot_be_delivered(
    one_table: Table, settings: Settings
) -> None:
    """To wait for a collector that does not answer takes as long as a stopping process may use the table."""
    assert one_table.name == settings.table
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        async with serving(settings.model_copy(update={"otlp_endpoint": endpoint})) as traced:
            await newcomer(traced, "ada").code(REFUSED)
    async with serving(settings) as later:
        now = utc_now()
        shown = await admin(later).ask(
            OPERATIONS, **{"from": (now - WINDOW).isoformat(), "to": (now + WINDOW).isoformat()}
        )
    assert [one["requests"] for one in shown if one["name"] == "Refusal"] == [1]


async def test_a_report_that_is_repeated_changes_nothing(one_client: Client) -> None:
    services = one_client.services
    taken = [{"Vote": OperationFigures(2, 1, 3.0, 4.5)}, {"Vote": OperationFigures(1, 0, 0.5, 0.0)}, {}, {}]
    figures = iter(taken)
    reports = UsageReports(services, lambda: next(figures))
    services.activity["votes"] += 5
    for _ in taken:
        await reports.report()
        reports._reported_operations = reports._reported_activity = None  # type: ignore[assignment]  # as if it failed
    now = utc_now()
    shown = await admin(one_client).ask(
        OPERATIONS, **{"from": (now - WINDOW).isoformat(), "to": (now + WINDOW).isoformat()}
    )
    assert [one for one in shown if one["name"] == "Vote"] == [
        {"name": "Vote", "requests": 3, "refusals": 1, "units": 8.0, "dollars": 0.000003}
    ]
    assert (await today(one_client))["votes"] == 5


async def test_what_could_not_be_reported_is_reported_later_also_after_its_hour_and_day(one_client: Client) -> None:
    now, day = utc_now(), timedelta(days=1)
    clock = iter([now - day, now])
    services = Services(one_client.services.table, one_client.services.seal, clock=lambda: next(clock))
    figures = iter([{"Vote": OperationFigures(2, 1, 3.0, 4.5)}, {"Vote": OperationFigures(1, 0, 0.5, 0.0)}])
    reports = UsageReports(services, lambda: next(figures))
    services.activity["votes"] += 5
    with deadline(0.0), pytest.raises(DeadlineExceeded):
        await reports.report()
    services.activity["votes"] += 1
    await reports.report()
    times = {"from": (now - day - WINDOW).isoformat(), "to": (now + WINDOW).isoformat()}
    shown = await admin(one_client).ask(OPERATIONS, **times)
    assert [one["requests"] for one in shown if one["name"] == "Vote"] == [3]
    assert (await today(one_client))["votes"] == 6


async def test_names_that_a_client_invents_keep_nothing_from_being_reported(one_client: Client) -> None:
    """However many there are: an item of the table has no room for all of them."""
    invented = {f"{number:0>100}": OperationFigures(1, 0, 1.0, 1.0) for number in range(5_000)}
    reports = UsageReports(one_client.services, lambda: invented)
    for _ in range(2):
        one_client.services.activity["votes"] += 1
        await reports.report()
    now = utc_now()
    shown = await admin(one_client).ask(
        OPERATIONS, **{"from": (now - WINDOW).isoformat(), "to": (now + WINDOW).isoformat()}
    )
    assert sum(one["requests"] for one in shown if one["name"].isdigit() or one["name"] == "other") == 10_000
    assert (await today(one_client))["votes"] == 2


async def test_too_long_a_time_is_refused_before_anything_is_read(one_client: Client) -> None:
    asking = admin(one_client)
    for first, last in (("2026-01-01", "2026-04-03"), ("2026-01-02", "2026-01-01")):
        assert await asking.code(ACTIVITY, **{"from": first, "to": last}) == "BAD_USER_INPUT"
    for first, last in (("2026-01-01", "2026-02-02"), ("2026-01-02", "2026-01-01"), ("2026-01-02", "2026-01-02")):
        times = {"from": f"{first}T00:00:00Z", "to": f"{last}T00:00:00Z"}
        assert await asking.code(OPERATIONS, **times) == "BAD_USER_INPUT"


async def test_nothing_is_behind_once_votes_are_settled_and_jobs_have_ended(one_client: Client) -> None:
    await add_contenders(one_client, *"abc")
    await vote(one_client.visitor())
    asking = admin(one_client)
    assert (await asking.ask(LAG))["settlingSeconds"] < 60
    async with asyncio.timeout(LONGEST):
        while (await asking.ask(LAG))["settlingSeconds"] > 0:
            await asyncio.sleep(0.05)
    assert (await asking.ask(LAG)) == {"settlingSeconds": 0.0, "oldestJobSeconds": 0.0}
