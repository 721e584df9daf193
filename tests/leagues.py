"""Helpers for the tests of leagues: creating, joining and looking at them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from datastore.dynamo import Table
from datastore.people.profiles import PROFILE, Profile
from datastore.pickem.leagues import LEAGUE as LEAGUE_RECORD
from datastore.pickem.leagues import LEAGUE_MEMBER, MEMBER_LEAGUES, LeagueMember, MemberLeagues, Membership
from datastore.pickem.predictions import seed_event
from resolvers.values.node_ids import node_id, parse_node_key
from tests import bulk_predictions
from tests.client import Client
from tests.queries import mutation
from tests.season import EventEditor

LEAGUE_FIELDS = (
    "id name season entry code memberCount viewerMembership members(first: 100) { nodes { membership user { id } } }"
)
CREATE_LEAGUE = mutation("createLeague", "LeagueCreated", f"league {{ {LEAGUE_FIELDS} }}")
JOIN_LEAGUE = mutation("joinLeague", "LeagueJoined", f"membership league {{ {LEAGUE_FIELDS} }}")
ADMIT = mutation(
    "admitToLeague", "LeagueAdmitted", f"member {{ membership since user {{ id }} }} league {{ {LEAGUE_FIELDS} }}"
)
LEAVE_LEAGUE = mutation("leaveLeague", "LeagueLeft", f"league {{ {LEAGUE_FIELDS} }}")
REMOVE = mutation("removeFromLeague", "LeagueMemberRemoved", f"league {{ {LEAGUE_FIELDS} }}")
ROTATE_CODE = mutation("rotateLeagueCode", "LeagueCodeRotated", f"league {{ {LEAGUE_FIELDS} }}")
DELETE_LEAGUE = mutation("deleteLeague", "LeagueDeleted", "deletedId")
LEAGUE = f"query ($id: ID, $code: String) {{ league(id: $id, code: $code) {{ {LEAGUE_FIELDS} }} }}"
OWN_LEAGUES = """
query ($season: String, $first: Int, $after: String) { viewer {
  leagues(season: $season, first: $first, after: $after) {
    nodes { id name viewerMembership } pageInfo { hasNextPage endCursor }
  }
} }
"""


STANDINGS = """
query ($id: ID, $first: Int, $after: String) { league(id: $id) {
  standings(first: $first, after: $after) {
    totalCount nodes { rank points correct eventsPlayed season user { name } } pageInfo { hasNextPage endCursor }
  }
} }
"""
EVENT = """
query ($id: ID, $event: ID!, $first: Int, $after: String) { league(id: $id) { event(event: $event) {
  submitted missing event { id state }
  predictions(first: $first, after: $after) {
    nodes { user { name } points rank picks { team } } pageInfo { hasNextPage endCursor }
  }
} } }
"""


async def create(captain: Client, entry: str = "OPEN", name: str = "Friends", season: str = "2026") -> dict[str, Any]:
    """A new league as its captain sees it."""
    answer = await captain.ask(CREATE_LEAGUE, input={"name": name, "season": season, "entry": entry})
    assert "league" in answer, answer
    league: dict[str, Any] = answer["league"]
    return league


async def join(member: Client, **given: Any) -> str:
    """What the member is in the league that they have joined."""
    answer = await member.ask(JOIN_LEAGUE, input=given)
    assert "membership" in answer, answer
    membership: str = answer["membership"]
    return membership


async def user_id(member: Client) -> str:
    id_: str = (await member.ask("{ viewer { id } }"))["id"]
    return id_


async def places(member: Client, league: str) -> dict[str, str]:
    """By the member's name: what each is in the league."""
    nodes = (await member.ask(LEAGUE, id=league))["members"]["nodes"]
    return {node["user"]["id"]: node["membership"] for node in nodes}


async def seed_members(table: Table, league: str, users: Sequence[str]) -> None:
    """Many members, as if each had joined a league that has only its captain."""
    key, now = parse_node_key("League", league), datetime.now(UTC)
    members = [LeagueMember(key, user, Membership.MEMBER, now, user) for user in users]
    await table.write_many(LEAGUE_MEMBER.put(member) for member in members)
    own = [MemberLeagues(user, {key: key.partition(":")[2]}, 1) for user in users]
    await table.write_many(MEMBER_LEAGUES.put(leagues) for leagues in own)
    counts = {"members": len(users), "revision": len(users)}
    await table.write(LEAGUE_RECORD.update(LEAGUE_RECORD.at(id=key), add=counts))


async def seed_scored_league(client: Client, members: int) -> tuple[str, list[str]]:
    """A private league of so many members of a scored season, and the ids of all but its captain."""
    table = client.services.table
    event, matches = bulk_predictions.locked_event("2026")
    predictions = list(bulk_predictions.generate_predictions(event, members + 100))
    await seed_event(table, event, matches, predictions)
    await EventEditor(client).score(node_id("Event", event.id))
    league = (await create(client.member("captain"), "CODE"))["id"]
    users = [prediction.user for prediction in predictions[: members - 1]]
    await seed_members(table, league, users)
    now = client.services.clock()
    await table.write_many(PROFILE.put(Profile(user, user.title(), now)) for user in users)
    return league, users
