"""A clock that was hours ahead and is corrected: nothing waits until the time that it showed."""

import asyncio
from dataclasses import replace
from datetime import timedelta

from datastore.changes.occurrences import DELIVERY, Kind, Occurrence, Webhook, new_delivery
from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import Table
from datastore.journal.webhooks import add_webhook
from datastore.members.api_keys import API_KEY
from datastore.values.ids import Ids
from datastore.values.seal import Seal
from resolvers.members.api_keys import ApiKeys
from resolvers.requests.context import Role, Services, utc_now
from resolvers.values.node_ids import node_id
from server.mail.daily_run import DailyRun
from server.mail.message import Letterhead
from server.mail.runs import EmailSchedule
from server.mail.sending import Emails, LogTransport
from server.settings import Settings
from tests.api_keys import create_api_key
from tests.client import Client, serving
from tests.confirmations import Clock
from tests.conftest import SECRET
from tests.erasing import ERASE
from tests.jobs import ended
from tests.queries import UPDATE_PROFILE
from tests.receiver import receiving
from tests.vocabulary import ANSWER_QUIZ, START_QUIZ, known_list, right_answers

AHEAD = timedelta(hours=2)
MINUTES = timedelta(minutes=15)


# ── claims and turns ──


async def test_emails_are_sent_on_schedule(one_table: Table) -> None:
    """When the next run is due was said by a clock that was ahead; by seconds, that counts."""
    for ahead, due in ((timedelta(seconds=20), False), (AHEAD, True)):
        for clock, expected in ((lambda ahead=ahead: utc_now() + ahead, True), (utc_now, due)):
            services = Services(one_table, Seal([SECRET]), clock=clock)
            schedule = EmailSchedule(services, Settings(secrets=(SECRET,)), MINUTES.total_seconds() / 60)
            assert await schedule.run_if_due() is expected


async def test_the_use_of_a_key_is_stored(one_client: Client, settings: Settings) -> None:
    """The last one that is stored is of the clock that was ahead."""
    secret = (await create_api_key(one_client, Role.ADMIN))["secret"]
    robot, services = Client(one_client.served, settings, secret), one_client.services
    for clock in (lambda: utc_now() + AHEAD, utc_now):
        services.clock = clock
        await robot.ask("{ viewer { id } }")
        await services.get(ApiKeys)._writes.close()
    [key] = [each async for each in services.table.consistent().scan(API_KEY)]
    assert key.last_used_at is not None
    assert key.last_used_at <= utc_now()


async def test_a_member_who_asked_to_be_erased_is(one_client: Client) -> None:
    """The job begins at once, and not when the clock was."""
    services, services.clock = one_client.services, lambda: utc_now() + AHEAD
    ada = one_client.member("ada")
    await ada.ask(UPDATE_PROFILE, input={"name": "Ada"})
    job = (await ada.ask(ERASE, input={"user": node_id("User", "ada"), "contributions": "REMOVE"}))["job"]
    services.clock = utc_now
    assert (await ended(one_client.member("root", Role.ADMIN), job["id"]))["state"] == "DONE"


async def test_a_quiz_is_graded(one_client: Client) -> None:
    """The time that its answers take does not count from a quiz that was answered when the clock was ahead."""
    services, words, ada = one_client.services, await known_list(one_client), one_client.member("ada")
    clock = services.clock = Clock()
    for begins in (utc_now() + AHEAD, utc_now()):
        clock.now = begins
        quiz = await ada.ask(START_QUIZ, input={"list": words, "size": 3})
        clock.now += timedelta(minutes=1)
        graded = await ada.ask(ANSWER_QUIZ, input={"token": quiz["token"], "answers": right_answers(quiz)})
        assert graded["result"]["correct"] == 3, graded


async def test_a_run_waits_for_the_indexes_and_no_longer(one_table: Table) -> None:
    """The clock is corrected while it is under way."""
    moments = iter([utc_now() + AHEAD] * 4)
    services = Services(one_table, Seal([SECRET]), clock=lambda: next(moments, None) or utc_now())
    letterhead = Letterhead("words@example.org", "https://api.example.org", services.seal)
    emails = Emails(services, letterhead, LogTransport(), index_lag=timedelta(seconds=0.2))
    async with asyncio.timeout(120):
        assert (await DailyRun(emails).run()).complete
    assert next(moments, None) is None


# ── webhooks ──


async def test_what_waits_for_a_webhook_is_delivered(one_table: Table, settings: Settings) -> None:
    """Its id is made, it was queued again or its next attempt is due by the wrong clock."""
    now, ids, ahead = utc_now(), Ids(), utc_now() + AHEAD
    names = {"Board:a": now, "Board:b": now, "Board:c": ahead}
    occurred = [Occurrence(ids.next(at), Kind.BOARD_CHANGED, None, name) for name, at in names.items()]
    retried, requeued, recent = (new_delivery("h1", one) for one in occurred)
    waiting = [replace(retried, attempts=3, next_at=ahead), replace(requeued, since=ahead), recent]
    await one_table.write_many(map(DELIVERY.put, waiting))
    async with receiving() as receiver:
        webhook = Webhook("h1", receiver.url, (), now, "whsec_AAAA")
        await add_webhook(one_table, webhook, UnitOfWork.unkeyed(now))
        async with serving(settings.model_copy(update={"webhook_networks": ("127.0.0.0/8",)})):
            await receiver.until(lambda: {message.id for message in receiver.accepted} == {one.ulid for one in waiting})
