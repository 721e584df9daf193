"""The values of settings that name claims, and the roles of a provider's groups.

All functions raise ValueError, whose text completes "RINGSIDE_… is invalid: …".
"""

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator
from pydantic_settings import NoDecode

from resolvers.requests.context import Role

MAX_KEYS = 10
MAX_CLAIM_LENGTH = 500
MAX_GROUPS = 1000
_REGISTERED = ("sub", "exp", "nbf", "iat", "iss", "aud", "jti")


def parse_claim(value: object) -> object:
    """The keys that lead to a claim, separated by dots."""
    if not isinstance(value, str):
        return value
    if len(value) > MAX_CLAIM_LENGTH:
        raise ValueError(f"it has more than {MAX_CLAIM_LENGTH} characters")
    return tuple(key.replace(r"\.", ".") for key in re.split(r"(?<!\\)\.", value))


ClaimPath: TypeAlias = Annotated[tuple[str, ...], NoDecode, BeforeValidator(parse_claim)]


def validate_claim(path: tuple[str, ...], others: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Check one claim by itself, and against those of other settings."""
    if not all(path) or not 1 <= len(path) <= MAX_KEYS:
        raise ValueError(f"it must have 1 to {MAX_KEYS} keys, none of them empty")
    if path[0] in _REGISTERED:
        raise ValueError(f"the claim {path[0]} has a meaning of its own")
    for variable, other in others.items():
        shorter = min(len(path), len(other))
        if path[:shorter] == other[:shorter]:
            raise ValueError(f"it is, contains or lies within the claim of {variable}")
    return path


def parse_groups(value: object) -> object:
    """The roles of groups, from a JSON object."""
    if not isinstance(value, str):
        return value
    try:
        groups = json.loads(value, object_pairs_hook=_distinct)
    except (json.JSONDecodeError, RecursionError):
        raise ValueError("it is not JSON") from None
    if not isinstance(groups, dict) or not 1 <= len(groups) <= MAX_GROUPS:
        raise ValueError(f"it is not a JSON object with 1 to {MAX_GROUPS} groups")
    if "" in groups or any(role not in tuple(Role) for role in groups.values()):
        raise ValueError("it has a group without a name, or a role that does not exist")
    return groups


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    groups = dict(pairs)
    if len(groups) != len(pairs):
        raise ValueError("it names a group twice")
    return groups
