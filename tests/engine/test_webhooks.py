"""Webhooks: what reaches a receiver, how it is signed, who sends it, and where nothing is sent."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from math import inf
from random import Random
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from datastore.changes.occurrences import (
    DELIVERY,
    OCCURRENCE,
    WEBHOOK,
    WEBHOOKS,
    DeliveryState,
    Kind,
    Occurrence,
    Webhook,
    new_delivery,
)
from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import ConditionFailed, Table, iso
from datastore.dynamo.writes import absent
from datastore.jobs.jobs import JOB
from datastore.jobs.leases import Held
from datastore.journal.webhooks import add_webhook, clear_webhook, mark_delivered, mark_failed, requeue
from datastore.values.ids import Ids
from datastore.values.seal import Seal
from resolvers.requests.context import Role, Services, utc_now
from resolvers.requests.policy import Policy
from resolvers.values.node_ids import node_id, parse_node_key
from server import webhooks
from server.settings import Settings
from server.webhooks import Pace, open_sender, sign
from tests.client import Client, pages, serving
from tests.comments import post
from tests.conftest import settings_for
from tests.engines import RunningEngine
from tests.intercepted import beforehand
from tests.jobs import SECRET, ended
from tests.killed import Killed, killed_at
from tests.lost_answers import ask_without_answer
from tests.queries import CAST_VOTE, DRAW_MATCHUP, EDIT_COMMENT, mutation
from tests.receiver import Message, Receiver, receiving
from tests.season import EventEditor, in_hours
from tests.voting import add_contenders, read_keys
from tests.waiting import LONGEST, turns, until

ADD_WEBHOOK = mutation("addWebhook", "WebhookAdded", "webhook { id url kinds active } secret")
REMOVE_WEBHOOK = mutation("removeWebhook", "WebhookRemoved", "deletedId")
ROTATE_SECRET = mutation("rotateWebhookSecret", "WebhookSecretRotated", "webhook { id } secret")
REDELIVER = mutation("redeliver", "Redelivery", "job { id state }")
DELIVERIES = """
query ($id: ID!, $state: DeliveryState, $first: Int, $after: String) {
  node(id: $id) { ... on Webhook { deliveries(state: $state, first: $first, after: $after) {
    nodes { id state attempts lastStatus lastError nextAt occurrence { kind object } }
    pageInfo { hasNextPage endCursor } } } } }
