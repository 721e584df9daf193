"""Importing and exporting comments, with and without the command line; on the default engine."""

import asyncio
import codecs
import fcntl
import io
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest

from datastore.comments.counts import LEADER, PRODUCT_TALLY, ProductTally, read_unsettled_products
from datastore.comments.records import COMMENT, Answer, Comment, Status, entity_for
from datastore.dynamo import Table
from datastore.people.identities import MemberErased, erase_profile, find_identity, of_address
from datastore.people.profiles import read_profile, set_email
from datastore.values.ids import first_id
from resolvers.comments.transfer import comment_lines, parse_line
from resolvers.people.identities import Members
from resolvers.requests.context import Role
from resolvers.values.node_ids import node_id
from server import Failed
from server.audit import find_suspects
from server.commands.exports import write_comments
from server.commands.imports import comments as import_comments
from server.demo import comments as demo
from server.settings import Settings
from tests.client import Client
from tests.command import on_table, ringside, ringside_process
from tests.comments import author_id, post
from tests.erasing import ERASE
from tests.intercepted import beforehand
from tests.members import introduce
from tests.queries import (
    COMMENT_STATISTICS,
    COMMENTS_PAGE,
    DELETE_COMMENT,
    EDIT_COMMENT,
    MODERATE_COMMENT,
    MODERATION_QUEUE,
)
from tests.transfers import import_lines

ADA = author_id("ada")
GOOD = {
    "product": "42", "language": "EN-us", "rating": 4, "body": "Fine.", "author": ADA,
    "createdAt": "2026-01-01T00:00:00Z",
}  # fmt: skip


async def test_exported_comments_are_imported_unchanged(one_client: Client, tmp_path: Path) -> None:
    """Edited, titled and held comments too. Importing again adds only the comments deleted since, and counts them."""
    ada, mod = one_client.member(ADA, name="Ada"), one_client.member("mod", Role.MODERATOR)
    posted = [await post(ada, f"p{place % 2}", place % 5 + 1, ("en", "de")[place % 2], title="A") for place in range(9)]
    await ada.ask(EDIT_COMMENT, input={"comment": posted[0]["id"], "body": "Changed."})
    await mod.ask(MODERATE_COMMENT, input={"comment": posted[1]["id"], "status": "REJECTED"})
    file = tmp_path / "comments.jsonl"
    assert await write_comments(one_client.services, file, None) == 9
    before = [await one_client.ask(COMMENTS_PAGE, product=f"p{place}", first=100) for place in range(2)]
    assert await import_lines(one_client.services, io.BytesIO(file.read_bytes())) == (9, 0, 0)
    for comment in posted[2:]:
        await ada.ask(DELETE_COMMENT, input={"comment": comment["id"]})
    # Another order of lines is another set of batches: none of them has been counted before.
    lines = file.read_bytes().splitlines(keepends=True)[:-1]
    await import_lines(one_client.services, io.BytesIO(b"".join(lines)))
    await import_lines(one_client.services, io.BytesIO(file.read_bytes().splitlines(keepends=True)[-1]))
    assert [await one_client.ask(COMMENTS_PAGE, product=f"p{place}", first=100) for place in range(2)] == before
    assert len((await mod.ask(MODERATION_QUEUE, status="REJECTED"))["nodes"]) == 1
    await one_client.services.close()
    assert await find_suspects(one_client.services, "comments") == []


NOT_EXPORTED = {
    "note": "A moderator's note is for the comment as it was decided about.",
    "arrived": "An import begins no feed.",
    "revision": "It starts over.",
    "threaded": "The import finds out which comments have replies.",
    "removed": "A stub is nobody's comment.",
    "held_by": "It names a rule of this site.",
    "placed": "The import gives the place of a review.",
    "marked": "Marks of helpful comments are not exported.",
    "proof": "A proof counts where it was shown.",
}


async def test_each_attribute_of_a_comment_is_exported_or_says_why_not(one_table: Table) -> None:
    """What a new one says about comments would be lost when a site moves."""
    now = first_id(datetime(2026, 1, 1, tzinfo=UTC))
    at = datetime(2026, 1, 2, tzinfo=UTC)
    comment = Comment(
        "42", now, "en", 4, "Fine.", ADA, "A", at, Status.PENDING, answer=Answer("Thanks.", at), verified_at=at
    )
    reply = Comment("42", first_id(at), "en", None, "So it is.", ADA, reply_to=now, root=now)
    await one_table.write_many(entity_for(each).put(each) for each in (comment, reply))
    exported = [parse_line(line) async for line in comment_lines(one_table, "42", None)]
    assert exported == [comment, reply]
    told = {field.name for field in fields(Comment) for each in exported if getattr(each, field.name) is not None}
    assert {field.name for field in fields(Comment)} - told == NOT_EXPORTED.keys()


