"""Signing in at the OIDC provider: to it from the page, and back from it by `/sign-in/callback`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlencode

import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from datastore.dynamo import DynamoError, deadline
from datastore.refusals import Conflict, Refusal
from datastore.values.seal import Forged
from resolvers.members.sign_in_codes import PATH
from resolvers.requests.context import Services, Viewer
from resolvers.whole.signing_in import add_provider, sign_in_by_provider
from server.auth.cookies import bound_to_host, cookie_values, session_cookie, set_cookie
from server.http.messages import SECURITY_HEADERS

if TYPE_CHECKING:
    from server.auth.identification import Identification
    from server.auth.oidc_client import Flow, OidcClient

_COOKIE: Final = "ringside_sign_in"
_LONGEST_ASKED: Final = 3000
_KEPT: Final = ("origin", "state", "returnTo", "language")
"""What the page is asked for again once the provider has answered."""
TIMEOUT: Final = 10.0
_log = structlog.get_logger("ringside.sign_in")


async def to_provider(request: Request, viewer: Viewer, body: Mapping[str, Any]) -> Response:
    """Where the provider signs people in, for the page that sends them there."""
    from server.auth.oidc_client import FLOW_SECONDS, Flow, NotSignedInThere  # noqa: PLC0415 - see jwt_verification

    client, services = _client(request), _services(request)
    asked, adds = body.get("asked"), body.get("add") is True and viewer.session is not None
    if not isinstance(asked, str) or len(asked) > _LONGEST_ASKED:
        raise HTTPException(400, "`asked` is the query of the page's address.")
    flow = Flow.begin(time.time(), asked, viewer.id if adds else None)
    try:
        address = await client.address(flow)
    except NotSignedInThere as failed:
        _log.warning("the provider cannot be asked", reason=str(failed))
        raise HTTPException(503, "The provider does not answer. Try again in a minute.") from None
    response = JSONResponse({"location": address}, headers={**SECURITY_HEADERS, "Cache-Control": "no-store"})
    response.headers.append("set-cookie", _flow_cookie(request, flow.sealed(services.seal), FLOW_SECONDS))
    return response


async def from_provider(request: Request) -> Response:
    """Sign in whom the provider names, or add what it says to the member who asked for that; back to the page."""
    from server.auth.oidc_client import NotSignedInThere  # noqa: PLC0415 - see jwt_verification

    _client(request)
    flow = _open_flow(request)
    if flow is None:
        return _back(request, "", "provider")
    try:
        with deadline(TIMEOUT):
            session = await _signed_in(request, flow)
    except NotSignedInThere as failed:
        _log.warning("the provider signed nobody in", reason=str(failed))
        return _back(request, flow.asked, "provider")
    except Conflict:
        return _back(request, flow.asked, "CONFLICT")
    except (Refusal, DynamoError) as error:
        _log.warning("a sign-in by the provider failed", reason=str(error))
        return _back(request, flow.asked, "failed")
    return _back(request, flow.asked, None, session)


async def _signed_in(request: Request, flow: Flow) -> tuple[str, int] | None:
    """The token of the session that began and its age; None if an identity was added instead."""
    client, services = _client(request), _services(request)
    identification: Identification = request.state.pipeline.identification
    named = await client.member(flow, request.query_params)
    if flow.adds_to is None:
        visitor = identification.visitor_in_cookie(request.scope["headers"])
        session, token = await sign_in_by_provider(services, named, visitor)
        return token, int((session.expires - services.clock()).total_seconds())
    by = await identification.session_in_cookie(
        request.scope["headers"], secure=_is_secure(request), address=request.client.host if request.client else ""
    )
    if by is None or by.id != flow.adds_to:
        raise Conflict("The session that asked for this has ended.")
    await add_provider(services, named, by)
    return None


def _back(request: Request, asked: str, error: str | None, session: tuple[str, int] | None = None) -> Response:
    """To the page, with what it was asked for."""
    query = [(name, value) for name, value in parse_qsl(asked.removeprefix("?")) if name in _KEPT]
    path = f"{PATH}/done" if error is None else PATH
    query += [] if error is None else [("error", error)]
    address = f"{path}?{urlencode(query)}" if query else path
    response = RedirectResponse(address, 303, {**SECURITY_HEADERS, "Cache-Control": "no-store"})
    response.headers.append("set-cookie", _flow_cookie(request, "", 0))
    if session is not None:
        token, age = session
        host = request.headers.get("host", "").lower()
        response.headers.append("set-cookie", session_cookie(token, age, host, secure=_is_secure(request)))
    return response


def _open_flow(request: Request) -> Flow | None:
    from server.auth.oidc_client import Flow  # noqa: PLC0415 - see jwt_verification

    name = bound_to_host(_COOKIE, request.headers.get("host", "").lower(), secure=_is_secure(request))
    sealed = cookie_values(request.headers.get("cookie", "").encode("latin-1")).get(name, "")
    try:
        return Flow.open(_services(request).seal, sealed)
    except Forged:
        return None


def _flow_cookie(request: Request, value: str, age: int) -> str:
    name = bound_to_host(_COOKIE, request.headers.get("host", "").lower(), secure=_is_secure(request))
    return set_cookie(name, value, age, secure=name.startswith("__Host-"))


def _client(request: Request) -> OidcClient:
    client: OidcClient | None = request.state.oidc_client
    if client is None:
        raise HTTPException(404, "RINGSIDE_OIDC_CLIENT_ID is not set: no provider signs anybody in on this page.")
    return client


def _services(request: Request) -> Services:
    services: Services = request.state.services
    return services


def _is_secure(request: Request) -> bool:
    return request.url.scheme == "https"