"""
LOCAL = {"webhook_networks": ("127.0.0.0/8",)}


@pytest.fixture(autouse=True)
def pace(monkeypatch: pytest.MonkeyPatch) -> Pace:
    """No test waits for what a receiver would be given time for."""
    quick = Pace(check=0.2, poll=0.1, stuck=0.1, first_pause=0.1, send=LONGEST)
    monkeypatch.setattr(webhooks, "PACE", quick)
    return quick


@pytest.fixture
async def hooked(table: Table, engine: RunningEngine) -> AsyncIterator[Client]:
    """A service on each of the engines that may send to this machine."""
    async with serving(settings_for(engine, table.name, **LOCAL)) as visitor:
        yield visitor


@pytest.fixture
async def one_hooked(one_table: Table, settings: Settings) -> AsyncIterator[Client]:
    """The same on the default engine."""
    assert one_table.name == settings.table
    async with serving(settings.model_copy(update=LOCAL)) as visitor:
        yield visitor


def admin(client: Client) -> Client:
    return client.member("root", Role.ADMIN)


async def add(client: Client, receiver: Receiver, *kinds: str) -> dict[str, Any]:
    answer: dict[str, Any] = await admin(client).ask(ADD_WEBHOOK, input={"url": receiver.url, "kinds": list(kinds)})
    assert "webhook" in answer, answer
    return answer


async def deliveries(client: Client, webhook: str, **wanted: Any) -> list[dict[str, Any]]:
    return await pages(admin(client), DELIVERIES, id=webhook, **wanted)


async def until_delivered(client: Client, webhook: str) -> None:
    async def delivered() -> bool:
        await client.caught_up("each delivery is listed as it is")
        return not await deliveries(client, webhook, state="WAITING")

    await until(delivered, "nothing waits")


async def until_signed(client: Client, receiver: Receiver, secrets: list[str]) -> None:
    """Post until the process, which learns of secrets at its next check, signs with all of these."""

    async def signed() -> bool:
        number = len(receiver.accepted)
        await post(client.member("ada"))
        await receiver.until(lambda: len(receiver.accepted) > number)
        message = receiver.accepted[-1]
        timestamp = int(message.headers["webhook-timestamp"])
        return message.headers["webhook-signature"] == sign(secrets, message.id, timestamp, message.body)

    await until(signed, "a message is signed with each secret")


@pytest.mark.quick
@pytest.mark.lagging
async def test_a_receiver_is_told_what_happens_signed(hooked: Client) -> None:
    """Only of the kinds it wants, each message with the id, time and signature that Standard Webhooks asks for.

    At least once: what comes again is the same message. In no order, but each says where it belongs.
    """
    async with receiving() as receiver:
        added = await add(hooked, receiver, "comment.posted", "comment.edited")
        ada = hooked.member("ada")
        comment = await post(ada)
        for number in range(5):
            await ada.ask(EDIT_COMMENT, input={"comment": comment["id"], "body": f"Text {number}."})
        await receiver.until(lambda: len(receiver.without_repeats()) == 6)
        firsts = sorted(receiver.without_repeats(), key=lambda message: message.content["sequence"])
        assert [message.data["kind"] for message in firsts] == ["comment.posted", *["comment.edited"] * 5]
        assert [message.content["occurredAt"] for message in firsts] == [message.data["at"] for message in firsts]
        for message in receiver.accepted:
            assert (message.data["actor"], message.data["object"]) == (node_id("User", "ada"), comment["id"])
            timestamp = int(message.headers["webhook-timestamp"])
            assert message.headers["webhook-signature"] == sign([added["secret"]], message.id, timestamp, message.body)
            assert abs(timestamp - utc_now().timestamp()) < 60
        await until_delivered(hooked, added["webhook"]["id"])
        await hooked.caught_up("the journal has what each delivery reports")
        shown = await deliveries(hooked, added["webhook"]["id"], size=4)
        assert [(one["state"], one["lastStatus"]) for one in shown] == [("DELIVERED", 204)] * 6
        assert [one["occurrence"]["kind"] for one in shown] == [message.data["kind"] for message in firsts[::-1]]
        assert min(one["attempts"] for one in shown) == 1
        assert {message.body for message in receiver.accepted} == {message.body for message in firsts}


async def test_what_fails_is_sent_again(hooked: Client) -> None:
    """A third of the attempts fails: all arrive, each under one id."""
    chance = Random(7)
    async with receiving(lambda _: 204 if chance.random() > 0.34 else 500) as receiver:
        await add(hooked, receiver)
        ada = hooked.member("ada")
        comments = [(await post(ada, product=str(number)))["id"] for number in range(8)]
        for number in range(4):
            for comment in comments:
                await ada.ask(EDIT_COMMENT, input={"comment": comment, "body": f"Text {number}."})
        await receiver.until(lambda: len({message.id for message in receiver.accepted}) == 40)
        assert len(receiver.received) > 45
        for comment in comments:
            assert len({message.id for message in receiver.accepted if message.data["object"] == comment}) == 5


@pytest.mark.parametrize("attempts", [0, 3])
async def test_a_message_that_no_process_could_send_for_days_is_tried_again_too(
    one_hooked: Client, attempts: int
) -> None:
    """Whether it had failed before or not: the receiver may just be starting too."""
    then = utc_now() - timedelta(days=3)
    failed = {"attempts": attempts, "since": then, "next_at": then + timedelta(minutes=1)}
    before: dict[str, Any] = failed if attempts else {}
    statuses = iter((503, 503))
    async with receiving(lambda _: next(statuses, 204)) as receiver:
        added = await add(one_hooked, receiver, "comment.posted")
        webhook = parse_node_key("Webhook", added["webhook"]["id"])
        occurrence = Occurrence(Ids().next(then), Kind.COMMENT_POSTED, None, "Comment:a#b")
        waiting = replace(new_delivery(webhook, occurrence), **before)
        await one_hooked.services.table.write(DELIVERY.put(waiting))
        await until_delivered(one_hooked, added["webhook"]["id"])
        assert [message.id for message in receiver.accepted] == [occurrence.ulid]


async def test_a_message_that_fails_holds_up_no_other(one_hooked: Client, pace: Pace) -> None:
    """Neither one about the same object, nor if more of them wait than a process has in memory."""
    pace.window = 2

    def answer(message: Message) -> int:
        return 500 if message.data["kind"] == "comment.posted" else 200

    async with receiving(answer) as receiver:
        await add(one_hooked, receiver, "comment.posted", "comment.edited")
        ada = one_hooked.member("ada")
        comments = [await post(ada, product=str(number)) for number in range(40)]
        await receiver.until(lambda: len({message.id for message in receiver.received}) == 40)
        await ada.ask(EDIT_COMMENT, input={"comment": comments[0]["id"], "body": "Again."})
        await receiver.until(lambda: receiver.kinds() == ["comment.edited"])
        assert len(receiver.received) > 40


async def test_a_dead_letter_is_queued_again(one_hooked: Client, pace: Pace) -> None:
    """It is given up when it fails after a day; queued again, it arrives, once."""
    refused = True

    def answer(message: Message) -> int:
        return 500 if refused and message.data["kind"] == "comment.posted" else 200

    async with receiving(answer) as receiver:
        webhook = (await add(one_hooked, receiver, "comment.posted", "comment.edited"))["webhook"]["id"]
        began, ada = utc_now(), one_hooked.member("ada")
        comment = await post(ada)
        await ada.ask(EDIT_COMMENT, input={"comment": comment["id"], "body": "Again."})
        await receiver.until(lambda: len(receiver.accepted) == 1 and len(receiver.received) > 2)

        async def alone() -> dict[str, Any] | None:
            waiting = await deliveries(one_hooked, webhook, state="WAITING")
            return waiting[0] if len(waiting) == 1 else None

        waiting = await until(alone, "what was accepted waits no more")
        assert (waiting["lastStatus"], waiting["lastError"]) == (500, "it answered 500")
        pace.give_up_after = timedelta()
        await until_delivered(one_hooked, webhook)
        [dead] = await deliveries(one_hooked, webhook, state="DEAD")
        assert (dead["occurrence"]["kind"], dead["nextAt"]) == ("comment.posted", None)
        refused = False
        pace.give_up_after = timedelta(days=1)
        answered = await admin(one_hooked).ask(REDELIVER, input={"webhook": webhook, "since": iso(began)})
        assert answered["job"]["state"] == "RUNNING"
        await receiver.until(lambda: len(receiver.accepted) == 3)
        assert sorted(receiver.kinds()) == ["comment.edited", "comment.edited", "comment.posted"]
        await until_delivered(one_hooked, webhook)
        assert await deliveries(one_hooked, webhook, state="DEAD") == []
        assert len(await deliveries(one_hooked, webhook)) == 2


async def test_what_waits_for_its_next_attempt_is_delivered_at_once_if_it_is_asked_for(one_hooked: Client) -> None:
    """Else an admin who has mended the receiver would wait for an hour, and the message might be given up."""
    now, table = utc_now(), one_hooked.services.table
    async with receiving() as receiver:
        added = await add(one_hooked, receiver, "comment.posted")
        webhook = parse_node_key("Webhook", added["webhook"]["id"])
        occurrence = Occurrence(Ids().next(now), Kind.COMMENT_POSTED, None, "Comment:a#b", expires=now + timedelta(90))
        failed = replace(new_delivery(webhook, occurrence), attempts=20, next_at=now + timedelta(minutes=50), since=now)
        await table.write_many([OCCURRENCE.put(occurrence), DELIVERY.put(failed)])
        asked = await admin(one_hooked).ask(REDELIVER, input={"webhook": added["webhook"]["id"], "since": iso(now)})
        job = await ended(admin(one_hooked), asked["job"]["id"])
        assert job["message"] == "1 occurrences will be delivered again."
        await receiver.until(lambda: [message.id for message in receiver.accepted] == [occurrence.ulid])


@pytest.mark.parametrize("keyed", [False, True])
async def test_a_redelivery_whose_answer_is_lost_has_begun_once(one_client: Client, *, keyed: bool) -> None:
    """The request that began its job answers with it, with a key and without."""
    webhook = (await admin(one_client).ask(ADD_WEBHOOK, input={"url": "https://8.8.8.8/", "kinds": []}))["webhook"][
        "id"
    ]
    unit: dict[str, Any] = {"idempotencyKey": "1"} if keyed else {}
    answer = await ask_without_answer(admin(one_client), REDELIVER, webhook=webhook, since=iso(utc_now()), **unit)
    assert (await ended(admin(one_client), answer["job"]["id"]))["state"] == "DONE"
    assert [job.kind async for job in one_client.services.table.scan(JOB, consistent=True)] == ["REDELIVER"]


async def test_a_redelivery_that_is_killed_leaves_no_dead_letter(one_table: Table) -> None:
    """The job that goes on finds that the occurrence waits: then it is not dead as well."""
    now = utc_now()
    occurrence = Occurrence(Ids().next(now), Kind.COMMENT_POSTED, None, "Comment:a#b")
    waiting = new_delivery("h1", occurrence)
    await one_table.write(DELIVERY.put(waiting))
    await mark_failed(one_table, waiting, 500, "it answered 500", next_at=None, now=now)
    with killed_at(one_table, 0), suppress(Killed):
        await requeue(one_table, waiting, now)
    assert not await requeue(one_table, waiting, now)
    found = [delivery async for delivery in one_table.scan(DELIVERY, consistent=True)]
    assert found == [replace(waiting, since=found[0].since)]


async def test_a_redelivery_to_a_webhook_that_is_removed_meanwhile_ends(one_hooked: Client, pace: Pace) -> None:
    """It leaves nothing that waits for ever, though it goes on after everything was deleted."""
    pace.clear, table, root = 0.0, one_hooked.services.table, admin(one_hooked)
    began = utc_now()
    async with receiving() as receiver:
        webhook = (await add(one_hooked, receiver, "comment.posted"))["webhook"]["id"]
        await post(one_hooked.member("ada"))
        await until_delivered(one_hooked, webhook)

    async def removed() -> None:
        await root.ask(REMOVE_WEBHOOK, input={"webhook": webhook})

        async def cleared() -> bool:
            return not [one async for one in table.iterate(WEBHOOKS, consistent=True)]

        await until(cleared, "the webhook and its deliveries are deleted")

    with beforehand(table, removed, "query", about="JOURNAL#") as begun:
        job = (await root.ask(REDELIVER, input={"webhook": webhook, "since": iso(began)}))["job"]["id"]
        assert (await ended(root, job))["message"] == "The webhook was removed."
    assert begun
    assert [one async for one in table.scan(DELIVERY, consistent=True)] == []


async def test_a_failure_that_is_noted_late_brings_nothing_back(one_table: Table) -> None:
    """Another process has delivered it since, or its webhook was removed: nothing waits, and nothing is dead."""
    now = utc_now()
    waiting = new_delivery("h1", Occurrence(Ids().next(now), Kind.COMMENT_POSTED, None, "Comment:a#b"))
    moves: list[tuple[list[DeliveryState], Callable[[], Awaitable[None]]]] = [
        ([DeliveryState.DELIVERED], lambda: mark_delivered(one_table, waiting, 204, now)),
        ([], lambda: clear_webhook(one_table, "h1")),
    ]
    for left, move_on in moves:
        await one_table.write(DELIVERY.put(waiting))
        await move_on()
        for next_at in (now + timedelta(seconds=1), None):
            assert await mark_failed(one_table, waiting, 500, "it answered 500", next_at=next_at, now=now) is None
        assert [one.state async for one in one_table.scan(DELIVERY, consistent=True)] == left


async def test_both_secrets_sign_for_a_day(one_hooked: Client) -> None:
    """The new one first; after the day it signs alone."""
    async with receiving() as receiver:
        added = await add(one_hooked, receiver, "comment.posted")
        rotated = await admin(one_hooked).ask(ROTATE_SECRET, input={"webhook": added["webhook"]["id"]})
        assert rotated["secret"] != added["secret"]
        await until_signed(one_hooked, receiver, [rotated["secret"], added["secret"]])
        one_hooked.services.clock = lambda: utc_now() + timedelta(days=2)
        await until_signed(one_hooked, receiver, [rotated["secret"]])


async def test_each_secret_signs_for_a_day_after_it_was_replaced(one_hooked: Client) -> None:
    """Also if it was replaced several times; no more than four at once, and the next is refused until one has ended."""
    async with receiving() as receiver:
        added = await add(one_hooked, receiver, "comment.posted")
        wanted = {"webhook": added["webhook"]["id"]}
        secrets = [added["secret"]]
        for _ in range(4):
            secrets.insert(0, (await admin(one_hooked).ask(ROTATE_SECRET, input=wanted))["secret"])
        refused = await admin(one_hooked).ask(ROTATE_SECRET, input=wanted)
        assert refused["code"] == "CONFLICT"
        await until_signed(one_hooked, receiver, secrets)
    one_hooked.services.clock = lambda: utc_now() + timedelta(days=2)
    await admin(one_hooked).ask(ROTATE_SECRET, input=wanted)
    [stored] = [one async for one in one_hooked.services.table.iterate(WEBHOOKS, consistent=True)]
    assert stored.secrets(one_hooked.services.clock())[1:] == secrets[:1]


async def test_a_removed_webhook_is_told_nothing_more(one_hooked: Client, pace: Pace) -> None:
    """Nor is anything kept for it, and no operator is told of a failure."""
    pace.clear = 0.0
    async with receiving(lambda _: 500) as receiver:
        webhook = (await add(one_hooked, receiver))["webhook"]["id"]
        await post(one_hooked.member("ada"))
        await receiver.until(lambda: len(receiver.received) > 0)
        removed = await admin(one_hooked).ask(REMOVE_WEBHOOK, input={"webhook": webhook})
        assert removed == {"deletedId": webhook}
        assert (await admin(one_hooked).ask(REMOVE_WEBHOOK, input={"webhook": webhook}))["code"] == "NOT_FOUND"
        table = one_hooked.services.table
        with capture_logs() as logs:
            async with asyncio.timeout(120):
                while [
                    item
                    async for item in table.scan_items(consistent=True)
                    if item["pk"]["S"].startswith(("DELIVERIES", "WEBHOOKS"))
                ]:
                    await asyncio.sleep(0.05)
            await post(one_hooked.member("ada"))
        assert [line for line in logs if line["log_level"] == "warning"] == []
        assert not [
            item async for item in table.scan_items(consistent=True) if item["pk"]["S"].startswith("DELIVERIES")
        ]


async def test_much_that_is_left_of_a_removed_webhook_delays_no_other(one_hooked: Client, pace: Pace) -> None:
    """However long it takes to delete it."""
    pace.clear = 0.0
    for_ever = beforehand(one_hooked.services.table, asyncio.Event().wait, "delete_item", about="WEBHOOK")
    with for_ever as begun:
        async with receiving() as removed, receiving() as other:
            webhook = (await add(one_hooked, removed))["webhook"]["id"]
            await admin(one_hooked).ask(REMOVE_WEBHOOK, input={"webhook": webhook})
            await until(lambda: begun, "it is being deleted")
            await add(one_hooked, other, "comment.posted")
            await post(one_hooked.member("ada"))
            await other.until(lambda: other.kinds() == ["comment.posted"])


async def test_votes_are_told_to_those_who_name_them(one_hooked: Client) -> None:
    """And then they are in the journal too."""
    async with receiving() as named, receiving() as unnamed:
        await add(one_hooked, named, "vote.cast")
        await add(one_hooked, unnamed)
        await add_contenders(admin(one_hooked), "A", "B")
        ballot = await one_hooked.member("ada").ask(DRAW_MATCHUP)
        await one_hooked.member("ada").ask(CAST_VOTE, token=ballot["token"], verdict="SKIP")
        await named.until(lambda: named.kinds() == ["vote.cast"])
        await unnamed.until(lambda: unnamed.kinds().count("contender.added") == 2)
        assert "vote.cast" not in unnamed.kinds()
        journal = "{ journal(first: 1) { nodes { kind actor } } }"
        assert (await admin(one_hooked).ask(journal))["nodes"] == [
            {"kind": "vote.cast", "actor": node_id("User", "ada")}
        ]


async def test_without_a_journal_what_happens_is_still_delivered(one_table: Table, settings: Settings) -> None:
    """It is kept until then, and no longer."""
    async with serving(settings.model_copy(update={**LOCAL, "journal_days": 0})) as client, receiving() as receiver:
        webhook = (await add(client, receiver, "comment.posted"))["webhook"]["id"]
        comment = await post(client.member("ada"))
        await receiver.until(lambda: len(receiver.accepted) == 1)
        assert receiver.accepted[0].data["object"] == comment["id"]
        await until_delivered(client, webhook)
        [delivered] = await deliveries(client, webhook)
        assert (delivered["state"], delivered["occurrence"]) == ("DELIVERED", None)
    items = [item async for item in one_table.scan_items(consistent=True)]
    assert not [item for item in items if item["pk"]["S"].startswith("JOURNAL#")]
    assert not [item for item in items if item["pk"]["S"].startswith("DELIVERIES") and "content" in item]


async def test_another_process_goes_on_after_one_was_killed(
    one_table: Table, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first never releases its lease. What it has sent but not stored is sent again, the rest once."""
    monkeypatch.setattr(Held, "release", _never)
    assert one_table.name == settings.table
    async with receiving() as receiver:
        posted = set[str]()
        for life in range(3):
            async with serving(settings.model_copy(update=LOCAL)) as client:
                client.services.leases.patience = 2.0
                if not life:
                    await add(client, receiver, "comment.posted")
                for number in range(10):
                    posted.add((await post(client.member("ada"), product=f"{life} {number}"))["id"])
                if life == 2:
                    await receiver.until(lambda: {message.data["object"] for message in receiver.accepted} == posted)
        assert len(receiver.accepted) <= 60  # each life sends at most its ten, and those before it, once more


