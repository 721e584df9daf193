"""Verifies a token's signature, by one of our secrets or the provider's keys. tokens.py has the rules of claims."""

from typing import Any

import jwt
from jwt.exceptions import InvalidSubjectError

from server.auth.errors import Unauthenticated
from server.auth.jwks import ALGORITHMS, JWKS
from server.settings import Settings

_REASONS: dict[type[Exception], str] = {
    jwt.InvalidSignatureError: "The token was not signed by a key known here, or was altered.",
    jwt.InvalidAlgorithmError: "The token's algorithm is not accepted here.",
    jwt.InvalidAudienceError: "The token is meant for another audience.",
    jwt.InvalidIssuerError: "The token comes from another issuer.",
    InvalidSubjectError: "The token's sub must be text.",
}


class JWTVerifier:
    """Verifies the tokens that these settings accept."""

    def __init__(self, settings: Settings) -> None:
        self._secrets = [secret.get_secret_value().encode() for secret in settings.secrets]
        self._jwks = JWKS(settings.jwks_url, issuer=settings.oidc_issuer) if settings.has_provider else None
        self._audience, self._issuer = settings.jwt_audience, settings.token_issuer
        self._client_ids = settings.jwt_client_ids

    async def close(self) -> None:
        """Close the connection to the identity provider."""
        if self._jwks:
            await self._jwks.close()

    async def claims(self, token: str) -> dict[str, Any]:
        """The verified claims, or Unauthenticated, or Unverifiable when the provider does not answer."""
        try:
            return await self._verify_by_provider(token, self._jwks) if self._jwks else self._verify_by_secret(token)
        except jwt.MissingRequiredClaimError as error:
            raise Unauthenticated(f"The token has no {error.claim}.") from None
        except jwt.PyJWTError as error:
            raise Unauthenticated(_REASONS.get(type(error), "The token is not a JSON Web Token.")) from None
        except (ValueError, RecursionError):  # lone surrogates, numbers of thousands of digits, deep nesting
            raise Unauthenticated("The token is not a JSON Web Token.") from None

    def _verify_by_secret(self, token: str) -> dict[str, Any]:
        for secret in self._secrets[:-1]:
            try:
                return self._decode(token, secret, ("HS256",))
            except jwt.InvalidSignatureError:
                continue
        return self._decode(token, self._secrets[-1], ("HS256",))

    async def _verify_by_provider(self, token: str, jwks: JWKS) -> dict[str, Any]:
        header = jwt.get_unverified_header(token)
        if header.get("alg") not in ALGORITHMS:
            raise jwt.InvalidAlgorithmError
        key = await jwks.find(header.get("kid"), header["alg"])
        if key is None:
            raise jwt.InvalidSignatureError
        return self._decode(token, key, ALGORITHMS)

    def _decode(self, token: str, key: bytes | jwt.PyJWK, algorithms: tuple[str, ...]) -> dict[str, Any]:
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=algorithms,
            issuer=self._issuer,
            options={
                "require": ["sub", "exp"],
                "verify_aud": False,  # see _validate_audience
                "verify_iss": self._issuer is not None,
                # tokens.py checks times, against a clock that tests can move. An iat in the future is accepted.
                "verify_exp": False,
                "verify_nbf": False,
                "verify_iat": False,
                "enforce_minimum_key_length": True,
            },
        )
        self._validate_audience(claims)
        return claims

    def _validate_audience(self, claims: dict[str, Any]) -> None:
        """Once an audience or clients are set, a token without `aud` counts only as an access token of such a client.

        Cognito's access tokens have no `aud`. Any `aud`, also null, must be right.
        """
        if self._audience is None and not self._client_ids:
            return
        if "aud" not in claims:
            if not self._client_ids or claims.get("token_use") != "access":
                raise jwt.MissingRequiredClaimError("aud")
            if claims.get("client_id") not in self._client_ids:
                raise Unauthenticated("The token was issued to another client.")
            return
        audiences = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
        if self._audience is None or self._audience not in audiences:
            raise jwt.InvalidAudienceError
