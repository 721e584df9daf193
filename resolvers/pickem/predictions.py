"""Predictions: submitting them, and who may see what of them.

What a prediction says is its owner's secret until the event's gates are closed; that somebody predicted is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Protocol

from datastore import people
from datastore.dynamo import Page, Window
from datastore.people import Profile
from datastore.pickem import predictions as stored
from datastore.pickem.events import Event, EventState, Locked
from datastore.pickem.predictions import Prediction
from datastore.refusals import Clash, InvalidInput, NotFound
from resolvers.context import Asking, NodeOf
from resolvers.loading.batched import together
from resolvers.node_ids import key_of, node_id
from resolvers.people import authors, newcomer
from resolvers.pickem import rules
from resolvers.pickem.cache import event_of, pickem_of
from resolvers.pickem.views import Entry, Pick

EventId = Annotated[str, NodeOf("Event")]
ATTEMPTS = 8


class PickGiven(Protocol):
    """A pick as an input says it: a match's id and a team's place."""

    match: str
    team: int


# ── reading ──


async def viewer_prediction(asking: Asking, event: Event, /) -> Entry | None:
    """The viewer's own, at any time."""
    if not asking.viewer.is_member:
        return None
    found = await stored.prediction(asking.table, event.id, asking.viewer.id)
    return Entry(found, event) if found else None


async def event_predictions(asking: Asking, event: Event, /, *, window: Window) -> Page[Entry]:
    """Best first once the event is scored; in the order of the members' ids until then."""
    page = await stored.predictions_of_event(asking.table, event, window)
    return page.map([Entry(found, event) for found in page.nodes])


async def predictions(asking: Asking, /, *, event: EventId, window: Window) -> Page[Entry]:
    found = await event_of(asking, event)
    if found is None:
        message = "There is no event with this id."
        raise InvalidInput(message, path=("event",))
    return await event_predictions(asking, found, window=window)


async def user_predictions(asking: Asking, profile: Profile, /, *, window: Window) -> Page[Entry]:
    """A member's predictions, newest event first; the first page shares its read with the member's standings."""
    if window.forward and window.cursor is None:
        loaded = await pickem_of(asking).members.load((profile.user, window.size + 1))
        found = loaded[1] if loaded else []
        scope = stored.scope_of_user(profile.user)
        page = Page.cut(found, window, scope, stored.PREDICTION.on("gsi1", user=profile.user).sort_of)
    else:
        page = await stored.predictions_of_user(asking.table, profile.user, window)
    return page.map(await _entries(asking, page.nodes))


async def _entries(asking: Asking, found: tuple[Prediction, ...]) -> list[Entry]:
    ids = list({one.event for one in found})
    events = await pickem_of(asking).events_now(ids) if ids else {}
    return [Entry(one, events[one.event]) for one in found]


async def prediction_by_key(asking: Asking, key: str) -> Entry | None:
    event_id, _, user = key.partition(":")
    event = await event_of(asking, event_id)
    if event is None:
        return None
    found = await stored.prediction(asking.table, event.id, user)
    return Entry(found, event) if found else None


def prediction_event(_: Asking, entry: Entry, /) -> Event:
    return entry.event


@together
async def prediction_users(asking: Asking, entries: Sequence[Entry], /) -> list[Profile]:
    return await authors(asking, [entry.prediction.user for entry in entries])


def picks(asking: Asking, entry: Entry, /) -> list[Pick] | None:
    """In the card's order; hidden from others until the lock."""
    event, given = entry.event, entry.prediction
    if not event.revealed and not (asking.viewer.is_member and asking.viewer.id == given.user):
        return None
    return [
        Pick(event.id, match, given.picks[match], rules.is_correct(event, match, given.picks[match]))
        for match in event.card
        if match in given.picks
    ]


async def prediction_rank(asking: Asking, entry: Entry, /) -> int | None:
    """The place among the event's predictions by points; those with the same points share it."""
    points = entry.prediction.points
    if points is None:
        return None
    histogram = await pickem_of(asking).ranks_of_event(entry.event)
    return histogram.rank(points) if histogram else None


def pick_match(_: Asking, pick: Pick, /) -> str:
    return node_id("Match", f"{pick.event}:{pick.match}")


# ── submitting ──


async def submit_prediction(asking: Asking, /, *, event: EventId, picks: list[PickGiven]) -> Entry:
    """Replaces the viewer's earlier picks. Accepted by the gate in the transaction that stores it, or not at all."""
    member = asking.member()
    if len(picks) > rules.MOST_MATCHES:
        message = f"A card has at most {rules.MOST_MATCHES} matches."
        raise InvalidInput(message, path=("input", "picks"))
    given = [(_match_of(event, pick, place), pick.team) for place, pick in enumerate(picks)]
    token = asking.new_id()
    for _ in range(ATTEMPTS):
        # The event first: if its time has come its gates are closed now, and no lost attempt of ours can pass later.
        found = await _required(asking, event)
        before = await stored.prediction(asking.table, event, member.id)
        if before is not None and before.token == token:
            return Entry(before, found)
        _require_open(found)
        new = Prediction(
            event=event,
            user=member.id,
            picks=rules.picks_of(given, found.card, await pickem_of(asking).card(found)),
            submitted_at=asking.now(),
            joined_at=before.joined_at if before else await _joined_at(asking),
            starts_at=found.starts_at,
            token=token,
            version=before.version + 1 if before else 1,
        )
        answer = Entry(new, found)
        if await stored.submit(asking.table, new, before, found, asking.house.clock, asking.once, answer):
            return answer
    raise Clash


async def _joined_at(asking: Asking) -> datetime:
    """When the member joined, which their first write has just settled if nothing before did."""
    member = asking.viewer.id
    profile = await asking.house.profiles.load(member) or await people.profile(asking.table, member, consistent=True)
    return (profile or newcomer(asking)).joined_at


async def _required(asking: Asking, event_id: str) -> Event:
    event = await event_of(asking, event_id)
    if event is None:
        raise NotFound(path=("input", "event"))
    return event


def _require_open(event: Event) -> None:
    if event.state is EventState.UPCOMING:
        return
    how = "cancelled; it takes no predictions" if event.state is EventState.CANCELLED else "locked; it is too late"
    message = f"This event is {how}."
    raise Locked(message, path=("input", "event"))


def _match_of(event: str, pick: PickGiven, place: int) -> str:
    path = ("input", "picks", str(place), "match")
    try:
        of, _, match = key_of("Match", pick.match).partition(":")
    except InvalidInput as refused:
        raise InvalidInput(refused.message, path=path) from None
    if of != event:
        message = "This match is not on the event's card."
        raise InvalidInput(message, path=path)
    return match
