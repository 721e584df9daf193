"""A member's file: complete, explained, and fetched once by anyone who has its link."""

import asyncio
from collections import Counter
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from datastore.dynamo import Table, iso
from datastore.jobs import jobs as job_store
from datastore.jobs.jobs import JobState
from datastore.members.exports import EXPORT, EXPORT_PIECE
from datastore.people import profiles as profile_store
from datastore.values.ids import creation_time
from datastore.voting.voiding import ORIGIN
from resolvers.jobs.running import JobRunner
from resolvers.requests.context import Role, utc_now
from resolvers.values.node_ids import node_id
from resolvers.whole import exporting
from resolvers.whole.erasing import PARTS
from resolvers.whole.exporting import EXPORT_MEMBER, PATH, PURPOSE, file_lines
from resolvers.whole.jobs import JOB_KINDS
from tests.client import Client
from tests.command import on_table, ringside
from tests.comments import post
from tests.engines import RunningEngine
from tests.intercepted import beforehand
from tests.jobs import SECRET, ended, run_of, work_on
from tests.killed import Killed, killed_at
from tests.lagging import Lag
from tests.lagging.service import lagging_services
from tests.queries import (
    ADD_WORDS,
    CREATE_BOARD,
    CREATE_LIST,
    DELETE_LIST,
    MODERATE_COMMENT,
    REMOVE_WORD,
    REPORT_COMMENT,
    SET_HOLD_RULES,
    SUSPEND,
    UPDATE_PROFILE,
    mutation,
)
from tests.two_worlds import Site
from tests.vocabulary import private_list, word_ids
from tests.voting import add_contenders, editor, vote

EXPORT_QUERY = mutation("exportMember", "MemberExport", "job { id } url")
EVE = node_id("User", "eve")
REINSTATE = mutation("reinstateMember", "MemberReinstated", "user { id }")


async def contribute(client: Client) -> None:
    """Everything that a member can leave behind, and some things of others beside it."""
    site = Site(client)
    await site.prepare()
    await site.contribute("bob", 1)
    await site.contribute("eve", 4)
    await site.score()
    eve = client.member("eve")
    await eve.ask(UPDATE_PROFILE, input={"timeZone": "Europe/Vienna"})
    await profile_store.give_email(client.services.table, "eve", "eve@example.org", client.services.unit())
    made = await eve.ask(CREATE_LIST, input={"name": "Mine"})
    words = [{"simplified": "词", "definition": "word"}]
    await eve.ask(ADD_WORDS, input={"list": made["list"]["id"], "words": words})
    await client.caught_up("the product lists the other member's comment")
    page = await client.ask('{ comments(product: "mug") { nodes { id body } } }')
    other = next(comment["id"] for comment in page["nodes"] if comment["body"].startswith("bob"))
    await eve.ask(REPORT_COMMENT, input={"comment": other, "reason": "Off topic."})


async def export(client: Client, **more: Any) -> tuple[str, str]:
    """The link, once the job is done, and the job's id."""
    answer = await client.ask(EXPORT_QUERY, input={"user": EVE, **more})
    assert (await ended(client, answer["job"]["id"]))["state"] == "DONE"
    return answer["url"], answer["job"]["id"]


async def test_a_member_s_file_has_everything_and_explains_it(client: Client) -> None:
    """Each kind that they have, and nothing of others; every kind is one of the header's."""
    await contribute(client)
    await client.caught_up("the indexes list the private list, the report and what the member did")
    url, _ = await export(client.member("eve"))
    answer = await client.http.get(url)
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    header, *lines = [orjson.loads(line) for line in answer.text.splitlines()]
    assert (header["kind"], header["member"]) == ("header", "eve")
    counted = Counter(line["kind"] for line in lines)
    assert counted.keys() <= header["kinds"].keys()
    expected = {
        "profile": 1, "vote": 3, "prediction": 2, "standing": 1, "comment": 4, "quiz": 2, "sentence": 1,
        "activeDays": 1, "list": 1, "word": 1, "quota": 1, "report": 1,
        "leagues": 1,
    }  # fmt: skip
    assert {kind: counted[kind] for kind in expected} == expected
    profile = next(line["record"] for line in lines if line["kind"] == "profile")
    assert (profile["email"], profile["timeZone"]) == ("eve@example.org", "Europe/Vienna")
    bodies = {line["record"]["body"] for line in lines if line["kind"] == "comment"}
    assert bodies == {"eve on belt", "eve on mug", "eve on tee", "eve again"}
    assert "bob" not in answer.text


