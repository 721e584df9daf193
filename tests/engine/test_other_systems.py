"""Comments of other systems: what their files have, in threads, by whom, and what is wrong with files."""

import asyncio
import gzip
import io
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datastore.comments.records import COMMENT, POINTER, REPLY
from datastore.comments.threads import THREAD
from datastore.dynamo import Table
from datastore.jobs.jobs import Job
from datastore.members.suspensions import MEMBER_ROLES, SUSPENSION, MemberRoles, Suspension, set_roles
from datastore.people.identities import (
    IDENTITY,
    MOST_IDENTITIES,
    SignInMethod,
    TooManyIdentities,
    add_identity,
    of_address,
    of_issuer,
)
from datastore.people.profiles import PROFILE, read_profile, set_email
from resolvers.comments.other_systems.files import READERS
from resolvers.comments.other_systems.markup import text_of_html
from resolvers.comments.other_systems.store import OtherSystemStore, Product
from resolvers.comments.other_systems.threads import LOOP, MISSING, OTHER_PAGE, Written, in_threads
from resolvers.comments.transfer import Author
from resolvers.members.signing_in import begin_for_page
from resolvers.people.identities import Members
from resolvers.people.member_data import Contributions
from resolvers.requests.context import Role
from resolvers.transfer.loop import Imported, OnProblem, import_records
from resolvers.transfer.readers import Row, Unreadable
from resolvers.values.node_ids import node_id, parse_node_key
from server.audit import find_suspects
from tests.client import Client, serving
from tests.command import ROOT, environment, on_table, ringside, ringside_given
from tests.comments import post
from tests.engines import RunningEngine
from tests.erasing import admin, begin_erasure, bury
from tests.intercepted import beforehand, intercepted
from tests.jobs import ended, work_on
from tests.killed import Killed, killed_at
from tests.members import introduce
from tests.queries import MARK_HELPFUL, POST_COMMENT, SUSPEND
from tests.transfers import import_lines
from tests.waiting import LONGEST, until

SAMPLES = Path(__file__).parent.parent / "samples"
THREADS = """query ($product: ID!) { comments(product: $product) { totalCount nodes {
  id body rating createdAt removed language author { id name } replyCount
  replies { nodes { body rating createdAt editedAt author { id name } inReplyTo { body } } } } } }"""
STATISTICS = "query ($product: ID!) { commentStatistics(product: $product) { average } }"
CLAIM = """mutation { claimComments(input: {}) { ... on CommentsClaimed { job { id } } ... on Refused { code } } }"""

QUEUE = "query ($status: CommentStatus!) { moderationQueue(status: $status) { nodes { body } } }"
HELPFUL = "query ($id: ID!) { comment(id: $id) { helpful viewerFoundHelpful } }"

ME = "{ viewer { joinedAt identities { label } } }"
REMOVE = """mutation ($method: SignInMethod! = EMAIL, $label: String!) {
  removeIdentity(input: { method: $method, label: $label }) {
  ... on IdentityRemoved { user { id } } ... on Refused { code } } }"""


async def bring(client: Client, system: str, file: Path | str, template: str = "{path}") -> Imported:
    rows = in_threads(READERS[system](SAMPLES / file))
    store = OtherSystemStore(client.services, system, Product(template), "en")
    return await import_records(rows, store, OnProblem.SKIP)


async def page(client: Client, product: str) -> list[dict[str, Any]]:
    return list((await client.ask(THREADS, product=product))["nodes"])


async def items(table: Table) -> list[str]:
    """Who there is, and what they wrote."""
    return sorted([str(item) async for item in table.scan(PROFILE, IDENTITY, COMMENT, REPLY, POINTER, THREAD)])


async def test_disqus_is_imported_with_threads_dates_and_authors(one_client: Client) -> None:
    """An answer may stand before its question; deleted ones with replies leave a stub, and spam leaves nothing."""
    imported = await bring(one_client, "disqus", "disqus.xml")
    assert {str(problem) for problem in imported.problems} == {
        "line 15: It has no time, or one before 1971.",
        "line 16: The file has no thread for it.",
    }
    assert {str(altered) for altered in imported.altered} == {
        f"line 12: {MISSING}", f"line 14: {LOOP}", f"line 17: {OTHER_PAGE}",
    }  # fmt: skip
    (kettle,) = await page(one_client, "/kettle/")
    assert kettle["body"] == (
        "Is it loud? See this test (https://example.org/test).\n\n> Very quiet,\n> they say.\n\nTom & Ann <3"
    )
    assert (kettle["createdAt"], kettle["author"]["name"]) == ("2020-02-01T11:00:00.000Z", "Ann")
    replies = kettle["replies"]["nodes"]
    assert [reply["body"] for reply in replies] == ["An answer that stands before its question.", "Thanks."]
    assert replies[1]["inReplyTo"]["body"] == "An answer that stands before its question."
    teapot = {each["body"]: each for each in await page(one_client, "/teapot/")}
    assert teapot[""]["removed"]
    assert [reply["body"] for reply in teapot[""]["replies"]["nodes"]] == ["I do not agree."]
    older = teapot["The older half of a loop."]
    assert [reply["body"] for reply in older["replies"]["nodes"]] == ["The younger half of a loop."]
    assert not {"Buy pills.", "From before the web.", "On no page."} & teapot.keys()
    assert teapot["An answer to nothing."]["author"] == older["author"]
    assert await find_suspects(one_client.services, "comments") == []


DISQUS = """<disqus xmlns="http://disqus.com" xmlns:dsq="http://disqus.com/disqus-internals">%s%s</disqus>"""
DISQUS_THREAD = """<thread dsq:id="%s"><id>page-%s</id><link>%s</link></thread>"""
DISQUS_POST = """<post dsq:id="%s"><message>%s</message><createdAt>2020-01-01T10:00:00Z</createdAt>
  <author><name>Ann</name></author><thread dsq:id="%s" /></post>"""