async def test_an_export_goes_into_a_pipe(one_client: Client, tmp_path: Path) -> None:
    """Which holds nothing that it could continue: to read it would wait for a writer for ever."""
    await post(one_client.member(ADA))
    pipe, settings = tmp_path / "pipe", one_client.settings
    os.mkfifo(pipe)
    variables = on_table(settings.dynamodb_url, settings.table)
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as reading:
        done = await asyncio.to_thread(ringside_process, "export", "comments", str(pipe), **variables)
        assert (done.returncode, done.stderr.strip()) == (0, "1 comments written.")
        assert reading.read().startswith(b'{"id":')


async def test_an_export_continues_where_it_stopped(one_client: Client, tmp_path: Path) -> None:
    """A file that was cut in the middle of a line becomes complete; also the export of one product."""
    ada = one_client.member(ADA, name="Ada")
    for place in range(30):
        await post(ada, f"p{place % 3}", body=f"{place}")
    for product, number in ((None, 30), ("p1", 10)):
        whole, cut = tmp_path / f"whole-{product}", tmp_path / f"cut-{product}"
        assert await write_comments(one_client.services, whole, product) == number
        text = whole.read_bytes()
        cut.write_bytes(text[: len(text) // 2])
        await write_comments(one_client.services, cut, product)
        assert cut.read_bytes() == text
        assert await write_comments(one_client.services, whole, product) == 0


async def test_what_another_export_is_writing_is_left_to_it(one_client: Client, tmp_path: Path) -> None:
    """Half a line at the end of the file is its next one then."""
    await post(one_client.member(ADA, name="Ada"))
    file, settings = tmp_path / "file", one_client.settings
    await write_comments(one_client.services, file, None)
    half = file.read_bytes()[:-9]
    file.write_bytes(half)
    with file.open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        done = ringside("export", "comments", str(file), **on_table(settings.dynamodb_url, settings.table))
    assert (done.returncode, file.read_bytes()) == (1, half)
    assert done.stderr == f"Another export is writing {file}. Wait for it, or choose another file.\n"


async def test_an_export_of_other_comments_is_not_continued(one_client: Client, tmp_path: Path) -> None:
    """It would pass over comments. Only a file that begins as the whole export does may become a whole one."""
    ada = one_client.member(ADA, name="Ada")
    for place in range(9):
        await post(ada, f"p{place % 3}", body=f"{place}")
    whole = tmp_path / "whole"
    assert await write_comments(one_client.services, whole, None) == 9
    text = whole.read_bytes()
    first, _, last = dict.fromkeys(orjson.loads(line)["product"] for line in text.splitlines())

    async def refused(content: bytes, product: str | None) -> bool:
        file = tmp_path / "file"
        file.write_bytes(content)
        with suppress(Failed):
            await write_comments(one_client.services, file, product)
            return False
        assert file.read_bytes() == content
        return True

    of_first, of_last = b"".join(text.splitlines(keepends=True)[:3]), b"".join(text.splitlines(keepends=True)[6:])
    assert await refused(of_first, last)
    assert await refused(of_last, first)
    assert await refused(text, last)
    assert await refused(of_last, None)
    assert not await refused(of_first, None)
    assert (tmp_path / "file").read_bytes() == text


@pytest.mark.parametrize(
    "content", [b"Dear diary", b"first\nsecond\n", b"first\nsecond", b"\xff\xfe", b'{"id": "7", "body"', b"{}\n"]
)
async def test_a_file_that_is_no_export_is_left_as_it_is(one_client: Client, tmp_path: Path, content: bytes) -> None:
    """Also if it has no whole line, which an interrupted export could have left too."""
    await post(one_client.member(ADA, name="Ada"), "p1")
    file = tmp_path / "file"
    file.write_bytes(content)
    with pytest.raises(Failed, match="Export to another file"):
        await write_comments(one_client.services, file, None)
    assert file.read_bytes() == content


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rating": 6}, "rating"),
        ({"rating": "5"}, "rating"),
        ({"rating": True}, "rating"),
        ({"language": "xx"}, "language"),
        ({"language": None}, "language"),
        ({"body": " "}, "body"),
        ({"product": "4#2"}, "product"),
        ({"author": "ada"}, "author"),
        ({"author": {"name": "Ada"}}, "author"),
        ({"author": {"name": "Ada", "email": "nowhere"}}, "author"),
        ({"createdAt": "yesterday"}, "createdAt"),
        ({"createdAt": "2026-01-01T00:00:00"}, "createdAt"),
        ({"createdAt": None}, "createdAt"),
        ({"id": "7"}, "id"),
        ({"status": "GONE"}, "status"),
        ({"stars": 5}, "stars"),
    ],
)
async def test_an_invalid_line_is_reported(one_client: Client, change: dict[str, object], message: str) -> None:
    """With its number and the reason."""
    good = orjson.dumps(GOOD)
    with pytest.raises(Failed, match=rf"line 17: .*{message}"):
        await import_lines(one_client.services, io.BytesIO(b"\n" * 16 + orjson.dumps({**GOOD, **change})))
    for line in (b"{", b"[]", b'"x"', b"\xff", b" " * 200_000 + good):
        with pytest.raises(Failed, match="line 3: "):
            await import_lines(one_client.services, io.BytesIO(b"\n".join((good, b"", line, good))))