async def _never(_: object) -> None:
    """What kill -9 leaves of a release."""


async def test_what_a_stopping_process_has_under_way_is_sent_by_another_at_once(one_table: Table) -> None:
    """Its lease is released although its request was not answered, and the next attempt acquires it."""
    async with hanging() as (url, begun), delivering_process(one_table) as first:
        await waits(one_table, "h1", url, 1)
        await first.acquire_free()
        await until(lambda: begun, "the request is under way")
        async with delivering_process(one_table) as second:
            await second.acquire_free()
            await asyncio.sleep(0.5)
            assert len(begun) == 1
            await first.close()
            await second.acquire_free()
            await until(lambda: len(begun) == 2, "the other process sends it")


async def test_several_processes_share_the_webhooks(one_table: Table, pace: Pace) -> None:
    """One that was started later gets some once the first has held them for a while; nothing is sent twice."""
    pace.tenure, pace.send = 1.0, LONGEST
    async with receiving() as receiver, delivering_process(one_table) as first, delivering_process(one_table) as second:
        for process in (first, second):
            process.services.leases.patience = process.services.leases.lasting = LONGEST
        for number in range(4):
            await waits(one_table, f"h{number}", receiver.url, 3)
        first.start()
        await receiver.until(lambda: len(receiver.accepted) == 12)
        second.start()
        async with asyncio.timeout(LONGEST):
            while not (first.counts.delivered and second.counts.delivered):
                await waits(one_table, "h0", receiver.url, 1)
                await asyncio.sleep(0.2)
        await until(partial(nothing_waits, one_table), "what was accepted waits no more")
    assert len(receiver.without_repeats()) == len(receiver.accepted)