def disqus_file(file: Path, links: dict[str, str], posts: dict[str, str]) -> Path:
    """A file with pages, by their addresses, and one post on each, of this text."""
    numbers = {name: number for number, name in enumerate(links, 1)}
    threads = "".join(DISQUS_THREAD % (numbers[name], name, link) for name, link in links.items())
    written = (DISQUS_POST % (text, text, numbers[name]) for text, name in posts.items())
    file.write_text(DISQUS % (threads, "".join(written)), encoding="utf-8")
    return file


async def test_a_page_without_an_address_or_with_a_broken_one_is_no_other_page(
    one_client: Client, tmp_path: Path
) -> None:
    """Its comments are skipped and named, unless the template asks for what the other system calls the page."""
    links = {"none": "", "broken": "http://[example/", "good": "https://example.com/good"}
    file = disqus_file(tmp_path / "disqus.xml", links, {name: name for name in links})
    long = disqus_file(tmp_path / "long.xml", {"long": "https://example.com/" + "%E7%8C%AB" * 15}, {"long": "long"})
    imported = await bring(one_client, "disqus", file)
    assert [problem.message for problem in imported.problems] == ["The file has no address of its page."] * 2
    assert [each["body"] for each in await page(one_client, "/good")] == ["good"]
    assert await page(one_client, "/") == []
    (too_long,) = (await bring(one_client, "disqus", long)).problems
    assert too_long.message == "--product makes more than 128 characters of its page: {id} is shorter."
    assert (await bring(one_client, "disqus", file, "shop-{id}")).added == 2
    assert [each["body"] for each in await page(one_client, "shop-page-broken")] == ["broken"]


async def test_comments_of_a_page_that_has_moved_since_are_left_where_they_are(
    one_client: Client, tmp_path: Path
) -> None:
    """Each is named; what is new on the others is imported, also behind them."""
    links = {"moved": "https://example.com/old", "stays": "https://example.com/stays"}
    first = {f"{number}": "moved" for number in range(30)} | {"before": "stays"}
    assert (await bring(one_client, "disqus", disqus_file(tmp_path / "first.xml", links, first))).added == 31
    await one_client.caught_up("the ids are found")
    grown = first | {f"{number}": "stays" for number in range(30, 150)}
    links["moved"] = "https://example.com/new"
    imported = await bring(one_client, "disqus", disqus_file(tmp_path / "grown.xml", links, grown))
    assert [problem.message for problem in imported.problems] == [
        "It was imported before, on another product, and stays there."
    ] * 30
    assert imported.added == 120
    assert (await one_client.ask(THREADS, product="/stays"))["totalCount"] == 121
    assert (await one_client.ask(THREADS, product="/old"))["totalCount"] == 30
    assert await page(one_client, "/new") == []


async def test_a_question_that_a_grown_file_has_at_last_does_not_bring_its_answer_twice(
    one_client: Client, tmp_path: Path
) -> None:
    """Each answer stays where it was imported: at the top, or in the thread."""
    head = DISQUS_THREAD % (1, "kettle", "https://example.com/kettle")
    question, first, second = (DISQUS_POST % (name, name, 1) for name in ("question", "first", "second"))
    first, second = (post.replace("</post>", '<parent dsq:id="question" /></post>') for post in (first, second))
    for number, posts in enumerate((first, question + first + second, second)):
        file = tmp_path / f"{number}.xml"
        file.write_text(DISQUS % (head, posts), encoding="utf-8")
        assert (await bring(one_client, "disqus", file)).added == (1, 2, 0)[number]
    assert {(one["body"], one["replyCount"]) for one in await page(one_client, "/kettle")} == {
        ("question", 1), ("first", 0),
    }  # fmt: skip
    assert await find_suspects(one_client.services, "comments") == []


async def test_wordpress_is_imported(one_client: Client) -> None:
    """What waits there waits here; pingbacks and spam stay behind. A review has its stars, an answer to it none."""
    imported = await bring(one_client, "wordpress", "wordpress.xml", "post-{id}")
    assert (imported.added, imported.problems) == (3, [])
    (first,) = await page(one_client, "post-1")
    assert first["body"] == "First line.\nSecond line with stress."
    assert first["createdAt"] == "2019-01-02T10:00:00.000Z"
    assert [reply["body"] for reply in first["replies"]["nodes"]] == ["Welcome, Ann."]
    assert (first["rating"], first["replies"]["nodes"][0]["rating"]) == (5, None)
    assert (await one_client.ask(STATISTICS, product="post-1"))["average"] == 5
    assert await find_suspects(one_client.services, "comments") == []


BASE = "<wp:base_site_url>https://blog.example.com</wp:base_site_url>"


@pytest.mark.parametrize(
    ("base", "link", "members"),
    [
        (BASE.replace("blog.", "other."), "https://other.example.com/", 2),
        (BASE.replace(".com", ".com/other/"), "https://blog.example.com/other/", 2),
        ("", "https://other.example.com/", 2),
        ("", "http://[broken/", 2),
        (BASE.replace("https://", "http://[").replace(".com", ".com/"), "https://other.example.com/", 2),
        (BASE.replace("https", "http").replace(".com", ".com/"), "https://blog.example.com/again/", 1),
    ],
)
async def test_users_of_two_wordpress_sites_with_the_same_number_are_two_members(
    one_client: Client, tmp_path: Path, base: str, link: str, members: int
) -> None:
    """Or Bob's comments would be Alice's, who may edit them. Those of one site stay one; no broken address stops it."""
    file, text = tmp_path / "other.xml", (SAMPLES / "wordpress.xml").read_text("utf-8").replace("owner@", "")
    text = text.replace(BASE, base).replace("https://blog.example.com/2019/", link).replace("2019-01", "2020-01")
    file.write_text(text, encoding="utf-8")
    assert (await bring(one_client, "wordpress", "wordpress.xml", "first")).added == 3
    assert (await bring(one_client, "wordpress", file, "second")).added == 3
    threads = [await page(one_client, product) for product in ("first", "second")]
    first, second = (thread["replies"]["nodes"][0]["author"]["id"] for (thread,) in threads)
    assert len({first, second}) == members