@pytest.mark.parametrize(
    ("change", "accepted"),
    [
        ({"id": "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"}, False),  # the year 10889
        ({"id": first_id(datetime(9001, 1, 1, tzinfo=UTC))}, False),
        ({"id": first_id(datetime(9000, 12, 31, tzinfo=UTC))}, True),
        ({"id": first_id(datetime(1971, 1, 1, tzinfo=UTC))}, True),
        ({"id": "00000000000000000000000001"}, False),  # the year 1970
        ({"createdAt": "1971-01-01T00:00:00+01:00"}, False),
        ({"createdAt": "9000-12-31T23:00:00-01:00"}, False),
        ({"createdAt": "0001-01-01T00:00:00+01:00"}, False),
        ({"createdAt": "1971-01-01T00:00:00Z"}, True),
    ],
)
async def test_what_an_import_accepts_is_shown_exported_and_imported_again(
    one_client: Client, tmp_path: Path, change: dict[str, object], *, accepted: bool
) -> None:
    """Of any time; one that does not fit is refused."""
    line = orjson.dumps({**GOOD, **change})
    if not accepted:
        with pytest.raises(Failed, match=rf"line 1: {next(iter(change))}: "):
            await import_lines(one_client.services, io.BytesIO(line))
        return
    assert (await import_lines(one_client.services, io.BytesIO(line)))[1] == 1
    assert len((await one_client.ask(COMMENTS_PAGE, product="42", first=5))["edges"]) == 1
    file = tmp_path / "comments.jsonl"
    assert [await write_comments(one_client.services, file, None) for _ in range(2)] == [1, 0]
    assert (await import_lines(one_client.services, io.BytesIO(file.read_bytes())))[1] == 0


def _lines(*changes: Mapping[str, object]) -> io.BytesIO:
    return io.BytesIO(b"".join(orjson.dumps({**GOOD, **change}) + b"\n" for change in changes))


async def test_an_import_leaves_out_what_erased_members_wrote(one_client: Client) -> None:
    """If it names their address; their number is reported, also when the file is imported again."""
    services, addresses = one_client.services, ("ada@example.com", "Eve@Example.com")
    author = {"name": "Somebody"}
    file = _lines(*({"body": f"{place}", "author": {**author, "email": addresses[place % 2]}} for place in range(60)))
    assert await import_lines(services, _lines({"author": {**author, "email": "eve@example.com"}})) == (1, 1, 0)
    identity = await find_identity(services.table, of_address("eve@example.com").key, services.clock())
    assert identity is not None
    profile = await read_profile(services.table, identity.user or "")
    assert profile is not None
    assert (profile.name, profile.email) == ("Somebody", None)
    now = services.clock()
    await services.table.transact(*erase_profile(profile, now, now + timedelta(days=1)))
    services.get(Members).forget([identity.key])
    assert await import_lines(services, file) == (60, 30, 30)
    file.seek(0)
    assert await import_lines(services, file) == (60, 0, 30)
    await services.close()
    assert await find_suspects(services, "comments") == []


