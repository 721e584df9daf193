"""/unsubscribe: the link in every letter. It names its member by a signature, so nobody has to log in.

A mail program's one click is a POST (RFC 8058) and ends the subscriptions at once. A person's click is a GET, and so is
the visit of every scanner between here and the mailbox: it shows a page with a button and changes nothing.
"""

from __future__ import annotations

from html import escape

import structlog
from starlette.requests import Request
from starlette.responses import HTMLResponse

from datastore import vocabulary
from datastore.dynamo import DynamoError, deadline
from datastore.receipts import Once
from datastore.refusals import Conflict, NotFound
from datastore.seal import Forged
from resolvers.context import Services
from server.http.explorer import HARDENED
from server.mail.message import Ending

SECONDS = 10.0
_log = structlog.get_logger("ringside.unsubscribe")

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title></head>
<body style="font-family:system-ui,sans-serif;max-width:32em;margin:4em auto;padding:0 1em">
<h1>{title}</h1>
{rest}
</body></html>
"""
_BUTTON = '<form method="post"><button style="font-size:1em;padding:.5em 1em">Yes, end it</button></form>'


class Unsubscribing:
    """Ends what a signed link names."""

    def __init__(self, services: Services) -> None:
        self._house = services

    async def endpoint(self, request: Request) -> HTMLResponse:
        try:
            ending = Ending.opened(self._house.seal, request.query_params.get("token", ""))
        except Forged:
            text = "Use the link as the mail has it, all of it. If it is very old, use the one in a newer mail."
            return _page("This link is not complete", f"<p>{text}</p>", 400)
        try:
            with deadline(SECONDS):
                if request.method == "POST":
                    return await self._ended(ending)
                return await self._asked(ending)
        except (DynamoError, Conflict):
            return _page("Please try again in a minute", "<p>The service is busy; nothing was changed.</p>", 503)

    async def _asked(self, ending: Ending) -> HTMLResponse:
        if ending.list is None:
            return _page("End all daily words by mail?", _BUTTON)
        found = await vocabulary.word_list(self._house.table, ending.list)
        name = found.name if found is not None else "this list"
        return _page(f"End the daily words of {name}?", _BUTTON)

    async def _ended(self, ending: Ending) -> HTMLResponse:
        once = Once(ending.user, None, "", self._house.clock())
        for one in await vocabulary.subscriptions(self._house.table, ending.user):
            named = ending.list in (None, one.list) and ending.character_set in (None, one.character_set)
            if one.active and named:
                try:
                    await vocabulary.unsubscribe(self._house.table, one.user, one.list, one.character_set, once)
                except NotFound:
                    continue
        _log.info("unsubscribed by a link", everything=ending.list is None)
        return _page("Done", "<p>These words will not be sent to you again.</p>")


def _page(title: str, rest: str, status: int = 200) -> HTMLResponse:
    headers = {**HARDENED, "content-security-policy": _POLICY, "cache-control": "no-store"}
    return HTMLResponse(_PAGE.format(title=escape(title), rest=rest), status, headers)