async def test_remark42_is_imported(one_client: Client, tmp_path: Path) -> None:
    """Its backup may be compressed."""
    file = tmp_path / "backup.gz"
    file.write_bytes(gzip.compress((SAMPLES / "remark42.json").read_bytes()))
    assert (await bring(one_client, "remark42", file, "{url}")).added == 2
    (first,) = await page(one_client, "https://www.example.com/kettle")
    assert (first["body"], first["createdAt"]) == ("Good kettle.", "2021-05-01T10:00:00.123Z")
    assert [reply["createdAt"] for reply in first["replies"]["nodes"]] == ["2021-05-01T10:00:00.000Z"]


async def test_commento_is_imported(one_client: Client) -> None:
    """What is flagged waits for a moderator; what was deleted stays behind, if only its text says so too."""
    assert (await bring(one_client, "commento", "commento.json")).added == 2
    (first,) = await page(one_client, "/kettle")
    assert (first["body"], first["author"]["name"], first["replyCount"]) == ("Good kettle.", "Ann", 0)


async def test_comentario_is_imported(one_client: Client) -> None:
    """What waits there waits here, and what a moderator rejected there is rejected, with a stub above its replies."""
    assert (await bring(one_client, "commento", "comentario.json")).added == 4
    rejected, first = await page(one_client, "/kettle")
    assert (first["body"], first["author"]["name"], first["replyCount"]) == ("Good.", "Ann", 0)
    assert (rejected["body"], rejected["removed"]) == ("", True)
    assert [reply["body"] for reply in rejected["replies"]["nodes"]] == ["Be kind."]
    moderator = one_client.member("mod", Role.MODERATOR)
    queues = [(await moderator.ask(QUEUE, status=status))["nodes"] for status in ("PENDING", "REJECTED")]
    assert [[each["body"] for each in queue] for queue in queues] == [["Waits."], ["Rude."]]
    assert await find_suspects(one_client.services, "comments") == []


def test_a_comment_that_comentario_never_edited_is_not_shown_as_edited() -> None:
    """It writes the first moment of its calendar then, which no export of ours could bring back."""
    rows = in_threads(READERS["commento"](SAMPLES / "comentario.json"))
    edited = {row.fields["id"]: row.fields["editedAt"] for row in rows}
    assert edited == {"b001": "2023-05-01T10:10:00.000Z"} | dict.fromkeys(("b002", "b003", "b004"))


def test_a_post_of_wordpress_has_any_number_of_comments(tmp_path: Path) -> None:
    """Only one of them is bounded, with what programs against spam keep about it."""
    comment = """<wp:comment><wp:comment_id>%d</wp:comment_id><wp:comment_content>Yes.</wp:comment_content>
      <wp:commentmeta><wp:meta_value>%s</wp:meta_value></wp:commentmeta></wp:comment>"""
    file, kept = tmp_path / "wordpress.xml", "x" * 50_000
    comments = "".join(comment % (number, kept) for number in range(60))
    item = f"<item><link>https://example.com/popular/</link><wp:post_id>7</wp:post_id>{comments}</item>"
    file.write_text(f'<rss xmlns:wp="http://wordpress.org/export/1.2/">{item}</rss>', encoding="utf-8")
    read = [(one.id, one.body, one.thread, one.thread_id) for one in READERS["wordpress"](file)]
    assert read == [(f"{number}", "Yes.", "https://example.com/popular/", "7") for number in range(60)]


def isso_database(file: Path) -> None:
    with closing(sqlite3.connect(file)) as table:
        table.executescript("""
            CREATE TABLE preferences (key VARCHAR PRIMARY KEY, value VARCHAR);
            CREATE TABLE threads (id INTEGER PRIMARY KEY, uri VARCHAR(256) UNIQUE, title VARCHAR(256));
            CREATE TABLE comments (tid REFERENCES threads(id), id INTEGER PRIMARY KEY, parent INTEGER,
              created FLOAT NOT NULL, modified FLOAT, mode INTEGER, remote_addr VARCHAR, text VARCHAR, author VARCHAR,
              email VARCHAR, website VARCHAR, likes INTEGER DEFAULT 0, dislikes INTEGER DEFAULT 0, voters BLOB NOT NULL,
              notification INTEGER DEFAULT 0);
            INSERT INTO threads VALUES (1, '/kettle', 'Kettle');
            INSERT INTO comments VALUES
              (1, 1, NULL, 1577880000.25, 1577880100.0, 1, '192.0.2.0', 'Good *kettle*.', 'Ann', 'ann@example.com',
                NULL, 2, 0, x'00', 0),
              (1, 2, 1, 1577880200, NULL, 1, '192.0.2.0', 'Yes.', NULL, NULL, NULL, 0, 0, x'00', 0),
              (1, 3, NULL, 1577880300, NULL, 2, '192.0.2.0', 'Waits.', 'Bo', NULL, NULL, 0, 0, x'00', 0),
              (1, 4, 1, 1577880400, NULL, 4, '192.0.2.0', '', NULL, NULL, NULL, 0, 0, x'00', 0);
        """)


