"""The values of settings: their types, and functions that validate or parse what an operator wrote.

All of them raise ValueError, whose text completes "RINGSIDE_… is invalid: …".
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from email.header import Header
from email.utils import formataddr, parseaddr
from enum import StrEnum
from functools import partial
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, TypeAlias, TypeVar
from urllib.parse import SplitResult, urlsplit

from pydantic import BeforeValidator, SecretStr
from pydantic_settings import NoDecode

from datastore.dynamo import OFF, parse_rate
from datastore.people.identities import IMPORT_ISSUER
from datastore.values.seal import MOST_SECRETS
from resolvers.requests.context import Role
from resolvers.requests.policy import origin_of
from resolvers.values.languages import PAGE_LANGUAGES
from resolvers.values.texts import HOST_WITH_DOT, ascii_domain, is_email_address, with_ascii_domain
from server.settings.fields import MIN_SECRET_LENGTH

_HOST = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f:.]+\]")
_LABEL = "(?!-)[A-Za-z0-9-]{1,63}(?<!-)"
_ENGINE_HOST = re.compile(rf"{_LABEL}(\.{_LABEL})*\.?")
"""A host name that the AWS SDK takes."""
EMBEDDED = "embedded"
AWS = "aws"
REQUIRED = "required"
"""The container image sets this, so that an unconfigured container fails instead of starting on an empty table."""

BAD_PORTS: Final = (
    6665, 6666, 6667, 6668, 6669, 6697, 10080, 6566, 4045, 3659, 1719, 1720, 1723, 5060, 5061, 6000, 2049,
)  # fmt: skip
"""The bad ports above 1023, which need no privilege; those that other services use come last.

Not 4190 and 6679: they are in the standard, and Chromium 156 connects to them.
"""


class Introspection(StrEnum):
    """Who may introspect the schema."""

    ON = "on"
    OFF = "off"
    ROLE = "role"


class Level(StrEnum):
    """The lowest level that is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Format(StrEnum):
    """The format of a log line: for machines or for people."""

    JSON = "json"
    CONSOLE = "console"


class Log(NamedTuple):
    """The log's level and format; without a format, the output device decides."""

    level: Level = Level.INFO
    format: Format | None = None


def _parts(text: str) -> list[str]:
    return [part for part in (part.strip() for part in text.split(",")) if part]


def _split(value: object) -> object:
    return tuple(_parts(value)) if isinstance(value, str) else value


_T = TypeVar("_T")
CommaSeparated = Annotated[tuple[_T, ...], NoDecode, BeforeValidator(_split)]


def parse_log(value: object) -> object:
    if not isinstance(value, str):
        return value
    level, line_format = Level.INFO, None
    for word in _parts(value.lower()):
        if word in tuple(Level):
            level = Level(word)
        elif word in tuple(Format):
            line_format = Format(word)
        else:
            raise ValueError(f"{word!r} is neither a level nor a format")
    return Log(level, line_format)


def _parse_address(text: str, *schemes: str) -> SplitResult:
    """Split an address; raise ValueError unless its scheme is allowed and it has a host and a valid port."""
    try:
        address = urlsplit(text)
        usable = address.scheme in schemes and bool(address.hostname) and address.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ValueError(f"it is not an address that starts with {' or '.join(f'{scheme}://' for scheme in schemes)}")
    return address


def _parse_without_password(text: str) -> SplitResult:
    address = _parse_address(text, "http", "https")
    if address.username is not None or address.password is not None:
        raise ValueError("it must not carry a password, because logs would show it")
    return address


def parse_engine(value: str) -> str:
    if value.lower() == REQUIRED:
        raise ValueError("it is not set, and a container has no table of its own")
    if value.lower() in (EMBEDDED, AWS):
        return value.lower()
    address = _parse_without_password(value)
    host = address.hostname or ""
    if ":" not in host and not _ENGINE_HOST.fullmatch(host):
        raise ValueError(f"{host[:80]!r} is not a host name: use letters, digits, dots and dashes")
    return address.geturl().rstrip("/")


def is_embedded(url: str) -> bool:
    """Whether an embedded engine may listen at this address, of this process or of another one."""
    parts = urlsplit(url)
    return (parts.hostname or "").startswith("127.") and parts.port in BAD_PORTS


