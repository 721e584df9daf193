"""Reads the proofs of purchase that shops have signed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from datastore.refusals import Unavailable
from resolvers.comments.proofs import refused
from server.auth.errors import Unauthenticated, Unverifiable
from server.settings import Settings

if TYPE_CHECKING:
    from server.auth.jwt_verification import ProofVerifier


class ProofReader:
    """Knows the shops of the settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._verifier: ProofVerifier | None = None

    async def read(self, proof: str) -> Mapping[str, Any]:
        """The claims of a proof; InvalidInput if no shop of the settings signed it for this purpose."""
        if self._verifier is None:  # loaded only when it is needed, as by server.auth.tokens
            module = await asyncio.to_thread(import_module, "server.auth.jwt_verification")
            self._verifier = self._verifier or module.ProofVerifier(self._settings)
        try:
            return (await self._verifier.verify(proof)).claims
        except Unauthenticated as error:
            raise refused(f"This proof does not hold. {error.detail}") from None
        except Unverifiable:
            raise Unavailable("Proofs cannot be checked right now: the shop's keys cannot be fetched.") from None

    async def close(self) -> None:
        """Close the connections to shops."""
        if self._verifier is not None:
            await self._verifier.close()