async def test_a_file_tells_the_words_of_a_list_from_those_that_were_removed(one_client: Client) -> None:
    """Both are kept as words: by its kind a record says which it is."""
    eve = one_client.member("eve")
    made = await private_list(eve, words=3)
    await eve.ask(REMOVE_WORD, input={"word": (await word_ids(eve, made))[1]})
    lines = [orjson.loads(line) async for line in file_lines(one_client.services.table, "eve", "now")][1:]
    words = [(line["kind"], line["record"]["definition"]) for line in lines if "definition" in line["record"]]
    assert sorted(words) == [("removedWord", "word 1"), ("word", "word 0"), ("word", "word 2")]


async def test_a_file_has_what_is_left_of_a_list_that_its_owner_has_deleted(one_client: Client) -> None:
    """Its name, which the member chose: it stays because quizzes and subscriptions may name the list."""
    eve = one_client.member("eve")
    await eve.ask(DELETE_LIST, input={"list": await private_list(eve, "Words for Bob")})
    lines = [orjson.loads(line) async for line in file_lines(one_client.services.table, "eve", "now")][1:]
    [left] = [line["record"] for line in lines if line["kind"] == "list"]
    assert (left["name"], left["deletedAt"] is not None) == ("Words for Bob", True)


async def test_a_file_says_when_comments_were_written_and_what_was_done_when(one_client: Client) -> None:
    """Also when a comment that was held was published: the table has these times inside ids only."""
    services, eve, mia = one_client.services, one_client.member("eve"), one_client.member("mia", Role.MODERATOR)
    held = await post(eve)
    await mia.ask(MODERATE_COMMENT, input={"comment": held["id"], "status": "REJECTED"})
    rejected = [orjson.loads(line) async for line in file_lines(services.table, "eve", "now")][1:]
    await mia.ask(MODERATE_COMMENT, input={"comment": held["id"], "status": "PUBLISHED"})
    published = [orjson.loads(line) async for line in file_lines(services.table, "eve", "now")][1:]
    before = next(line["record"] for line in rejected if line["kind"] == "heldComment")
    after = next(line["record"] for line in published if line["kind"] == "comment")
    shown = await one_client.ask("query ($id: ID!) { comment(id: $id) { createdAt } }", id=held["id"])
    written = datetime.fromisoformat(shown["createdAt"])
    assert datetime.fromisoformat(before["createdAt"]) == datetime.fromisoformat(after["createdAt"]) == written
    assert before["arrivedAt"] is None
    assert datetime.fromisoformat(after["arrivedAt"]) == creation_time(after["arrived"])
    done = next(line["record"] for line in published if line["record"].get("object", "").startswith("Comment:"))
    assert datetime.fromisoformat(done["at"]) == creation_time(done["ulid"])


@pytest.mark.parametrize(
    ("earlier", "later", "read"), [("REJECTED", "PUBLISHED", "HELD#"), ("PUBLISHED", "REJECTED", "COMMENT#")]
)
async def test_a_comment_that_a_moderator_moves_while_the_file_is_written_is_in_it_once(
    one_client: Client, earlier: str, later: str, read: str
) -> None:
    """It is looked for where it was, and then where a decision has put it."""
    table, mia = one_client.services.table, one_client.member("mia", Role.MODERATOR)
    comment = (await post(one_client.member("eve")))["id"]
    await mia.ask(MODERATE_COMMENT, input={"comment": comment, "status": earlier})

    async def move() -> None:
        await mia.ask(MODERATE_COMMENT, input={"comment": comment, "status": later})

    with beforehand(table, move, "batch_get_item", about=read) as moved:
        lines = [orjson.loads(line) async for line in file_lines(table, "eve", "now")][1:]
    assert moved
    assert [line["kind"] for line in lines if "body" in line["record"]] == [
        "comment" if later == "PUBLISHED" else "heldComment"
    ]


