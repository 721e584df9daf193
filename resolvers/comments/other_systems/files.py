"""Readers of the files that other systems export: each yields what was written, in any order."""

import gzip
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias, cast
from urllib.parse import quote, urljoin, urlsplit

import orjson

from datastore.comments.planner import RATINGS
from datastore.comments.records import Status
from datastore.people.identities import of_address
from resolvers.comments.other_systems.markup import Element, text_of_html, xml_elements
from resolvers.comments.other_systems.threads import Written
from resolvers.comments.transfer import Author
from resolvers.transfer.readers import Row, Unreadable, json_lines, open_regular
from resolvers.values.texts import is_email_address

Reader: TypeAlias = "Callable[[Path], Iterator[Written]]"
_LARGEST_JSON: Final = 512 * 2**20
_LARGEST_SITE: Final = 64 * 2**20
"""Of a Remark42 backup's first line, which has all users: hundreds of thousands of them."""
_GZIP: Final = b"\x1f\x8b"


@contextmanager
def _opened(file: Path) -> Iterator[BinaryIO]:
    """A file, which may be compressed."""
    with open_regular(file) as source:
        magic = source.read(len(_GZIP))
        source.seek(0)
        try:
            with gzip.GzipFile(fileobj=source) if magic == _GZIP else source as data:
                yield cast("BinaryIO", data)
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise Unreadable(f"{file} is not complete, or is compressed by something other than gzip.") from None


