"""Adding comments of another system: on which product, under which id, by whom.

Whoever wrote them becomes a member of the other system's name, in whom nobody can sign in but by the address. A comment
has the same id in each run, so a second one finds it.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from urllib.parse import urlsplit

from datastore.comments.records import Comment, Status
from datastore.people.identities import IMPORT_ISSUER, MemberErased, Proven, SignInMethod
from datastore.refusals import InvalidInput
from datastore.values.ids import derived_id
from resolvers.comments import rules
from resolvers.comments.transfer import Author, CommentStore, Line
from resolvers.requests.context import LONGEST_NAME, Services
from resolvers.transfer.loop import Added
from resolvers.transfer.readers import Row

NOBODY = Author("", "")
FIELDS = ("url", "path", "id")
TOO_LONG = f"--product makes more than {rules.LONGEST_PRODUCT} characters of its page: {{id}} is shorter."
SHORTENED = f"Its text was cut after {rules.LONGEST_BODY:,} letters."


class Product:
    """How the address of a page becomes the id of a product."""

    def __init__(self, template: str) -> None:
        try:
            self._template = template
            template.format_map(dict.fromkeys(FIELDS, "1"))
        except (KeyError, IndexError, ValueError, AttributeError):
            names = ", ".join(f"{{{name}}}" for name in FIELDS)
            raise InvalidInput(f"--product is a text with {names}, such as {{path}}.") from None

    def of(self, thread: str, thread_id: str) -> str:
        """InvalidInput if it needs an address and the page has none, or one that is broken, or if it is too long."""
        named = {"id": thread_id}
        with suppress(ValueError):
            named |= {"url": thread, "path": urlsplit(thread).path or "/"} if thread else {}
        try:
            product = self._template.format_map(named)
        except KeyError:
            raise InvalidInput("The file has no address of its page.") from None
        if len(product) > rules.LONGEST_PRODUCT:
            raise InvalidInput(TOO_LONG)
        return product


class OtherSystemStore(CommentStore):
    """Adds comments that another system has, in threads."""

    id_taken = InvalidInput("It was imported before, on another product, and stays there.")

    def __init__(self, services: Services, system: str, product: Product, language: str) -> None:
        super().__init__(services)
        self._system = system
        self._product = product
        self._language = language

    def parse(self, row: Row) -> Line:
        fields = row.fields
        at, body, note = datetime.fromisoformat(fields["at"]), fields["body"].strip(), fields["note"]
        if len(body) > rules.LONGEST_BODY:
            body, note = body[: rules.LONGEST_BODY].rstrip(), f"{note} {SHORTENED}" if note else SHORTENED
        comment = Comment(
            product=rules.validate_product(self._product.of(fields["thread"], fields["threadId"]), ("product",)),
            ulid=self._id(fields["id"], at),
            language=self._language,
            rating=fields["rating"] if fields.get("inReplyTo") is None else None,
            body=rules.validate_body(body.replace("\x00", "")),
            author="",
            edited_at=None if fields["editedAt"] is None else datetime.fromisoformat(fields["editedAt"]),
            held=None if fields["held"] is None else Status(fields["held"]),
            reply_to=self._place(fields.get("inReplyTo")),
            root=self._place(fields.get("root")),
        )
        author = fields["author"]
        return Line(comment, writer=NOBODY if author is None else Author(*author), note=note)

    def _place(self, place: tuple[str, float] | None) -> str | None:
        return None if place is None else self._id(place[0], datetime.fromtimestamp(place[1], UTC))

    def _id(self, id_: str, at: datetime) -> str:
        return derived_id(at, f"{self._system}\0{id_}".encode("utf-8", "replace"))

    async def add(self, records: Sequence[Line]) -> Added:
        added = await super().add(records)
        return added._replace(altered=[*added.altered, *((line, line.note) for line in records if line.note)])

    async def _author(self, line: Line) -> str | None:
        writer = line.writer or NOBODY
        shown = Proven(SignInMethod.SITE, f"{IMPORT_ISSUER}{self._system}", writer.key, self._system.title())
        name = " ".join(writer.name.split())[:LONGEST_NAME] or None
        try:
            return await self._members.introduce_author(shown, name=name, email=writer.email)
        except MemberErased:
            return None
