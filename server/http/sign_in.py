"""/sign-in: the page on which people sign in and have their account; it hands pages of other sites their own session.

| address               | answers                                                                                |
|-----------------------|----------------------------------------------------------------------------------------|
| GET /sign-in          | the page: `?origin=…&state=…` as another site's window, `?returnTo=…`, `?link=…`       |
| POST /sign-in         | where the provider signs people in, with the cookie of this flow                       |
| GET /sign-in/callback | the provider's answer: begins a session and leads back to the page                     |
| GET /sign-in/done     | the page again, for those who come back without the window that opened theirs          |
| POST /sign-in/done    | with a session: a token for the origin that asks, or the address that leads back to it |
| GET /sign-in/emails   | the emails of a demo on this machine                                                   |

The page is a few files without a build step and an ordinary client of the API. What it asks for is checked here, not in
the page: other sites must be listed, and it leads nowhere else. Its POSTs count only from the service's own pages. Its
documents are a file that the service reads too, so that they run where only trusted documents do.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import orjson
import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from datastore.dynamo import DynamoError, iso, unlimited
from datastore.members.sessions import Session, latest_end
from datastore.members.sign_in_codes import CodeSpent
from datastore.people.identities import MemberErased, TooManyIdentities
from datastore.refusals import Conflict, InvalidInput, NotSignedIn, Overloaded, RateLimited, Refusal
from datastore.values.seal import Forged
from resolvers.members.sign_in_codes import PATH, SignInCodes, offered_methods, origin_in, parse_return_address
from resolvers.members.signing_in import code_for_page, session_for_page
from resolvers.requests.context import Context, Services, Viewer, addressed_origin
from resolvers.values.languages import PAGE_LANGUAGES
from resolvers.values.network_addresses import network
from resolvers.values.node_ids import node_id
from resolvers.whole.signing_in import add_provider, require_may_add, sign_in_by_provider
from server.auth.cookies import SESSION_COOKIE, bound_to_host, cookie_values, set_bound_cookie
from server.auth.verification import Faulty, Unverifiable
from server.execution.documents import hash_of
from server.http.browser_pages import DemoEmails, content_policy, may_see_emails, page_file
from server.http.messages import SECURITY_HEADERS, client_address, read_body
from server.http.pipeline import Pipeline
from server.settings import Settings

if TYPE_CHECKING:
    from server.auth.oidc_client import Flow, OidcClient

_PAGES: Final = Path(__file__).with_name("pages")
_FOLDER: Final = _PAGES / "sign-in"
_TEXTS: Final = _PAGES / "texts"
_FILES: Final = ("sign-in.css", "sign-in.js", "challenge.js", "account-leagues.js", "account-subscriptions.js")
_LONGEST_STATE: Final = 500
_MOST_BODY: Final = 8192
FRAGMENT: Final = "ringside-code"
"""What the fragment of an address is called that leads back to a page of another origin."""
ASKED: Final = "{asked}"
"""The page's placeholder for what it is asked for."""


_TEXTS_OF_DOCUMENTS: Final = (_FOLDER / "documents.graphql").read_text(encoding="utf-8").strip().split("\n\n")
_DOCUMENTS: Final = {text.partition("(")[0].split()[1]: text for text in _TEXTS_OF_DOCUMENTS}
"""What the page asks the API, by the names of the operations."""


def page_documents() -> Mapping[str, str]:
    """The same by their hashes."""
    return {hash_of(text): text for text in _DOCUMENTS.values()}