def _moment(text: object) -> datetime | None:
    """A moment, in UTC where the text names no zone."""
    try:
        moment = datetime.fromisoformat(str(text))
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _of_seconds(seconds: object) -> datetime | None:
    try:
        return None if seconds is None else datetime.fromtimestamp(float(cast("float", seconds)), UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None


def _author(key: str, name: str, email: object = None) -> Author:
    """Without a name of the system's own, an author is known by the address's hash, or else by the name they gave."""
    address = email.strip() if isinstance(email, str) else ""
    known = address if is_email_address(address) else None
    own = key or (of_address(known).key.hash if known else f"name {name}")
    return Author(own, name, known)


# ── Disqus ──


def disqus(file: Path) -> Iterator[Written]:
    """The XML that Disqus sends. Threads come before their posts."""
    threads: dict[str, tuple[str, str]] = {}
    is_export = False
    with _opened(file) as source:
        for element in xml_elements(source, f"{file}", "category", "thread", "post"):
            is_export = True
            id_ = element.attributes.get("id", "")
            if element.name == "thread":
                threads[id_] = (element.value("link"), element.value("id") or id_)
            elif element.name == "post":
                yield _disqus_post(element, id_, threads)
    if not is_export:
        raise Unreadable(f"{file} is no export of Disqus: it has no <thread> and no <post>.")


def _disqus_post(post: Element, id_: str, threads: Mapping[str, tuple[str, str]]) -> Written:
    thread, parent, author = post.of("thread"), post.of("parent"), post.of("author")
    thread_id = "" if thread is None else thread.attributes.get("id", "")
    link, name = threads.get(thread_id, ("", ""))
    problem = None if thread_id in threads else "The file has no thread for it."
    return Written(
        place=Row(post.line, {}, problem=problem),
        id=id_,
        thread=link,
        thread_id=name,
        at=_moment(post.value("createdAt")),
        body=text_of_html(post.value("message")),
        author=None
        if author is None
        else _author(author.value("username"), author.value("name"), author.value("email")),
        parent=None if parent is None else parent.attributes.get("id"),
        gone="true" in (post.value("isDeleted"), post.value("isSpam")),
    )


# ── WordPress ──

_WORDPRESS_STATES: Final = {"1": None, "0": Status.PENDING, "approve": None, "hold": Status.PENDING}


def wordpress(file: Path) -> Iterator[Written]:
    """The XML of "Tools, Export" (WXR). Pingbacks and trackbacks are no comments."""
    is_export, base = False, ""
    with _opened(file) as source:
        for element in xml_elements(source, f"{file}", "item", "wxr_version", "base_site_url", inside="comment"):
            is_export = True
            if element.name == "base_site_url":
                base = element.text.strip()
            elif (item := element.outer) is not None:
                link = item.value("link") or item.value("guid")
                yield _wordpress_comment(element, link, item.value("post_id"), _wordpress_site(base, link))
    if not is_export:
        raise Unreadable(f"{file} is no export of WordPress: it has no <item>.")


def _wordpress_site(base: str, link: str) -> str:
    """The host and folder of a site, each of which numbers its own users; by a page's link if the file names none."""
    try:
        address = urlsplit(base or urljoin(link, "/"))
    except ValueError:
        return ""
    return f"{address.hostname or ''}{address.path}".rstrip("/")


def _wordpress_comment(comment: Element, link: str, post: str, site: str) -> Written:
    user, state = comment.value("comment_user_id"), comment.value("comment_approved")
    parent = comment.value("comment_parent")
    name, email = comment.value("comment_author"), comment.value("comment_author_email")
    return Written(
        place=Row(comment.line, {}),
        id=comment.value("comment_id"),
        thread=link,
        thread_id=post,
        at=_moment(comment.value("comment_date_gmt")) or _moment(comment.value("comment_date")),
        # What WordPress shows has a line break for each in the text.
        body=text_of_html(comment.value("comment_content").replace("\n", "<br>")),
        author=_author(f"user {user} of {site}" if user not in ("", "0") else "", name, email),
        parent=None if parent in ("", "0") else parent,
        held=_WORDPRESS_STATES.get(state),
        rating=_wordpress_stars(comment),
        gone=state not in _WORDPRESS_STATES or comment.value("comment_type") not in ("", "comment", "review"),
    )


def _wordpress_stars(comment: Element) -> int | None:
    """What WooCommerce keeps of a review."""
    kept = {one.value("meta_key"): one.value("meta_value") for one in comment.children if one.name == "commentmeta"}
    return next((stars for stars in RATINGS if kept.get("rating") == f"{stars}"), None)


# ── Remark42 ──


def remark42(file: Path) -> Iterator[Written]:
    """A backup: a line about the site, then a line for each comment."""
    with _opened(file) as source:
        site = next(json_lines(source, _LARGEST_SITE), Row(1, {}))
        if (site.problem or "").startswith("It is longer"):
            raise Unreadable(f"{file} cannot be read: its first line is longer than {_LARGEST_SITE // 2**20} MB.")
        if site.problem is not None or "version" not in site.fields:
            raise Unreadable(f'{file} is no backup of Remark42: its first line has no "version".')
        users = _by(site.fields, "users", "id")
        emails = {id_: _text(_dict(user, "details"), "email") for id_, user in users.items()}
        for row in json_lines(source, number=site.number):
            yield _unread(row) if row.problem is not None else _remark42_comment(row, emails)


def _dict(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return "" if value is None else str(value)


def _unread(row: Row) -> Written:
    return Written(row, "", "", "", None, "", None)


def _remark42_comment(row: Row, emails: Mapping[str, str]) -> Written:
    fields, user, url = row.fields, _dict(row.fields, "user"), _text(_dict(row.fields, "locator"), "url")
    return Written(
        place=Row(row.number, {}),
        id=_text(fields, "id"),
        thread=url,
        thread_id=url,
        at=_moment(fields.get("time")),
        body=text_of_html(_text(fields, "text")) or _text(fields, "orig"),
        author=_author(_text(user, "id"), _text(user, "name"), emails.get(_text(user, "id"))),
        parent=_text(fields, "pid") or None,
        edited_at=_moment(_dict(fields, "edit").get("time")),
        gone=fields.get("delete") is True,
    )


# ── SQLite ──


def _rows(file: Path, query: str, system: str) -> Iterator[dict[str, Any]]:
    """The rows of a database that nobody changes and of which nothing is believed."""
    try:
        with open_regular(file) as source:
            magic = source.read(16)
    except OSError as error:
        raise Unreadable(f"{file} cannot be read: {error.strerror}.") from None
    if magic.startswith(_GZIP):
        raise Unreadable(f"{file} is compressed: unpack it first.")
    if magic != b"SQLite format 3\0":
        raise Unreadable(f"{file} is no SQLite database of {system}.")
    address = f"file:{quote(str(file.absolute()))}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as table:
            table.execute("PRAGMA trusted_schema = OFF")
            table.execute("PRAGMA cell_size_check = ON")
            table.row_factory = sqlite3.Row
            table.text_factory = lambda data: data.decode("utf-8", "replace")
            for row in table.execute(query):
                yield dict(row)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise Unreadable(f"{file} is no SQLite database of {system}: {error}.") from None


_ISSO: Final = """SELECT c.*, t.uri AS uri FROM comments AS c JOIN threads AS t ON t.id = c.tid ORDER BY c.id"""
_ISSO_PENDING, _ISSO_DELETED = 2, 4


def isso(file: Path) -> Iterator[Written]:
    """Isso's own database. Its texts are Markdown, and stay as they were written."""
    for row in _rows(file, _ISSO, "Isso"):
        mode = row.get("mode")
        yield Written(
            place=Row(0, {}, name=f"comment {row['id']}"),
            id=f"{row['id']}",
            thread=_text(row, "uri"),
            thread_id=_text(row, "uri"),
            at=_of_seconds(row.get("created")),
            body=_text(row, "text"),
            author=_author("", _text(row, "author"), row.get("email")),
            parent=None if row.get("parent") is None else f"{row['parent']}",
            edited_at=_of_seconds(row.get("modified")),
            held=Status.PENDING if mode == _ISSO_PENDING else None,
            gone=mode == _ISSO_DELETED,
        )


_CUSDIS: Final = """SELECT c.*, p.slug AS page_slug, p.url AS page_url
    FROM comments AS c JOIN pages AS p ON p.id = c.pageId ORDER BY c.created_at, c.id"""


def cusdis(file: Path) -> Iterator[Written]:
    """Cusdis's own database."""
    for row in _rows(file, _CUSDIS, "Cusdis"):
        moderator = _text(row, "moderatorId")
        yield Written(
            place=Row(0, {}, name=f"comment {row['id']}"),
            id=f"{row['id']}",
            thread=_text(row, "page_url") or _text(row, "page_slug"),
            thread_id=_text(row, "page_slug"),
            at=_prisma_moment(row.get("created_at")),
            body=_text(row, "content"),
            author=_author(f"user {moderator}" if moderator else "", _text(row, "by_nickname"), row.get("by_email")),
            parent=_text(row, "parentId") or None,
            held=None if row.get("approved") in (1, True, "true") else Status.PENDING,
            gone=row.get("deletedAt", row.get("deleted_at")) is not None,
        )


def _prisma_moment(value: object) -> datetime | None:
    """Milliseconds, or what SQLite itself writes."""
    return _of_seconds(value / 1000) if isinstance(value, int | float) else _moment(value)


# ── Commento and Comentario ──


def commento(file: Path) -> Iterator[Written]:
    """The JSON of Commento (version 1) or Comentario (version 3)."""
    with _opened(file) as source:
        text = source.read(_LARGEST_JSON + 1)
    if len(text) > _LARGEST_JSON:
        raise Unreadable(f"{file} is larger than {_LARGEST_JSON // 2**20} MB.")
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise Unreadable(f"{file} is not JSON: {error}.") from None
    del text
    if not isinstance(document, dict) or not isinstance(document.get("comments"), list):
        raise Unreadable(f'{file} is no export of Commento: it has no list of "comments".')
    read = _commento_comment if document.get("version") == 1 else _comentario_comment
    people = _by(document, "commenters", "commenterHex", "id")
    pages = _by(document, "pages", "id")
    for number, fields in enumerate(document["comments"]):
        place = Row(number + 1, {}, name=f"comments.{number}")
        if isinstance(fields, dict):
            yield read(place, fields, people, pages)
        else:
            yield _unread(Row(number + 1, {}, name=place.name, problem="It is no object."))


def _by(document: Mapping[str, Any], name: str, *keys: str) -> dict[str, Mapping[str, Any]]:
    listed = document.get(name)
    objects = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return {next((_text(each, key) for key in keys if each.get(key)), ""): each for each in objects}


_COMMENTO_DELETED: Final = ("", "[deleted]")
"""The text of a deleted comment: Commento's own export says nothing else of the deletion."""


def _commento_comment(
    place: Row, fields: Mapping[str, Any], people: Mapping[str, Mapping[str, Any]], _: object
) -> Written:
    person = people.get(_text(fields, "commenterHex"), {})
    parent, path = _text(fields, "parentHex"), _text(fields, "url") or _text(fields, "path")
    return Written(
        place=place,
        id=_text(fields, "commentHex"),
        thread=f"https://{_text(fields, 'domain')}{path}",
        thread_id=path,
        at=_moment(fields.get("creationDate")),
        body=text_of_html(_text(fields, "html")) or _text(fields, "markdown"),
        author=_author(_text(person, "commenterHex"), _text(person, "name"), person.get("email")),
        parent=None if parent in ("", "root") else parent,
        held=None if fields.get("state") in ("approved", None) else Status.PENDING,
        gone=fields.get("deleted") is True or fields.get("markdown") in _COMMENTO_DELETED,
    )


def _comentario_comment(
    place: Row,
    fields: Mapping[str, Any],
    people: Mapping[str, Mapping[str, Any]],
    pages: Mapping[str, Mapping[str, Any]],
) -> Written:
    person, page = people.get(_text(fields, "userCreated"), {}), pages.get(_text(fields, "pageId"), {})
    path, host = _text(page, "path") or _text(fields, "pageId"), _text(page, "host") or _text(page, "domain")
    name = _text(person, "name") or _text(fields, "authorName")
    return Written(
        place=place,
        id=_text(fields, "id"),
        thread=f"https://{host}{path}" if host else path,
        thread_id=path,
        at=_moment(fields.get("createdTime")),
        body=text_of_html(_text(fields, "html")) or _text(fields, "markdown"),
        author=_author(_text(person, "id"), name, person.get("email")),
        parent=_text(fields, "parentId") or None,
        edited_at=_moment(fields.get("editedTime")),
        held=_comentario_held(fields),
        gone=fields.get("isDeleted") is True or fields.get("isSpam") is True,
    )


def _comentario_held(fields: Mapping[str, Any]) -> Status | None:
    """What neither waits nor is approved was rejected by a moderator."""
    if fields.get("isPending") is True:
        return Status.PENDING
    return Status.REJECTED if fields.get("isApproved") is False else None


READERS: Final[Mapping[str, Reader]] = {
    "disqus": disqus,
    "wordpress": wordpress,
    "remark42": remark42,
    "isso": isso,
    "cusdis": cusdis,
    "commento": commento,
}
