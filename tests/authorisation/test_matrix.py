"""Every query, mutation, subscription and field, used by every kind of viewer, against the stated rules."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import count
from typing import Any, Final

import httpx
import pytest
from graphql import (
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLOutputType,
    GraphQLUnionType,
    get_named_type,
    is_leaf_type,
    is_required_argument,
)

from datastore.changes.occurrences import ON_DEMAND
from datastore.jobs.jobs import read_unfinished_jobs
from datastore.members.sign_in_codes import SignInCode, store_code
from datastore.people.identities import SignInMethod, add_identity, of_issuer
from resolvers.members import sign_in_codes
from resolvers.members.sign_in_codes import Asked
from resolvers.requests.context import Role, utc_now
from resolvers.values.node_ids import node_id, parse_node_key
from resolvers.voting.visits import sign_visit
from schema import schema
from tests.authorisation.rules import (
    ADMINS,
    AUTHOR,
    AUTHOR_OR_MODERATORS,
    EDITORS,
    FIELDS,
    KEYS,
    MEMBERS,
    MODERATED_PART,
    MUTATIONS,
    NOT_FOR_KEYS,
    PERSONAL,
    PUBLIC_PART,
    QUERIES,
    SUBSCRIPTIONS,
    Rule,
    Viewer,
    Viewers,
)
from tests.authorisation.world import HOURS, IN_A_DAY, PERIOD, PICTURE, SEASON, TEAMS, Instance, World, statement
from tests.client import Client
from tests.command import ringside
from tests.jobs import ended
from tests.journal_kinds import NOT_RECORDED, RECORDED
from tests.service import Service
from tests.sign_in import in_session, with_session
from tests.waiting import until
from tests.websockets import open_socket, receive, send

SHARED_KINDS: Final = ("Query", "Mutation", "Subscription", "PageInfo")
UNREACHED: Final = {
    "Ballot", "Challenge", "GradedAnswer", "ImportProblem", "QuizQuestion", "Refused", "RefusedComment", "Visit",
}  # fmt: skip
"""Types of the rules that only mutations answer with, or only where a setting asks for them."""

HIDING: Final = ("NOT_FOUND", "NOT_SIGNED_IN", "NOT_ALLOWED")
"""Codes of errors that show nothing of an object."""

ARGUMENTS: Final = {"User.standing": f'(season: "{SEASON}")', "League.event": '(event: "SCORED_EVENT")'}


def object_types() -> Mapping[str, GraphQLObjectType]:
    types = schema._schema.type_map.items()
    return {name: kind for name, kind in types if isinstance(kind, GraphQLObjectType) and not name.startswith("__")}


def payloads() -> set[str]:
    unions = [get_named_type(field.type) for field in object_types()["Mutation"].fields.values()]
    return {
        kind.name for union in unions if isinstance(union, GraphQLUnionType) for kind in union.types
    } - FIELDS.keys()


def test_every_field_of_the_schema_has_a_rule() -> None:
    """And every rule is about a field that exists."""
    types = object_types()
    roots: tuple[tuple[str, Mapping[str, Viewers]], ...] = (
        ("Query", QUERIES),
        ("Mutation", MUTATIONS),
        ("Subscription", SUBSCRIPTIONS),
    )
    for name, rules in roots:
        assert set(types[name].fields) == set(rules)
    structural = {name for name in types if name.endswith(("Connection", "Edge"))}
    ruled = types.keys() - structural - payloads() - set(SHARED_KINDS)
    assert ruled == FIELDS.keys()
    for name in ruled:
        assert set(types[name].fields) == set(FIELDS[name]), name


# ── fields ──


def selection(type_name: str) -> str:
    fields = object_types()[type_name].fields.items()
    return " ".join(["__typename", *(_selected(type_name, name, field.type) for name, field in fields)])


def _selected(type_name: str, name: str, kind: GraphQLOutputType) -> str:
    named = get_named_type(kind)
    arguments = ARGUMENTS.get(f"{type_name}.{name}", "")
    if not isinstance(named, GraphQLObjectType | GraphQLInterfaceType):
        return name
    fields = named.fields
    inner = "id" if "id" in fields else "__typename"
    if "nodes" in fields:
        inner = "nodes { " + ("id" if "id" in get_named_type(fields["nodes"].type).fields else "__typename") + " }"
    return f"{name}{arguments} {{ {inner} }}"


async def objects(world: World, instance: Instance) -> dict[Viewer, dict[str, Any] | None]:
    """The object as each viewer sees it; None if it is hidden."""
    query = instance.query.replace("SELECTION", selection(instance.type))
    query = query.replace("SCORED_EVENT", world.ids["scored"])
    answers = await asyncio.gather(*(client.answer(query) for client in world.clients.values()))
    for answer in answers:
        assert "errors" not in answer or answer["errors"][0]["extensions"]["code"] in HIDING, answer
    return dict(zip(world.clients, (_innermost(answer["data"]) for answer in answers), strict=True))


def _innermost(value: Any) -> dict[str, Any] | None:
    while value and (isinstance(value, list) or len(value) == 1):
        value = value[0] if isinstance(value, list) else next(iter(value.values()))
    return value or None


def is_empty(value: Any) -> bool:
    return value is None or value in ([], {"nodes": []})


def check_field(where: str, rule: Rule, values: Mapping[Viewer, Any]) -> None:
    if rule == PERSONAL:
        return
    if rule in (PUBLIC_PART, MODERATED_PART):
        complete, see_all = values[Viewer.AUTHOR], AUTHOR if rule == PUBLIC_PART else AUTHOR_OR_MODERATORS
        for viewer, value in values.items():
            is_part = value != complete and all(node in complete["nodes"] for node in value["nodes"])
            assert value == complete if viewer in see_all else is_part, where
        return
    shown = [value for viewer, value in values.items() if viewer in rule]
    assert all(value == shown[0] for value in shown), (where, values)
    hidden = [value for viewer, value in values.items() if viewer not in rule]
    assert all(map(is_empty, hidden)), (where, "is shown to viewers who may not see it", values)
    assert not shown or shown[0] not in hidden, (where, "is hidden from viewers who may see it", values)


async def test_each_viewer_sees_the_fields_that_the_rules_allow(one_client: Client) -> None:
    """Every reachable type, in every state that changes who may see it."""
    world = await World.create(one_client)
    await world.suspend("author")
    instances = world.instances()
    assert {instance.type for instance in instances} == FIELDS.keys() - UNREACHED
    for instance in instances:
        seen = await objects(world, instance)
        assert {viewer for viewer, value in seen.items() if value} == instance.visible_to, instance.name
        visible = {viewer: value for viewer, value in seen.items() if value}
        for name, stated in FIELDS[instance.type].items():
            rule = instance.rules.get(name, stated)
            allowed = rule if isinstance(rule, str) else rule & instance.visible_to
            values = {viewer: value[name] for viewer, value in visible.items()}
            check_field(f"{instance.name}: {instance.type}.{name}", allowed, values)


# ── queries ──

QUERY_ARGUMENTS: Final[Mapping[str, str]] = {
    "user": 'id: "{user}"',
    "node": 'id: "{left}"',
    "nodes": 'ids: ["{left}"]',
    "contender": 'id: "{left}"',
    "matchup": 'left: "{left}", right: "{right}"',
    "event": 'id: "{upcoming}"',
    "league": 'id: "{open league}"',
    "standings": f'season: "{SEASON}"',
    "predictions": 'event: "{scored}"',
    "comment": 'id: "{published comment}"',
    "job": 'id: "{job}"',
    "comments": 'product: "p"',
    "commentStatistics": 'product: "p"',
    "commentStatisticsOf": 'products: ["p"]',
    "wordList": 'id: "{public list}"',
    "upcomingWords": 'list: "{public list}"',
    "quizLeaderboard": 'on: "2026-01-01"',
    "activity": PERIOD,
    "previewContender": PICTURE,
    "previewHoldRules": "rules: []",
    "operations": HOURS,
}


async def test_each_viewer_may_ask_the_queries_that_the_rules_allow(one_client: Client) -> None:
    """The others are told whether they have to sign in or lack a role."""
    world = await World.create(one_client)
    fields = object_types()["Query"].fields
    for name, allowed in QUERIES.items():
        required = any(map(is_required_argument, fields[name].args.values()))
        assert not required or name in QUERY_ARGUMENTS, name
        arguments = QUERY_ARGUMENTS.get(name, "").format_map(world.ids)
        selected = "" if is_leaf_type(get_named_type(fields[name].type)) else " { __typename }"
        query = f"{{ {name}{f'({arguments})' if arguments else ''}{selected} }}"
        for viewer, client in world.clients.items():
            answer = await client.answer(query)
            code = answer["errors"][0]["extensions"]["code"] if "errors" in answer else None
            assert code == (None if viewer in allowed else _refusal(viewer)), (name, viewer, answer)


def _refusal(viewer: Viewer) -> str:
    return "NOT_SIGNED_IN" if viewer is Viewer.VISITOR else "NOT_ALLOWED"


# ── mutations ──

Prepare = Callable[[World, Viewer], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Case:
    """A mutation with an input that nothing but the viewer's rights can refuse."""

    mutation: str
    payload: str
    prepare: Prepare
    allowed: Viewers | None = None
    """By default what the rules say."""
    refusal: str = "NOT_ALLOWED"
    """The code for those who are signed in and may not."""
    in_session: bool = False
    """Whether an admin has to have signed in for it; a token is not enough."""

    async def check(self, world: World, viewer: Viewer) -> None:
        fields = await self.prepare(world, viewer)
        client = world.clients[viewer]
        if self.in_session and viewer is Viewer.ADMIN:
            client = await in_session(client, "admin", Role.ADMIN)
        answer = await client.ask(statement(self.mutation, f"{self.payload} __typename"), input=fields)
        allowed = MUTATIONS[self.mutation] if self.allowed is None else self.allowed
        expected = None
        if viewer not in allowed:
            needs_member = viewer in KEYS and self.mutation in NOT_FOR_KEYS and not allowed & KEYS
            expected = "NOT_SIGNED_IN" if viewer is Viewer.VISITOR or needs_member else self.refusal
        assert answer.get("code") == expected, (self.mutation, viewer, answer)