class SignInPage:
    """The addresses under /sign-in."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._headers = {
            **SECURITY_HEADERS,
            "Content-Security-Policy": content_policy(settings.image_hosts),
            # The page that opened the window is told of the session by it.
            "Cross-Origin-Opener-Policy": "unsafe-none",
            "Cache-Control": "no-store",
        }

    def routes(self) -> list[BaseRoute]:
        own_file, texts = partial(page_file, _FOLDER), partial(page_file, _TEXTS)
        return [
            Route(PATH, self._page, methods=["GET"]),
            Route(PATH, to_provider, methods=["POST"]),
            Route(f"{PATH}/callback", from_provider, methods=["GET"]),
            Route(f"{PATH}/done", self._page, methods=["GET"]),
            Route(f"{PATH}/done", hand_over, methods=["POST"]),
            Route(f"{PATH}/emails", self._emails, methods=["GET"]),
            *(Route(f"{PATH}/{name}", own_file) for name in _FILES),
            *(Route(f"{PATH}/texts/{language}.json", texts) for language in PAGE_LANGUAGES),
        ]

    async def _page(self, request: Request) -> Response:
        asked = self.asked(request.state.services, request.query_params)
        asked |= {"demo": may_see_emails(self._settings, request.scope), "documents": _DOCUMENTS}
        html = (_FOLDER / "sign-in.html").read_text(encoding="utf-8")
        return HTMLResponse(html.replace(ASKED, escape(orjson.dumps(asked).decode())), headers=self._headers)

    def asked(self, services: Services, query: Mapping[str, str]) -> dict[str, Any]:
        """What the page shows and does, of what its address asks for; refused if that is somebody else's."""
        asked: dict[str, Any] = {
            "methods": [method.value for method in offered_methods(services)],
            "provider": urlsplit(self._settings.oidc_issuer or "").hostname,
            "language": query.get("language", "")[:35],
            "again": query.get("again") == "1",
            "error": query.get("error") if query.get("error") in ERRORS else None,
        }
        try:
            return asked | self._destination(services, query)
        except InvalidInput:
            return asked | {"refused": True}

    def _destination(self, services: Services, query: Mapping[str, str]) -> dict[str, Any]:
        policy, return_to, link = services.policy, query.get("returnTo"), self._link(services, query.get("link"))
        if link is not None:
            return_to = link.pop("returnTo") or return_to
        if return_to is not None:
            parse_return_address(policy, return_to)
        origin, state = query.get("origin"), query.get("state", "")
        if (origin is not None and origin not in policy.page_origins) or len(state) > _LONGEST_STATE:
            raise InvalidInput
        back_to = None if return_to is None else origin_in(policy, return_to)
        if origin is not None and back_to not in (None, origin):
            raise InvalidInput
        site = origin or back_to
        return {
            "origin": origin,
            "state": state,
            "returnTo": return_to if origin is None or back_to is not None else None,
            "site": None if site is None else urlsplit(site).netloc,
            "link": link,
        }

    def _link(self, services: Services, text: str | None) -> dict[str, Any] | None:
        """The address that a link signs in, or nothing of it if it was altered or is too old."""
        if text is None:
            return None
        asked = services.get(SignInCodes).open_link(text)
        if asked is None or asked.expires <= services.clock():
            return {"address": None, "returnTo": None}
        return {"address": asked.email, "token": text, "returnTo": asked.return_to}

    async def _emails(self, request: Request) -> Response:
        if not may_see_emails(self._settings, request.scope):
            raise HTTPException(404)
        services: Services = request.state.services
        emails = [email._asdict() for email in services.get(DemoEmails).latest]
        return _json(emails)


_TOLD: Final[Mapping[type[Exception], str]] = {
    Conflict: "CONFLICT",
    TooManyIdentities: "tooMany",
    NotSignedIn: "changed",
    MemberErased: "erased",
}
ERRORS: Final = ("provider", *_TOLD.values(), "failed")
"""What the page is told of a sign-in at the provider that failed."""


# ── handing over ──

PER_MEMBER: Final = "60/minute"
"""Sessions and codes for pages of other origins that a member gets, per process."""


async def hand_over(request: Request) -> Response:
    """Give the member's session to a page of another origin: they have pressed the button that names it.

    A token for the origin that asks, or the address that leads back to it with a code in its fragment.
    """
    viewer, body = await _of_own_page(request)
    services, origin, return_to = _services(request), body.get("origin"), body.get("returnTo")
    if viewer.session is None or viewer.session.origin is not None:
        raise HTTPException(401, "Sign in on this page first.")
    try:
        services.rates.hit(PER_MEMBER, "handed over", viewer.id)
    except RateLimited as limited:
        raise _too_many(limited, "Pages of other sites asked for too many sessions. Try again later.") from None
    if isinstance(origin, str) and origin in services.policy.page_origins:
        try:
            async with _pipeline(request).plain_request(client_address(request.scope)):
                token, ends = await session_for_page(services, viewer, origin)
        except CodeSpent:
            raise HTTPException(401, "This session has ended: sign in again.") from None
        except (Overloaded, DynamoError):
            raise HTTPException(503, "The service is busy. Try again in a minute.", {"retry-after": "1"}) from None
        return _json({"token": token, "expiresAt": iso(ends)})
    back_to = origin_in(services.policy, return_to) if isinstance(return_to, str) else None
    if back_to is None or not isinstance(return_to, str):
        raise HTTPException(400, "Pages of this origin may not sign anybody in: RINGSIDE_CORS_ORIGINS lists those.")
    code = code_for_page(services, viewer, back_to)
    return _json({"location": f"{return_to.partition('#')[0]}#{FRAGMENT}={code}"})