async def test_a_file_has_what_moderators_did_about_the_member_and_not_who_they_are(one_client: Client) -> None:
    """The journal keeps the reason of a suspension for long after its end."""
    await one_client.member("eve").ask(UPDATE_PROFILE, input={"name": "Evelyn"})
    mia = one_client.member("mia", Role.MODERATOR)
    until = iso(utc_now() + timedelta(days=1))
    await mia.ask(SUSPEND, input={"user": EVE, "until": until, "reason": "Insults, after two warnings"})
    await mia.ask(REINSTATE, input={"user": EVE})
    await one_client.caught_up("the index of objects lists both")
    lines = [line async for line in file_lines(one_client.services.table, "eve", "now")]
    done = [line["record"] for line in map(orjson.loads, lines) if line["kind"] == "occurrence"]
    assert {each["kind"]: each["note"] for each in done if each["kind"].startswith("member.")} == {
        "member.suspended": "Insults, after two warnings", "member.reinstated": None
    }  # fmt: skip
    assert [each["kind"] for each in done].count("profile.changed") == 1
    assert b"mia" not in b"".join(lines)


async def test_a_file_does_not_say_which_rule_held_a_comment(one_client: Client) -> None:
    """Moderators alone see its name, or authors would learn how to get around the rules."""
    root, eve = one_client.member("root", Role.ADMIN), one_client.member("eve")
    await root.ask(SET_HOLD_RULES, input={"rules": [{"name": "Touts", "words": ["tickets"]}], "revision": 0})
    await post(eve, rating=None, inReplyTo=(await post(eve))["id"], body="Buy tickets.")
    assert (await post(eve, body="Tickets!"))["status"] == "PENDING"
    lines = [line async for line in file_lines(one_client.services.table, "eve", "now")]
    header, *records = map(orjson.loads, lines)
    assert [line["kind"] for line in records if "body" in line["record"]].count("heldComment") == 2
    assert b"Touts" not in b"".join(lines)
    assert {"comment.held_by", "reply.held_by", "heldComment.held_by"} <= header["leftOut"].keys()


def test_every_time_that_a_record_has_only_inside_an_id_is_in_the_file() -> None:
    """The dataclass's fields are; a property with a time has to be declared."""
    kept = [item for part in PARTS for item in part.items.kept.items() if item[1].kind]
    declared = {(entity.record, name) for entity, one in kept for name in one.times_in_id}
    assert declared == {
        (record, name)
        for record in {entity.record for entity, _ in kept}
        for name, value in vars(record).items()
        if isinstance(value, property) and "datetime" in str(value.fget.__annotations__["return"])
    }


async def test_a_file_does_not_say_from_where_votes_came(one_client: Client) -> None:
    """Hashes of addresses and tags of votes stay in the table, by which two files would show who shares an address."""
    await add_contenders(editor(one_client), "a", "b", "c")
    await one_client.member("eve").ask(UPDATE_PROFILE, input={"name": "Eve"})
    await vote(one_client.member("eve"))
    stored = [one async for one in one_client.services.table.scan(ORIGIN, consistent=True) if one.voter == "eve"]
    lines = [line.decode() async for line in file_lines(one_client.services.table, "eve", "now")]
    header, *records = map(orjson.loads, lines)
    kinds = [record["kind"] for record in records]
    assert (kinds.count("vote"), kinds.count("voteOrigin")) == (1, 1)
    assert len(stored) == 1
    assert not [line for line in lines if stored[0].tag in line or stored[0].address in line]
    assert {"vote.origin", "voteOrigin.address", "voteOrigin.tag"} <= header["leftOut"].keys()