async def test_a_process_reads_no_webhooks_where_there_are_none(one_table: Table) -> None:
    """As long as it is told that this is so; it reads them at the first check after that."""
    async with delivering_process(one_table) as process:
        await process.acquire_free()
        process.services.journal.confirm(inf)
        with read_keys(one_table) as keys:
            process.start()
            await asyncio.sleep(1)
            assert keys == []
            process.services.journal._known_at = -inf
            await until(lambda: keys, "it reads them")


async def nothing_waits(table: Table) -> bool:
    return not [one async for one in table.scan(DELIVERY, consistent=True) if one.state is DeliveryState.WAITING]


async def waits(table: Table, webhook: str, url: str, number: int) -> list[Occurrence]:
    """Let messages wait for a webhook, which is added if there is none."""
    ids, now = Ids(), utc_now()
    occurred = [Occurrence(ids.next(now), Kind.COMMENT_POSTED, None, f"Comment:{n}#a") for n in range(number)]
    await table.write_many(DELIVERY.put(new_delivery(webhook, one)) for one in occurred)
    with suppress(ConditionFailed):
        await table.write(WEBHOOK.put(Webhook(webhook, url, (), now, "whsec_AAAA"), when=absent()))
    return occurred


@asynccontextmanager
async def delivering_process(table: Table) -> AsyncIterator[webhooks.Deliverer]:
    """What a process has that delivers, and nothing else."""
    services = Services(table, Seal([SECRET]), Policy(webhook_networks=LOCAL["webhook_networks"]))
    async with open_sender(LOCAL["webhook_networks"]) as sender:
        deliverer = webhooks.Deliverer(services, sender)
        try:
            yield deliverer
        finally:
            await deliverer.close()
            await services.close()