def given(**fields: Any) -> Prepare:
    """An input that names things of the world, which mutations do not use up: "{upcoming}"."""

    async def prepare(world: World, _: Viewer) -> Mapping[str, Any]:
        return {
            name: value.format_map(world.ids) if isinstance(value, str) else value for name, value in fields.items()
        }

    return prepare


async def the_next_hold_rules(world: World, _: Viewer) -> Mapping[str, Any]:
    current = await world.clients[Viewer.MODERATOR].ask("{ holdRules { revision } }")
    return {"rules": [{"name": "Links", "links": 3}], "revision": current["revision"]}


async def a_new_comment_among_others(world: World, _: Viewer) -> Mapping[str, Any]:
    return {"comments": [await world.comment(), "gone"], "status": "REJECTED"}


def a_new(kind: str, **more: Any) -> Prepare:
    """An input that names a new contender, event, match or comment."""

    async def prepare(world: World, _: Viewer) -> Mapping[str, Any]:
        if kind == "match":
            return {"match": await world.match(await world.event()), **more}
        return {kind: await getattr(world, kind)(), **more}

    return prepare


async def a_board(_: World, viewer: Viewer) -> Mapping[str, Any]:
    return {"slug": f"board-{viewer}", "title": "Board"}


async def a_name(_: World, viewer: Viewer) -> Mapping[str, Any]:
    return {"name": f"Name {viewer}"}


