"""Bearers of API keys: which machine a key signs in, or why it does not."""

from __future__ import annotations

import math

from datastore.dynamo import DynamoError, deadline
from datastore.members.api_keys import SECRET_PREFIX
from datastore.refusals import RateLimited
from resolvers.members.api_keys import ApiKeys, KeyRefused
from resolvers.requests.context import Services
from resolvers.requests.viewer import Viewer
from server.auth.errors import Unauthenticated, Unverifiable


def is_api_key(token: str) -> bool:
    """Whether a bearer token is meant to be an API key. No JSON Web Token begins so."""
    return token.startswith(SECRET_PREFIX)


class KeyBearers:
    """Authenticates the bearers of API keys, within so many seconds."""

    def __init__(self, services: Services, seconds: float) -> None:
        self._keys = services.get(ApiKeys)
        self._seconds = seconds

    async def machine(self, key: str, address: str) -> tuple[Viewer, float]:
        """The machine with this key, and when the key expires; or Unauthenticated, or Unverifiable."""
        try:
            with deadline(self._seconds):
                viewer, expires_at = await self._keys.sign_in(key, address)
        except KeyRefused as refused:
            raise Unauthenticated(str(refused)) from None
        except RateLimited as limited:
            raise Unverifiable(
                "Too many API keys that are not in use here came from this address. Try again later.",
                limited.retry_after or 1.0,
            ) from None
        except DynamoError:
            raise Unverifiable("API keys cannot be checked right now, since the table does not answer.") from None
        return viewer, math.inf if expires_at is None else expires_at.timestamp()