async def test_what_a_process_records_first_is_told_too(
    one_table: Table, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query that locks a due event, before the process has looked for webhooks to deliver to."""
    async with serving(settings) as client:
        await EventEditor(client).event(starts=in_hours(1))
    await add_webhook(
        one_table, Webhook("h1", "https://8.8.8.8/", (), utc_now(), "whsec_AAAA"), UnitOfWork.unkeyed(utc_now())
    )
    monkeypatch.setattr(webhooks.Deliverer, "start", lambda _: None)
    async with serving(settings) as client:
        client.services.clock = lambda: utc_now() + timedelta(hours=2)
        assert (await client.ask("{ events(first: 1) { nodes { state } } }"))["nodes"] == [{"state": "LOCKED"}]
        waiting: list[str] = []
        async with asyncio.timeout(LONGEST):
            while not waiting:  # the lock is stored beside the request, which waits for it for a moment only
                await asyncio.sleep(0.05)
                waiting = [delivery.kind async for delivery in one_table.scan(DELIVERY, consistent=True)]
    assert waiting == ["event.locked"]


async def test_nothing_is_sent_while_the_lease_is_not_safe(
    one_table: Table, monkeypatch: pytest.MonkeyPatch, pace: Pace
) -> None:
    """Another process may have acquired it: what waits behind messages under way is sent once it is renewed."""
    pace.at_once = 1
    safe = True

    def answer(_: Message) -> int:
        nonlocal safe
        safe = False
        return 200

    monkeypatch.setattr(Held, "is_safe", property(lambda _: safe))
    async with receiving(answer) as receiver, delivering_process(one_table) as process:
        await waits(one_table, "h1", receiver.url, 3)
        await process.acquire_free()
        await receiver.until(lambda: len(receiver.received) > 0)
        await asyncio.sleep(0.5)
        assert len(receiver.received) == 1
        receiver.answer, safe = lambda _: 200, True
        await receiver.until(lambda: len(receiver.without_repeats()) == 3)


async def test_what_this_process_writes_ends_the_pause_of_an_idle_shard(one_table: Table, pace: Pace) -> None:
    """However long it is."""
    pace.poll = 3600.0
    async with receiving() as receiver, delivering_process(one_table) as process:
        unit = process.services.unit()
        await add_webhook(one_table, Webhook("h1", receiver.url, (), utc_now(), "whsec_AAAA"), unit)
        await process.acquire_free()
        await until(lambda: process._workers["h1"].is_idle, "the shard has nothing to send")
        pace.poll = 0.1
        unit = process.services.unit()
        await add_webhook(one_table, Webhook("h2", receiver.url, (), utc_now(), "whsec_AAAA"), unit)
        await receiver.until(lambda: [one.data["object"] for one in receiver.accepted] == [node_id("Webhook", "h2")])


async def test_a_receiver_that_hangs_delays_its_own_messages_only(one_table: Table, pace: Pace) -> None:
    """Its requests under way are bounded, however many of its messages wait."""
    pace.send = 3600.0
    async with hanging() as (url, begun), receiving() as receiver, delivering_process(one_table) as process:
        await waits(one_table, "h1", url, 200)
        await process.acquire_free()
        await until(lambda: len(begun) == pace.at_once, "as many requests are under way as may be")
        posted = await waits(one_table, "h2", receiver.url, 3)
        await process.acquire_free()
        await receiver.until(lambda: {one.id for one in receiver.accepted} == {one.ulid for one in posted})
        assert len(begun) == pace.at_once


async def test_a_process_leaves_a_webhook_whose_messages_take_long_to_send(one_table: Table, pace: Pace) -> None:
    """To the process that comes next, after its tenure: not once all is sent that was due at its last look."""
    pace.tenure, pace.at_once, pace.send = 0.5, 1, 0.2
    async with hanging() as (url, begun), delivering_process(one_table) as process:
        await waits(one_table, "h1", url, 50)
        await process.acquire_free()
        await until(process._workers["h1"].task.done, "it has left the webhook")
        assert len(begun) < 50


@asynccontextmanager
async def hanging() -> AsyncIterator[tuple[str, list[asyncio.StreamWriter]]]:
    """The address of a receiver that never answers, and the connections that were made to it."""
    begun: list[asyncio.StreamWriter] = []

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        begun.append(writer)
        await reader.read()
        writer.close()

    async with await asyncio.start_server(hold, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", begun


# ── bad input ──


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/",
        "https://user:secret@example.com/",
        "https://127.0.0.1/",
        "https://localhost/",
        "https://[::ffff:127.0.0.1]/",
        "https://2130706433/",
        "https://169.254.169.254/latest/meta-data",
    ],
)
async def test_an_address_that_may_not_be_sent_to_is_refused(one_client: Client, url: str) -> None:
    """With a reason, and nothing is stored."""
    answer = await admin(one_client).ask(ADD_WEBHOOK, input={"url": url, "kinds": []})
    assert (answer["code"], answer["path"]) == ("INVALID_INPUT", ["input", "url"])
    assert "not an address for a webhook" in answer["message"]
    assert not [
        item async for item in one_client.services.table.scan_items(consistent=True) if item["pk"]["S"] == "WEBHOOKS"
    ]


async def test_webhooks_are_for_admins_and_of_known_kinds(one_client: Client) -> None:
    """And there are ten at most."""
    given = {"url": "https://8.8.8.8/", "kinds": ["comment.posted"]}
    assert await one_client.member("max", Role.MODERATOR).code(ADD_WEBHOOK, input=given) == "NOT_ALLOWED"
    answer = await admin(one_client).ask(ADD_WEBHOOK, input={**given, "kinds": ["comment.posted", "comment.read"]})
    assert (answer["code"], answer["path"]) == ("INVALID_INPUT", ["input", "kinds", "1"])
    assert "comment.moderated" in answer["message"]
    answers = [await admin(one_client).ask(ADD_WEBHOOK, input=given) for _ in range(11)]
    assert [answer.get("code") for answer in answers] == [None] * 10 + ["CONFLICT"]
    missing = {"webhook": node_id("Webhook", one_client.services.ids.next(utc_now()))}
    assert await admin(one_client).code(ROTATE_SECRET, input=missing) == "NOT_FOUND"
    assert await admin(one_client).code(REDELIVER, input={**missing, "since": iso(utc_now())}) == "NOT_FOUND"
    future = iso(utc_now() + timedelta(hours=1))
    known = {"webhook": answers[0]["webhook"]["id"], "since": future}
    assert await admin(one_client).code(REDELIVER, input=known) == "INVALID_INPUT"
    everything = await admin(one_client).ask(REDELIVER, input={**known, "since": "0001-01-01T00:00:00Z"})
    assert (await ended(admin(one_client), everything["job"]["id"]))["state"] == "DONE"


async def test_there_are_ten_webhooks_also_if_more_are_added_at_once(one_client: Client) -> None:
    """The other requests are refused; a removed one makes room for another, again for one only."""
    given = {"url": "https://8.8.8.8/", "kinds": ["comment.posted"]}

    async def added_at_once(requests: int) -> list[str]:
        answers = await asyncio.gather(*(admin(one_client).ask(ADD_WEBHOOK, input=given) for _ in range(requests)))
        assert {answer.get("code") for answer in answers} == {None, "CONFLICT"}
        return [answer["webhook"]["id"] for answer in answers if "webhook" in answer]

    first = await added_at_once(16)
    assert len(first) == 10
    await admin(one_client).ask(REMOVE_WEBHOOK, input={"webhook": first[0]})
    assert len(await added_at_once(4)) == 1


@pytest.mark.parametrize("keyed", [False, True])
async def test_an_added_webhook_whose_answer_is_lost_is_added_once(one_client: Client, *, keyed: bool) -> None:
    """The request that added it answers with it, with a key and without."""
    unit = {"idempotencyKey": "1"} if keyed else {}
    given: dict[str, Any] = {"url": "https://8.8.8.8/", "kinds": ["comment.posted"], **unit}
    answer = await ask_without_answer(admin(one_client), ADD_WEBHOOK, **given)
    assert answer["webhook"]["active"]
    assert len([webhook async for webhook in one_client.services.table.iterate(WEBHOOKS, consistent=True)]) == 1


# ── sending ──


@asynccontextmanager
async def attempt_to_send(receiver: Receiver, *allowed: str) -> AsyncIterator[webhooks.Outcome]:
    async with open_sender(allowed) as sender:
        yield await sender.send(receiver.url, {"webhook-id": "1"}, b"{}")


async def test_a_name_that_nobody_finds_is_looked_up_once_at_a_time() -> None:
    """However many requests wait for it, or waited: a process has four threads for all its lookups."""
    loop, asked = asyncio.get_running_loop(), list[str]()

    async def hang(host: str, *_: object, **__: object) -> None:
        asked.append(host)
        await asyncio.Event().wait()

    loop.getaddrinfo = hang  # type: ignore[assignment, method-assign]
    async with open_sender(()) as sender, asyncio.TaskGroup() as sending:
        for _ in range(3):
            sends = [sending.create_task(sender.send(f"https://{host}.example.com/", {}, b"{}")) for host in "abbb"]
            await until(lambda: len(asked) >= 2, "both are looked up")
            await turns()
            for send in sends:
                send.cancel()
            await turns()
    assert sorted(asked) == ["a.example.com", "b.example.com"]


@pytest.fixture
def lead(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Lets a name lead to an address."""
    real, led = socket.getaddrinfo, dict[str, str]()
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *more, **named: real(led.get(host, host), *more, **named))
    return led.__setitem__