async def _of_own_page(request: Request) -> tuple[Viewer, Mapping[str, Any]]:
    """The viewer of a POST that a page of the service's own origin sends, and its JSON; 403 for all other pages.

    409 if the page shows another `user` as signed in, and wants something for them.
    """
    services, headers = request.state.services, request.headers
    own = addressed_origin(request.url.scheme, headers.get("host", ""))
    if not services.policy.is_own(headers.get("origin", ""), own):
        raise HTTPException(403, "This is for the service's own page.")
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "Send JSON.")
    try:
        parsed = orjson.loads(await read_body(request.receive, _MOST_BODY))
    except orjson.JSONDecodeError:
        parsed = None
    if not isinstance(parsed, dict):
        raise HTTPException(400, "Send a JSON object.")
    identified = await _pipeline(request).identification.identify(
        request.scope["headers"], secure=_is_secure(request), address=client_address(request.scope)
    )
    if parsed.get("user") not in (None, node_id("User", identified.viewer.id)):
        raise HTTPException(409, "Somebody else is signed in now, or nobody: look again.")
    return identified.viewer, parsed


def _too_many(limited: RateLimited, told: str) -> HTTPException:
    return HTTPException(429, told, {"retry-after": f"{math.ceil(limited.retry_after or 1.0)}"})


def _json(value: Any) -> Response:
    return JSONResponse(value, headers={**SECURITY_HEADERS, "Cache-Control": "no-store"})


# ── the provider ──

PER_ADDRESS: Final = "60/minute"
"""Sign-ins at the provider that a network address may begin, and as many that it may end, per process: the provider is
asked for each."""
_COOKIE: Final = "ringside_sign_in"
_LONGEST_ASKED: Final = 2800
"""Browsers keep cookies of 4,096 characters: this much and the rest of a flow, sealed."""
_KEPT: Final = ("origin", "state", "returnTo", "language")
"""What the page is asked for again once the provider has answered."""
_log = structlog.get_logger("ringside.sign_in")


async def to_provider(request: Request) -> Response:
    """Where the provider signs people in, for the page that sends them there."""
    from server.auth.oidc_client import FLOW_SECONDS, Flow, NotSignedInThere  # noqa: PLC0415 - see Tokens in server.auth.tokens

    viewer, body = await _of_own_page(request)
    client, services = _client(request), _services(request)
    asked, adds = body.get("asked"), body.get("add") is True and viewer.session is not None
    if not isinstance(asked, str) or len(asked) > _LONGEST_ASKED:
        raise HTTPException(400, "`asked` is the query of the page's address.")
    try:
        if adds:
            require_may_add(Context(services, viewer))
    except NotSignedIn:
        return _json({"location": f"{PATH}?{urlencode([('again', '1'), *_kept_of(asked)])}"})
    try:
        _count(request, "begun at the provider")
    except RateLimited as limited:
        raise _too_many(limited, "Too many sign-ins came from this address. Try again later.") from None
    flow = Flow.begin(time.time(), asked, viewer.id if adds else None)
    try:
        sealed = flow.sealed(services.seal)
    except ValueError:  # quotes, say, which a browser's address does not have
        raise HTTPException(400, "`asked` is the query of the page's address, as a browser writes it.") from None
    try:
        address = await client.address(flow)
    except NotSignedInThere as failed:
        _log.warning("the provider cannot be asked", reason=str(failed))
        raise HTTPException(503, "The provider does not answer. Try again in a minute.") from None
    response = _json({"location": address})
    _set_cookie(request, response, _COOKIE, sealed, FLOW_SECONDS)
    return response


