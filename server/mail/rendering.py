"""The texts of all emails, made from Jinja2 templates: a subject, plain text and HTML for each kind.

The templates are in `templates/`. A folder of the operator's (RINGSIDE_EMAIL_TEMPLATES) replaces any of them, and
`_page.html`, the frame of all; its own further files begin with `_`. Templates run in a sandbox. What they print is
reduced to one line, so that a text from outside cannot imitate what surrounds it; in HTML it is also escaped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import Enum
from pathlib import Path
from typing import Any, Final

from jinja2 import ChoiceLoader, FileSystemLoader, StrictUndefined, TemplateError, TemplateNotFound, TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from server import Failed
from server.mail.direction import ISOLATES, direction, isolate
from server.mail.serialization import one_line

_BUILT_IN = Path(__file__).parent / "templates"
_PARTS = (".subject.txt", ".txt", ".html")
_LONGEST_SUBJECT = 120


class EmailKind(Enum):
    """What an email is for; its value begins the names of its templates."""

    CONFIRM_SUBSCRIPTION = "confirm-subscription"
    CONFIRM_ADDRESS = "confirm-address"
    DAILY_WORD = "daily-word"
    LOCK_REMINDER = "lock-reminder"


class BrokenTemplate(Failed):
    """A template of the operator's cannot be used; the message names the file and the line."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"RINGSIDE_EMAIL_TEMPLATES is invalid: {reason}. Write the path of a folder with templates such as "
            "daily-word.html."
        )


@dataclass(frozen=True, slots=True)
class Rendered:
    """An email's texts."""

    subject: str
    text: str
    html: str


class EmailTemplates:
    """The templates of this deployment; BrokenTemplate if one of the folder cannot be used."""

    def __init__(self, folder: Path | None = None) -> None:
        folders = [folder, _BUILT_IN] if folder is not None else [_BUILT_IN]
        self._environment = ImmutableSandboxedEnvironment(
            loader=ChoiceLoader([FileSystemLoader(path) for path in folders]),
            autoescape=lambda name: name is not None and name.endswith(".html"),
            undefined=StrictUndefined,
            finalize=_printed,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            auto_reload=False,
        )
        self._environment.filters["direction"] = direction
        self._environment.filters["isolate"] = _isolated
        if folder is not None:
            self._validate(folder)

    def render(self, kind: EmailKind, values: Mapping[str, Any]) -> Rendered:
        """An email's texts, of the values that `SAMPLES` lists for its kind."""
        subject, text, html = (self._environment.get_template(kind.value + part).render(values) for part in _PARTS)
        return Rendered(one_line(subject, keep=ISOLATES)[:_LONGEST_SUBJECT], text, html)

    def _validate(self, folder: Path) -> None:
        known = {"_page.html", *(kind.value + part for kind in EmailKind for part in _PARTS)}
        for file in sorted(path for path in folder.iterdir() if path.suffix in {".txt", ".html"}):
            if file.name not in known and not file.name.startswith("_"):
                names = ", ".join(sorted(known))
                raise BrokenTemplate(f"{file.name} is not the name of a template: they are {names}")
        for kind, values in SAMPLES.items():
            for part in _PARTS:
                self._validate_one(kind.value + part, values)

    def _validate_one(self, name: str, values: Mapping[str, Any]) -> None:
        try:
            self._environment.get_template(name).render(values)
        except TemplateSyntaxError as error:
            raise BrokenTemplate(f"{error.name or name}, line {error.lineno}: {error.message}") from None
        except TemplateNotFound as error:
            raise BrokenTemplate(f"{name} uses the template {error.name}, which does not exist") from None
        except UnicodeDecodeError:
            raise BrokenTemplate(f"{name} is not UTF-8") from None
        except Exception as error:  # noqa: BLE001 - a template can raise anything, as other code can
            reason = error.message if isinstance(error, TemplateError) else f"{type(error).__name__}: {error}"
            raise BrokenTemplate(f"{name}, with example values: {reason}") from None


class _Isolated(str):
    """One line, between our own marks of direction."""

    __slots__ = ()


def _isolated(text: str) -> str:
    return _Isolated(isolate(one_line(text)))


def _printed(value: Any) -> Any:
    """What a template prints of a value."""
    if value is None:
        return ""
    is_ready = isinstance(value, _Isolated) or hasattr(value, "__html__")
    return one_line(value) if isinstance(value, str) and not is_ready else value


_LINK = "https://api.example.org/…"
SAMPLES: Final[Mapping[EmailKind, Mapping[str, Any]]] = {
    EmailKind.CONFIRM_SUBSCRIPTION: {"address": "ada@example.org", "list_name": "HSK 1", "link": _LINK, "hours": 24},
    EmailKind.CONFIRM_ADDRESS: {"address": "ada@example.org", "name": "Ada", "link": _LINK, "hours": 24},
    EmailKind.DAILY_WORD: {
        "on": date(2026, 11, 20),
        "words": [
            {
                "term": "你好",
                "language": "zh-Hans",
                "reading": "nǐ hǎo",
                "definition": "hello",
                "example": None,
                "list_name": "HSK 1",
                "unsubscribe": _LINK,
            }
        ],
        "unsubscribe_all": _LINK,
    },
    EmailKind.LOCK_REMINDER: {
        "event": "Full Circle",
        "season": "2026",
        "place": None,
        "locks_at": datetime(2026, 11, 20, 20, 0, tzinfo=UTC),
        "time_zone": "UTC",
        "unsubscribe": _LINK,
    },
}
"""The values that each kind's templates get, with examples by which an operator's templates are checked."""
