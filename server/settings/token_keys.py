"""The values of settings that name the keys of other servers' tokens: one key for each issuer.

All functions raise ValueError, whose text completes "RINGSIDE_… is invalid: …". None quotes a key.
"""

import json
from typing import Annotated, Any, NamedTuple, TypeAlias

from pydantic import BeforeValidator, SecretStr
from pydantic_settings import NoDecode

from datastore.people.imported import ISSUER as IMPORT_ISSUER
from server.settings.fields import MIN_SECRET_LENGTH
from server.settings.values import parse_jwks_address

MAX_KEYS = 20
MAX_ISSUER_LENGTH = 200


class TokenKey(NamedTuple):
    """By what the tokens of an issuer are checked: a secret (HS256), or the public keys at an address."""

    issuer: str
    hs256: SecretStr | None = None
    jwks: str | None = None
    roles: bool = False
    """Whether the issuer's tokens may give roles."""


def _parse_keys(value: object, fields: frozenset[str]) -> object:
    if not isinstance(value, str):
        return value
    try:
        entries = json.loads(value)
    except (json.JSONDecodeError, RecursionError):
        raise ValueError("it is not JSON") from None
    if not isinstance(entries, list) or not 1 <= len(entries) <= MAX_KEYS:
        raise ValueError(f"it is not a JSON list of 1 to {MAX_KEYS} keys")
    keys = tuple(_parse_key(entry, fields) for entry in entries)
    if len({key.issuer for key in keys}) != len(keys):
        raise ValueError("it names an issuer twice")
    return keys


def _parse_key(entry: Any, fields: frozenset[str]) -> TokenKey:
    if not isinstance(entry, dict) or not entry.keys() <= fields:
        raise ValueError(f"an entry is not an object with some of {', '.join(sorted(fields))}")
    issuer, secret, address, roles = (entry.get(name) for name in ("issuer", "hs256", "jwks", "roles"))
    if not isinstance(issuer, str) or not 1 <= len(issuer) <= MAX_ISSUER_LENGTH or not issuer.isprintable():
        raise ValueError(f"an entry has no issuer of 1 to {MAX_ISSUER_LENGTH} characters")
    if issuer.startswith(IMPORT_ISSUER):
        raise ValueError(f"the issuer {issuer} begins with {IMPORT_ISSUER}, as those of imported authors do")
    if (secret is None) == (address is None):
        raise ValueError(f"the entry of {issuer} has not exactly one of hs256 and jwks")
    if secret is not None and (not isinstance(secret, str) or len(secret) < MIN_SECRET_LENGTH):
        raise ValueError(f"the secret of {issuer} has fewer than {MIN_SECRET_LENGTH} characters")
    if address is not None and not isinstance(address, str):
        raise ValueError(f"the jwks of {issuer} is not an address")
    if roles not in (None, True, False):
        raise ValueError(f"the roles of {issuer} are neither true nor false")
    return TokenKey(
        issuer,
        None if secret is None else SecretStr(secret),
        None if address is None else parse_jwks_address(address),
        roles is True,
    )


def parse_site_keys(value: object) -> object:
    """The keys of sites that sign their members in, from a JSON list."""
    return _parse_keys(value, frozenset({"issuer", "hs256", "jwks", "roles"}))


def parse_proof_keys(value: object) -> object:
    """The keys of shops that sign proofs of purchase."""
    return _parse_keys(value, frozenset({"issuer", "hs256", "jwks"}))


SiteKeys: TypeAlias = Annotated[tuple[TokenKey, ...], NoDecode, BeforeValidator(parse_site_keys)]
ProofKeys: TypeAlias = Annotated[tuple[TokenKey, ...], NoDecode, BeforeValidator(parse_proof_keys)]
