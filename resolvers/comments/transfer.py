"""Comments as JSON Lines.

    {"product": "42", "language": "en", "rating": 5, "body": "Well made.",
     "author": {"name": "Ada", "email": "ada@example.com"}, "createdAt": "2026-11-20T20:00:00Z"}

An export has the author's id instead. An address is the member's who signs in by it; there is one from the import on.
Where a member has one review of a product, a second one is imported without its rating. What a member wrote who was
erased lately is left out, if the line names their address.

`rating`, `title`, `editedAt` and `status` are optional. An export also writes `id`; without it, the import derives one
from `createdAt` and the line's content, so importing a file twice adds every comment once.

A reply has no rating but `inReplyTo`, the id of the comment that it answers, which comes before it. `thread`, which an
export also writes, is the id of the top-level comment; with it the answered one may be gone.

`verifiedAt` says when its author showed a shop's proof, which an export knows and the import believes.

`answer` is the site's own: `{"body": "Thank you.", "at": "2026-11-21T08:00:00Z"}`, with the editor's id as `by`.
"""

from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import NamedTuple

from datastore.comments import transfer
from datastore.comments.records import Answer, Comment, Status
from datastore.comments.reviews import find_review, is_review
from datastore.dynamo import Table, gather_or_cancel, iso
from datastore.people.identities import MemberErased, of_address
from datastore.refusals import InvalidInput
from datastore.values.ids import derived_id, first_id, is_ulid
from resolvers.comments import rules
from resolvers.people.identities import Members
from resolvers.requests.context import LONGEST_NAME, Services
from resolvers.transfer import readers
from resolvers.transfer.loop import Added, RecordRefused, Store, json_line
from resolvers.values.languages import parse_language
from resolvers.values.texts import is_email_address
from resolvers.values.texts import parse_line as parse_name

# ── import ──

BATCH_LIFETIME = timedelta(days=30)
_MOST_ROOTS = 50_000
"""Remembered of the lines of a run: some 15 MB."""
_SECOND_REVIEW = "The rating was left out: its author has a rated comment on this product already."
_FIELDS = {
    "id", "product", "language", "rating", "title", "body", "author", "createdAt", "editedAt", "status", "inReplyTo",
    "thread", "answer", "verifiedAt",
}  # fmt: skip
LINE_START = b'{"id":"'
"""How each line of an export begins."""
_YEARS = range(1971, 9001)
"""Years whose moments fit into an id, in UTC."""
_FIRST_ID = first_id(datetime(_YEARS.start, 1, 1, tzinfo=UTC))
_END_OF_IDS = first_id(datetime(_YEARS.stop, 1, 1, tzinfo=UTC))


class Author(NamedTuple):
    """Who wrote a comment, as another system knows them."""

    key: str
    name: str
    email: str | None = None


class Line(NamedTuple):
    """A comment, and its author if the line does not have their id."""

    comment: Comment
    email: str | None = None
    name: str | None = None
    writer: Author | None = None
    note: str | None = None
    """What is told of the line, although it is imported."""


