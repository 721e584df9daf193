"""HTML as plain text, and the records of an XML file, read without entities and with bounded memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import BinaryIO, Final
from xml.parsers import expat

from resolvers.transfer.readers import Unreadable

# ── HTML ──

_BLOCKS: Final = frozenset({"p", "div", "ul", "ol", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "table", "tr", "hr"})
_UNSEEN: Final = frozenset({"script", "style", "head", "title", "template"})
_DEEPEST_QUOTE: Final = 5
_MOST_HTML: Final = 200_000
"""Letters that are looked at: a comment has at most a twentieth of them."""
_BLANKS = re.compile(r"[ \t\r\f\v]+")


class _TextOfHtml(HTMLParser):
    """Collects the text: links with their addresses, quotations with `>`, blocks on lines of their own."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._lines: list[str] = [""]
        self._quotes = 0
        self._unseen = 0
        self._kept = 0
        self._links: list[tuple[str, int, int]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._unseen += tag in _UNSEEN
        self._kept += tag == "pre"
        if tag == "br":
            self._break()
        elif tag == "li":
            self._block()
            self._lines[-1] += "- "
        elif tag == "blockquote":
            self._block()
            self._quotes += 1
            self._lines[-1] = self._prefix
        elif tag in _BLOCKS:
            self._block()
        elif tag == "a":
            self._links.append((dict(attrs).get("href") or "", len(self._lines), len(self._lines[-1])))
        elif tag == "img":
            self._lines[-1] += dict(attrs).get("alt") or ""

    def handle_endtag(self, tag: str) -> None:
        self._unseen = max(0, self._unseen - (tag in _UNSEEN))
        self._kept = max(0, self._kept - (tag == "pre"))
        if tag == "blockquote" and self._quotes:
            self._block()
            self._quotes -= 1
            self._lines[-1] = self._prefix
            self._break()
        elif tag in _BLOCKS or tag == "li":
            self._block()
            if tag == "p":
                self._break()
        elif tag == "a" and self._links:
            self._end_link(*self._links.pop())

    def handle_data(self, data: str) -> None:
        if self._unseen:
            return
        first, *others = data.split("\n") if self._kept else [_BLANKS.sub(" ", data.replace("\n", " "))]
        self._lines[-1] += first if self._kept or self._lines[-1] != self._prefix else first.lstrip()
        for line in others:
            self._break()
            self._lines[-1] += line

    def parse_marked_section(self, i: int, report: int = 1) -> int:
        """Pass it over, as browsers do: the standard library has an error for some."""
        return self.parse_bogus_comment(i, bool(report))

    def text(self) -> str:
        return re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in self._lines)).strip()

    @property
    def _prefix(self) -> str:
        return "> " * min(self._quotes, _DEEPEST_QUOTE)

    def _break(self) -> None:
        self._lines.append(self._prefix)

    def _block(self) -> None:
        if self._lines[-1].strip() != self._prefix.strip():
            self._break()

    def _end_link(self, address: str, line: int, place: int) -> None:
        shown = self._lines[-1][place:] if line == len(self._lines) else ""
        if address.startswith(("http://", "https://", "mailto:")) and shown.strip() != address:
            self._lines[-1] += f" ({address})"


def text_of_html(html: str) -> str:
    """What a reader of the HTML sees, as plain text. Nothing of it is an element any more."""
    parser = _TextOfHtml()
    parser.feed(html[:_MOST_HTML])
    parser.close()
    return parser.text()


# ── XML ──

_AT_ONCE: Final = 65_536
_MOST_TEXT: Final = 2_000_000
"""Letters of one record: more are no comment."""


@dataclass(slots=True)
class Element:
    """An element: its text, its attributes and what is in it, by names without prefixes."""

    name: str
    line: int
    attributes: Mapping[str, str]
    text: str = ""
    children: list[Element] = field(default_factory=list)
    outer: Element | None = None
    """What it stands in, as far as that was read; None for an outermost one."""

    def of(self, name: str) -> Element | None:
        """The first element of this name inside."""
        return next((child for child in self.children if child.name == name), None)

    def value(self, name: str) -> str:
        """The text of an element inside; empty without it."""
        found = self.of(name)
        return "" if found is None else found.text.strip()


def xml_elements(source: BinaryIO, name: str, *wanted: str, inside: str = "") -> Iterator[Element]:
    """The outermost elements of these names, one after the other; Unreadable for a file that is no XML or has entities.

    They may hold records of the name `inside`, of any number: each comes by itself, before its outer element.
    """
    parser = _Records(name, frozenset(wanted), inside)
    while True:
        part = source.read(_AT_ONCE)
        parser.feed(part)
        yield from parser.taken()
        if not part:
            return


class _Records:
    def __init__(self, name: str, wanted: frozenset[str], inside: str) -> None:
        self._name, self._wanted, self._inside = name, wanted, inside
        self._open: list[Element] = []
        self._done: list[Element] = []
        self._letters = 0
        self._parser = expat.ParserCreate(namespace_separator="}")
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.EntityDeclHandler = self._refuse_entity
        self._parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)

    def feed(self, part: bytes) -> None:
        try:
            self._parser.Parse(part, not part)
        except expat.ExpatError as error:
            line, reason = error.lineno, expat.ErrorString(error.code)
            raise Unreadable(f"{self._name} is not XML: line {line}: {reason}. Export it again.") from None
        except (LookupError, ValueError):
            raise Unreadable(f"{self._name} declares an encoding that is not known. Save it as UTF-8.") from None

    def taken(self) -> Iterator[Element]:
        done, self._done = self._done, []
        return iter(done)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        bare = tag.rpartition("}")[2]
        if self._open or bare in self._wanted:
            if not self._open or self._is_record(bare):
                self._letters = 0
            own = {key.rpartition("}")[2]: value for key, value in attributes.items()}
            self._open.append(Element(bare, self._parser.CurrentLineNumber, own))

    def _end(self, _: str) -> None:
        if not self._open:
            return
        ended = self._open.pop()
        ended.outer = self._open[-1] if self._open else None
        if ended.outer is None or self._is_record(ended.name):
            self._done.append(ended)
        else:
            ended.outer.children.append(ended)

    def _is_record(self, name: str) -> bool:
        """Whether an element that stands in the open ones is a record of its own."""
        return name == self._inside and len(self._open) == 1

    def _characters(self, text: str) -> None:
        if not self._open:
            return
        self._letters += len(text)
        if self._letters > _MOST_TEXT:
            line = self._open[0].line
            raise Unreadable(f"{self._name} has a record of more than {_MOST_TEXT:,} letters in line {line}.")
        self._open[-1].text += text

    def _refuse_entity(self, *_: object) -> None:
        raise Unreadable(f"{self._name} declares entities, which no export needs. Nothing was imported.")