async def test_the_address_of_an_erased_member_brings_nobody_back_who_signed_in_by_something_else(
    one_client: Client,
) -> None:
    """If they had confirmed it, and nobody else signs in by it, be it since now. One only named is anybody's."""
    services, root = one_client.services, one_client.member("root", Role.ADMIN)
    makes, addresses = services.get(Members), [f"{name}@example.com" for name in ("ada", "bob", "eve")]
    for user, address in zip(("ada", "bob"), addresses, strict=False):
        await introduce(services.table, user)
        await set_email(services.table, user, address, services.unit())
    await introduce(services.table, "eve", email=addresses[2])
    with beforehand(services.table, lambda: makes.make(of_address(addresses[1])), about="User:bob"):
        for user in ("ada", "bob", "eve"):
            assert "job" in await root.ask(ERASE, input={"user": node_id("User", user), "contributions": "REMOVE"})
    lines = _lines(*({"body": email, "author": {"name": "Back", "email": email}} for email in addresses))
    assert await import_lines(services, lines) == (3, 2, 1)
    with pytest.raises(MemberErased):
        await makes.make(of_address(addresses[0]))
    assert await makes.make(of_address(addresses[1])) != "bob"


@pytest.mark.parametrize("more", [{}, {"verifiedAt": "2026-01-02T00:00:00Z"}, {"status": "REJECTED"}])
async def test_a_batch_of_all_different_comments_fits_into_a_transaction(
    one_client: Client, more: dict[str, object]
) -> None:
    """Each of another author on another product; also that of their replies, whose threads begin with it."""
    services, start = one_client.services, datetime(2026, 1, 1, tzinfo=UTC)
    own: list[dict[str, object]] = [
        {"id": first_id(start + timedelta(hours=place)), "product": f"p{place}", "author": author_id(f"a{place}")}
        for place in range(50)
    ]
    assert await import_lines(services, _lines(*({**one, **more} for one in own))) == (50, 50, 0)
    replies = _lines(*({**one, "id": None, "rating": None, "inReplyTo": one["id"]} for one in own))
    assert await import_lines(services, replies) == (50, 50, 0)
    await services.close()
    assert await find_suspects(services, "comments") == []


async def test_an_import_ranks_all_of_its_products(one_client: Client) -> None:
    """Also when one list of what is yet to be settled does not hold them: here all marks are in one of its keys."""
    table = one_client.services.table
    marked = [ProductTally(f"p{number}", "en", shard=0, r5=1, unsettled=True, marks=1) for number in range(120)]
    await table.write_many(PRODUCT_TALLY.put(one) for one in marked)
    assert await import_lines(one_client.services, _lines({"rating": 5})) == (1, 1, 0)
    assert await read_unsettled_products(table) == []
    assert sum([leader.five_stars async for leader in table.scan(LEADER, consistent=True)]) == 121


OWN_COMMENTS = "{ viewer { comments(first: 10) { nodes { product } } } }"
SHARED_ID = "01KE0000000000000000000000"


@pytest.mark.parametrize("place", [0, 20, 40, 60, 199, 240])
async def test_an_id_belongs_to_a_comment_on_one_product(one_client: Client, place: int) -> None:
    """Wherever in the file it is repeated. The lines before are imported; without the id, all of them are."""
    services, ada = one_client.services, one_client.member(ADA)
    changes: list[dict[str, object]] = [
        {"body": f"{number}", "author": author_id(f"a{number}")} for number in range(250)
    ]
    changes[0] |= {"id": SHARED_ID, "author": ADA}
    repeated: dict[str, object] = {"id": SHARED_ID, "author": ADA, "product": "43"}
    changes.insert(place + 1, repeated)
    for _ in range(2):
        refusal = f"line {place + 2}: id: .* Leave `id` out"
        with pytest.raises(Failed, match=refusal):
            await import_lines(services, _lines(*changes))
        assert (await one_client.ask(COMMENT_STATISTICS, product="42"))["total"] > place
        assert (await ada.ask(OWN_COMMENTS))["comments"]["nodes"] == [{"product": "42"}]
    del repeated["id"]
    imported = await import_lines(services, _lines(*changes))
    assert (imported[0], imported[2]) == (251, 0)
    assert (await one_client.ask(COMMENT_STATISTICS, product="42"))["total"] == 250
    assert len((await ada.ask(OWN_COMMENTS))["comments"]["nodes"]) == 2
    await services.close()
    assert await find_suspects(services, "comments") == []