def cusdis_database(file: Path) -> None:
    with closing(sqlite3.connect(file)) as table:
        table.executescript("""
            CREATE TABLE pages (id TEXT PRIMARY KEY, slug TEXT NOT NULL, url TEXT, title TEXT, created_at DATETIME,
              updated_at DATETIME, projectId TEXT);
            CREATE TABLE comments (id TEXT PRIMARY KEY, pageId TEXT NOT NULL, created_at DATETIME, updated_at DATETIME,
              deletedAt DATETIME, moderatorId TEXT, by_email TEXT, by_nickname TEXT NOT NULL, content TEXT NOT NULL,
              approved BOOLEAN NOT NULL DEFAULT false, ancestorId TEXT, parentId TEXT);
            INSERT INTO pages VALUES ('p1', 'kettle', 'https://www.example.com/kettle', 'Kettle', 0, 0, 'x');
            INSERT INTO comments VALUES
              ('a', 'p1', 1577880000250, 0, NULL, NULL, 'ann@example.com', 'Ann', 'Good *kettle*.', 1, NULL, NULL),
              ('b', 'p1', '2020-01-01 12:03:20', 0, NULL, 'm1', NULL, 'Owner', 'Yes.', 1, NULL, 'a'),
              ('c', 'p1', 1577880300000, 0, NULL, NULL, NULL, 'Bo', 'Waits.', 0, NULL, NULL),
              ('d', 'p1', 1577880400000, 0, 1577880500000, NULL, NULL, 'Cy', 'Gone.', 1, NULL, 'a');
        """)


@pytest.mark.parametrize(("system", "make"), [("isso", isso_database), ("cusdis", cusdis_database)])
async def test_databases_are_imported_and_never_changed(
    one_client: Client, tmp_path: Path, system: str, make: Callable[[Path], None]
) -> None:
    file = tmp_path / "a name with ? and #.db"
    make(file)
    before = file.read_bytes()
    assert (await bring(one_client, system, file)).added == 3
    (first,) = await page(one_client, "/kettle")
    assert (first["body"], first["createdAt"]) == ("Good *kettle*.", "2020-01-01T12:00:00.250Z")
    assert [(reply["body"], reply["createdAt"]) for reply in first["replies"]["nodes"]] == [
        ("Yes.", "2020-01-01T12:03:20.000Z")
    ]
    assert file.read_bytes() == before
    assert {each.name for each in tmp_path.iterdir()} == {file.name}


async def test_a_compressed_database_is_to_be_unpacked(one_client: Client, tmp_path: Path) -> None:
    file = tmp_path / "comments.db"
    isso_database(file)
    file.write_bytes(gzip.compress(file.read_bytes()))
    with pytest.raises(Unreadable, match=r"comments\.db is compressed: unpack it first"):
        await bring(one_client, "isso", file)


async def test_a_second_run_changes_nothing(one_client: Client) -> None:
    """Nor does one of a file that has grown undo what a member or moderator did since."""
    await bring(one_client, "disqus", "disqus.xml")
    before = await items(one_client.services.table)
    again = await bring(one_client, "disqus", "disqus.xml")
    assert (again.added, again.read) == (0, 8)
    assert await items(one_client.services.table) == before


async def test_a_run_that_was_killed_is_completed_by_the_next(one_client: Client) -> None:
    """At each of its writes."""
    for write in range(60):
        with killed_at(one_client.services.table, write) as counted:
            try:
                await bring(one_client, "disqus", "disqus.xml")
            except BaseException as killed:  # noqa: BLE001 - also a group of them
                assert "Killed" in repr(killed) or isinstance(killed, Killed)  # noqa: PT017
        if counted[0] <= write:
            break
    await bring(one_client, "disqus", "disqus.xml")
    assert len(await page(one_client, "/teapot/")) == 4
    assert await find_suspects(one_client.services, "comments") == []


# ── authors ──


async def test_of_an_address_only_the_hash_is_kept_and_its_owner_is_the_author(one_client: Client) -> None:
    await bring(one_client, "disqus", "disqus.xml")
    (kettle,) = await page(one_client, "/kettle/")
    table, members = one_client.services.table, Members(one_client.services)
    stored = [item async for item in table.scan(PROFILE, IDENTITY)]
    assert "ann@example.com" not in repr(stored)
    assert "192.0.2" not in repr(stored)
    signed_in = await members.make(of_address("Ann@example.com"))
    known = await members.known(of_address("Ann@example.com"))
    assert known is not None
    assert known.label == "Ann@example.com"
    profile = [each async for each in table.scan(PROFILE) if each.user == signed_in]
    assert profile[0].name == "Ann"
    ann = one_client.member(signed_in)
    assert kettle["author"]["name"] == "Ann"
    assert (await ann.ask("query ($id: ID!) { comment(id: $id) { author { name } } }", id=kettle["id"]))["author"]
    await members.close()


async def test_what_another_system_calls_an_author_is_no_way_to_sign_in(one_client: Client) -> None:
    """So the address by which an author has signed in stays, until there is another way."""
    await bring(one_client, "disqus", "disqus.xml")
    services = one_client.services
    signed_in = await services.get(Members).make(of_address("ann@example.com"))
    member = await read_profile(services.table, signed_in)
    assert member is not None
    _, token = await begin_for_page(services, member, SignInMethod.EMAIL)
    ann = Client(one_client.served, one_client.settings, token)
    assert await ann.code(REMOVE, label="ann@example.com") == "CONFLICT"
    await add_identity(services.table, member.user, of_issuer(SignInMethod.SITE, "", "ann"), services.unit())
    assert await ann.ask(REMOVE, label="ann@example.com") == {"user": {"id": node_id("User", member.user)}}