async def a_public_name(_: World, viewer: Viewer) -> Mapping[str, Any]:
    return {"name": f"Everybody's, by {viewer}", "public": True}


async def a_table(_: World, viewer: Viewer) -> Mapping[str, Any]:
    return {"text": f"name\nImported by {viewer}\n"}


async def a_season(_: World, viewer: Viewer) -> Mapping[str, Any]:
    event = {"name": f"Imported by {viewer}", "season": SEASON, "startsAt": IN_A_DAY}
    return {"text": json.dumps({"events": [event]})}


async def words_for_a_list(world: World, viewer: Viewer) -> Mapping[str, Any]:
    return {"list": world.ids["public list"], "text": f"term,definition\n{viewer},imported\n"}


async def a_retired_contender(world: World, _: Viewer) -> Mapping[str, Any]:
    retired = {"contender": await world.contender()}
    await world.do(Viewer.EDITOR, "retireContender", "ContenderRetired contender { id }", **retired)
    return retired


async def a_voiding(world: World, viewer: Viewer) -> Mapping[str, Any]:
    voiding = {"board": "main", "voters": [f"visitor.of-{viewer}"]}
    job = await world.do(Viewer.EDITOR, "voidVoters", "VotersVoided job { id }", **voiding)
    await ended(world.clients[Viewer.EDITOR], job["id"])
    return {"job": job["id"]}


