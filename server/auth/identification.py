"""Identifies the viewer of a request: a member by a bearer token, or a visitor by a signed cookie.

Invalid credentials are refused, never ignored: a client whose token has expired must learn of it, and not be served as
a visitor. A request without credentials gets a new visitor, whose cookie comes with the response and lasts a year.
"""

import os
import time
from base64 import b32encode
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from datastore.seal import Forged, Seal
from resolvers.viewer import Kind, Viewer
from server.auth.errors import Unauthenticated
from server.auth.tokens import VISITOR, Tokens
from server.settings import Settings

RawHeaders: TypeAlias = Iterable[tuple[bytes, bytes]]
"""Headers as ASGI has them: lower-case names, repetitions included."""

COOKIE = "ringside_visitor"
A_YEAR = 365 * 24 * 60 * 60
ID_SIZE = 16
MAX_CACHED_VISITORS = 4_000
MAX_CACHED_HEADER = 1_000
"""Bytes of a Cookie header that is cached, so that the cache takes some megabytes at most."""
_PURPOSE = "visitor"


class Identified(NamedTuple):
    """The viewer, and for a new visitor the Set-Cookie of the response."""

    viewer: Viewer
    set_cookie: str | None = None


class Identification:
    """Identifies the viewers of one deployment."""

    def __init__(self, settings: Settings, seal: Seal, *, clock: Callable[[], float] = time.time) -> None:
        self._tokens = Tokens(settings, clock=clock)
        self._seal = seal
        self._visitors: dict[bytes, Identified] = {}

    async def identify(
        self, headers: RawHeaders, *, secure: bool, params: Mapping[str, object] | None = None
    ) -> Identified:
        """The viewer of a request, or Unauthenticated, or KeysUnavailable when the identity provider does not answer.

        `secure` says whether the scheme is https or wss. `params` is the payload of a WebSocket's connection_init,
        whose `Authorization` takes precedence over that of the headers.
        """
        cookies, authorizations = [], []
        for name, value in headers:
            if name == b"cookie":
                cookies.append(value)
            elif name == b"authorization":
                authorizations.append(value.decode("latin-1"))
        if params:
            authorizations = _authorizations(params) or authorizations
        if len(authorizations) > 1:
            raise Unauthenticated("There is more than one Authorization: send one.")
        if authorizations:
            return Identified(await self._tokens.viewer(_bearer_token(authorizations[0])))
        for header in cookies:
            visitor = self._visitors.get(header) or self._open_cookie(header, secure=secure)
            if visitor is not None:
                return visitor
        id_ = os.urandom(ID_SIZE)
        return Identified(_visitor(id_), _set_cookie(self._seal.sign_text(_PURPOSE, id_), A_YEAR, secure=secure))

    async def close(self) -> None:
        """Closes the connection to the identity provider."""
        await self._tokens.close()

    def _open_cookie(self, header: bytes, *, secure: bool) -> Identified | None:
        """The visitor of a Cookie header, if our cookie is in it."""
        cookie = _cookie(header)
        if cookie is None:
            return None
        try:
            id_ = self._seal.open_text(_PURPOSE, cookie)
        except Forged:
            raise Unauthenticated(
                f"The cookie {COOKIE} was altered, or signed with a secret no longer used. "
                "This answer deletes it: ask again to get a new one.",
                clear_cookie=_set_cookie("", 0, secure=secure),
            ) from None
        visitor = Identified(_visitor(id_))
        # A cookie that was valid once stays valid as long as this process has its secret.
        if len(header) <= MAX_CACHED_HEADER:
            if len(self._visitors) >= MAX_CACHED_VISITORS:
                self._visitors.pop(next(iter(self._visitors)))
            self._visitors[header] = visitor
        return visitor


def _visitor(id_: bytes) -> Viewer:
    return Viewer(id=VISITOR + b32encode(id_).decode().rstrip("=").lower(), kind=Kind.VISITOR)


def _set_cookie(value: str, age: int, *, secure: bool) -> str:
    return f"{COOKIE}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax" + ("; Secure" if secure else "")


def _cookie(header: bytes) -> str | None:
    """Our cookie in a Cookie header; of two with its name the first, which has the closer path."""
    for pair in header.decode("latin-1").split(";"):
        name, _, value = pair.strip().partition("=")
        if name == COOKIE:
            return value
    return None


def _authorizations(params: Mapping[str, object]) -> list[str]:
    values = [value for name, value in params.items() if name.lower() == "authorization" and value is not None]
    if not all(isinstance(value, str) for value in values):
        raise Unauthenticated("Authorization must be text: Bearer, a space and the token.")
    return [str(value) for value in values]


def _bearer_token(authorization: str) -> str:
    scheme, _, token = authorization.strip().partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthenticated("Authorization must be Bearer, a space and the token.")
    return token.strip()
