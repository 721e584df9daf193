"""What leaves something in the table each time is limited for each member, over HTTP."""

from contextlib import suppress
from typing import Any

import pytest

from datastore.changes.occurrences import OCCURRENCE, Kind
from datastore.dynamo import Rates
from datastore.refusals import RateLimited
from resolvers.requests.context import CHANGE_RATE
from resolvers.values.node_ids import node_id
from tests.client import Client
from tests.leagues import CREATE_LEAGUE, JOIN_LEAGUE, LEAVE_LEAGUE
from tests.queries import DELETE_COMMENT, SUBSCRIBE, UNSUBSCRIBE, UPDATE_PROFILE
from tests.vocabulary import public_list

LEAGUE = node_id("League", "none")
COMMENT = node_id("Comment", "none#01K9ZD3Q7W0000000000000000")


@pytest.mark.parametrize(
    ("of", "mutation", "given"),
    [
        ("profile", UPDATE_PROFILE, {"name": "A"}),
        ("leagues", CREATE_LEAGUE, {"name": "Friends", "season": "2026", "entry": "OPEN"}),
        ("leagues", JOIN_LEAGUE, {"league": LEAGUE}),
        ("leagues", LEAVE_LEAGUE, {"league": LEAGUE}),
        ("deletions of comments", DELETE_COMMENT, {"comment": COMMENT}),
    ],
)
async def test_a_member_who_changes_without_end_is_asked_to_wait(
    one_client: Client, of: str, mutation: str, given: dict[str, Any]
) -> None:
    """Each change leaves a receipt or an occurrence, also if it changes nothing."""
    use_up(one_client, of)
    refused = await one_client.member("ada").ask(mutation, input=given)
    assert refused["code"] == "RATE_LIMITED"
    others = await one_client.member("bob").ask(mutation, input=given)
    assert others.get("code") != "RATE_LIMITED"


async def test_the_end_of_a_subscription_counts_as_a_change(one_client: Client) -> None:
    """Even if there was nothing to end any more."""
    list_id, ada = await public_list(one_client), one_client.member("ada")
    await ada.ask(SUBSCRIBE, input={"list": list_id})
    use_up(one_client, "subscriptions")
    assert await ada.code(UNSUBSCRIBE, input={"list": list_id}) == "RATE_LIMITED"


async def test_a_profile_that_stays_as_it_is_tells_nobody_of_a_change(one_client: Client) -> None:
    """Else a loop would fill the journal, and whoever is told of changes."""
    for name in ("Ada Lovelace", "Ada Lovelace", "Ada"):
        changed = await one_client.member("ada").ask(UPDATE_PROFILE, input={"name": name})
        assert changed["user"]["name"] == name
    table = one_client.services.table
    kinds = [one.kind async for one in table.scan(OCCURRENCE, consistent=True)]
    assert kinds.count(Kind.PROFILE_CHANGED) == 2


def use_up(client: Client, of: str) -> None:
    """What Ada may change in a minute, which does not pass."""
    client.services.rates = Rates(lambda: 0.0)
    with suppress(RateLimited):
        while True:
            client.services.rates.hit(CHANGE_RATE, of, "ada")