async def their_ballot(world: World, viewer: Viewer) -> Mapping[str, Any]:
    return {"token": (await world.ballot())[viewer], "verdict": "SKIP"}


async def on_a_page(world: World, viewer: Viewer) -> Mapping[str, Any]:
    world.clients[viewer].http.headers["origin"] = "http://ringside.test"
    return {}


async def a_visit(world: World, viewer: Viewer) -> Mapping[str, Any]:
    client = world.clients[viewer]
    await on_a_page(world, viewer)
    expires = utc_now() + timedelta(days=1)
    return {"visit": sign_visit(client.services.seal, "visitor.before", "http://ringside.test", expires)}


async def a_new_order(world: World, _: Viewer) -> Mapping[str, Any]:
    event = await world.event()
    one, two = [await world.match(event) for _ in range(2)]
    return {"event": event, "matches": [two, one]}


async def a_locked_match(world: World, _: Viewer) -> Mapping[str, Any]:
    event = await world.event()
    match = await world.match(event)
    await world.lock(event)
    return {"match": match, "outcome": "WON", "winner": 0}


async def a_locked_event(world: World, viewer: Viewer) -> Mapping[str, Any]:
    return {"event": (await a_finished_event(world, viewer))["event"], "answer": 20.5}


async def a_finished_event(world: World, _: Viewer) -> Mapping[str, Any]:
    return {"event": (await world.finished_match())[1]}


async def a_scored_event(world: World, _: Viewer) -> Mapping[str, Any]:
    event = (await world.finished_match())[1]
    await world.score(event)
    return {"event": event}


async def a_league_with_a_code(world: World, _: Viewer) -> Mapping[str, Any]:
    await world.league("CODE")
    return {"code": world.ids["code"]}


async def a_league(world: World, _: Viewer) -> Mapping[str, Any]:
    return {"league": await world.league("CODE")}


async def a_joined_league(world: World, viewer: Viewer) -> Mapping[str, Any]:
    league = await world.league()
    if viewer in MEMBERS - {Viewer.AUTHOR}:
        await world.do(viewer, "joinLeague", "LeagueJoined membership", league=league)
    if viewer is Viewer.AUTHOR:
        await world.do(Viewer.MEMBER, "joinLeague", "LeagueJoined membership", league=league)
        stranger = await world.clients[Viewer.MEMBER].ask("{ viewer { id } }")
        return {"league": league, "successor": stranger["id"]}
    return {"league": league}


async def somebody_waiting(world: World, _: Viewer) -> Mapping[str, Any]:
    league = await world.league("APPROVAL")
    await world.do(Viewer.MODERATOR, "joinLeague", "LeagueJoined membership", league=league)
    moderator = await world.clients[Viewer.MODERATOR].ask("{ viewer { id } }")
    return {"league": league, "user": moderator["id"]}


async def somebody_elses_comment(world: World, viewer: Viewer) -> Mapping[str, Any]:
    return {
        "comment": await world.comment(by=Viewer.MEMBER if viewer is Viewer.AUTHOR else Viewer.AUTHOR),
        "helpful": True,
    }