def parse_web_address(value: str) -> str:
    return _parse_without_password(value).geturl()


def parse_public_address(value: str) -> str:
    """Links are made of it by adding a path to its end, so it has no slash there.

    Headers of emails and other programs get it in ASCII, so its host is in the form that name servers know.
    """
    if re.search(r"[\s?#]", value):
        raise ValueError("it has white space, a query or a fragment, which would break links")
    address = _parse_without_password(value)
    host, colon, port = address.netloc.partition(":")
    if not (known := ascii_domain(host)).isascii():
        raise ValueError("IDNA 2008 does not allow its host: write it in the form that begins with xn--")
    text = address._replace(netloc=f"{known}{colon}{port}").geturl().rstrip("/")
    if not text.isascii():
        raise ValueError("it has letters beyond ASCII that are not in a host's name: percent-encode them")
    return text


def parse_jwks_address(value: str) -> str:
    """Keys authenticate members, so plain HTTP is allowed only from this machine or its own network."""
    address = _parse_without_password(value)
    if address.scheme == "http" and not is_near(address.hostname or ""):
        raise ValueError("keys from another network must come over https://")
    return address.geturl()


def validate_issuer(value: str) -> str:
    """Checked, but not changed: tokens and the provider must write it in exactly this way."""
    address = urlsplit(parse_jwks_address(value))
    if address.query or address.fragment or value.strip() != value or "/.well-known/" in value:
        raise ValueError("it is not an issuer, which has no query and is not the address of a document")
    return value


def is_near(host: str) -> bool:
    """Whether a host is this machine or in its own network."""
    try:
        return ip_address(host).is_private
    except ValueError:
        return "." not in host  # `localhost`, or a service name in compose or a cluster


def validate_smtp_address(value: SecretStr) -> SecretStr:
    _parse_address(value.get_secret_value(), "smtp", "smtps")
    return value


def parse_sender(value: str) -> str:
    """Parse a sender for use in a header: it must not be able to start a second header."""
    name, address = parseaddr(value)
    if not value.isprintable() or "@" not in address.strip("@") or any(character in address for character in " ,;<>"):
        raise ValueError("it is not an email address")
    address = with_ascii_domain(address)
    if not address.isascii():
        raise ValueError("some mail servers do not accept a sender's address with letters beyond a to z")
    words = name if name.isascii() else Header(name, "utf-8", maxlinelen=76, header_name="From").encode(linesep="")
    return formataddr((words, address))


def validate_origins(values: tuple[str, ...]) -> tuple[str, ...]:
    """The origins as browsers send them."""
    origins = tuple(value.lower() for value in values)
    for value in origins:
        if value == "*":
            raise ValueError("* would let every site send requests in a visitor's name")
        address = _parse_without_password(value)
        if "*" in value:
            raise ValueError(f"no page has the origin {value!r}; name each origin")
        if f"{address.scheme}://{address.netloc}" != value:
            raise ValueError(f"{value!r} has more than a scheme, a host and a port")
    return tuple(map(origin_of, origins))


