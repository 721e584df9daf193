"""What proves a token: the signature of one of our secrets, or of the provider's keys. The rules stand in tokens.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jwt
from jwt.exceptions import InvalidSubjectError

from server.auth.jwks import ALGORITHMS, KeySet
from server.auth.tokens import Unauthenticated

if TYPE_CHECKING:
    from server.settings import Settings

_REASONS: dict[type[Exception], str] = {
    jwt.InvalidSignatureError: "The token was not signed by a key known here, or was altered.",
    jwt.InvalidAlgorithmError: "The token's algorithm is not accepted here.",
    jwt.InvalidAudienceError: "The token is meant for another audience.",
    jwt.InvalidIssuerError: "The token comes from another issuer.",
    InvalidSubjectError: "The token's sub must be text.",
}


class Proof:
    """Opens the tokens that these settings take."""

    def __init__(self, settings: Settings) -> None:
        self._secrets = [secret.get_secret_value().encode() for secret in settings.secrets]
        self._keys = KeySet(settings.jwks_url) if settings.jwks_url else None
        self._audience, self._issuer = settings.jwt_audience, settings.jwt_issuer

    async def close(self) -> None:
        """Let go of the provider's connection."""
        if self._keys:
            await self._keys.close()

    async def claims(self, token: str) -> dict[str, Any]:
        """Return the claims, or raise Unauthenticated, or KeysUnavailable when the provider cannot be asked."""
        try:
            return await self._by_provider(token, self._keys) if self._keys else self._by_secret(token)
        except jwt.MissingRequiredClaimError as error:
            raise Unauthenticated(f"The token has no {error.claim}.") from None
        except jwt.PyJWTError as error:
            raise Unauthenticated(_REASONS.get(type(error), "The token is not a JSON Web Token.")) from None
        except (ValueError, RecursionError):  # lone surrogates, numbers of thousands of digits, endless brackets
            raise Unauthenticated("The token is not a JSON Web Token.") from None

    def _by_secret(self, token: str) -> dict[str, Any]:
        for secret in self._secrets[:-1]:
            try:
                return self._decoded(token, secret, ("HS256",))
            except jwt.InvalidSignatureError:
                continue
        return self._decoded(token, self._secrets[-1], ("HS256",))

    async def _by_provider(self, token: str, keys: KeySet) -> dict[str, Any]:
        header = jwt.get_unverified_header(token)
        if header.get("alg") not in ALGORITHMS:
            raise jwt.InvalidAlgorithmError
        key = await keys.find(header.get("kid"), header["alg"])
        if key is None:
            raise jwt.InvalidSignatureError
        return self._decoded(token, key, ALGORITHMS)

    def _decoded(self, token: str, key: bytes | jwt.PyJWK, algorithms: tuple[str, ...]) -> dict[str, Any]:
        return jwt.decode(
            token,
            key,
            algorithms=algorithms,
            audience=self._audience,
            issuer=self._issuer,
            options={
                "require": ["sub", "exp"],
                "verify_aud": self._audience is not None,
                "verify_iss": self._issuer is not None,
                # Times are checked by _expiry, against a clock that tests can move. An iat in the future is no crime.
                "verify_exp": False,
                "verify_nbf": False,
                "verify_iat": False,
                "enforce_minimum_key_length": True,
            },
        )