async def a_hidden_comment(world: World, _: Viewer) -> Mapping[str, Any]:
    return {"comment": await world.comment("PENDING")}


async def some_picks(world: World, _: Viewer) -> Mapping[str, Any]:
    return {"event": world.ids["upcoming"], "picks": [{"match": world.ids["upcoming match"], "team": 0}]}


async def a_key(world: World, _: Viewer) -> Mapping[str, Any]:
    return {"key": await world.api_key()}


async def whom_to_erase(world: World, viewer: Viewer) -> dict[str, Any]:
    """The author themselves; for others a member who is nobody's viewer."""
    user = world.ids["user"] if viewer is Viewer.AUTHOR else await world.outlaw(suspended=False)
    return {"user": user, "contributions": "REMOVE"}


async def another_identity(world: World, viewer: Viewer) -> dict[str, Any]:
    if viewer in MEMBERS:
        services = world.clients[viewer].services
        user = parse_node_key("User", (await world.clients[viewer].ask("{ viewer { id } }"))["id"])
        shown = of_issuer(SignInMethod.SITE, "shop", viewer.value)
        await add_identity(services.table, user, shown, services.unit())
    return {"method": "SITE", "label": "shop"}


def an_outlaw(*, suspended: bool, **more: Any) -> Prepare:
    """An input that names a member who is nobody's viewer."""

    async def prepare(world: World, _: Viewer) -> Mapping[str, Any]:
        return {"user": await world.outlaw(suspended=suspended), **more}

    return prepare


async def a_webhook(world: World, viewer: Viewer) -> Mapping[str, Any]:
    return {"webhook": await world.webhook() if viewer in ADMINS else world.ids["webhook"]}


async def their_quiz(world: World, viewer: Viewer) -> Mapping[str, Any]:
    token = await world.quiz(viewer) if viewer in MEMBERS else "none"
    return {"token": token, "answers": ["", "", ""]}


async def a_confirmed_address(world: World, viewer: Viewer) -> Mapping[str, Any]:
    await world.confirm_address(viewer)
    return {}


def an_address(**more: Any) -> Prepare:
    """A subscriber's address of each viewer's, where emails are sent."""

    async def prepare(world: World, viewer: Viewer) -> Mapping[str, Any]:
        world.send_emails()
        return {"email": f"{viewer}@example.com", **await given(**more)(world, viewer)}

    return prepare


async def _a_code(world: World, viewer: Viewer) -> tuple[Asked, str]:
    """A code that was sent to an address of the viewer's own, and its digits."""
    services = world.clients[viewer].services
    asked = Asked(
        f"code-{viewer}-{next(_numbers)}", f"{viewer}-in@example.com", services.clock() + timedelta(minutes=9)
    )
    hashed = sign_in_codes._hashes(services.seal, asked.id, "123456")[0]
    code = SignInCode(asked.id, asked.expires, hashed)
    await store_code(services.table, services.unit(), None, code)
    return asked, "123456"


async def a_link(world: World, viewer: Viewer) -> Mapping[str, Any]:
    asked, _ = await _a_code(world, viewer)
    return {"token": asked.sealed(world.clients[viewer].services.seal, sign_in_codes._LINK)}


async def a_code(world: World, viewer: Viewer) -> Mapping[str, Any]:
    asked, digits = await _a_code(world, viewer)
    return {"request": asked.sealed(world.clients[viewer].services.seal, sign_in_codes._REQUEST), "code": digits}


async def a_guest_s_name(world: World, viewer: Viewer) -> Mapping[str, Any]:
    services = world.clients[viewer].services
    services.policy = replace(services.policy, sign_in_methods=frozenset({"GUEST"}))
    return {"name": "Ann"}