async def test_a_file_has_what_was_written_a_moment_before(
    default_engine: RunningEngine, table_name: str, tmp_path: Path
) -> None:
    """Though no index and no plain read shows anything yet. Private lists are found by an index, so they are late."""
    lag = Lag(mean=1e6, longest=1e6, stale=1.0)
    async with lagging_services(default_engine, tmp_path, table_name, lag=lag) as (engine, [client]):
        site, eve = Site(client), client.member("eve")
        await site.prepare()
        await site.contribute("eve", 4)
        await site.score()
        await editor(client).ask(CREATE_BOARD, input={"slug": "second", "title": "Second"})
        await add_contenders(client, "x", "y", board="second")
        await vote(eve, board="second")
        assert (await eve.ask(CREATE_LIST, input={"name": "Mine"}))["list"]
        kinds: list[Counter[str]] = []
        for _ in range(2):
            lines = [orjson.loads(line) async for line in file_lines(client.services.table, "eve", "now")]
            kinds.append(Counter(line["kind"] for line in lines))
            await engine.catch_up()
        expected = {
            "profile": 1, "vote": 4, "prediction": 2, "standing": 1, "comment": 4, "quiz": 2, "sentence": 1, "quota": 1,
        }  # fmt: skip
        assert {kind: kinds[0][kind] for kind in expected} == expected
        assert [found["list"] for found in kinds] == [0, 1]


async def test_a_link_is_good_once_within_an_hour(one_client: Client) -> None:
    """425 until the job is done, then the file, then 410; an altered link is refused."""
    eve, services = one_client.member("eve"), one_client.services
    await eve.ask(UPDATE_PROFILE, input={"name": "Eve"})
    kinds, services.get(JobRunner)._kinds = services.get(JobRunner)._kinds, {}
    answer = await eve.ask(EXPORT_QUERY, input={"user": EVE})
    early = await one_client.http.get(answer["url"])
    assert early.status_code == 425
    assert int(early.headers["retry-after"]) > 0
    services.get(JobRunner)._kinds = kinds
    await services.get(JobRunner).take_up()
    await ended(eve, answer["job"]["id"])
    assert (await one_client.http.head(answer["url"])).status_code == 200
    with ExitStack() as opened:  # files under way count as streams do
        while not (streams := one_client.served.state["pipeline"].streams).is_full("127.0.0.1"):
            opened.enter_context(streams.held("127.0.0.1"))
        assert (await one_client.http.get(answer["url"])).status_code == 503
    assert "Eve" in (await one_client.http.get(answer["url"])).text
    assert (await one_client.http.get(answer["url"])).status_code == 410
    assert [item async for item in services.table.scan(EXPORT, EXPORT_PIECE, consistent=True)] == []
    late, _ = await export(eve)
    services.clock = lambda: utc_now() + timedelta(minutes=61)
    assert (await one_client.http.get(late)).status_code == 410
    for altered in (late[:-1] + ("A" if late[-1] != "A" else "B"), f"{PATH}?token=", PATH):
        assert (await one_client.http.get(altered)).status_code == 400
    foreign = services.seal.sign_text(PURPOSE, b"01JD0000000000000000000000")
    assert (await one_client.http.get(f"{PATH}?token={foreign}")).status_code == 410


async def test_who_may_export_whom(one_client: Client) -> None:
    """Oneself and an admin; a few times an hour."""
    await one_client.member("eve").ask(UPDATE_PROFILE, input={"name": "Eve"})
    moderator = one_client.member("mia", Role.MODERATOR, Role.EDITOR)
    assert await moderator.code(EXPORT_QUERY, input={"user": EVE}) == "NOT_ALLOWED"
    assert await one_client.member("bob").code(EXPORT_QUERY, input={"user": EVE}) == "NOT_ALLOWED"
    assert await one_client.code(EXPORT_QUERY, input={"user": EVE}) == "NOT_SIGNED_IN"
    admin = one_client.member("root", Role.ADMIN)
    assert await admin.code(EXPORT_QUERY, input={"user": node_id("User", "nobody")}) == "NOT_FOUND"
    await export(admin)
    answers = [await one_client.member("eve").ask(EXPORT_QUERY, input={"user": EVE}) for _ in range(8)]
    assert answers[-1]["code"] == "RATE_LIMITED"
    unit = [await admin.ask(EXPORT_QUERY, input={"user": EVE, "idempotencyKey": "k"}) for _ in range(2)]
    assert unit[0] == unit[1]


