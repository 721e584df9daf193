"""The templates of emails: the built-in ones, and a folder that replaces some of them."""

from html.parser import HTMLParser
from pathlib import Path

import pytest

from server.commands.serve import serve
from server.mail.message import SAMPLES, BrokenTemplate, EmailKind, EmailTemplates

HOSTILE = "x</title><script>alert(1)</script>\r\n\r\nUnsubscribe: https://evil.example\u202e\u2068"


class Parsed(HTMLParser):
    """The elements of a page, and its root's attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.root: dict[str, str | None] = {}
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        if tag == "html":
            self.root = dict(attrs)


def texts_replaced(value: object, text: str) -> object:
    """The value with each of its texts replaced."""
    if isinstance(value, dict):
        return {name: texts_replaced(item, text) for name, item in value.items()}
    if isinstance(value, list):
        return [texts_replaced(item, text) for item in value]
    return text if isinstance(value, str) or value is None else value


@pytest.mark.parametrize("kind", EmailKind)
def test_each_kind_has_a_subject_a_text_and_a_page(kind: EmailKind) -> None:
    """And a page that names its language and its direction."""
    rendered = EmailTemplates().render(kind, SAMPLES[kind])
    assert rendered.subject
    assert "https://api.example.org/…" in rendered.text
    assert 'href="https://api.example.org/…"' in rendered.html
    assert Parsed(rendered.html).root == {"lang": "en", "dir": "ltr"}


@pytest.mark.parametrize("kind", EmailKind)
def test_a_text_from_outside_stays_on_its_line_and_out_of_the_markup(kind: EmailKind) -> None:
    """In all places of all kinds."""
    values = texts_replaced(SAMPLES[kind], HOSTILE)
    harmless = texts_replaced(SAMPLES[kind], "x")
    assert isinstance(values, dict)
    assert isinstance(harmless, dict)
    rendered, usual = EmailTemplates().render(kind, values), EmailTemplates().render(kind, harmless)
    assert "\n" not in rendered.subject
    assert len(rendered.text.splitlines()) == len(usual.text.splitlines())
    assert "\u202e" not in rendered.subject + rendered.text + rendered.html
    assert Parsed(rendered.html).elements == Parsed(usual.html).elements


def test_a_name_from_right_to_left_keeps_its_direction() -> None:
    """In a page by `dir`, in a line by marks of isolation."""
    rendered = EmailTemplates().render(
        EmailKind.LOCK_REMINDER, {**SAMPLES[EmailKind.LOCK_REMINDER], "event": "ليلة الأبطال"}
    )
    assert rendered.subject.startswith("\u2068ليلة الأبطال\u2069:")
    assert 'dir="rtl">ليلة الأبطال<' in rendered.html


def test_a_folder_replaces_single_templates_and_the_frame_of_all(tmp_path: Path) -> None:
    """Another brand and language, with a part that several templates include."""
    (tmp_path / "confirm-address.subject.txt").write_text("أكّد عنوانك\n", encoding="utf-8")
    (tmp_path / "_greeting.txt").write_text("Hi {{ name }}")
    (tmp_path / "confirm-address.txt").write_text("{% include '_greeting.txt' %}: {{ link }}")
    frame = '<html lang="ar" dir="rtl"><title>{% block title %}{% endblock %}</title>{% block content %}{% endblock %}'
    (tmp_path / "_page.html").write_text(frame)
    rendered = EmailTemplates(tmp_path).render(EmailKind.CONFIRM_ADDRESS, SAMPLES[EmailKind.CONFIRM_ADDRESS])
    assert (rendered.subject, rendered.text) == ("أكّد عنوانك", "Hi Ada: https://api.example.org/…")
    assert Parsed(rendered.html).root == {"lang": "ar", "dir": "rtl"}
    assert "wants to receive emails" in rendered.html


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("daily-word.html", b"a\n{% if %}", "daily-word.html, line 2: "),
        ("daily-word.txt", b"{{ word.term }}", "daily-word.txt, with example values: 'word' is undefined"),
        (
            "daily-word.subject.txt",
            b"{% for word in words %}{{ word.reading|isolate }}{% endfor %}",
            "daily-word.subject.txt, with example values: AttributeError",
        ),
        ("lock-reminder.html", b"{% extends 'page.html' %}", "lock-reminder.html uses the template page.html"),
        ("confirm-address.txt", b"{{ 1 / 0 }}", "confirm-address.txt, with example values: ZeroDivisionError"),
        ("confirm-address.txt", b"{{ ''.__class__.__mro__ }}", "confirm-address.txt, with example values: access to"),
        ("confirm-address.txt", "ü".encode("latin-1"), "confirm-address.txt is not UTF-8"),
        ("_page.html", b"{% block title %}", "_page.html, line 1: "),
        ("dailyword.html", b"", "dailyword.html is not the name of a template: they are _page.html, confirm-address"),
    ],
)
def test_a_broken_template_stops_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes, reason: str
) -> None:
    """With the file, and what is wrong with it, instead of with the first email."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BrokenTemplate) as broken:
        EmailTemplates(tmp_path)
    assert str(broken.value).startswith(f"RINGSIDE_EMAIL_TEMPLATES is invalid: {reason}")
    for variable, value in (("EMAIL_TEMPLATES", tmp_path), ("DATA", tmp_path), ("SMTP_URL", "smtp://127.0.0.1:1")):
        monkeypatch.setenv(f"RINGSIDE_{variable}", str(value))
    with pytest.raises(BrokenTemplate):
        serve("127.0.0.1", 0)