class CommentStore(Store[Line]):
    """Adds comments in batches that are written and counted once."""

    at_once = transfer.AT_ONCE
    id_taken = InvalidInput(
        "A comment on another product has it. Leave `id` out, and one is derived from `createdAt`.", path=("id",)
    )

    def __init__(self, services: Services) -> None:
        self._table = services.table
        self._members = services.get(Members)
        self._expires = services.clock() + BATCH_LIFETIME
        self._unit = services.unit()
        self._one_review = services.policy.one_review
        self._roots = OrderedDict[tuple[str, str], str]()
        """The top-level comments of the threads of the latest lines: what replies answer may be gone from the table."""

    def parse(self, row: readers.Row) -> Line:
        return _parse_line(row)

    async def add(self, records: Sequence[Line]) -> Added:
        placed = await self._in_threads(records)
        named = await gather_or_cancel(map(self._named, placed))
        altered = await self._refuse_second_reviews(records, named) if self._one_review else []
        comments = [comment for comment in named if comment is not None]
        try:
            new = await transfer.import_comments(self._table, comments, self._expires, self._unit)
        except transfer.IdTaken as taken:
            lines = [line for line, comment in zip(records, named, strict=True) if comment in taken.comments]
            added = set(map(id, taken.new))
            was_new = [line for line, comment in zip(records, named, strict=True) if id(comment) in added]
            raise RecordRefused(lines, self.id_taken, was_new) from None
        return Added(new, left_out=len(records) - len(comments), altered=altered)

    async def _refuse_second_reviews(
        self, lines: Sequence[Line], comments: list[Comment | None]
    ) -> list[tuple[Line, str]]:
        """Take the rating from every comment whose author has another rated one on the product; return their lines.

        One that was imported before, and was rejected or deleted or lost its stars since, leaves them to another.
        """
        altered = []
        first: dict[tuple[str, str], str] = {}
        rated = {place: one for place, one in enumerate(comments) if one is not None and is_review(one)}
        existing = await transfer.find_existing(self._table, list(rated.values()))
        for place, comment in rated.items():
            ended = comment.node_key in existing and not is_review(existing[comment.node_key])
            own = ended or first.setdefault((comment.author, comment.product), comment.ulid) == comment.ulid
            if own and await find_review(self._table, comment) is None:
                comments[place] = replace(comment, placed=None if ended else True)
            else:
                comments[place] = replace(comment, rating=None)
                altered.append((lines[place], _SECOND_REVIEW))
        return altered

    async def _in_threads(self, lines: Sequence[Line]) -> list[Line]:
        """The lines, each reply with its thread; RecordRefused if it answers nothing."""
        comments = [line.comment for line in lines]
        answered = [(one.product, one.reply_to) for one in comments if one.reply_to is not None and one.root is None]
        lost = [place for place in dict.fromkeys(answered) if place not in self._roots]
        if lost:
            self._roots |= await transfer.find_roots(self._table, lost)
        placed = []
        for line, one in zip(lines, comments, strict=True):
            root = one.root
            if one.reply_to is not None and root is None:
                root = self._roots.get((one.product, one.reply_to))
                if root is None:
                    message = "There is no such comment on the product. The answered comment comes first."
                    raise RecordRefused([line], InvalidInput(message, path=("inReplyTo",)))
            self._roots[one.product, one.ulid] = root or one.ulid
            placed.append(line if root is one.root else line._replace(comment=replace(one, root=root)))
        while len(self._roots) > _MOST_ROOTS:
            self._roots.popitem(last=False)
        return placed

    async def _named(self, line: Line) -> Comment | None:
        """The comment with its author's id; None if the author was erased."""
        author = await self._author(line)
        return None if author is None else replace(line.comment, author=author)

    async def _author(self, line: Line) -> str | None:
        if line.email is None:
            return line.comment.author
        try:
            return await self._members.introduce_author(of_address(line.email), name=line.name, email=None)
        except MemberErased:
            return None

    async def finish(self) -> None:
        await transfer.settle_products(self._table)


def parse_line(line: bytes) -> Comment:
    """The comment of a line; InvalidInput if it has none."""
    row = next(readers.json_lines(BytesIO(line)), readers.Row(1, {}, problem="It is blank."))
    row.require_read()
    return _parse_line(row).comment


def _parse_line(row: readers.Row) -> Line:
    """Apply the rules for a comment that a member posts."""
    fields = row.fields
    if unknown := sorted(fields.keys() - _FIELDS):
        raise InvalidInput(f"It has unknown fields: {', '.join(unknown)}.")
    created_at = _parse_time(fields, "createdAt")
    author, name, email = _parse_author(fields)
    comment = Comment(
        product=rules.validate_product(readers.parse_text(fields, "product"), ("product",)),
        ulid=_parse_id(fields, created_at, row.raw),
        language=parse_language(readers.parse_text(fields, "language"), ("language",)),
        rating=_parse_rating(fields),
        body=rules.validate_body(readers.parse_text(fields, "body")),
        author=author,
        title=rules.validate_title(readers.parse_optional_text(fields, "title")),
        edited_at=_parse_time(fields, "editedAt"),
        held=_parse_held(fields),
        reply_to=_parse_place(fields, "inReplyTo"),
        root=_parse_place(fields, "thread"),
        answer=_parse_answer(fields.get("answer")),
        verified_at=_parse_verified(fields),
    )
    return Line(comment, email, name)


def _parse_rating(fields: readers.Fields) -> int | None:
    if fields.get("rating") is None:
        return None
    if fields.get("inReplyTo") is not None:
        raise InvalidInput("A reply has no rating.", path=("rating",))
    return rules.validate_rating(fields["rating"], ("rating",))


def _parse_verified(fields: readers.Fields) -> datetime | None:
    if fields.get("verifiedAt") is not None and fields.get("inReplyTo") is not None:
        raise InvalidInput("A reply is not verified.", path=("verifiedAt",))
    return _parse_time(fields, "verifiedAt")


