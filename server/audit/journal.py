"""Every occurrence is well-formed, found by its keys and about something that exists; deliveries belong to a webhook.

An object may be gone once an occurrence says so, for instance that a comment was deleted. Some objects go without an
occurrence: whatever is removed with the journal off, and what was an erased member's, such as lists with their words
and the votes of a visitor whom the member was before. These are not looked for. Nor is an object that only expired
occurrences name, by their own time or by today's settings: the one that tells of its removal may have expired first.
The time to live, by which the engine removes occurrences, is checked as one of their keys.
"""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

from datastore.changes.occurrences import Delivery, DeliveryState, Kind, Occurrence
from datastore.journal.reading import JournalItem, journal_items
from datastore.journal.webhooks import read_webhooks
from datastore.values.ids import is_ulid
from datastore.whole.named_objects import keys_of, missing_objects
from resolvers.requests.context import Services

_OBJECTS_AT_ONCE = 500
_ACTORS = ("User", "ApiKey")
_GO_SILENTLY = ("WordList:", "Word:")


async def breaches(services: Services) -> AsyncIterator[str]:
    webhooks = {webhook.id for webhook in await read_webhooks(services.table)}
    objects: set[str] = set()
    async for item in journal_items(services.table):
        for breach in _item_breaches(item, webhooks):
            yield f"journal: {item.place}: {breach}"
        record = item.record
        if isinstance(record, Occurrence) and record.object is not None and _is_kept(services, record):
            objects.add(record.object)
        if len(objects) >= _OBJECTS_AT_ONCE:
            async for breach in _missing(services, objects):
                yield breach
            objects.clear()
    async for breach in _missing(services, objects):
        yield breach


def _is_kept(services: Services, occurrence: Occurrence) -> bool:
    """Whether its days are not over. Then those of a later one, about the same object, are not over either."""
    if occurrence.expires is None or not is_ulid(occurrence.ulid):
        return False  # which is reported
    now = services.clock()
    return occurrence.expires > now and occurrence.at > now - timedelta(days=services.policy.journal_days)


async def _missing(services: Services, objects: set[str]) -> AsyncIterator[str]:
    if not services.policy.journal_days:
        return
    lasting = {name for name in objects if not name.startswith(_GO_SILENTLY)}
    names = sorted(name for name in lasting if keys_of(name))  # the others are reported as no names
    for name in await missing_objects(services.table, names):
        yield f"journal: {name} does not exist, and no occurrence says that it was removed"


def _item_breaches(item: JournalItem, webhooks: set[str]) -> Iterator[str]:
    record = item.record
    if record is None:
        yield "it cannot be read"
        return
    if item.wrong_keys:
        yield f"its keys are not those of its content: {', '.join(item.wrong_keys)}"
    if isinstance(record, Delivery):
        yield from _delivery_breaches(record, webhooks)
        return
    yield from _occurrence_breaches(record)
    if record.expires is None or (is_ulid(record.ulid) and record.expires <= record.at):
        yield f"it expires at {record.expires}"


def _occurrence_breaches(occurrence: Occurrence) -> Iterator[str]:
    if not is_ulid(occurrence.ulid):
        yield f"{occurrence.ulid!r} is not an id"
    if occurrence.kind not in tuple(Kind):
        yield f"{occurrence.kind!r} is not a kind"
    if occurrence.actor is not None and occurrence.actor.partition(":")[0] not in _ACTORS:
        yield f"{occurrence.actor!r} is nobody who can act"
    if occurrence.object is not None and not keys_of(occurrence.object):
        yield f"{occurrence.object!r} names no object"


def _delivery_breaches(delivery: Delivery, webhooks: set[str]) -> Iterator[str]:
    if delivery.webhook not in webhooks:
        yield "there is no such webhook"
    content = delivery.content
    if (content is None) != (delivery.state is DeliveryState.DELIVERED):
        yield f"it is {delivery.state} {'without' if content is None else 'and still has'} its occurrence"
    if (delivery.expires is None) != (delivery.state is DeliveryState.WAITING):
        yield f"it is {delivery.state} and expires at {delivery.expires}"
    if content is None:
        return
    if (content.ulid, content.kind) != (delivery.ulid, delivery.kind):
        yield f"its occurrence is {content.kind} {content.ulid}"
    yield from _occurrence_breaches(content)