_numbers = count()
WORDS: Final = [{"simplified": "字", "definition": "character"}]
CASES: Final = (
    Case("updateProfile", "ProfileUpdated", a_name),
    Case("removeIdentity", "IdentityRemoved", another_identity),
    Case("setRoles", "RolesSet", an_outlaw(suspended=False, roles=["moderator"]), in_session=True),
    Case("requestSignIn", "SignInRequested", an_address()),
    Case("addIdentity", "IdentityAdded", a_code, in_session=True),
    Case("signIn", "SignedIn", a_link),
    Case("signInAsGuest", "SignedIn", a_guest_s_name),
    Case("signOut", "SignedOut", given()),
    Case("suspendMember", "MemberSuspended", an_outlaw(suspended=False, reason="Spam")),
    Case("exportMember", "MemberExport", given(user="{user}")),
    Case("takeBack", "TakenBack", an_outlaw(suspended=False, parts=["COMMENTS"])),
    Case("reinstateMember", "MemberReinstated", an_outlaw(suspended=True)),
    # ── voting ──
    Case("createBoard", "BoardCreated", a_board),
    Case("updateBoard", "BoardUpdated", given(slug="main", title="Main")),
    Case("addContender", "ContenderAdded", a_name),
    Case("updateContender", "ContenderUpdated", a_new("contender", svg=None)),
    Case("retireContender", "ContenderRetired", a_new("contender")),
    Case("restoreContender", "ContenderRestored", a_retired_contender),
    Case("findSuspects", "SuspectsSought", given(board="main")),
    Case("voidVoters", "VotersVoided", given(board="main", voters=["visitor.nobody"])),
    Case("restoreVoters", "VotersRestored", a_voiding),
    Case("startVisit", "Visit", on_a_page),
    Case("continueVisit", "VisitContinued", a_visit),
    Case("drawMatchup", "Ballot", given(board="main")),
    Case("castVote", "VoteCast", their_ballot),
    Case("voidVoter", "VoterVoided", given(voter="{user}")),
    # ── pick'em ──
    Case("importContenders", "Imported", a_table),
    Case("importEvents", "Imported", a_season),
    Case("importWords", "Imported", words_for_a_list),
    Case("createEvent", "EventCreated", given(name="Show", season=SEASON, startsAt=IN_A_DAY)),
    Case("updateEvent", "EventUpdated", a_new("event", name="Other")),
    Case("addMatch", "MatchAdded", a_new("event", name="Singles", points=1, teams=TEAMS)),
    Case("updateMatch", "MatchUpdated", a_new("match", points=2)),
    Case("removeMatch", "MatchRemoved", a_new("match")),
    Case("reorderMatches", "MatchesReordered", a_new_order),
    Case("submitPrediction", "PredictionSubmitted", some_picks),
    Case("lockEvent", "EventLocked", a_new("event")),
    Case("recordResult", "ResultRecorded", a_locked_match),
    Case("recordTieBreak", "TieBreakRecorded", a_locked_event),
    Case("scoreEvent", "EventScored", a_finished_event),
    Case("unscoreEvent", "EventUnscored", a_scored_event),
    # ── leagues ──
    Case("createLeague", "LeagueCreated", given(name="Friends", season=SEASON, entry="OPEN")),
    Case("joinLeague", "LeagueJoined", a_league_with_a_code, MEMBERS - AUTHOR, "CONFLICT"),
    Case("admitToLeague", "LeagueAdmitted", somebody_waiting),
    Case("removeFromLeague", "LeagueMemberRemoved", somebody_waiting),
    Case("leaveLeague", "LeagueLeft", a_joined_league),
    Case("rotateLeagueCode", "LeagueCodeRotated", a_league),
    Case("deleteLeague", "LeagueDeleted", a_league),
    # ── comments ──
    Case("postComment", "CommentPosted", given(product="q", language="en", rating=4, body="Body")),
    Case("editComment", "CommentEdited", a_new("comment", rating=3)),
    Case("editComment", "CommentEdited", a_hidden_comment, AUTHOR_OR_MODERATORS, "NOT_FOUND"),
    Case("deleteComment", "CommentDeleted", a_new("comment")),
    Case("reportComment", "CommentReported", a_new("comment", reason="Spam")),
    Case("claimComments", "CommentsClaimed", a_confirmed_address),
    Case("markHelpful", "CommentMarked", somebody_elses_comment),
    Case("answerComment", "CommentAnswered", a_new("comment", body="Thank you.")),
    Case("moderateComment", "CommentModerated", a_new("comment", status="PUBLISHED")),
    Case("setHoldRules", "HoldRulesSet", the_next_hold_rules),
    Case("moderateComments", "CommentsModerated", a_new_comment_among_others),
    # ── vocabulary ──
    Case("createWordList", "WordListCreated", a_name),
    Case("createWordList", "WordListCreated", a_public_name, EDITORS),
    Case("addWords", "WordsAdded", given(list="{private list}", words=WORDS), AUTHOR, "NOT_FOUND"),
    Case("addWords", "WordsAdded", given(list="{public list}", words=WORDS), EDITORS),
    Case("subscribe", "Subscribed", given(list="{public list}")),
    Case("subscribe", "Subscribed", given(list="{private list}"), AUTHOR, "NOT_FOUND"),
    Case("unsubscribe", "Unsubscribed", given(list="{private list}"), AUTHOR, "NOT_FOUND"),
    Case("requestSubscription", "SubscriptionRequested", an_address(list="{public list}")),
    Case("claimSubscriptions", "SubscriptionsClaimed", a_confirmed_address),
    Case("recordQuiz", "QuizRecorded", given(list="{public list}", correct=1, total=2)),
    Case("recordQuiz", "QuizRecorded", given(list="{private list}", correct=1, total=2), AUTHOR, "NOT_FOUND"),
    Case("writeSentence", "SentenceWritten", given(text="New."), MEMBERS),
    Case("writeSentence", "SentenceWritten", given(sentence="{public sentence}", text="Changed."), AUTHOR),
    Case("writeSentence", "SentenceWritten", given(word="{private word}", text="New."), AUTHOR, "NOT_FOUND"),
    Case("startQuiz", "Quiz", given(list="{public list}", size=3)),
    Case("startQuiz", "Quiz", given(list="{private list}", size=3), AUTHOR, "NOT_FOUND"),
    Case("answerQuiz", "QuizGraded", their_quiz),
    Case("reviewWord", "WordReviewed", given(word="{public word}", grade="GOOD")),
    Case("reviewWord", "WordReviewed", given(word="{private word}", grade="GOOD"), AUTHOR, "NOT_FOUND"),
    Case("deleteSentence", "SentenceDeleted", a_new("sentence")),
    Case("updateWord", "WordUpdated", given(word="{private word}", pinyin="cí"), AUTHOR, "NOT_FOUND"),
    Case("updateWord", "WordUpdated", given(word="{public word}", pinyin="cí"), EDITORS),
    Case("removeWord", "WordRemoved", given(word="{private word}"), AUTHOR, "NOT_FOUND"),
    Case("removeWord", "WordRemoved", given(word="{public word}"), EDITORS),
    Case("updateWordList", "WordListUpdated", given(list="{private list}", level=3), AUTHOR, "NOT_FOUND"),
    Case("updateWordList", "WordListUpdated", given(list="{public list}", level=3), EDITORS),
    Case("deleteWordList", "WordListDeleted", given(list="{private list}"), AUTHOR, "NOT_FOUND"),
    Case("deleteWordList", "WordListDeleted", given(list="{public list}"), EDITORS),
    # ── machines ──
    Case("createApiKey", "ApiKeyCreated", given(name="Robot", roles=["editor"])),
    Case("revokeApiKey", "ApiKeyRevoked", a_key),
    Case("addWebhook", "WebhookAdded", given(url="https://8.8.8.8/", kinds=["member.erased"])),
    Case("removeWebhook", "WebhookRemoved", a_webhook),
    Case("rotateWebhookSecret", "WebhookSecretRotated", given(webhook="{webhook}")),
    Case("redeliver", "Redelivery", given(webhook="{webhook}", since="2026-01-01T00:00:00Z")),
    # Last, since the author can do nothing after it.
    Case("eraseMember", "MemberErasure", whom_to_erase),
)


