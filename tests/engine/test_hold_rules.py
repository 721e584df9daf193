"""Rules that hold comments: which ones wait for a moderator, who learns why, and what setting them costs."""

import asyncio
import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from datastore.changes.occurrences import OCCURRENCE, Kind
from datastore.comments.hold_rules import read_hold_rules
from datastore.members.suspensions import MemberRoles, set_roles
from resolvers.members.suspensions import Suspensions
from resolvers.requests.context import Role
from server.settings import Settings
from tests.client import Client, serving
from tests.command import on_table, ringside
from tests.comments import post
from tests.dependent_calls import dependent_calls
from tests.queries import EDIT_COMMENT, MODERATE_COMMENT, POST_COMMENT, SET_HOLD_RULES
from tests.waiting import LONGEST

HELD = "query ($id: ID!) { comment(id: $id) { status heldBy } }"
PREVIEW = """query ($rules: [HoldRuleInput!]!, $of: Int! = 500) { previewHoldRules(rules: $rules, of: $of) {
  heldBy comment { body } } }"""
RULES = "{ holdRules { revision rules { name words } } }"
PAGE = 'query { comments(product: "42") { totalCount nodes { body } } }'


async def set_rules(client: Client, *rules: dict[str, Any], revision: int = 0) -> Any:
    given = {"rules": list(rules), "revision": revision}
    return await client.member("root", Role.ADMIN).ask(SET_HOLD_RULES, input=given)


async def held_by(client: Client, comment: dict[str, Any]) -> str | None:
    shown = await client.member("mod", Role.MODERATOR).ask(HELD, id=comment["id"])
    name: str | None = shown["heldBy"]
    assert (shown["status"] == "PENDING") == (name is not None)
    return name


# ── what is held ──


async def test_the_first_rule_whose_conditions_are_all_met_holds_a_comment(client: Client) -> None:
    """Its author sees PENDING and not the rule, and nobody else sees the comment."""
    await set_rules(
        client,
        {"name": "German tickets", "language": "de-AT", "words": ["Karten"]},
        {"name": "Many links", "links": 1},
        {"name": "Tickets", "words": ["tickets"]},
    )
    ada = client.member("ada")
    tickets = await post(ada, body="Tickets at https://a.example and https://b.example")
    assert tickets["status"] == "PENDING"
    assert (await ada.ask(HELD, id=tickets["id"])) == {"status": "PENDING", "heldBy": None}
    assert await held_by(client, tickets) == "Many links"
    assert await held_by(client, await post(ada, title="TICKETS!", body="Good.")) == "Tickets"
    assert await held_by(client, await post(ada, language="de", body="Karten")) == "German tickets"
    for body in ("Karten", "ticketseller", "https://a.example"):
        assert await held_by(client, await post(ada, body=body)) is None
    assert (await client.ask(PAGE))["totalCount"] == 3
    one_star = await post(ada, rating=1, body="Bad.")
    assert one_star["status"] == "PUBLISHED"


async def test_replies_are_held_too(client: Client) -> None:
    """A held one is not in its thread until a moderator publishes it."""
    await set_rules(client, {"name": "Tickets", "words": ["tickets"]})
    ada = client.member("ada")
    root = await post(ada)
    reply = await post(ada, rating=None, inReplyTo=root["id"], body="Buy tickets.")
    assert await held_by(client, reply) == "Tickets"
    count = "query ($id: ID!) { comment(id: $id) { replyCount } }"
    assert (await client.ask(count, id=root["id"]))["replyCount"] == 0
    moderator = client.member("mod", Role.MODERATOR)
    await moderator.ask(MODERATE_COMMENT, input={"comment": reply["id"], "status": "PUBLISHED"})
    assert await held_by(client, reply) is None
    await client.caught_up("the thread's number is read again")
    assert (await client.ask(count, id=root["id"]))["replyCount"] == 1