@pytest.mark.parametrize("write", [0, 1, 3])
async def test_an_export_that_was_killed_is_complete_when_it_is_resumed(
    one_client: Client, monkeypatch: pytest.MonkeyPatch, write: int
) -> None:
    """At its n-th write; its file has the lines of one attempt, in pieces that expire."""
    monkeypatch.setattr(exporting, "PIECE_BYTES", 2000)
    await contribute(one_client)
    services, now = one_client.services, utc_now()
    services.get(JobRunner).start({})
    token_job = job_store.Job(services.ids.next(now), EXPORT_MEMBER, "somebody", now, input={"user": "eve"})
    job = await services.table.put_once(job_store.JOB, token_job)
    run = await run_of(services, job)
    with killed_at(services.table, write), pytest.raises(Killed):
        await JOB_KINDS[EXPORT_MEMBER](services, run)
    assert (await work_on(services, job)).state is JobState.DONE
    assert all(await _expire(services.table))
    url = f"{PATH}?token={services.seal.sign_text(PURPOSE, job.id.encode())}"
    fetched = (await one_client.http.get(url)).text.splitlines()[1:]
    whole = [line.decode().rstrip("\n") async for line in file_lines(services.table, "eve", "")][1:]
    assert fetched == whole


async def _expire(table: Table) -> list[bool]:
    return ["ttl" in item async for item in table.scan_items(consistent=True) if item["pk"]["S"].startswith("EXPORT#")]


async def test_the_command_writes_the_same_file(one_client: Client) -> None:
    """For an operator, without a link."""
    await contribute(one_client)
    settings = one_client.settings
    variables = on_table(settings.dynamodb_url, settings.table, RINGSIDE_SECRETS=SECRET)
    written = await asyncio.to_thread(ringside, "export", "member", "eve", **variables)
    assert written.returncode == 0, written.stderr
    whole = [line.decode().rstrip("\n") async for line in file_lines(one_client.services.table, "eve", "")][1:]
    assert written.stdout.splitlines()[1:] == whole


async def test_an_id_that_nobody_can_have_leaves_the_file_as_it_is(one_client: Client, tmp_path: Path) -> None:
    """The command says so in a sentence, and writes nothing."""
    settings = one_client.settings
    variables = on_table(settings.dynamodb_url, settings.table)
    file = tmp_path / "member.jsonl"
    file.write_text("an earlier export")
    for wrong in ("a#b", ""):
        refused = await asyncio.to_thread(ringside, "export", "member", wrong, str(file), **variables)
        assert refused.returncode == 1
        assert refused.stderr.startswith(f"'{wrong}' is not a member's id: "), refused.stderr
        assert len(refused.stderr.splitlines()) == 1
        assert file.read_text() == "an earlier export"


async def test_the_command_takes_the_id_of_the_api_and_does_not_answer_for_nobody(
    one_client: Client, tmp_path: Path
) -> None:
    """An operator who looks a member up in the API gets their file; a wrong id must not look like an empty one."""
    await contribute(one_client)
    settings = one_client.settings
    variables = {"RINGSIDE_DYNAMODB_URL": settings.dynamodb_url, "RINGSIDE_TABLE": settings.table}
    whole = [line.decode().rstrip("\n") async for line in file_lines(one_client.services.table, "eve", "")][1:]
    written = await asyncio.to_thread(
        ringside, "export", "member", node_id("User", "eve"), RINGSIDE_SECRETS=SECRET, **variables
    )
    assert written.returncode == 0, written.stderr
    assert written.stdout.splitlines()[1:] == whole
    file = tmp_path / "member.jsonl"
    for nobody in (node_id("User", "nobody"), "nobody"):
        refused = await asyncio.to_thread(
            ringside, "export", "member", nobody, str(file), RINGSIDE_SECRETS=SECRET, **variables
        )
        assert refused.returncode == 1
        assert refused.stderr.startswith(f"Nothing is stored about '{nobody}': "), refused.stderr
        assert not file.exists()
