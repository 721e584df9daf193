"""Leagues: entering and leaving them, captains, codes, limits."""

from asyncio import gather
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import pytest

from datastore.dynamo import Rates, parse_rate
from datastore.people.address_use import AddressUse, reserve
from datastore.pickem.leagues import (
    LEAGUE,
    LEAGUE_CODE,
    LEAGUE_MEMBER,
    MEMBER_LEAGUES,
    MOST_CAPTAINS,
    MOST_LEAGUES,
    MOST_MEMBERS,
    Entry,
    League,
    LeagueCode,
    LeagueMember,
    MemberLeagues,
    Membership,
    read_whole_league,
)
from resolvers.pickem.leagues import PER_ADDRESS, PER_MEMBER, TRIES
from resolvers.requests.address_limits import address_hash
from resolvers.requests.context import utc_now
from resolvers.values.node_ids import node_id, parse_node_key
from server.audit import find_suspects
from tests.client import Client, pages, serving
from tests.engines import RunningEngine
from tests.intercepted import beforehand
from tests.killed import Killed, killed_at
from tests.leagues import (
    ADMIT,
    CREATE_LEAGUE,
    DELETE_LEAGUE,
    JOIN_LEAGUE,
    LEAVE_LEAGUE,
    OWN_LEAGUES,
    REMOVE,
    ROTATE_CODE,
    create,
    join,
    places,
    user_id,
)
from tests.leagues import LEAGUE as LEAGUE_BY_ID
from tests.queries import mutation


@pytest.mark.quick
async def test_an_open_league_admits_everybody_at_once(client: Client) -> None:
    """Its creator is its captain; a second join and a visitor are refused."""
    ada, bob = client.member("ada"), client.member("bob")
    league = await create(ada)
    assert (league["memberCount"], league["viewerMembership"], league["code"]) == (1, "CAPTAIN", None)
    assert await join(bob, league=league["id"]) == "MEMBER"
    assert await bob.code(JOIN_LEAGUE, input={"league": league["id"]}) == "CONFLICT"
    assert await client.code(JOIN_LEAGUE, input={"league": league["id"]}) == "NOT_SIGNED_IN"
    seen = await client.ask(LEAGUE_BY_ID, id=league["id"])
    assert (seen["memberCount"], seen["viewerMembership"], seen["code"]) == (2, None, None)
    assert await places(client, league["id"]) == {
        await user_id(ada): "CAPTAIN",
        await user_id(bob): "MEMBER",
    }


async def test_a_code_admits_until_it_is_rotated(client: Client) -> None:
    """However it is typed. The id alone does not admit; old, wrong and malformed codes find nothing."""
    ada, bob, eve = client.member("ada"), client.member("bob"), client.member("eve")
    league = await create(ada, "CODE")
    code = league["code"]
    assert await bob.code(JOIN_LEAGUE, input={"league": league["id"]}) == "NOT_ALLOWED"
    seen = await bob.ask(LEAGUE_BY_ID, code=code)
    assert (seen["id"], seen["memberCount"], seen["code"], seen["members"]) == (league["id"], None, None, None)
    assert await join(bob, code=f" {code.replace('-', ' ').upper()} ") == "MEMBER"
    rotated = (await ada.ask(ROTATE_CODE, input={"league": league["id"]}))["league"]
    assert rotated["code"] not in (None, code)
    for wrong in (code, code[:-1] + ("a" if code[-1] != "a" else "e"), code[:-2], "", "x" * 5000, "bä" * 9, "b#" * 9):
        assert await eve.code(JOIN_LEAGUE, input={"code": wrong}) == "NOT_FOUND"
        assert await eve.ask(LEAGUE_BY_ID, code=wrong) is None
    assert await join(eve, code=rotated["code"]) == "MEMBER"
    assert await bob.code(ROTATE_CODE, input={"league": league["id"]}) == "NOT_ALLOWED"
    assert await ada.code(ROTATE_CODE, input={"league": (await create(ada))["id"]}) == "CONFLICT"
    assert await find_suspects(client.services, "leagues") == []