async def test_a_member_claims_what_was_imported_under_their_address(one_client: Client) -> None:
    """From several systems; others' stays theirs, and a later import knows the member.

    The member does not find their own comment helpful any more.
    """
    ann = one_client.member("ann")
    await ann.ask('mutation { updateProfile(input: { name: "Ann here" }) { __typename } }')
    assert (await ann.ask(CLAIM))["code"] == "CONFLICT"
    await set_email(one_client.services.table, "ann", "ann@example.com", one_client.services.unit())
    await bring(one_client, "disqus", "disqus.xml")
    await bring(one_client, "wordpress", "wordpress.xml")
    (kettle,) = await page(one_client, "/kettle/")
    for member in (ann, one_client.member("bo")):
        await member.ask(MARK_HELPFUL, input={"comment": kettle["id"], "helpful": True})
    job = (await ann.ask(CLAIM))["job"]
    done = await ended(ann, job["id"])
    assert (done["state"], done["message"]) == ("DONE", "Comments claimed: 3.")
    (kettle,) = await page(one_client, "/kettle/")
    assert kettle["author"]["name"] == "Ann here"
    assert (await ann.ask(HELPFUL, id=kettle["id"])) == {"helpful": 1, "viewerFoundHelpful": False}
    assert [reply["author"]["name"] for reply in kettle["replies"]["nodes"]] == ["Bea", "Ann here"]
    (hello,) = await page(one_client, "/2019/hello-world/")
    assert hello["author"]["name"] == "Ann here"
    for system in ("disqus", "wordpress"):
        assert (await bring(one_client, system, f"{system}.xml")).added == 0
    assert (await ended(ann, (await ann.ask(CLAIM))["job"]["id"]))["message"] == "Comments claimed: 0."
    assert await find_suspects(one_client.services, "comments") == []


async def test_a_member_claims_what_lines_have_under_their_address(one_client: Client) -> None:
    """Which the profile has, but by which nobody signs in: afterwards it signs in the member, and they can add it."""
    ann, services = one_client.member("ann"), one_client.services
    await ann.ask(ME)
    await set_email(services.table, "ann", "ann@example.com", services.unit())
    line = {"product": "42", "language": "en", "createdAt": "2025-01-01T00:00:00Z"}
    authors = [{"name": name, "email": f"{name}@example.com"} for name in ("ann", "bea")]
    lines = [orjson.dumps({**line, "body": f"By {author['name']}.", "author": author}) + b"\n" for author in authors]
    assert await import_lines(services, io.BytesIO(b"".join(lines))) == (2, 2, 0)
    assert [each["author"]["name"] for each in await page(one_client, "42")].count("Ann") == 0
    job = await ended(ann, (await ann.ask(CLAIM))["job"]["id"])
    assert (job["state"], job["message"]) == ("DONE", "Comments claimed: 1.")
    assert {each["body"]: each["author"]["name"] for each in await page(one_client, "42")} == {
        "By ann.": "Ann", "By bea.": "bea",
    }  # fmt: skip
    assert await services.get(Members).make(of_address("ann@example.com")) == "ann"
    later = orjson.dumps({**line, "body": "Later.", "author": authors[0]}) + b"\n"
    await import_lines(services, io.BytesIO(later))
    assert [each["author"]["name"] for each in await page(one_client, "42") if each["body"] == "Later."] == ["Ann"]
    assert await find_suspects(services, "comments") == []


@pytest.mark.parametrize(("own", "ratings"), [([4], [4, None]), ([], [5])])
async def test_a_claim_keeps_a_second_review_without_its_rating(
    one_client: Client, own: list[int], ratings: list[int | None]
) -> None:
    """Where a member has one review of a product. Their only one keeps its stars, and the next is refused."""
    async with serving(one_client.settings.model_copy(update={"one_review_per_product": True})) as shop:
        ann = shop.member("ann")
        await ann.ask(ME)
        for rating in own:
            await post(ann, "post-1", rating)
        await set_email(shop.services.table, "ann", "ann@example.com", shop.services.unit())
        await bring(shop, "wordpress", "wordpress.xml", "post-{id}")
        await ended(ann, (await ann.ask(CLAIM))["job"]["id"])
        shown = await page(shop, "post-1")
        assert [(each["rating"], each["author"]["name"]) for each in shown] == [(rating, "Ann") for rating in ratings]
        review = {"product": "post-1", "language": "en", "rating": 1, "body": "Again."}
        assert await ann.code(POST_COMMENT, input=review) == "CONFLICT"
        assert await find_suspects(shop.services, "comments") == []


async def test_a_member_who_claims_on_and_on_holds_up_nobody_else_s_jobs(one_client: Client) -> None:
    """Each claim is a job, of which a process works on two at a time."""
    ann = one_client.member("ann", email="ann@example.com")
    await ann.ask(ME)
    await set_email(one_client.services.table, "ann", "ann@example.com", one_client.services.unit())
    claimed = [await ann.ask(CLAIM) for _ in range(8)]
    assert [each.get("code") for each in claimed] == [None] * 6 + ["RATE_LIMITED"] * 2


async def test_who_has_claimed_an_address_signs_in_by_it_and_has_joined_long_ago(one_client: Client) -> None:
    """What was imported under it brought an identity, which is shown as the address.

    What the other system calls them is no way to sign in: it is not shown, counted or removed.
    """
    ann, services = one_client.member("ann"), one_client.services
    before = (await ann.ask(ME))["joinedAt"]
    await set_email(services.table, "ann", "ann@example.com", services.unit())
    await bring(one_client, "disqus", "disqus.xml")
    await ended(ann, (await ann.ask(CLAIM))["job"]["id"])
    shown = [each["label"] for each in (await ann.ask(ME))["identities"]]
    assert sorted(shown) == ["ann@example.com", "ringside token"]
    assert await ann.code(REMOVE, method="SITE", label="Disqus") == "NOT_FOUND"
    services.activity.clear()
    assert await services.get(Members).make(of_address("ann@example.com")) == "ann"
    services.profiles.forget("ann")
    assert (await ann.ask(ME))["joinedAt"] == before
    assert services.activity["new_members"] == 0
    for place in range(len(shown), MOST_IDENTITIES):
        await add_identity(services.table, "ann", of_address(f"ann{place}@example.com"), services.unit())
    with pytest.raises(TooManyIdentities):
        await add_identity(services.table, "ann", of_address("one@example.com"), services.unit())