def _parse_place(fields: readers.Fields, name: str) -> str | None:
    """The id of a comment that a reply names."""
    ulid = readers.parse_optional_text(fields, name)
    if ulid is None:
        return None
    if not is_ulid(ulid) or fields.get("inReplyTo") is None:
        raise InvalidInput("An id has 26 characters, and a `thread` comes with `inReplyTo`.", path=(name,))
    return ulid


def _parse_answer(given: object) -> Answer | None:
    """The site's answer, as an export has it."""
    if given is None:
        return None
    if not isinstance(given, dict) or not {"body", "at"} <= given.keys() <= {"body", "at", "by"}:
        raise InvalidInput('An answer is {"body": …, "at": …}, and from an export has `by`.', path=("answer",))
    at, by = _parse_time(given, "at"), readers.parse_optional_text(given, "by")
    if at is None or (by is not None and not is_ulid(by)):
        raise InvalidInput("An answer has its time, and a member's id of 26 characters if any.", path=("answer",))
    return Answer(rules.validate_body(readers.parse_text(given, "body")), at, by)


def _parse_id(fields: readers.Fields, created_at: datetime | None, line: bytes) -> str:
    """The id that the line has, or the same one for the same line, so that a second import finds the comment."""
    if fields.get("id") is None and created_at is None:
        raise InvalidInput("A comment without an id needs the time it was written.", path=("createdAt",))
    given = readers.parse_optional_text(fields, "id")
    ulid = derived_id(created_at, line) if given is None and created_at is not None else given or ""
    if not is_ulid(ulid):
        raise InvalidInput("An id has 26 characters, as in an export.", path=("id",))
    if not _FIRST_ID <= ulid < _END_OF_IDS:
        raise InvalidInput(
            f"An id begins with its time, which must be in the years {_YEARS[0]} to {_YEARS[-1]}.", path=("id",)
        )
    return ulid


def _parse_author(fields: readers.Fields) -> tuple[str, str | None, str | None]:
    """The id, or instead of it the name and the address."""
    given = fields.get("author")
    if isinstance(given, dict) and given.keys() == {"name", "email"}:
        name, email = readers.parse_text(given, "name"), readers.parse_text(given, "email")
        if not is_email_address(email):
            raise InvalidInput("This is no email address.", path=("author", "email"))
        return "", parse_name(name, LONGEST_NAME, "A name", ("author", "name")), email
    if not isinstance(given, str) or not is_ulid(given):
        raise InvalidInput(
            'An author is {"name": …, "email": …}, or a member\'s id of 26 characters as in an export.',
            path=("author",),
        )
    return given, None, None


def _parse_held(fields: readers.Fields) -> Status | None:
    status = readers.parse_choice(fields, "status", Status) if fields.get("status") else Status.PUBLISHED
    return None if status is Status.PUBLISHED else status


def _parse_time(fields: readers.Fields, name: str) -> datetime | None:
    if fields.get(name) is None:
        return None
    moment = readers.parse_moment(fields, name)
    if moment.year not in _YEARS:
        raise InvalidInput(f"A time is in the years {_YEARS[0]} to {_YEARS[-1]}.", path=(name,))
    return moment


# ── export ──


async def comment_lines(table: Table, product: str | None, after: Comment | None) -> AsyncIterator[bytes]:
    """The comments after one that was exported, as lines."""
    async for comment in transfer.export_comments(table, product, after):
        fields = {
            "id": comment.ulid,
            "product": comment.product,
            "language": comment.language,
            "rating": comment.rating,
            "title": comment.title,
            "body": comment.body,
            "author": comment.author,
            "createdAt": iso(comment.created_at),
            "editedAt": iso(comment.edited_at) if comment.edited_at is not None else None,
            "status": comment.held,
            "inReplyTo": comment.reply_to,
            "thread": comment.root,
            "verifiedAt": None if comment.verified_at is None else iso(comment.verified_at),
            "answer": None if comment.answer is None else _answer_fields(comment.answer),
        }
        yield json_line({name: value for name, value in fields.items() if value is not None})


def _answer_fields(answer: Answer) -> dict[str, str]:
    fields = {"body": answer.body, "at": iso(answer.at)}
    return fields if answer.by is None else {**fields, "by": answer.by}


async def is_same_export(table: Table, product: str | None, first: Comment, last: Comment) -> bool:
    """Whether comments from `first` to `last` are how the export begins. If they are not, continuing skips some."""
    if product is not None:
        return first.product == last.product == product
    # Those on one product may be an export of that product.
    return first.product != last.product or await transfer.begins_with(table, first.product)