async def from_provider(request: Request) -> Response:
    """Sign in whom the provider names, or add what it says to the member who asked for that; back to the page."""
    from server.auth.oidc_client import NotSignedInThere, OfAnotherFlow  # noqa: PLC0415 - see Tokens in server.auth.tokens

    _client(request)
    flow = _open_flow(request)
    if flow is None:
        return _back(request, "", "provider")
    if _pipeline(request).requests.is_full(client_address(request.scope)):  # before the provider's code is used up
        raise HTTPException(503, "The service is busy. Load this page again in a moment.", {"retry-after": "1"})
    try:
        session = await _signed_in(request, flow)
    except NotSignedInThere as failed:
        _log.warning("the provider signed nobody in", reason=str(failed))
        return _back(request, flow.asked, "provider", ends=not isinstance(failed, OfAnotherFlow))
    except (Refusal, DynamoError, Unverifiable, Faulty) as failed:
        told = _TOLD.get(type(failed))
        if told is None:
            _log.warning("a sign-in by the provider failed", reason=str(failed))
        return _back(request, flow.asked, told or "failed")
    return _back(request, flow.asked, None, session)


async def _signed_in(request: Request, flow: Flow) -> tuple[str, int] | None:
    """The token of the session that began and its age; None if an identity was added to who has one."""
    client, services = _client(request), _services(request)
    pipeline = _pipeline(request)
    identification = pipeline.identification
    _count(request, "ended at the provider")
    named, at = await client.member(flow, request.query_params)  # the provider may take longer than the table
    async with pipeline.plain_request(client_address(request.scope)):
        with unlimited():  # each board is looked at for what the visitor has begun
            if flow.adds_to is None:
                visitor = identification.visitor_in_cookie(request.scope["headers"])
                return _kept(services, *await sign_in_by_provider(services, named, visitor, at))
            by = await identification.session_in_cookie(
                request.scope["headers"], secure=_is_secure(request), address=client_address(request.scope)
            )
            if by is None or by.id != flow.adds_to:
                raise NotSignedIn("The session that asked for this has ended.")
            begun = await add_provider(services, named, by, at)
            return None if begun is None else _kept(services, *begun)


def _kept(services: Services, session: Session, token: str) -> tuple[str, int]:
    """The token of a session, and how long its cookie is kept."""
    return token, int((latest_end(session) - services.clock()).total_seconds())


def _count(request: Request, step: str) -> None:
    """RateLimited if too many came from this address: anyone may begin, and end what they began with invented codes."""
    _services(request).rates.hit(PER_ADDRESS, step, network(client_address(request.scope)))


def _back(
    request: Request, asked: str, error: str | None, session: tuple[str, int] | None = None, *, ends: bool = True
) -> Response:
    """To the page, with what it was asked for. `ends` says whether the sign-in at the provider is over."""
    query = _kept_of(asked)
    path = f"{PATH}/done" if error is None else PATH
    query += [] if error is None else [("error", error)]
    address = f"{path}?{urlencode(query)}" if query else path
    response = RedirectResponse(address, 303, {**SECURITY_HEADERS, "Cache-Control": "no-store"})
    if ends:
        _set_cookie(request, response, _COOKIE, "", 0)
    if session is not None:
        _set_cookie(request, response, SESSION_COOKIE, *session)
    return response


def _kept_of(asked: str) -> list[tuple[str, str]]:
    return [(name, value) for name, value in parse_qsl(asked.removeprefix("?")) if name in _KEPT]


def _open_flow(request: Request) -> Flow | None:
    from server.auth.oidc_client import Flow  # noqa: PLC0415 - see Tokens in server.auth.tokens

    name = bound_to_host(_COOKIE, request.headers.get("host", "").lower(), secure=_is_secure(request))
    sealed = cookie_values(request.headers.get("cookie", "").encode("latin-1")).get(name, "")
    try:
        return Flow.open(_services(request).seal, sealed)
    except Forged:
        return None


def _set_cookie(request: Request, response: Response, name: str, value: str, age: int) -> None:
    host = request.headers.get("host", "").lower()
    response.headers.append("set-cookie", set_bound_cookie(name, value, age, host, secure=_is_secure(request)))


def _client(request: Request) -> OidcClient:
    client: OidcClient | None = request.state.oidc_client
    if client is None:
        raise HTTPException(404, "RINGSIDE_OIDC_CLIENT_ID is not set: no provider signs anybody in on this page.")
    return client


def _pipeline(request: Request) -> Pipeline:
    pipeline: Pipeline = request.state.pipeline
    return pipeline


def _services(request: Request) -> Services:
    services: Services = request.state.services
    return services


def _is_secure(request: Request) -> bool:
    return request.url.scheme == "https"