async def test_an_author_who_has_joined_stays_a_member_whoever_else_has_the_address(one_client: Client) -> None:
    """It may have been given to somebody else since. Two members are never merged, by whatever they have in common."""
    await bring(one_client, "disqus", "disqus.xml")
    services = one_client.services
    joined = await services.get(Members).make(of_address("ann@example.com"))
    author = await read_profile(services.table, joined)
    assert author is not None
    _, token = await begin_for_page(services, author, SignInMethod.EMAIL)
    ann, bob = Client(one_client.served, one_client.settings, token), one_client.member("bob")
    await ann.ask('mutation { updateProfile(input: { name: "Ann of old" }) { __typename } }')
    await bob.ask('mutation { updateProfile(input: { name: "Bob" }) { __typename } }')
    await set_email(services.table, "bob", "ann@example.com", services.unit())
    job = await ended(bob, (await bob.ask(CLAIM))["job"]["id"])
    assert (job["state"], job["message"]) == ("DONE", "Comments claimed: 0.")
    (kettle,) = await page(one_client, "/kettle/")
    assert kettle["author"]["name"] == "Ann of old"
    assert await read_profile(services.table, author.user) is not None
    assert await services.get(Members).make(of_address("ann@example.com")) == author.user


@pytest.mark.parametrize("right", ["role", "suspension"])
async def test_an_author_with_rights_stays_who_they_are(one_client: Client, right: str) -> None:
    """A role that an operator gave to an address would be nobody's, and what moderators suspended would write again."""
    await bring(one_client, "disqus", "disqus.xml")
    bob, services = one_client.member("bob"), one_client.services
    await bob.ask(ME)
    await set_email(services.table, "bob", "ann@example.com", services.unit())
    (kettle,) = await page(one_client, "/kettle/")
    author = parse_node_key("User", kettle["author"]["id"])
    if right == "role":
        given = MemberRoles(author, (Role.ADMIN,))
        await set_roles(services.table, services.unit(), given, given)
    else:
        moderator = one_client.member("mod", Role.MODERATOR)
        assert "user" in await moderator.ask(SUSPEND, input={"user": kettle["author"]["id"], "reason": "Spam."})
    job = await ended(bob, (await bob.ask(CLAIM))["job"]["id"])
    assert (job["state"], job["message"]) == ("DONE", "Comments claimed: 0.")
    assert await services.get(Members).make(of_address("ann@example.com")) == author
    assert await page(one_client, "/kettle/") == [kettle]


async def test_an_author_who_joins_while_a_claim_runs_stays_a_member(one_client: Client) -> None:
    """Or they would be signed in as somebody else, who has the address too."""
    await bring(one_client, "disqus", "disqus.xml")
    bob, services, joined = one_client.member("bob"), one_client.services, list[str]()
    await bob.ask('mutation { updateProfile(input: { name: "Bob" }) { __typename } }')
    await set_email(services.table, "bob", "ann@example.com", services.unit())

    async def join() -> None:
        joined.append(await services.get(Members).make(of_address("ann@example.com")))

    with beforehand(services.table, join, about="IMPORTED#"):
        await ended(bob, (await bob.ask(CLAIM))["job"]["id"])
    assert await read_profile(services.table, joined[0]) is not None
    assert [await services.get(Members).make(of_address("ann@example.com"))] == joined != ["bob"]


@pytest.mark.parametrize("right", ["role", "suspension"])
async def test_an_author_who_gets_rights_while_a_claim_runs_stays_who_they_are(one_client: Client, right: str) -> None:
    """Just before the last write: whom moderators have suspended cannot go on as another member by it."""
    await bring(one_client, "disqus", "disqus.xml")
    bob, services = one_client.member("bob"), one_client.services
    await bob.ask(ME)
    await set_email(services.table, "bob", "ann@example.com", services.unit())
    (kettle,) = await page(one_client, "/kettle/")
    author = parse_node_key("User", kettle["author"]["id"])
    given = {"role": MEMBER_ROLES.put(MemberRoles(author, (Role.ADMIN,))),
             "suspension": SUSPENSION.put(Suspension(author, "Spam.", services.clock()))}  # fmt: skip
    with beforehand(services.table, lambda: services.table.write(given[right]), about="IMPORTED#") as begun:
        await ended(bob, (await bob.ask(CLAIM))["job"]["id"])
    assert begun
    assert await services.get(Members).make(of_address("ann@example.com")) == author


async def test_a_claim_gives_nothing_more_to_a_member_who_is_erased_while_it_runs(one_client: Client) -> None:
    """A long claim may still run when the erasure is done for the second time, after which nobody looks again."""
    await bring(one_client, "disqus", "disqus.xml")
    bob, services = one_client.member("bob"), one_client.services
    await bob.ask(ME)
    await set_email(services.table, "bob", "ann@example.com", services.unit())
    erased = list[Job]()

    async def call(_: str, send: Any) -> Any:
        answer = await send()
        if not erased and "Thanks." in str(send.keywords):
            erased.append(await begin_erasure(services, Contributions.REMOVE, "bob"))
            await work_on(services, erased[0])
        return answer

    with intercepted(services.table, ("transact_write_items",), call):
        await ended(admin(one_client), (await bob.ask(CLAIM))["job"]["id"])
    assert not [item for item in await items(services.table) if "bob" in item]
    (kettle,) = await page(one_client, "/kettle/")
    assert (kettle["author"]["name"], len(kettle["replies"]["nodes"])) == ("Ann", 1)


async def test_what_names_an_erased_member_s_address_is_left_out_also_of_an_author_who_is_known(
    one_client: Client, tmp_path: Path
) -> None:
    """Who had the address was asked only when an author was new, so a grown file still brought what was erased."""
    services, known, grown = one_client.services, tmp_path / "known.xml", (SAMPLES / "disqus.xml").read_text("utf-8")
    start, end = grown.index('<post dsq:id="4">'), grown.index('<post dsq:id="5">')
    known.write_text(grown[:start] + grown[end:], encoding="utf-8")
    await introduce(services.table, "ann")
    await add_identity(services.table, "ann", of_address("ann@example.com"), services.unit())
    assert (await bring(one_client, "disqus", known)).left_out == 0
    await bury(services, "ann")
    assert (await bring(one_client, "disqus", "disqus.xml")).left_out == 2
    (kettle,) = await page(one_client, "/kettle/")
    assert [reply["author"]["name"] for reply in kettle["replies"]["nodes"]] == ["Bea"]