async def test_a_name_that_leads_elsewhere_later_is_not_sent_to(lead: Callable[[str, str], None]) -> None:
    """DNS rebinding: the address is checked when the connection is made, and it is that one that is connected to."""
    lead("rebound.example.com", "127.0.0.1")
    async with receiving() as receiver, open_sender(()) as sender:
        port = receiver.url.rpartition(":")[2]
        outcome = await sender.send(f"https://rebound.example.com:{port}", {}, b"{}")
        assert outcome.status is None
        assert "127.0.0.1 is not a public address" in str(outcome.error)
        assert receiver.received == []


async def test_a_name_of_a_public_address_is_not_sent_to_without_encryption(
    lead: Callable[[str, str], None], pace: Pace
) -> None:
    """With http, a name may lead to the allowed networks only; where it leads is known when the connection is made."""
    lead("public.example.com", "8.8.8.8")
    pace.send = 60.0
    async with open_sender(("10.0.0.0/8",)) as sender:
        outcome = await sender.send("http://public.example.com/", {}, b"{}")
    assert outcome.status is None
    assert "http is only for networks of RINGSIDE_WEBHOOK_NETWORKS" in str(outcome.error)


async def test_a_redirect_is_a_failure() -> None:
    """It is not followed, wherever it leads."""

    def redirect(_: Message) -> web.Response:
        return web.Response(status=307, headers={"location": receiver.url})

    async with receiving(redirect) as receiver, attempt_to_send(receiver, "127.0.0.1") as outcome:
        assert outcome == webhooks.Outcome(307, "it answered 307")
        assert len(receiver.received) == 1