async def test_new_members_and_busy_ones_are_held(client: Client) -> None:
    """Until so many of theirs are published; and above so many within an hour, whatever their status."""
    await set_rules(client, {"name": "New", "firstComments": 2}, {"name": "Busy", "perHour": 4})
    ada, mod = client.member("ada"), client.member("mod", Role.MODERATOR)
    names = []
    for _ in range(6):
        comment = await post(ada)
        names.append(await held_by(client, comment))
        if names[-1] == "New":
            await mod.ask(MODERATE_COMMENT, input={"comment": comment["id"], "status": "PUBLISHED"})
    assert names == ["New", "New", None, None, "Busy", "Busy"]


async def test_comments_sent_at_the_same_moment_count_for_each_other(client: Client) -> None:
    """A program that posts all at once gets no more past a rule about the hour than one that waits for each answer."""
    await set_rules(client, {"name": "Busy", "perHour": 1})
    ada, root = client.member("ada"), await post(client.member("bob"))
    replies = [{"inReplyTo": root["id"], "rating": None}, {}] * 4
    posted = await asyncio.gather(*(post(ada, **reply) for reply in replies))
    assert sorted([await held_by(client, comment) or "" for comment in posted]) == ["", *["Busy"] * 7]


async def test_guests_alone_are_held_by_a_rule_for_guests(client: Client) -> None:
    """A rule may be about them alone."""
    await set_rules(client, {"name": "Guests", "guests": True})
    assert await held_by(client, await post(client.member("ada"))) is None


async def test_moderators_and_editors_are_never_held(client: Client) -> None:
    """Nor what a moderator edits."""
    await set_rules(client, {"name": "Everything", "perHour": 0})
    ada, mod = client.member("ada"), client.member("mod", Role.MODERATOR)
    for member in (mod, client.member("ed", Role.EDITOR), client.member("root", Role.ADMIN)):
        assert await held_by(client, await post(member)) is None
    comment = await post(ada)
    assert await held_by(client, comment) == "Everything"
    await mod.ask(MODERATE_COMMENT, input={"comment": comment["id"], "status": "PUBLISHED"})
    await mod.ask(EDIT_COMMENT, input={"comment": comment["id"], "body": "Shorter."})
    assert await held_by(client, comment) is None


async def test_an_edit_is_judged_anew(client: Client) -> None:
    """A published comment may be held; a held one waits for a moderator, whatever its author makes of it."""
    await set_rules(client, {"name": "Tickets", "words": ["tickets"]}, {"name": "New", "firstComments": 1})
    ada, mod = client.member("ada"), client.member("mod", Role.MODERATOR)
    comment = await post(ada)
    await mod.ask(MODERATE_COMMENT, input={"comment": comment["id"], "status": "PUBLISHED"})
    second = await post(ada)
    assert await held_by(client, second) is None
    await ada.ask(EDIT_COMMENT, input={"comment": second["id"], "body": "Tickets!"})
    assert await held_by(client, second) == "Tickets"
    assert (await client.ask(PAGE))["totalCount"] == 1
    edited = await ada.ask(EDIT_COMMENT, input={"comment": second["id"], "body": "Nothing."})
    assert edited["comment"]["status"] == "PENDING"


async def test_an_edit_counts_as_posted_when_the_comment_was(one_client: Client) -> None:
    """So an author who corrects something old is not busier than one who leaves it; those of the hour count."""
    now = [one_client.services.clock()]

    def clock() -> datetime:
        now[0] += timedelta(seconds=1)  # ids of one moment have no order
        return now[0]

    one_client.services.clock = clock
    ada = one_client.member("ada")
    first = await post(ada)
    now[0] += timedelta(hours=2)
    await set_rules(one_client, {"name": "Busy", "perHour": 1})
    second = await post(ada)
    for comment in (first, second):
        await ada.ask(EDIT_COMMENT, input={"comment": comment["id"], "body": "Shorter."})
        assert await held_by(one_client, comment) is None
    assert await held_by(one_client, await post(ada)) == "Busy"
    await ada.ask(EDIT_COMMENT, input={"comment": first["id"], "body": "Shorter still."})
    assert await held_by(one_client, first) == "Busy"