# ── files that are wrong ──

BOMB = """<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>
<disqus><thread/><post><message>&b;</message></post></disqus>"""
OUTSIDE = """<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>
<disqus><thread/><post><message>&a;</message></post></disqus>"""
WRONG = {
    "an entity bomb": ("disqus", BOMB.encode(), "declares entities"),
    "an external entity": ("wordpress", OUTSIDE.encode(), "declares entities"),
    "no XML": ("disqus", b"comments, all of them", "is not XML: line 1"),
    "an XML that ends": ("disqus", b"<disqus><thread>", "is not XML: line 1"),
    "another XML": ("disqus", b"<rss><item/></rss>", "no export of Disqus"),
    "an unknown encoding": ("wordpress", b'<?xml version="1.0" encoding="x-nothing"?><rss/>', "not XML|encoding"),
    "letters of another encoding": ("wordpress", b"<rss><item>\xff\xfe</item></rss>", "is not XML"),
    "a record without an end": ("disqus", b"<disqus><post>" + b"x" * 3_000_000, "letters in line 1"),
    "no backup": ("remark42", b'{"id": "1"}\n', "no backup of Remark42"),
    "a number": ("remark42", b"7\n", "no backup of Remark42"),
    "no database": ("isso", b"not SQLite at all", "no SQLite database of Isso"),
    "a broken database": ("cusdis", b"SQLite format 3\0" + b"\xff" * 4096, "no SQLite database of Cusdis"),
    "no JSON": ("commento", b"{", "is not JSON"),
    "another JSON": ("commento", b"[1]", 'no list of "comments"'),
    "nothing": ("commento", b"", "is not JSON"),
}


@pytest.mark.parametrize("name", WRONG)
async def test_a_file_that_is_none_is_refused(one_client: Client, tmp_path: Path, name: str) -> None:
    system, data, reason = WRONG[name]
    file = tmp_path / "file"
    file.write_bytes(data)
    with pytest.raises(Unreadable, match=reason):
        await bring(one_client, system, file)
    assert await page(one_client, "/kettle") == []


async def test_a_database_with_a_damaged_name_is_refused(one_client: Client, tmp_path: Path) -> None:
    file = tmp_path / "damaged.db"
    cusdis_database(file)
    file.write_bytes(file.read_bytes().replace(b"moderatorId", b"moderator\xd3d"))
    with pytest.raises(Unreadable, match="no SQLite database of Cusdis"):
        await bring(one_client, "cusdis", file)


async def test_users_that_are_no_objects_are_passed_over(one_client: Client, tmp_path: Path) -> None:
    """The comments of a backup are imported although its list of users is not as Remark42 writes it."""
    file = tmp_path / "users.json"
    _, *comments = (SAMPLES / "remark42.json").read_bytes().splitlines(keepends=True)
    file.write_bytes(b'{"version": 1, "users": ["ada", 7]}\n' + b"".join(comments))
    assert (await bring(one_client, "remark42", file, "{url}")).added == 2


def test_the_addresses_of_two_thousand_users_of_remark42_are_read(tmp_path: Path) -> None:
    """A backup has them all in its first line; one without an end is refused."""
    file = tmp_path / "users.json"
    users = [{"id": f"email_{n}", "name": "x" * 80, "details": {"email": f"fan{n}@example.com"}} for n in range(2000)]
    _, *comments = (SAMPLES / "remark42.json").read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([orjson.dumps({"version": 1, "users": users}), b"\n", *comments]))
    first, *_ = READERS["remark42"](file)
    assert (first.author, first.place.number) == (Author("email_1", "Ann", "fan1@example.com"), 2)
    with file.open("wb") as endless:
        endless.truncate(65 * 2**20)
    with pytest.raises(Unreadable, match="first line is longer than 64 MB"):
        next(READERS["remark42"](file))


async def test_a_line_of_a_hundred_megabytes_is_passed_over(one_client: Client, tmp_path: Path) -> None:
    file = tmp_path / "long.json"
    meta, first, *_ = (SAMPLES / "remark42.json").read_bytes().splitlines(keepends=True)
    file.write_bytes(meta + b'{"id": "' + b"x" * 100_000_000 + b'"}\n' + first)
    imported = await bring(one_client, "remark42", file)
    assert (imported.added, [str(problem) for problem in imported.problems]) == (
        1, ["line 2: It is longer than 200,000 bytes."],
    )  # fmt: skip


async def test_a_long_text_is_cut_and_a_template_is_checked(one_client: Client, tmp_path: Path) -> None:
    file = tmp_path / "long.json"
    text = '{"version":1,"comments":[{"commentHex":"1","url":"/k","markdown":"' + "é" * 20_000
    file.write_text(text + '","parentHex":"root","creationDate":"2019-05-01T10:00:00Z"}]}', encoding="utf-8")
    imported = await bring(one_client, "commento", file)
    assert [str(altered) for altered in imported.altered] == ["comments.0: Its text was cut after 10,000 letters."]
    assert len((await page(one_client, "/k"))[0]["body"]) == 10_000
    for template in ("{nothing}", "{", "{0}", "{path.__class__.__init__.__globals__}"):
        with pytest.raises(Exception, match="--product"):
            Product(template)


