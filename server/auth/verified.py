"""What a token's signature proves."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any, NamedTuple


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