async def test_each_viewer_may_do_what_the_rules_allow(one_client: Client) -> None:
    """The others are refused with the right code."""
    assert {case.mutation for case in CASES} == MUTATIONS.keys()
    world = await World.create(one_client)
    for case in CASES:
        for viewer in Viewer:
            await case.check(world, viewer)


async def test_each_mutation_leaves_its_kinds_in_the_journal(one_client: Client) -> None:
    """In its own transaction, under the id of the member who did it; except votes and predictions, unless wanted."""
    world = await World.create(one_client)
    missing: dict[str, set[str]] = {}
    for case in (case for case in CASES if case.mutation not in NOT_RECORDED):
        viewer = next(one for one in (Viewer.ADMIN, Viewer.AUTHOR) if one in (case.allowed or MUTATIONS[case.mutation]))
        await case.check(world, viewer)
        await until(partial(_has_no_job, one_client), "what the mutation has begun has ended")
        expected = {kind.value for kind in RECORDED.get(case.mutation, ()) if kind not in ON_DEMAND}
        missing[case.mutation] = missing.get(case.mutation, expected) - await _kinds_of(world, viewer)
    assert {name: kinds for name, kinds in missing.items() if kinds} == {}


async def _has_no_job(client: Client) -> bool:
    return not await read_unfinished_jobs(client.services.table)