def validate_hosts(values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if value != "*" and not _HOST.fullmatch(value):
            raise ValueError(f"{value!r} is not the name of a host")
    return values


_DIGEST = re.compile(r"([^=]+)=([1-9][0-9]{0,4})([mhd])(?:/([a-z]{2}))?")
_PERIODS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
_MOST_DIGESTS = 20


@dataclass(frozen=True, slots=True)
class Digest:
    """An address that is told what waits for moderators, how often, and in which language."""

    address: str
    period: timedelta
    language: str


def parse_digest(value: object) -> Digest:
    match = _DIGEST.fullmatch(str(value))
    if match is None or not is_email_address(match[1]):
        raise ValueError(f"{str(value)[:40]!r} is not an address and how often it is told")
    period, language = int(match[2]) * _PERIODS[match[3]], match[4] or PAGE_LANGUAGES[0]
    if not timedelta(minutes=15) <= period <= timedelta(days=7):
        raise ValueError(f"{match[2]}{match[3]} is not between 15m and 7d")
    if language not in PAGE_LANGUAGES:
        raise ValueError(f"{language!r} is none of the languages {', '.join(PAGE_LANGUAGES)}")
    return Digest(match[1], period, language)


def validate_digests(digests: tuple[Digest, ...]) -> tuple[Digest, ...]:
    if len(digests) > _MOST_DIGESTS:
        raise ValueError(f"there are more than {_MOST_DIGESTS} addresses")
    if len({digest.address for digest in digests}) < len(digests):
        raise ValueError("an address is named twice")
    return digests


def validate_known(values: tuple[str, ...], *, known: tuple[str, ...], otherwise: str) -> tuple[str, ...]:
    for value in values:
        if value not in known:
            raise ValueError(f"{value[:40]!r} is {otherwise}")
    return values


GUESTS_MAY = ("comments", "predictions", "quizzes")
validate_guests = partial(validate_known, known=GUESTS_MAY, otherwise="nothing that guests may be allowed")
validate_challenged = partial(validate_known, known=("guests", "first"), otherwise="neither guests nor first")


def validate_image_hosts(values: tuple[str, ...]) -> tuple[str, ...]:
    """The hosts in lower case. They become part of a content security policy, so a host is a plain name."""
    if "*" in values:
        raise ValueError("* would show visitors' addresses to any host")
    for value in values:
        if not HOST_WITH_DOT.fullmatch(value.lower()):
            raise ValueError(f"{value!r} is not the name of a host with a dot, without a scheme, a port or a wildcard")
    return tuple(dict.fromkeys(value.lower() for value in values))


def validate_secrets(values: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
    if any(len(value.get_secret_value()) < MIN_SECRET_LENGTH for value in values):
        raise ValueError(f"a secret has fewer than {MIN_SECRET_LENGTH} characters")
    if len(values) > MOST_SECRETS:
        raise ValueError(f"there are more than {MOST_SECRETS} secrets")
    return values


def validate_program(path: Path) -> Path:
    if not os.access(path, os.X_OK):
        raise ValueError("the file is not executable")
    return path


def validate_rate(value: str) -> str:
    try:
        parse_rate(value)
    except ValueError:
        raise ValueError("it is not a rate") from None
    return value


def validate_rate_or_off(value: str) -> str:
    return value if value == OFF else validate_rate(value)


def validate_networks(values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        try:
            network = ip_network(value)
        except ValueError:
            raise ValueError(f"{value!r} is neither an address nor a network") from None
        if network.prefixlen == 0:
            raise ValueError(f"{value} covers every address; name smaller networks")
    return values


# ── claims ──
# Those that name claims, and the roles of a provider's groups.

MAX_CLAIM_KEYS = 10
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
    if not all(path) or not 1 <= len(path) <= MAX_CLAIM_KEYS:
        raise ValueError(f"it must have 1 to {MAX_CLAIM_KEYS} keys, none of them empty")
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


# ── token keys ──
# Those that name the keys of other servers' tokens: one key for each issuer. No message quotes a key.

MAX_TOKEN_KEYS = 20
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
    if not isinstance(entries, list) or not 1 <= len(entries) <= MAX_TOKEN_KEYS:
        raise ValueError(f"it is not a JSON list of 1 to {MAX_TOKEN_KEYS} keys")
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
    if not any(roles is known for known in (None, True, False)):  # 1 and 0 equal those
        raise ValueError(f"the roles of {issuer} are neither true nor false")
    return TokenKey(
        issuer,
        None if secret is None else SecretStr(secret),
        None if address is None else parse_jwks_address(address),
        roles is True,
    )


parse_site_keys = partial(_parse_keys, fields=frozenset({"issuer", "hs256", "jwks", "roles"}))
"""The keys of sites that sign their members in, from a JSON list."""
parse_proof_keys = partial(_parse_keys, fields=frozenset({"issuer", "hs256", "jwks"}))
"""The keys of shops that sign proofs of purchase."""

SiteKeys: TypeAlias = Annotated[tuple[TokenKey, ...], NoDecode, BeforeValidator(parse_site_keys)]
ProofKeys: TypeAlias = Annotated[tuple[TokenKey, ...], NoDecode, BeforeValidator(parse_proof_keys)]
