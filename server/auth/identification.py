"""Who is asking: a member by a bearer token, or a visitor by a signed cookie.

Proof that fails is refused, never ignored: a caller whose token has expired must hear so, and not be served as a
stranger. Without any proof one becomes a visitor, whose cookie comes with the answer and lasts a year.
"""

import os
import time
from base64 import b32encode
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from datastore.seal import Forged, Seal
from resolvers.viewer import Kind, Viewer
from server.auth.tokens import VISITOR, Tokens, Unauthenticated
from server.settings import Settings

COOKIE = "ringside_visitor"
A_YEAR = 365 * 24 * 60 * 60
ID_SIZE = 16
MOST_VISITORS = 4_000
LONGEST_KEPT = 1_000
"""Bytes of a Cookie header that is remembered, so that all of them are some megabytes."""
_PURPOSE = "visitor"


class Identified(NamedTuple):
    """The viewer, and the Set-Cookie to answer with when they are new."""

    viewer: Viewer
    set_cookie: str | None = None


class Identification:
    """Tells who is asking, from the headers of a request or a WebSocket and the latter's connection_init."""

    def __init__(self, settings: Settings, seal: Seal, *, clock: Callable[[], float] = time.time) -> None:
        self._tokens = Tokens(settings, clock=clock)
        self._seal = seal
        self._visitors: dict[bytes, Identified] = {}

    def recognised(self, headers: Mapping[bytes, bytes]) -> Identified | None:
        """Return a visitor whose Cookie header was found good before: most requests are such a one's."""
        return None if b"authorization" in headers else self._visitors.get(headers.get(b"cookie", b""))

    async def viewer(
        self,
        headers: Iterable[tuple[bytes, bytes]],
        *,
        secure: bool,
        params: Mapping[str, object] | None = None,
    ) -> Identified:
        """Return who is asking, or raise Unauthenticated, or KeysUnavailable when the provider cannot be reached.

        `headers` are ASGI's, names in small letters; `secure` says whether the scheme is https or wss; `params` is the
        payload of connection_init, whose `Authorization` goes before that of the headers.
        """
        proofs = [value.decode("latin-1") for name, value in headers if name == b"authorization"]
        if params:
            proofs = [_text(value) for name, value in params.items() if _is_authorization(name, value)] or proofs
        if len(proofs) > 1:
            raise Unauthenticated("There is more than one Authorization: send one.")
        if proofs:
            return Identified(await self._tokens.viewer(_bearer(proofs[0])))
        header, cookie = _cookie(headers)
        if cookie is None:
            id_ = os.urandom(ID_SIZE)
            return Identified(_visitor(id_), _set_cookie(self._seal.sign_text(_PURPOSE, id_), A_YEAR, secure=secure))
        known = self._visitors.get(header)
        return known or self._visitor(header, cookie, secure=secure)

    async def close(self) -> None:
        """Let go of connections."""
        await self._tokens.close()

    def _visitor(self, header: bytes, cookie: str, *, secure: bool) -> Identified:
        try:
            id_ = self._seal.open_text(_PURPOSE, cookie)
        except Forged:
            raise Unauthenticated(
                f"The cookie {COOKIE} was altered, or signed with a secret no longer used. "
                "This answer deletes it: ask again to get a new one.",
                clear_cookie=_set_cookie("", 0, secure=secure),
            ) from None
        found = Identified(_visitor(id_))
        # A cookie that was good once is good for as long as this process has its secret.
        if len(header) <= LONGEST_KEPT:
            if len(self._visitors) >= MOST_VISITORS:
                self._visitors.pop(next(iter(self._visitors)))
            self._visitors[header] = found
        return found


def _visitor(id_: bytes) -> Viewer:
    return Viewer(id=VISITOR + b32encode(id_).decode().rstrip("=").lower(), kind=Kind.VISITOR)


def _set_cookie(value: str, age: int, *, secure: bool) -> str:
    return f"{COOKIE}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax" + ("; Secure" if secure else "")


def _cookie(headers: Iterable[tuple[bytes, bytes]]) -> tuple[bytes, str | None]:
    """Return our cookie and the header it is in; of two with its name, the first, which has the closer path."""
    for name, value in headers:
        if name == b"cookie":
            for pair in value.decode("latin-1").split(";"):
                key, _, content = pair.strip().partition("=")
                if key == COOKIE:
                    return value, content
    return b"", None


def _is_authorization(name: str, value: object) -> bool:
    return name.lower() == "authorization" and value is not None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise Unauthenticated("Authorization must be text: Bearer, a space and the token.")
    return value


def _bearer(proof: str) -> str:
    scheme, _, token = proof.strip().partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthenticated("Authorization must be Bearer, a space and the token.")
    return token.strip()
