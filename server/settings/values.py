"""The values of settings: their types, and functions that validate or parse what an operator wrote.

All of them raise ValueError, whose text completes "RINGSIDE_… is invalid: …".
"""

import os
import re
from dataclasses import dataclass
from datetime import timedelta
from email.utils import formataddr, parseaddr
from enum import StrEnum
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Annotated, Final, NamedTuple, TypeVar
from urllib.parse import SplitResult, urlsplit

from pydantic import BeforeValidator, SecretStr
from pydantic_settings import NoDecode

from datastore.values.seal import MOST_SECRETS
from resolvers.requests.policy import OFF, parse_rate
from resolvers.values.page_languages import PAGE_LANGUAGES
from resolvers.values.texts import is_email_address, with_ascii_domain
from server.settings.fields import MIN_SECRET_LENGTH

_HOST = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f:.]+\]")
_LABEL = "(?!-)[A-Za-z0-9-]{1,63}(?<!-)"
_ENGINE_HOST = re.compile(rf"{_LABEL}(\.{_LABEL})*\.?")
"""A host name that the AWS SDK takes."""
_IMAGE_HOST = re.compile(r"[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})+")
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
    """Links are made of it by adding a path to its end."""
    if re.search(r"[\s?#]", value):
        raise ValueError("it has white space, a query or a fragment, which would break links")
    return parse_web_address(value)


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
    return formataddr((name, address))


def validate_origins(values: tuple[str, ...]) -> tuple[str, ...]:
    """The origins in lower case, as browsers send them."""
    origins = tuple(value.lower() for value in values)
    for value in origins:
        if value == "*":
            raise ValueError("* would let every site send requests in a visitor's name")
        address = _parse_without_password(value)
        if f"{address.scheme}://{address.netloc}" != value:
            raise ValueError(f"{value!r} has more than a scheme, a host and a port")
    return origins


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


GUESTS_MAY = ("comments", "predictions", "quizzes")


def validate_guests(values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if value not in GUESTS_MAY:
            raise ValueError(f"{value[:40]!r} is nothing that guests may be allowed")
    return values


CHALLENGED = ("guests", "first")


def validate_challenged(values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if value not in CHALLENGED:
            raise ValueError(f"{value[:40]!r} is neither guests nor first")
    return values


def validate_image_hosts(values: tuple[str, ...]) -> tuple[str, ...]:
    """The hosts in lower case. They become part of a content security policy, so a host is a plain name."""
    if "*" in values:
        raise ValueError("* would show visitors' addresses to any host")
    for value in values:
        if not _IMAGE_HOST.fullmatch(value.lower()):
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
