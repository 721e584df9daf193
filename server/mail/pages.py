"""The small pages that links in emails open: a title, a line, a button. They load nothing and run no scripts."""

from __future__ import annotations

from html import escape

from starlette.responses import HTMLResponse

from server.http.response import SECURITY_HEADERS

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title></head>
<body style="font-family:system-ui,sans-serif;max-width:32em;margin:4em auto;padding:0 1em">
<h1>{title}</h1>
{content}
</body></html>
"""
_BUTTON = '<form method="post"><button style="font-size:1em;padding:.5em 1em">{label}</button></form>'


def text_page(title: str, text: str, status: int = 200) -> HTMLResponse:
    """A page that tells something."""
    return _page(title, f"<p>{escape(text)}</p>", status)


def button_page(title: str, label: str, text: str = "") -> HTMLResponse:
    """A page whose button posts to its own address."""
    line = f"<p>{escape(text)}</p>\n" if text else ""
    return _page(title, line + _BUTTON.format(label=escape(label)), 200)


def _page(title: str, content: str, status: int) -> HTMLResponse:
    headers = {**SECURITY_HEADERS, "content-security-policy": _POLICY, "cache-control": "no-store"}
    return HTMLResponse(_PAGE.format(title=escape(title), content=content), status, headers)
