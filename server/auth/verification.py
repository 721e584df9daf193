"""What verifying credentials gives: the claims that a signature proves, or why a request is nobody's."""

import math
from collections.abc import Sequence
from enum import Enum, auto
from typing import Any, NamedTuple

from starlette.exceptions import HTTPException


class Source(Enum):
    """Whose a token is."""

    PROVIDER = auto()
    SITE = auto()
    OWN = auto()


class Verified(NamedTuple):
    """The claims of a token, and whose key signed it."""

    claims: dict[str, Any]
    source: Source
    gives_roles: bool = True


class Unauthenticated(HTTPException):
    """The credentials are invalid. The reason goes into the response and quotes none of them."""

    def __init__(self, reason: str, *, scheme: str = "Bearer", clear_cookies: Sequence[str] = ()) -> None:
        challenge = f'{scheme} error="invalid_token", error_description="{reason}"'
        super().__init__(401, reason, {"WWW-Authenticate": challenge})
        self.clear_cookies = clear_cookies
        """The Set-Cookie headers of the response, which delete what was sent."""


class Unverifiable(HTTPException):
    """The credentials cannot be verified right now, which is not the caller's fault. `code` is the error's."""

    def __init__(self, reason: str, retry_after: float = 1.0, *, code: str = "UNAVAILABLE") -> None:
        super().__init__(503, reason, {"Retry-After": f"{math.ceil(retry_after)}"})
        self.code = code


class Faulty(HTTPException):
    """They cannot be verified by a fault of this service, so a repeat would not help."""

    def __init__(self, reason: str) -> None:
        super().__init__(500, reason)
