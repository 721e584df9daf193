"""`ringside audit` of the journal and the deliveries: nothing after real work, and each kind of planted breach."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from datastore.changes.occurrences import DELIVERY, OCCURRENCE, WEBHOOK, Delivery, DeliveryState, Occurrence, Webhook
from datastore.changes.unit_of_work import UnitOfWork
from datastore.comments.records import COMMENT, HELD, REPLY
from datastore.dynamo import Table
from datastore.journal.webhooks import add_webhook
from resolvers.requests.context import Role, Services, utc_now
from server import webhooks
from server.audit import find_breaches
from server.settings import Settings
from tests.audits import breaches_in
from tests.client import Client, serving
from tests.comments import post
from tests.queries import DELETE_COMMENT, MODERATE_COMMENT
from tests.two_worlds import Site


@pytest.fixture(autouse=True)
def nothing_is_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The deliveries stay as they are."""
    monkeypatch.setattr(webhooks, "PACE", webhooks.Pace(check=3600.0))


HOOK = Webhook("h1", "https://receiver.invalid/", (), utc_now(), "secret")


async def found(client: Client) -> list[str]:
    await client.caught_up("the index of objects shows what was removed")
    return await breaches_in(client.services)


async def live(client: Client) -> str:
    """A webhook, a comment and a decision about it; the comment's id."""
    await add_webhook(client.services.table, HOOK, UnitOfWork.unkeyed(utc_now()))
    await client.services.journal.learn(client.services.table)
    comment = await post(client.member("ada"))
    decided = {"comment": comment["id"], "status": "REJECTED", "ground": "SPAM"}
    await client.member("max", Role.MODERATOR).ask(MODERATE_COMMENT, input=decided)
    return str(comment["id"])


async def test_a_site_that_was_used_has_no_breach(client: Client) -> None:
    """Votes, predictions, comments, a reply, quizzes, a league, and something that was deleted since."""
    comment = await live(client)
    question = await post(client.member("ada"))
    await post(client.member("max"), rating=None, inReplyTo=question["id"])
    site = Site(client)
    await site.prepare()
    await site.contribute("eve", 4)
    await site.score()
    await client.member("ada").ask(DELETE_COMMENT, input={"comment": comment})
    assert await found(client) == []


async def _occurrence(table: Table) -> Occurrence:
    occurrences: AsyncIterator[Occurrence] = table.scan(OCCURRENCE, consistent=True)
    [posted] = [one async for one in occurrences if one.kind == "comment.posted"]
    return posted


async def _delivery(table: Table) -> Delivery:
    deliveries: AsyncIterator[Delivery] = table.scan(DELIVERY, consistent=True)
    return await anext(deliveries)


@pytest.mark.parametrize(("before", "now"), [(90, 1), (90, 90)])
async def test_an_occurrence_whose_days_are_over_proves_nothing(
    one_table: Table, settings: Settings, before: int, now: int
) -> None:
    """That of the removal may go first: it had fewer days, or the engine removes what expired in any order."""
    async with serving(settings.model_copy(update={"journal_days": before})) as client:
        comment = await post(client.member("ada"))
    async with serving(settings.model_copy(update={"journal_days": now})) as client:
        await client.member("ada").ask(DELETE_COMMENT, input={"comment": comment["id"]})
        occurrences: AsyncIterator[Occurrence] = one_table.scan(OCCURRENCE)
        [deleted] = [one async for one in occurrences if one.kind == "comment.deleted"]
        await one_table.write(OCCURRENCE.delete(OCCURRENCE.item_key(deleted)))
        assert len(await _found_after(client, timedelta(days=now - 0.5))) == 1
        assert await _found_after(client, timedelta(days=now + 0.5)) == []


async def _found_after(client: Client, time: timedelta) -> list[str]:
    """What the audit says about the journal at a later time."""
    given = client.services
    services = Services(given.table, given.seal, given.policy, clock=lambda: utc_now() + time)
    try:
        return [breach for breach in await find_breaches(services) if breach.startswith("journal: ")]
    finally:
        await services.close()


async def wrong_kind(table: Table) -> None:
    await table.write(OCCURRENCE.put(replace(await _occurrence(table), kind="comment.whispered")))


async def wrong_actor(table: Table) -> None:
    await table.write(OCCURRENCE.put(replace(await _occurrence(table), actor="ada")))


async def wrong_object(table: Table) -> None:
    await table.write(OCCURRENCE.put(replace(await _occurrence(table), object="Comet:42")))


async def everlasting(table: Table) -> None:
    await table.write(OCCURRENCE.put(replace(await _occurrence(table), expires=None)))


async def lost_index_entry(table: Table) -> None:
    key = OCCURRENCE.item_key(await _occurrence(table)).attributes
    await table.client.update_item(TableName=table.name, Key=key, UpdateExpression="REMOVE gsi1pk, gsi1sk")


async def lost_object(table: Table) -> None:
    comment = (await _occurrence(table)).object
    assert comment is not None
    product, _, ulid = comment.removeprefix("Comment:").partition("#")
    await table.write_many(entity.delete(entity.at(product=product, ulid=ulid)) for entity in (COMMENT, HELD, REPLY))


async def lost_webhook(table: Table) -> None:
    await table.write(WEBHOOK.delete(WEBHOOK.at(id="h1")))


async def delivery_without_content(table: Table) -> None:
    await table.write(DELIVERY.put(replace(await _delivery(table), state=DeliveryState.WAITING, content=None)))


async def delivery_of_another(table: Table) -> None:
    delivery = await _delivery(table)
    assert delivery.content is not None
    await table.write(DELIVERY.put(replace(delivery, content=replace(delivery.content, kind="vote.cast"))))


async def everlasting_dead_letter(table: Table) -> None:
    await table.write(DELIVERY.put(replace(await _delivery(table), state=DeliveryState.DEAD)))


@pytest.mark.parametrize(
    ("plant", "said"),
    [
        (wrong_kind, "'comment.whispered' is not a kind"),
        (wrong_actor, "'ada' is nobody who can act"),
        (wrong_object, "'Comet:42' names no object"),
        (everlasting, "it expires at None"),
        (lost_index_entry, "its keys are not those of its content: gsi1pk, gsi1sk"),
        (lost_object, "does not exist, and no occurrence says that it was removed"),
        (lost_webhook, "there is no such webhook"),
        (delivery_without_content, "it is WAITING without its occurrence"),
        (delivery_of_another, "its occurrence is vote.cast"),
        (everlasting_dead_letter, "it is DEAD and expires at None"),
    ],
)
async def test_each_breach_is_found(one_client: Client, plant: Callable[[Table], Awaitable[Any]], said: str) -> None:
    """And it is named with the item."""
    await live(one_client)
    assert await found(one_client) == []
    await plant(one_client.services.table)
    reported = [breach for breach in await found(one_client) if breach.startswith("journal: ")]
    assert any(said in breach for breach in reported), reported