async def test_an_id_belongs_to_a_comment_of_one_member(one_client: Client) -> None:
    """Lists in the order of ids, such as the moderators' queue, would show only one of two."""
    services, mod = one_client.services, one_client.member("mod", Role.MODERATOR)
    held: dict[str, object] = {"id": SHARED_ID, "status": "PENDING"}
    await import_lines(services, _lines(held))
    await one_client.caught_up("the id is found")
    other = {**held, "product": "43", "author": author_id("bob")}
    for file in (_lines(other), _lines({"body": "Before."}, other)):
        with pytest.raises(Failed, match=r"id: .* Leave `id` out"):
            await import_lines(services, file)
    del other["id"]
    assert await import_lines(services, _lines(held, other)) == (2, 1, 0)
    await one_client.caught_up("the queue lists both")
    assert len((await mod.ask(MODERATION_QUEUE, first=10))["nodes"]) == 2
    assert (await one_client.ask(COMMENT_STATISTICS, product="42"))["total"] == 1


async def test_a_file_with_a_byte_order_mark_has_the_comments_of_one_without(one_client: Client) -> None:
    """Also their ids, so that nothing is imported twice; elsewhere than at the start a mark is no part of JSON."""
    lines = b"".join(orjson.dumps({**GOOD, "body": body}) + b"\n" for body in ("One.", "Two."))
    services = one_client.services
    assert await import_lines(services, io.BytesIO(codecs.BOM_UTF8 + lines)) == (2, 2, 0)
    assert await import_lines(services, io.BytesIO(lines)) == (2, 0, 0)
    assert await import_lines(services, io.BytesIO(codecs.BOM_UTF8)) == (0, 0, 0)
    with pytest.raises(Failed, match="line 3: It is not JSON"):
        await import_lines(services, io.BytesIO(lines + codecs.BOM_UTF8 + lines))


async def test_a_repeated_import_brings_nothing_back(one_client: Client) -> None:
    """That a member has deleted since."""
    services = one_client.services
    lines = b"\n".join(
        orjson.dumps({**GOOD, "body": f"{place}", "author": author_id(f"a{place}")}) for place in range(50)
    )
    assert (await import_lines(services, io.BytesIO(lines)))[1] == 50
    comment = await anext(services.table.scan(COMMENT))
    author = one_client.member(comment.author)
    await author.ask(DELETE_COMMENT, input={"comment": node_id("Comment", comment.node_key)})
    assert (await import_lines(services, io.BytesIO(lines)))[1] == 0


async def test_comments_are_imported_and_exported_by_command(
    one_table: Table, settings: Settings, tmp_path: Path
) -> None:
    """And the audit passes."""
    file = tmp_path / "in.jsonl"
    file.write_bytes(b"".join(orjson.dumps({**GOOD, "body": f"{place}"}) + b"\n" for place in range(120)))
    variables = on_table(settings.dynamodb_url, one_table.name)
    first = ringside("import", "comments", str(file), **variables)
    assert "120 comments read: 120 are new" in first.stdout, first.stderr
    out = tmp_path / "out.jsonl"
    assert "120 comments" in ringside("export", "comments", str(out), **variables).stderr
    assert len(out.read_bytes().splitlines()) == 120
    audited = ringside("audit", **variables)
    assert audited.returncode == 0, audited.stdout + audited.stderr
    with pytest.raises(Failed, match=r"none\.jsonl cannot be read"):
        import_comments(tmp_path / "none.jsonl")


async def test_the_demo_has_comments_in_eight_languages(one_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeded twice, counted once; some wait for a moderator."""
    comments = list(demo.generate())
    assert len(comments) == demo.NUMBER
    assert {comment.language for comment in comments} == set(demo.LANGUAGES)
    assert len({comment.body for comment in comments}) > demo.NUMBER // 3
    monkeypatch.setattr(demo, "NUMBER", 200)
    for _ in range(2):
        assert await demo.seed(one_client.services) == "200 comments in 8 languages on 12 products"
    comments = list(demo.generate())
    statistics = await one_client.ask(COMMENT_STATISTICS, product="ringside-tee")
    published = sum(comment.product == "ringside-tee" and comment.held is None for comment in comments)
    assert statistics["total"] == published
    mod = one_client.member("mod", Role.MODERATOR)
    assert len((await mod.ask(MODERATION_QUEUE, first=100))["nodes"]) == demo.PENDING