def test_the_command_imports_and_says_what_it_did(tmp_path: Path) -> None:
    """And what it did not, with lines; a file that is not there is named."""
    variables = {"RINGSIDE_DATA": str(tmp_path / "data")}
    sample = str(SAMPLES / "disqus.xml")
    first = ringside("import", "disqus", sample, "--product", "{path}", **variables)
    assert "8 comments read: 8 are new, 0 existed already." in first.stdout, first.stderr
    assert f"line 12: {MISSING}" in first.stdout.replace("\n", " ")
    assert first.returncode == 1
    assert "line 15: It has no time" in first.stderr
    second = ringside("import", "disqus", sample, "--product", "{path}", **variables)
    assert "0 are new, 8 existed already." in second.stdout
    missing = ringside("import", "isso", str(tmp_path / "none.db"), "--product", "{path}", **variables)
    assert "none.db" in missing.stderr
    assert missing.returncode == 1
    template = ringside("import", "disqus", sample, "--product", "{nothing}", **variables)
    assert "--product is a text with {url}, {path}, {id}" in template.stderr.replace("\n", " ")
    assert ringside("audit", **variables).returncode == 0


@pytest.mark.parametrize("command", ["remark42 {} --product /", "remark42 - --product /", "all -"])
def test_a_full_folder_for_temporary_files_is_named(
    tmp_path: Path, one_client: Client, default_engine: RunningEngine, command: str
) -> None:
    """With what to do about it, in a sentence. SQLite keeps two megabytes in memory."""
    lines = [orjson.dumps({"id": f"{n}", "time": "2021-05-01T10:00:00Z", "text": "x" * 100_000}) for n in range(40)]
    (tmp_path / "backup").write_bytes(b"\n".join([b'{"version": 1}', *lines]))
    limited = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536));"
        "from server.__main__ import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", limited, "import", *command.format(tmp_path / "backup").split()],
        env=environment(**on_table(default_engine.url, one_client.services.table.name), TMPDIR=str(tmp_path)),
        cwd=ROOT,
        input=(tmp_path / "backup").read_bytes(),
        capture_output=True,
        timeout=LONGEST,
        check=False,
    )
    said = " ".join(done.stderr.decode().split())
    assert (done.returncode, "Traceback" in said) == (1, False)
    assert f"{tmp_path}, the folder for temporary files, cannot take" in said
    assert "TMPDIR" in said


@pytest.mark.parametrize("system", ["disqus", "isso"])
def test_the_command_reads_standard_input(tmp_path: Path, system: str) -> None:
    """As every import does: a container is given no file of its host. A database too, which is read by its name."""
    if system == "isso":
        isso_database(tmp_path / "given")
    else:
        (tmp_path / "given").write_bytes((SAMPLES / "disqus.xml").read_bytes())
    variables = {"RINGSIDE_DATA": str(tmp_path / "data")}
    named = ringside("import", system, str(tmp_path / "given"), "--product", "{path}", **variables)
    content = (tmp_path / "given").read_bytes()
    read = ringside_given(content, "import", system, "-", "--product", "{path}", **variables)
    counted = re.search(r"([0-9]+) are new", named.stdout)
    assert counted is not None, named.stderr
    assert f"0 are new, {counted[1]} existed already." in read.stdout, read.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_command_that_a_signal_ends_leaves_no_copy_of_standard_input(
    tmp_path: Path, number: signal.Signals
) -> None:
    """Which has members' names, addresses and words. The signal ends it all the same."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with subprocess.Popen(
        [sys.executable, "-m", "server", "import", "disqus", "-", "--product", "{id}"],
        env=environment(RINGSIDE_DATA=str(tmp_path / "data"), TMPDIR=str(temporary)),
        cwd=ROOT,
        stdin=subprocess.PIPE,
    ) as process:
        await until(lambda: [*temporary.glob("*/*")], "it waits for the rest of standard input")
        process.send_signal(number)
        assert await asyncio.to_thread(process.wait, LONGEST) == -number
    assert [*temporary.iterdir()] == []


# ── HTML and threads ──

HTML = {
    "<p>One</p><p>Two</p>": "One\nTwo",
    "a &lt;b&gt; &amp; &#x63;": "a <b> & c",
    "<script>alert(1)</script>seen<style>p {}</style>": "seen",
    "<ul><li>one</li><li>two</li></ul>": "- one\n- two",
    '<a href="https://example.com">https://example.com</a>': "https://example.com",
    '<a href="javascript:alert(1)">here</a>': "here",
    "<blockquote>a<blockquote>b</blockquote></blockquote>c": "> a\n> > b\n>\nc",
    "<pre>a\n  b</pre>": "a\n  b",
    '<img src="x" alt="a cat" onerror="x()">': "a cat",
    "a  \n  b": "a b",
    "<b": "<b",
    "a <![if x]>b <![endif]>c <![x[ y ]]>d <![]>e": "a b c d e",
    "": "",
}


@pytest.mark.parametrize("html", HTML)
def test_html_becomes_text(html: str) -> None:
    assert text_of_html(html).replace("\n\n", "\n") == HTML[html]


@given(st.text(alphabet="<>/abp& \n\"'=ql!-[]", max_size=300))
def test_any_html_becomes_text_without_an_end(html: str) -> None:
    assert len(text_of_html(html)) <= 6 * len(html) + 20


@given(st.integers(0, 30).flatmap(lambda n: st.lists(st.integers(-1, n), min_size=n, max_size=n)))
def test_each_comment_stands_in_one_thread_whatever_answers_what(parents: list[int]) -> None:
    """Each once; a reply's root is at the top, and each thread is as deep as two levels."""
    start = datetime(2020, 1, 1, tzinfo=UTC)
    written = [
        Written(Row(n + 1, {}), f"{n}", "/", "/", start + timedelta(hours=n * 7 % 31), "x", None,
                parent=None if parent < 0 else f"{parent}")
        for n, parent in enumerate(parents)
    ]  # fmt: skip
    rows = list(in_threads(written))
    assert sorted(row.fields["id"] for row in rows) == sorted(one.id for one in written)
    tops = {row.fields["id"] for row in rows if "root" not in row.fields}
    for row in rows:
        if "root" in row.fields:
            assert row.fields["root"][0] in tops
            assert row.fields["inReplyTo"][0] == written[int(row.fields["id"])].parent
    before = [row.fields["id"] in tops for row in rows]
    assert before == sorted(before, reverse=True)