async def test_of_a_long_response_only_the_start_is_read() -> None:
    """Its status counts."""
    long = web.Response(status=200, body=b"x" * 50_000_000)
    async with receiving(lambda _: long) as receiver, attempt_to_send(receiver, "127.0.0.1") as outcome:
        assert outcome == webhooks.Outcome(200)


async def test_a_receiver_that_does_not_answer_is_left(pace: Pace) -> None:
    """After ten seconds; here sooner."""
    pace.send = 0.2
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        async with open_sender(("127.0.0.1",)) as sender:
            outcome = await sender.send(url, {}, b"{}")
    assert outcome.status is None
    assert "did not answer" in str(outcome.error)


async def test_the_reason_of_a_failure_does_not_name_the_address() -> None:
    """The log has it, and whoever knows some addresses may write there. Here what answers speaks no HTTP."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"hello\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server, open_sender(("127.0.0.1",)) as sender:
        port = server.sockets[0].getsockname()[1]
        outcome = await sender.send(f"http://127.0.0.1:{port}/services/hush?key=hush", {}, b"{}")
    assert "Bad status line" in str(outcome.error)
    assert "hush" not in str(outcome.error)


async def test_the_reason_of_a_connection_that_ends_does_not_name_the_address_either() -> None:
    """A receiver may close a connection that was left open, just as the next message is written to it."""

    async def answer_and_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    listening = asyncio.start_server(answer_and_close, "127.0.0.1", 0)
    async with await listening as server, open_sender(("127.0.0.1",)) as sender:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/services/hush?key=hush"
        error = ""
        while "ClientOSError" not in error:  # it may as well be seen to end before or after that
            error = (await sender.send(url, {}, b"{}")).error or ""
            assert "hush" not in error


async def test_a_host_whose_name_cannot_exist_is_a_failure() -> None:
    """Such a webhook can no longer be added; deliveries to an older one are given up, like any other's."""
    async with open_sender(()) as sender:
        outcome = await sender.send("https://a..example/", {}, b"{}")
    assert outcome.status is None
    assert "cannot be a host name" in str(outcome.error)


async def test_a_receiver_that_is_gone_is_a_failure() -> None:
    """With the reason."""
    async with receiving() as receiver:
        pass
    async with attempt_to_send(receiver, "127.0.0.1") as outcome:
        assert outcome.status is None
        assert outcome.error
