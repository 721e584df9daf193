"""An OIDC provider on this machine: discovery, keys, a page on which people sign in, and its token endpoint.

It is as strict as a provider should be: a code is good once, for its client, its address and its PKCE verifier.
"""

import json
import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from contextlib import AbstractContextManager
from hashlib import sha256
from html import escape
from http.server import ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from tests.http_server import Answering, serving_http

CLIENT, SECRET = "ringside", "the client's secret"
KEY = rsa.generate_private_key(65537, 2048)
_PAGE = """<!doctype html><title>Provider</title><h1>Provider</h1>
<form method="post" action="/authorize?{query}"><button>Yes, it is me</button></form>
"""


class OidcProvider(ThreadingHTTPServer):
    """Signs in `person`, whoever presses the button. `answers` changes what comes back, to attack the service."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.person: dict[str, Any] = {"sub": "ada", "name": "Ada", "email": "ada@example.org", "email_verified": True}
        self.claims: dict[str, Any] = {}
        """Replace those of the ID token; None removes one."""
        self.parameters: dict[str, str] = {}
        """Replace those with which the browser is sent back."""
        self.codes: dict[str, Mapping[str, str]] = {}
        self.refusals: list[str] = []
        self.keys_fail = False
        self.discovered: dict[str, Any] = {}
        """Replaces what the discovery document says."""

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def id_token(self, asked: Mapping[str, str]) -> str:
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": asked["client_id"],
            "nonce": asked.get("nonce"),
            "iat": now,
            "exp": now + 600,
        }
        whole = {name: value for name, value in {**self.person, **claims, **self.claims}.items() if value is not None}
        return jwt.encode(whole, KEY, algorithm="RS256", headers={"kid": "one"})

    def redeem(self, form: Mapping[str, str]) -> dict[str, Any] | None:
        """The answer of the token endpoint, or None with the reason noted."""
        asked = self.codes.pop(form.get("code", ""), None)
        if asked is None:
            self.refusals.append("unknown code")
            return None
        challenge = urlsafe_b64encode(sha256(form.get("code_verifier", "").encode()).digest()).rstrip(b"=").decode()
        for name, right in (
            ("code_verifier", challenge == asked["code_challenge"]),
            ("client_id", form.get("client_id") == asked["client_id"] == CLIENT),
            ("client_secret", form.get("client_secret") == SECRET),
            ("redirect_uri", form.get("redirect_uri") == asked["redirect_uri"]),
            ("grant_type", form.get("grant_type") == "authorization_code"),
        ):
            if not right:
                self.refusals.append(name)
                return None
        return {"access_token": "x", "token_type": "Bearer", "id_token": self.id_token(asked)}


class _Handler(Answering):
    server: OidcProvider
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path, query = urlsplit(self.path).path, urlsplit(self.path).query
        if path == "/.well-known/openid-configuration":
            issuer = self.server.issuer
            endpoints = {name: f"{issuer}/{name.removesuffix('_endpoint')}" for name in ("token_endpoint",)}
            addresses = {"authorization_endpoint": f"{issuer}/authorize", "jwks_uri": f"{issuer}/keys", **endpoints}
            self._json({"issuer": issuer, **addresses, **self.server.discovered})
        elif path == "/keys":
            jwk = {**RSAAlgorithm.to_jwk(KEY.public_key(), as_dict=True), "kid": "one", "use": "sig"}
            self._json({"keys": [jwk]}, 500 if self.server.keys_fail else 200)
        elif path == "/authorize":
            self.answer(200, _PAGE.format(query=escape(query)).encode(), {"content-type": "text/html"})
        else:
            self.answer(404)

    def do_POST(self) -> None:
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        if url.path == "/authorize":
            asked = {name: values[0] for name, values in parse_qs(url.query).items()}
            self.answer(302, b"", {"location": authorized(self.server, asked)})
            return
        answer = self.server.redeem({name: values[0] for name, values in parse_qs(body).items()})
        self._json(answer or {"error": "invalid_grant"}, 200 if answer else 400)

    def _json(self, value: Any, status: int = 200) -> None:
        self.answer(status, json.dumps(value).encode(), {"content-type": "application/json"})


def authorized(provider: OidcProvider, asked: Mapping[str, str]) -> str:
    """Where the browser of somebody who has signed in is sent."""
    assert asked["response_type"] == "code"
    assert asked["code_challenge_method"] == "S256"
    code = secrets.token_urlsafe(16)
    provider.codes[code] = asked
    query = {"code": code, "state": asked["state"], "iss": provider.issuer, **provider.parameters}
    return f"{asked['redirect_uri']}?{urlencode(query)}"


def oidc_provider() -> AbstractContextManager[OidcProvider]:
    return serving_http(OidcProvider())