async def _kinds_of(world: World, viewer: Viewer) -> set[str]:
    """The kinds of the last occurrences of a viewer."""
    found = await world.clients[Viewer.ADMIN].ask(
        "query ($actor: ID!) { journal(actor: $actor, first: 5) { nodes { kind } } }",
        actor=node_id("User", with_session("admin") if viewer is Viewer.ADMIN else "author"),
    )
    return {occurrence["kind"] for occurrence in found["nodes"]}


# ── subscriptions ──

SUBSCRIBED: Final = {
    "leaderboardChanged": "leaderboardChanged { rank }",
    "standingsChanged": f'standingsChanged(season: "{SEASON}") {{ rank }}',
    "eventChanged": 'eventChanged(event: "EVENT") { state }',
    "commentPosted": 'commentPosted(product: "p") { id }',
}
ROLES: Final = {
    Viewer.MEMBER: (),
    Viewer.MODERATOR: ("--role", "moderator"),
    Viewer.EDITOR: ("--role", "editor"),
    Viewer.ADMIN: ("--role", "admin"),
}


@pytest.mark.parametrize("viewer", [Viewer.VISITOR, Viewer.KEY, *ROLES])
async def test_each_viewer_may_subscribe_to_what_the_rules_allow(service: Service, viewer: Viewer) -> None:
    """An answer to a query that follows shows that none of the subscriptions was refused."""
    assert SUBSCRIBED.keys() == SUBSCRIPTIONS.keys()
    assert all(viewer in allowed for allowed in SUBSCRIPTIONS.values())
    token = service.token(viewer, *ROLES[viewer]) if viewer in ROLES else None
    if viewer is Viewer.KEY:
        token = ringside("apikey", "create", "Robot", "--role", "member", **service.variables).stdout.strip()
    async with httpx.AsyncClient(base_url=service.url, timeout=60) as http:
        answer = await http.post("/graphql", json={"query": "{ events(first: 1) { nodes { id } } }"})
    event = answer.json()["data"]["events"]["nodes"][0]["id"]
    async with open_socket(service) as connection:
        parameters = {"Authorization": f"Bearer {token}"} if token else {}
        await send(connection, {"type": "connection_init", "payload": parameters})
        assert (await receive(connection))["type"] == "connection_ack"
        for name, field in SUBSCRIBED.items():
            query = f"subscription {{ {field.replace('EVENT', event)} }}"
            await send(connection, {"id": name, "type": "subscribe", "payload": {"query": query}})
        await asyncio.sleep(0.3)
        await send(connection, {"id": "last", "type": "subscribe", "payload": {"query": "{ __typename }"}})
        while (message := await receive(connection)).get("id") != "last":
            assert message["type"] == "next", message
            assert "errors" not in message["payload"], message