async def test_a_code_is_the_same_with_the_spaces_and_hyphens_of_other_programs(one_client: Client) -> None:
    """Those that do not break, which word processors and messengers put in their place, and invisible ones."""
    code = (await create(one_client.member("ada"), entry="CODE"))["code"]
    for member, (hyphen, end) in enumerate(
        [("\u2011", "\r\n"), ("\u2010", "\u00a0"), ("\u2013", "\u200b"), ("\u00ad", "")]
    ):
        assert await join(one_client.member(f"m{member}"), code=code.replace("-", hyphen) + end) == "MEMBER"


async def _tried_by_others(client: Client, now: datetime, number: int) -> None:
    address, period = address_hash(client.services.seal, "127.0.0.1"), int(now.timestamp() // PER_ADDRESS.seconds)
    await reserve(client.services.table, AddressUse(address, "CODES", period), number, PER_ADDRESS.limit)


async def test_attempts_at_codes_are_limited(one_client: Client) -> None:
    """At two services together, right ones too, by joins and queries; others are not affected; it ends in an hour.

    What a member is refused uses up nothing of what is left to their network: a whole school may have one. Nor does it
    ask the table again and again.
    """
    now = utc_now()
    async with serving(one_client.settings) as other:
        for service in (one_client, other):
            service.services.clock, service.services.rates = (lambda: now), Rates(lambda: 0.0)
        eves = [service.member("eve") for service in (one_client, other)]
        league = await create(one_client.member("ada"), "CODE")
        for attempt in range(PER_MEMBER.limit):
            if attempt % 3:
                assert await eves[attempt % 2].ask(LEAGUE_BY_ID, code=league["code"]) is not None
            else:
                assert await eves[attempt % 2].code(JOIN_LEAGUE, input={"code": "bababa-bababa-bababa"}) == "NOT_FOUND"
        await _tried_by_others(one_client, now, PER_ADDRESS.limit - PER_MEMBER.limit - 1)
        fields = "... on Refused { code retryAfterSeconds }"
        join_again = f"mutation ($input: JoinLeagueInput!) {{ joinLeague(input: $input) {{ {fields} }} }}"
        for eve in eves:
            answer = await eve.ask(join_again, input={"code": league["code"]})
            assert answer["code"] == "RATE_LIMITED"
            assert 0 < answer["retryAfterSeconds"] <= 3600
            assert await eve.code(LEAGUE_BY_ID, code=league["code"]) == "RATE_LIMITED"
        for _ in range(parse_rate(TRIES).limit):
            assert await eves[0].code(LEAGUE_BY_ID, code=league["code"]) == "RATE_LIMITED"
        assert (await eves[0].ask(join_again, input={"code": league["code"]}))["retryAfterSeconds"] == 1.0
        assert await join(other.member("bob"), code=league["code"]) == "MEMBER"
        other.services.clock = lambda: now + timedelta(hours=1)
        assert await join(eves[1], code=league["code"]) == "MEMBER"


async def test_a_captain_admits_to_a_league_with_approval(client: Client) -> None:
    """Who waits is no member: they see its name, and other members do not see them."""
    ada, bob, eve = client.member("ada"), client.member("bob"), client.member("eve")
    league = await create(ada, "APPROVAL")
    assert await join(bob, league=league["id"]) == "WAITING"
    assert await bob.code(JOIN_LEAGUE, input={"league": league["id"]}) == "CONFLICT"
    seen = await bob.ask(LEAGUE_BY_ID, id=league["id"])
    assert (seen["viewerMembership"], seen["memberCount"], seen["members"]) == ("WAITING", None, None)
    waiting = {"league": league["id"], "user": await user_id(bob)}
    assert await bob.code(ADMIT, input=waiting) == "NOT_ALLOWED"
    assert await eve.code(ADMIT, input=waiting) == "NOT_ALLOWED"
    assert await ada.code(ADMIT, input={**waiting, "user": await user_id(eve)}) == "NOT_FOUND"
    assert await places(ada, league["id"]) == {await user_id(ada): "CAPTAIN", await user_id(bob): "WAITING"}
    admitted = await ada.ask(ADMIT, input=waiting)
    assert (admitted["member"]["membership"], admitted["league"]["memberCount"]) == ("MEMBER", 2)
    await join(eve, league=league["id"])
    assert await user_id(eve) not in await places(bob, league["id"])
    promoted = await ada.ask(ADMIT, input={**waiting, "captain": True})
    assert promoted["member"]["membership"] == "CAPTAIN"
    assert (await bob.ask(ADMIT, input={"league": league["id"], "user": await user_id(eve)}))["member"][
        "membership"
    ] == ("MEMBER")


async def test_a_captain_turns_away_who_waits_and_removes_members(client: Client) -> None:
    """Whoever is removed may ask again; a repeat with the key removes nobody."""
    ada, bob, eve = client.member("ada"), client.member("bob"), client.member("eve")
    league = (await create(ada, "APPROVAL"))["id"]
    waiting = {"league": league, "user": await user_id(bob)}
    assert await ada.code(REMOVE, input=waiting) == "NOT_FOUND"
    await join(bob, league=league)
    await join(eve, league=league)
    for other in (bob, eve):
        assert await other.code(REMOVE, input=waiting) == "NOT_ALLOWED"
    turned_away = (await ada.ask(REMOVE, input=waiting))["league"]
    assert (turned_away["memberCount"], await places(ada, league)) == (
        1,
        {await user_id(ada): "CAPTAIN", await user_id(eve): "WAITING"},
    )
    assert (await bob.ask(OWN_LEAGUES))["leagues"]["nodes"] == []
    assert await join(bob, league=league) == "WAITING"
    assert (await ada.ask(ADMIT, input=waiting))["league"]["memberCount"] == 2
    keyed = {**waiting, "idempotencyKey": "k"}
    assert (await ada.ask(REMOVE, input=keyed))["league"]["memberCount"] == 1
    assert (await bob.ask(LEAGUE_BY_ID, id=league))["members"] is None
    assert await join(bob, league=league) == "WAITING"
    assert (await ada.ask(REMOVE, input=keyed))["league"]["memberCount"] == 1
    assert (await bob.ask(LEAGUE_BY_ID, id=league))["viewerMembership"] == "WAITING"
    assert await find_suspects(client.services, "leagues") == []


async def test_a_code_that_leaked_is_rotated_and_who_used_it_removed(one_client: Client) -> None:
    """The removed member comes back with the current code only."""
    ada, eve = one_client.member("ada"), one_client.member("eve")
    league = await create(ada, "CODE")
    await join(eve, code=league["code"])
    code = (await ada.ask(ROTATE_CODE, input={"league": league["id"]}))["league"]["code"]
    await ada.ask(REMOVE, input={"league": league["id"], "user": await user_id(eve)})
    assert await eve.code(JOIN_LEAGUE, input={"code": league["code"]}) == "NOT_FOUND"
    assert await join(eve, code=code) == "MEMBER"


async def test_captains_are_not_removed(one_client: Client) -> None:
    """Neither by themselves nor by another captain: they leave."""
    ada, bob = one_client.member("ada"), one_client.member("bob")
    league = {"league": (await create(ada))["id"]}
    await join(bob, **league)
    await ada.ask(ADMIT, input={**league, "user": await user_id(bob), "captain": True})
    for captain in (ada, bob):
        refused = await ada.ask(REMOVE, input={**league, "user": await user_id(captain)})
        assert (refused["code"], refused["path"]) == ("CONFLICT", ["input", "user"])
    assert set((await places(ada, league["league"])).values()) == {"CAPTAIN"}


async def test_a_removal_beside_an_admission_leaves_the_counts_right(one_client: Client) -> None:
    """And beside a departure, and beside another removal: one of them happens first."""
    ada, members = one_client.member("ada"), [one_client.member(f"m{number}") for number in range(6)]
    league = (await create(ada, "APPROVAL"))["id"]
    for member in members:
        await join(member, league=league)
        given = {"league": league, "user": await user_id(member)}
        await gather(
            ada.ask(ADMIT, input=given),
            ada.ask(REMOVE, input=given),
            ada.ask(REMOVE, input=given),
            member.ask(LEAVE_LEAGUE, input={"league": league}),
        )
    assert await find_suspects(one_client.services, "leagues") == []
    for member in members:
        assert await user_id(member) not in await places(ada, league)


async def test_the_last_captain_names_a_successor(one_client: Client) -> None:
    """A member of the league, and nobody else; members leave freely, and so does one captain of two."""
    ada, bob, eve = (one_client.member(name) for name in ("ada", "bob", "eve"))
    league = {"league": (await create(ada))["id"]}
    assert await bob.code(LEAVE_LEAGUE, input=league) == "CONFLICT"
    assert await ada.code(LEAVE_LEAGUE, input=league) == "CONFLICT"
    for member in (bob, eve):
        await join(member, **league)
    assert await ada.code(LEAVE_LEAGUE, input=league) == "CONFLICT"
    own = {**league, "successor": await user_id(ada)}
    assert await ada.code(LEAVE_LEAGUE, input=own) == "INVALID_INPUT"
    stranger = {**league, "successor": node_id("User", "nobody")}
    assert await ada.code(LEAVE_LEAGUE, input=stranger) == "CONFLICT"
    named = {**league, "successor": await user_id(bob)}
    assert await eve.code(LEAVE_LEAGUE, input=named) == "INVALID_INPUT"
    left = (await ada.ask(LEAVE_LEAGUE, input=named))["league"]
    assert (left["viewerMembership"], left["memberCount"]) == (None, 2)
    assert (await ada.ask(OWN_LEAGUES))["leagues"]["nodes"] == []
    await bob.ask(ADMIT, input={**league, "user": await user_id(eve), "captain": True})
    assert "league" in await bob.ask(LEAVE_LEAGUE, input=league)
    assert await places(one_client, league["league"]) == {await user_id(eve): "CAPTAIN"}


async def test_a_successor_may_be_a_captain_already(one_client: Client) -> None:
    """Then the league has one captain less, and another one is left."""
    ada, bob = one_client.member("ada"), one_client.member("bob")
    league = {"league": (await create(ada))["id"]}
    await join(bob, **league)
    await ada.ask(ADMIT, input={**league, "user": await user_id(bob), "captain": True})
    left = (await ada.ask(LEAVE_LEAGUE, input={**league, "successor": await user_id(bob)}))["league"]
    assert (left["viewerMembership"], left["memberCount"]) == (None, 1)
    assert await places(one_client, league["league"]) == {await user_id(bob): "CAPTAIN"}
    assert await bob.code(LEAVE_LEAGUE, input=league) == "CONFLICT"
    assert await find_suspects(one_client.services, "leagues") == []


async def test_two_last_captains_cannot_both_leave(one_client: Client) -> None:
    """They try at the same time, several times over: one stays."""
    ada, bob = one_client.member("ada"), one_client.member("bob")
    for _ in range(5):
        league = {"league": (await create(ada))["id"]}
        await join(bob, **league)
        await ada.ask(ADMIT, input={**league, "user": await user_id(bob), "captain": True})
        await gather(*(captain.ask(LEAVE_LEAGUE, input=league) for captain in (ada, bob)))
        assert list((await places(one_client, league["league"])).values()) == ["CAPTAIN"]


@pytest.mark.parametrize("query", [ADMIT, REMOVE, ROTATE_CODE, DELETE_LEAGUE])
async def test_a_captain_who_has_just_left_changes_nothing(one_client: Client, query: str) -> None:
    """They were a captain when their request was checked, and another captain is left."""
    ada, bob, eve = (one_client.member(name) for name in ("ada", "bob", "eve"))
    league = await create(ada, "CODE")
    for member in (bob, eve):
        await join(member, code=league["code"])
    given = {"league": league["id"], "user": await user_id(bob)}
    await ada.ask(ADMIT, input={**given, "captain": True})
    given = {"league": league["id"]} | ({"user": await user_id(eve)} if query in (ADMIT, REMOVE) else {})

    async def leave() -> None:
        assert "league" in await ada.ask(LEAVE_LEAGUE, input={"league": league["id"]})

    wanted = {**given, "captain": True} if query == ADMIT else given
    with beforehand(one_client.services.table, leave) as left:
        assert await ada.code(query, input=wanted) == "NOT_ALLOWED"
    assert left
    assert await places(bob, league["id"]) == {await user_id(bob): "CAPTAIN", await user_id(eve): "MEMBER"}
    assert (await bob.ask(LEAGUE_BY_ID, id=league["id"]))["code"] == league["code"]
    assert await find_suspects(one_client.services, "leagues") == []


async def test_who_leaves_while_the_league_is_being_deleted_is_told_that_it_is_gone(one_client: Client) -> None:
    """The deletion has begun, and its process is killed, when the member's request is on its way."""
    ada, bob, table = one_client.member("ada"), one_client.member("bob"), one_client.services.table
    league = {"league": (await create(ada))["id"]}
    await join(bob, **league)

    async def begin_to_delete() -> None:
        with killed_at(table, 0), pytest.raises(Killed):
            await ada.ask(DELETE_LEAGUE, input=league)

    with beforehand(table, begin_to_delete) as begun:
        assert await bob.code(LEAVE_LEAGUE, input=league) == "NOT_FOUND"
    assert begun


async def test_three_hundred_join_at_once(client: Client, engine: RunningEngine) -> None:
    """With one code, some of them twice, at two services: everybody once, and the count is exact."""
    joining = 60 if engine.name == "moto" else 300  # moto carries out one call at a time, and slowly
    settings = client.settings.model_copy(update={"max_in_flight": 1000, "request_timeout": 120.0})
    async with serving(settings) as one, serving(settings) as other:
        league = await create(one.member("captain"), "CODE")
        members = [(one, other)[number % 2].member(f"m{number}") for number in range(joining)]
        members += [other.member(f"m{number}") for number in range(20)]
        query = mutation("joinLeague", "LeagueJoined", "membership")
        answers = await gather(*(member.ask(query, input={"code": league["code"]}) for member in members))
    assert sum("membership" in answer for answer in answers) == joining
    assert {answer["code"] for answer in answers if "code" in answer} == {"CONFLICT"}
    whole = await read_whole_league(client.services.table, parse_node_key("League", league["id"]))
    assert whole is not None
    assert (whole[0].members, len(whole[1]), whole[0].revision) == (joining + 1, joining + 1, joining)


async def fill(client: Client, league: str, **counts: int) -> None:
    """Set the number of a league's members, or captains, as if there were so many."""
    key = LEAGUE.at(id=parse_node_key("League", league))
    await client.services.table.write(LEAGUE.update(key, values=counts))


async def test_a_league_is_never_above_its_limit(one_client: Client) -> None:
    """Of twelve who join at once, three find room; a captain cannot admit more either; who leaves makes room."""
    ada = one_client.member("ada")
    league = (await create(ada))["id"]
    await fill(one_client, league, members=MOST_MEMBERS - 3)
    members = [one_client.member(f"m{number}") for number in range(12)]
    answers = await gather(*(member.ask(JOIN_LEAGUE, input={"league": league}) for member in members))
    assert sum("membership" in answer for answer in answers) == 3
    full = next(answer for answer in answers if "code" in answer)
    assert (full["code"], full["message"]) == ("CONFLICT", "This league is full: it has 1,000 members.")
    joined = next(member for member, answer in zip(members, answers, strict=True) if "membership" in answer)
    await joined.ask(LEAVE_LEAGUE, input={"league": league})
    assert await join(one_client.member("late"), league=league) == "MEMBER"
    private = (await create(ada, "APPROVAL"))["id"]
    await fill(one_client, private, members=MOST_MEMBERS)
    assert await join(joined, league=private) == "WAITING"
    given = {"league": private, "user": await user_id(joined)}
    assert await ada.code(ADMIT, input=given) == "CONFLICT"


async def test_a_league_has_twenty_captains_at_most(one_client: Client) -> None:
    """Of three who are made captains at the same time, one finds room; who leaves makes room for another."""
    ada, members = one_client.member("ada"), [one_client.member(f"m{number}") for number in range(3)]
    league = (await create(ada))["id"]
    for member in members:
        await join(member, league=league)
    await fill(one_client, league, captains=MOST_CAPTAINS - 1)
    wanted = [{"league": league, "user": await user_id(member), "captain": True} for member in members]
    answers = await gather(*(ada.ask(ADMIT, input=given) for given in wanted))
    assert sum("member" in answer for answer in answers) == 1
    refused = [given for given, answer in zip(wanted, answers, strict=True) if "code" in answer]
    for given in refused:
        answer = await ada.ask(ADMIT, input=given)
        assert (answer["code"], answer["message"]) == ("CONFLICT", "A league has at most 20 captains.")
    await ada.ask(LEAVE_LEAGUE, input={"league": league})
    (captain,) = (member for member, answer in zip(members, answers, strict=True) if "member" in answer)
    assert (await captain.ask(ADMIT, input=refused[0]))["member"]["membership"] == "CAPTAIN"
    assert await captain.code(ADMIT, input=refused[1]) == "CONFLICT"


async def test_a_code_that_is_rotated_while_somebody_joins_admits_nobody(one_client: Client) -> None:
    """The code was looked up before; the captain's answer has the new one before the join is written."""
    ada, eve = one_client.member("ada"), one_client.member("eve")
    league = await create(ada, "CODE")

    async def rotate() -> None:
        await ada.ask(ROTATE_CODE, input={"league": league["id"]})

    with beforehand(one_client.services.table, rotate, about="LEAGUE") as begun:
        refused = await eve.ask(JOIN_LEAGUE, input={"code": league["code"]})
    assert begun
    assert (refused["code"], "has just changed" in refused["message"]) == ("NOT_FOUND", True)
    assert await places(ada, league["id"]) == {await user_id(ada): "CAPTAIN"}


async def test_a_member_is_in_fifty_leagues_at_most(one_client: Client) -> None:
    """Joining counts like creating; deleted leagues do not count any more; concurrent joins stay within the limit."""
    ada, bob = one_client.member("ada"), one_client.member("bob")
    own = [(await create(ada, name=f"L{number}"))["id"] for number in range(MOST_LEAGUES - 2)]
    others = [(await create(bob, name=f"B{number}"))["id"] for number in range(5)]
    answers = await gather(*(ada.ask(JOIN_LEAGUE, input={"league": league}) for league in others))
    assert (
        sorted(answer.get("code", answer.get("membership")) for answer in answers) == ["CONFLICT"] * 3 + ["MEMBER"] * 2
    )
    refused = {"name": "More", "season": "2026", "entry": "OPEN"}
    assert await ada.code(CREATE_LEAGUE, input=refused) == "CONFLICT"
    await ada.ask(DELETE_LEAGUE, input={"league": own[0]})
    await create(ada, name="Again")
    assert await ada.code(CREATE_LEAGUE, input=refused) == "CONFLICT"
    listed = await pages(ada, OWN_LEAGUES, size=20)
    assert len(listed) == MOST_LEAGUES
    assert own[0] not in {league["id"] for league in listed}


async def test_members_list_their_own_leagues(client: Client) -> None:
    """Newest first, by season if asked, however it is typed, waiting ones too; nobody else's."""
    ada, bob = client.member("ada"), client.member("bob")
    first = await create(ada, name="First")
    second = await create(ada, "APPROVAL", name="Second", season="2027")
    await join(bob, league=first["id"])
    await join(bob, league=second["id"])
    assert [(one["name"], one["viewerMembership"]) for one in await pages(bob, OWN_LEAGUES, size=1)] == [
        ("Second", "WAITING"),
        ("First", "MEMBER"),
    ]
    for season in ("2026", " 2026 "):
        assert [one["name"] for one in (await bob.ask(OWN_LEAGUES, season=season))["leagues"]["nodes"]] == ["First"]
    assert await bob.code(OWN_LEAGUES, season="a#b") == "BAD_USER_INPUT"
    others = "query ($id: ID!) { user(id: $id) { leagues { nodes { id } } } }"
    assert (await ada.ask(others, id=await user_id(bob)))["leagues"]["nodes"] == []


async def test_a_deleted_league_is_gone_for_everybody(client: Client) -> None:
    """For its members, its code and its id; only captains may delete, and a repeat finds nothing."""
    ada, bob = client.member("ada"), client.member("bob")
    league = await create(ada, "CODE")
    await join(bob, code=league["code"])
    given = {"league": league["id"]}
    assert await bob.code(DELETE_LEAGUE, input=given) == "NOT_ALLOWED"
    keyed = {**given, "idempotencyKey": "k"}
    for _ in range(2):
        assert (await ada.ask(DELETE_LEAGUE, input=keyed))["deletedId"] == league["id"]
    assert await ada.code(DELETE_LEAGUE, input=given) == "NOT_FOUND"
    for member in (ada, bob):
        assert await member.ask(LEAGUE_BY_ID, id=league["id"]) is None
        assert (await member.ask(OWN_LEAGUES))["leagues"]["nodes"] == []
        assert await member.code(LEAVE_LEAGUE, input=given) == "NOT_FOUND"
    assert await bob.code(JOIN_LEAGUE, input={"code": league["code"]}) == "NOT_FOUND"


async def test_a_deletion_that_is_killed_anywhere_is_completed_by_a_repeat(one_client: Client) -> None:
    """With its key it gets the first answer, also where only the answer was lost."""
    ada, bob, services = one_client.member("ada"), one_client.member("bob"), one_client.services
    for write in range(10):
        league = await create(ada, "CODE")
        await join(bob, code=league["code"])
        keyed = {"league": league["id"], "idempotencyKey": f"{write}"}
        with killed_at(services.table, write) as writes, suppress(Killed):
            await ada.ask(DELETE_LEAGUE, input=keyed)
        assert await ada.ask(DELETE_LEAGUE, input=keyed) == {"deletedId": league["id"]}
        assert await ada.ask(LEAGUE_BY_ID, id=league["id"]) is None
        if writes[0] <= write:
            break
    assert 2 < write < 10
    assert await find_suspects(services, "leagues") == []


async def test_keys_repeat_answers_and_change_nothing(one_client: Client) -> None:
    """Creating, joining, admitting and leaving; an old receipt shows nothing to somebody who has left."""
    ada, bob = one_client.member("ada"), one_client.member("bob")
    given = {"name": "Once", "season": "2026", "entry": "CODE", "idempotencyKey": "k"}
    answers = await gather(*(ada.ask(CREATE_LEAGUE, input=given) for _ in range(5)))
    assert len({answer["league"]["id"] for answer in answers}) == 1
    league = answers[0]["league"]
    joining = {"code": league["code"], "idempotencyKey": "k"}
    for _ in range(2):
        joined = await bob.ask(JOIN_LEAGUE, input=joining)
        assert (joined["membership"], joined["league"]["memberCount"]) == ("MEMBER", 2)
    admitting = {"league": league["id"], "user": await user_id(bob), "idempotencyKey": "m"}
    assert (await ada.ask(ADMIT, input=admitting))["member"]["membership"] == "MEMBER"  # he is that already
    for _ in range(2):
        left = await bob.ask(LEAVE_LEAGUE, input={"league": league["id"], "idempotencyKey": "l"})
        assert left["league"]["memberCount"] is None
    assert (await ada.ask(ADMIT, input=admitting))["member"]["membership"] == "MEMBER"
    assert await ada.code(ADMIT, input={**admitting, "captain": True}) == "IDEMPOTENCY_MISMATCH"
    old = (await bob.ask(JOIN_LEAGUE, input=joining))["league"]
    assert (old["memberCount"], old["members"], old["viewerMembership"]) == (None, None, None)


async def test_bad_input_is_refused(one_client: Client) -> None:
    """Names, seasons, ids of other things and of nothing, both or neither of id and code."""
    ada = one_client.member("ada")
    event = node_id("Event", "01ARZ3NDEKTSV4RRFFQ69G5FAV")
    unknown = node_id("League", "01ARZ3NDEKTSV4RRFFQ69G5FAV:2026")
    for name in ("Ünïcode 友達 🏆", "نمی\u200cدانم", "हिन्दी", "👩\u200d🚀", "x" * 80, "' OR 1=1 --"):
        assert (await create(ada, name=f"  {name} "))["name"] == name
    for wrong in ({"name": ""}, {"name": " "}, {"name": "x" * 81}, {"name": "a\x07"}, {"name": "a\u202eb"},
                  {"name": "\u200b"}, {"name": "\u3164 \ufeff"},
                  {"season": "a#b"}, {"season": ""}):  # fmt: skip
        given: dict[str, Any] = {"name": "n", "season": "s", "entry": "OPEN", **wrong}
        assert await ada.code(CREATE_LEAGUE, input=given) == "INVALID_INPUT"
    for query in (LEAVE_LEAGUE, ROTATE_CODE, DELETE_LEAGUE, JOIN_LEAGUE, REMOVE):
        more = {"user": await user_id(ada)} if query == REMOVE else {}
        assert await ada.code(query, input={"league": unknown, **more}) == "NOT_FOUND"
        assert await ada.code(query, input={"league": event, **more}) == "INVALID_INPUT"
        for forged in ("a#b", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAV:a#b"):
            assert await ada.code(query, input={"league": node_id("League", forged), **more}) == "NOT_FOUND"
    assert await ada.code(JOIN_LEAGUE, input={}) == "INVALID_INPUT"
    assert await ada.code(JOIN_LEAGUE, input={"league": unknown, "code": "b"}) == "INVALID_INPUT"
    assert await ada.code("{ league { id } }") == "BAD_USER_INPUT"
    assert await ada.code('{ league(id: "%s", code: "b") { id } }' % unknown) == "BAD_USER_INPUT"
    assert await ada.ask(LEAGUE_BY_ID, id=node_id("League", "a#b")) is None
    assert await one_client.code('{ league(code: "bababa") { id } }') == "NOT_SIGNED_IN"


async def test_the_lists_of_members_and_leagues_agree(one_client: Client) -> None:
    """Whatever joins, admissions and departures came, at the same time."""
    members = [one_client.member(f"m{number}") for number in range(8)]
    leagues = [(await create(members[0], entry, name=entry))["id"] for entry in ("OPEN", "APPROVAL")]

    async def come_and_go(member: Client) -> None:
        for league in leagues:
            await member.ask(JOIN_LEAGUE, input={"league": league})
        await members[0].ask(ADMIT, input={"league": leagues[1], "user": await user_id(member)})
        await member.ask(LEAVE_LEAGUE, input={"league": leagues[0]})

    await gather(*(come_and_go(member) for member in members[1:]))
    table = one_client.services.table
    assert await find_suspects(one_client.services, "leagues") == []
    for league in leagues:
        whole = await read_whole_league(table, parse_node_key("League", league))
        assert whole is not None
        stored, places_of = whole
        assert stored.members == sum(place.membership != "WAITING" for place in places_of)
        for place in places_of:
            own = await table.get(MEMBER_LEAGUES.at(user=place.user), consistent=True)
            assert own is not None
            assert stored.id in own.leagues
            assert LEAGUE_MEMBER.item_key(place).sk == f"MEMBER#{place.user}"


async def test_the_audit_finds_members_that_do_not_add_up(one_client: Client) -> None:
    """A wrong count, a list without the league, a league without a captain, members of none, a code of none."""
    ada, table = one_client.member("ada"), one_client.services.table
    league, coded = await create(ada), await create(ada, "CODE")
    key = parse_node_key("League", league["id"])
    assert await find_suspects(one_client.services, "leagues") == []
    await table.write(LEAGUE_CODE.put(LeagueCode("bababababababababa", key)))
    await table.write(LEAGUE_CODE.delete(LEAGUE_CODE.at(code=coded["code"].replace("-", ""))))
    await table.write(LEAGUE_MEMBER.put(LeagueMember("gone:2026", "bob", Membership.MEMBER, utc_now(), "t")))
    await table.write(LEAGUE_MEMBER.put(LeagueMember(key, "eve", Membership.WAITING, utc_now(), "t")))
    await table.write(MEMBER_LEAGUES.put(MemberLeagues("cyd", {key: "2026"}, 1)))
    crowd = [f"{number:026}:2026" for number in range(MOST_LEAGUES + 1)]
    await table.write_many(LEAGUE.put(League(one, "L", "2026", Entry.OPEN, utc_now())) for one in crowd)
    await table.write(MEMBER_LEAGUES.put(MemberLeagues("dan", dict.fromkeys(crowd, "2026"), 1)))
    await table.write(LEAGUE.update(LEAGUE.at(id=key), values={"members": 7}))
    await table.write(
        LEAGUE_MEMBER.update(LEAGUE_MEMBER.at(league=key, user="ada"), values={"membership": Membership.MEMBER})
    )
    await table.write(MEMBER_LEAGUES.delete(MEMBER_LEAGUES.at(user="ada")))
    found = await find_suspects(one_client.services, "leagues")
    for planted in (
        f"Friends ({key}): members, captains and waiting are (7, 1, 0); there are (1, 0, 1)",
        f"Friends ({key}): it has no captain",
        *(f"{key}: the league and the list of {user} differ" for user in ("ada", "cyd", "eve")),
        *(f"{league_id}: the league and its code differ" for league_id in (key, parse_node_key("League", coded["id"]))),
        "gone:2026 has members but does not exist",
        f"dan is in {MOST_LEAGUES + 1} leagues",
    ):
        assert f"leagues: {planted}" in found