# ── setting them ──


async def test_two_admins_at_once_do_not_overwrite_each_other(client: Client) -> None:
    """One of them is told to look again; the rules are those of the other, and the journal has one change."""
    rules = [{"name": f"Rule {number}", "words": ["word"] * 3} for number in range(50)]
    answers = await asyncio.gather(set_rules(client, *rules), set_rules(client, {"name": "One", "links": 0}))
    assert sorted("code" in answer for answer in answers) == [False, True]
    assert next(answer for answer in answers if "code" in answer)["code"] == "CONFLICT"
    stored = await client.member("mod", Role.MODERATOR).ask(RULES)
    assert (stored["revision"], len(stored["rules"])) in ((1, 50), (1, 1))
    assert (await set_rules(client, {"name": "Last", "links": 0}, revision=1))["rules"]["revision"] == 2
    assert (await set_rules(client, revision=1))["code"] == "CONFLICT"
    stored = await client.member("mod", Role.MODERATOR).ask(RULES)
    assert stored == {"revision": 2, "rules": [{"name": "Last", "words": []}]}
    found = [one.kind async for one in client.services.table.scan(OCCURRENCE, consistent=True)]
    assert found.count(Kind.HOLD_RULES_SET) == 2
    assert (await set_rules(client, revision=2))["rules"]["rules"] == []


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ({"name": ""}, ["name"]),
        ({"name": "x"}, []),
        ({"name": "x", "words": []}, []),
        ({"name": "x" * 61, "links": 1}, ["name"]),
        ({"name": "x", "language": "klingonese"}, ["language"]),
        ({"name": "x", "words": ["two words"]}, ["words", "0"]),
        ({"name": "x", "words": [" fine ", "a$$"]}, ["words", "1"]),
        ({"name": "x", "words": ["fine", "\u200b"]}, ["words", "1"]),
        ({"name": "x", "words": ["x" * 101]}, ["words", "0"]),
        ({"name": "x", "words": ["x"] * 501}, ["words"]),
        ({"name": "x", "links": -1}, ["links"]),
        ({"name": "x", "firstComments": 0}, ["firstComments"]),
        ({"name": "x", "perHour": 1001}, ["perHour"]),
    ],
)
async def test_a_rule_that_makes_no_sense_is_refused(one_client: Client, rule: dict[str, Any], path: list[str]) -> None:
    """With its place; nothing is stored."""
    refused = await set_rules(one_client, {"name": "Fine", "links": 1}, rule)
    assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "rules", "1", *path])
    assert (await read_hold_rules(one_client.services.table)).revision == 0


async def test_names_are_distinct_and_rules_are_few(one_client: Client) -> None:
    """Two of one name could not be told apart in the queue."""
    assert (await set_rules(one_client, *[{"name": "A", "links": 1}] * 2))["path"] == ["input", "rules", "1", "name"]
    many = [{"name": f"{number}", "links": 1} for number in range(51)]
    assert (await set_rules(one_client, *many))["path"] == ["input", "rules"]


async def test_a_receipt_shows_a_former_admin_no_rules(one_client: Client) -> None:
    """They might repeat an old request for days, and read the rules that others set meanwhile."""
    given = {"rules": [{"name": "Touts", "words": ["tickets"]}], "revision": 0, "idempotencyKey": "once"}
    assert "rules" in await one_client.member("root", Role.ADMIN).ask(SET_HOLD_RULES, input=given)
    assert "rules" in await one_client.member("root", Role.MODERATOR).ask(SET_HOLD_RULES, input=given)
    assert await one_client.member("root").code(SET_HOLD_RULES, input=given) == "NOT_ALLOWED"


async def test_other_processes_follow_within_seconds(one_client: Client, settings: Settings) -> None:
    """Another process holds by the new rules without being told."""
    async with serving(settings.model_copy(update={"dynamodb_url": one_client.settings.dynamodb_url})) as other:
        ada = other.member("ada")
        assert (await post(ada, body="Tickets"))["status"] == "PUBLISHED"
        await set_rules(one_client, {"name": "Tickets", "words": ["tickets"]})
        async with asyncio.timeout(LONGEST):
            while (await post(ada, body="Tickets"))["status"] == "PUBLISHED":
                await asyncio.sleep(0.5)


async def test_a_comment_waits_for_no_rules(one_client: Client) -> None:
    """They are known before: posting waits for one call, and for one more if a rule is about the author's history."""
    ada, table = one_client.member("ada"), one_client.services.table
    words = {"product": "42", "language": "en", "rating": 5, "body": "Words and https://links.example"}

    async def calls_of_a_post() -> int:
        """Now and then one does other work too, such as counting five stars."""
        return min([(await dependent_calls(table, ada.ask(POST_COMMENT, input=words)))[1] for _ in range(3)])

    assert await calls_of_a_post() == 1
    new = {"name": "New and busy", "firstComments": 1, "perHour": 5}
    await set_rules(one_client, {"name": "Words", "words": ["other"], "links": 0}, new)
    assert await calls_of_a_post() == 2


# ── trying them ──


async def post_as_editor(client: Client, body: str) -> None:
    """By a member who has this role here, not by their token."""
    await post(client.member("ed"), body=body)
    services = client.services
    await set_roles(services.table, services.unit(), None, MemberRoles("ed", ("editor",)))
    await services.get(Suspensions).refresh()


async def test_a_preview_tells_what_rules_would_have_held(client: Client) -> None:
    """Of the latest comments, newest first, each by what its author had posted before; nothing is changed.

    None of what an editor wrote, who is never held.
    """
    await post_as_editor(client, "tickets")
    ada, bob = client.member("ada"), client.member("bob")
    for number, member in enumerate((ada, bob, ada, ada)):
        await post(member, body=f"{number} tickets" if number else "0")
    await client.caught_up("every index shows what was written")
    mod = client.member("mod", Role.MODERATOR)
    found = await mod.ask(PREVIEW, rules=[{"name": "T", "words": ["tickets"]}, {"name": "New", "firstComments": 1}])
    assert [(one["comment"]["body"][0], one["heldBy"]) for one in found] == [
        ("3", "T"), ("2", "T"), ("1", "T"), ("0", "New"),
    ]  # fmt: skip
    assert len(await mod.ask(PREVIEW, rules=[{"name": "All", "perHour": 0}], of=2)) == 2
    assert await mod.ask(PREVIEW, rules=[{"name": "None", "words": ["nothing"]}]) == []
    assert await mod.code(PREVIEW, rules=[], of=501) == "BAD_USER_INPUT"
    assert await mod.code(PREVIEW, rules=[{"name": "x"}]) == "BAD_USER_INPUT"
    assert (await client.ask(PAGE))["totalCount"] == 5


async def test_the_command_tries_a_file_on_all_comments(client: Client, tmp_path: Path) -> None:
    """As `holdRules` answers it; a file of something else says what is wrong with it."""
    ada = client.member("ada")
    await post_as_editor(client, "Tickets")
    for body in ("Tickets\x1b[31m here", "Fine.", "Tickets"):
        await post(ada, body=body)
    file = tmp_path / "rules.json"
    file.write_text(json.dumps({"revision": 3, "rules": [{"name": "T", "words": ["tickets"], "links": None}]}))
    variables = on_table(client.settings.dynamodb_url, client.settings.table)
    tried = ringside("comments", "rules", "test", f"{file}", **variables)
    assert (tried.returncode, tried.stdout.splitlines()[0]) == (0, "T: 2 of 4 comments.")
    assert "\x1b" not in tried.stdout
    for wrong, said in (('{"rules": [{}]}', "name"), ("[]", "`object`"), ('{"rules": [{"name": "x"}]}', "condition")):
        file.write_text(wrong)
        tried = ringside("comments", "rules", "test", f"{file}", **variables)
        assert tried.returncode == 1
        assert said in tried.stderr
