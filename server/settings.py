"""The operator's settings, read once from the environment and frozen.

A setting is declared once: its type, its bounds, its meaning and a correct example. `--help`, the README's table and
the error messages are all generated from that declaration.
"""

import os
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from email.utils import formataddr, parseaddr
from enum import StrEnum
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self, TypeVar
from urllib.parse import SplitResult, urlsplit

from limits import parse
from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from datastore.seal import Seal
from server.auth.secret import MIN_SECRET_LENGTH, UnreadableSecret, load_or_create_secrets

PREFIX = "RINGSIDE_"
EMBEDDED = "embedded"
AWS = "aws"
REQUIRED = "required"
"""The container image sets this, so that an unconfigured container fails instead of starting on an empty table."""

REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")


class BadSettings(Exception):
    """Invalid settings: each line names a variable, the problem and a correct value."""


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
_Listed = Annotated[tuple[_T, ...], NoDecode, BeforeValidator(_split)]


def _log(value: object) -> object:
    if not isinstance(value, str):
        return value
    level, shape = Level.INFO, None
    for word in _parts(value.lower()):
        if word in tuple(Level):
            level = Level(word)
        elif word in tuple(Format):
            shape = Format(word)
        else:
            raise ValueError(f"{word!r} is neither a level nor a format")
    return Log(level, shape)


def _address(text: str, *schemes: str) -> SplitResult:
    """Split an address; raise ValueError unless its scheme is allowed and it has a host and a valid port."""
    try:
        address = urlsplit(text)
        usable = address.scheme in schemes and bool(address.hostname) and address.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ValueError(f"it is not an address that starts with {' or '.join(f'{scheme}://' for scheme in schemes)}")
    return address


def _without_password(text: str) -> SplitResult:
    address = _address(text, "http", "https")
    if address.username is not None or address.password is not None:
        raise ValueError("it must not carry a password, because logs would show it")
    return address


def _engine(value: str) -> str:
    if value.lower() == REQUIRED:
        raise ValueError("it is not set, and a container has no table of its own")
    if value.lower() in (EMBEDDED, AWS):
        return value.lower()
    return _without_password(value).geturl().rstrip("/")


def _web(value: str) -> str:
    return _without_password(value).geturl()


def _keys(value: str) -> str:
    """Keys authenticate members, so plain HTTP is allowed only from this machine or its own network."""
    address = _without_password(value)
    if address.scheme == "http" and not near(address.hostname or ""):
        raise ValueError("keys from another network must come over https://")
    return address.geturl()


def near(host: str) -> bool:
    """Whether a host is this machine or in its own network."""
    try:
        return ip_address(host).is_private
    except ValueError:
        return "." not in host  # `localhost`, or a service name in compose or a cluster


def _smtp(value: SecretStr) -> SecretStr:
    _address(value.get_secret_value(), "smtp", "smtps")
    return value


def _sender(value: str) -> str:
    """Validate a sender for use in a header: it must not be able to start a second header."""
    name, address = parseaddr(value)
    if not value.isprintable() or "@" not in address.strip("@") or any(character in address for character in " ,;<>"):
        raise ValueError("it is not an e-mail address")
    return formataddr((name, address))


def _origins(values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if value == "*":
            raise ValueError("* would let every site send requests in a visitor's name")
        address = _without_password(value)
        if f"{address.scheme}://{address.netloc}" != value:
            raise ValueError(f"{value!r} has more than a scheme, a host and a port")
    return values


def _long_enough(values: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
    if any(len(value.get_secret_value()) < MIN_SECRET_LENGTH for value in values):
        raise ValueError(f"a secret has fewer than {MIN_SECRET_LENGTH} characters")
    return values


def _file(path: Path) -> Path:
    if not path.is_file():
        raise ValueError("there is no such file")
    return path


def _program(path: Path) -> Path:
    if not os.access(_file(path), os.X_OK):
        raise ValueError("the file is not executable")
    return path


def _setting(meaning: str, *, write: str, default: Any = None, shown: str = "", **more: Any) -> Any:
    """Declare a setting: `write` completes "Write …" in an error, `shown` describes a default that is not constant."""
    if "default_factory" not in more:
        more["default"] = default
    return Field(description=meaning, json_schema_extra={"write": write, "shown": shown}, **more)


def _default_introspection(given: dict[str, Any]) -> Introspection:
    return Introspection.ON if given.get("dynamodb_url") == EMBEDDED else Introspection.ROLE


def _rate(value: str) -> str:
    try:
        parse(value)
    except ValueError:
        raise ValueError("it is not a rate") from None
    return value


class Settings(BaseSettings):
    """All settings. Secrets do not show in the repr."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
        populate_by_name=True,
    )

    dynamodb_url: Annotated[str, AfterValidator(_engine)] = _setting(
        "The engine that holds the table: an address, `embedded` to start one here, `aws` for DynamoDB.",
        write="embedded, aws, or an address such as http://127.0.0.1:8001",
        default=EMBEDDED,
    )
    data: Path = _setting(
        "Folder for the embedded engine's table and its generated secret.",
        write="a folder that this user may write to",
        default=Path(".ringside"),
    )
    table: str = _setting(
        "Name of the table. It is created at startup if the engine is embedded.",
        write="3 to 255 letters, digits, dots, dashes or underscores",
        default="ringside",
        pattern="^[A-Za-z0-9_.-]{3,255}$",
    )
    aws_region: str | None = _setting(
        "Region of the table; `AWS_REGION` and `AWS_DEFAULT_REGION` work too.",
        write="a region such as eu-central-1",
        shown="the AWS SDK's own",
        pattern="^[a-z0-9-]{3,40}$",
        validation_alias=AliasChoices(f"{PREFIX}AWS_REGION", *REGIONS),
    )
    secrets: Annotated[_Listed[SecretStr], AfterValidator(_long_enough)] = _setting(
        "Secrets that sign cookies, ballots, cursors and development tokens: comma-separated, newest first, "
        f"each of {MIN_SECRET_LENGTH} characters or more.",
        write="the output of `openssl rand -base64 48`; keep the old secret after a comma until all it signed expired",
        default=(),
        shown="generated once in `RINGSIDE_DATA` if embedded; otherwise required",
    )
    jwks_url: Annotated[str, AfterValidator(_keys)] | None = _setting(
        "Keys of an OIDC provider. If set, only its tokens are accepted; those of `ringside token` are refused.",
        write="an address such as https://login.example.com/.well-known/jwks.json",
    )
    jwt_audience: str | None = _setting(
        "The `aud` that a token must have. Without it, the OIDC provider's tokens for other services are accepted.",
        write="the audience as your provider writes it",
    )
    jwt_issuer: str | None = _setting(
        "The `iss` that a token must have.",
        write="the issuer as your provider writes it",
    )
    introspection: Introspection = _setting(
        "Who may introspect the schema: everyone (`on`), no one (`off`), editors and admins (`role`).",
        write="on, off or role",
        shown="`on` if embedded, otherwise `role`",
        default_factory=_default_introspection,
    )
    trusted_documents: Annotated[Path, AfterValidator(_file)] | None = _setting(
        "A manifest file of trusted documents. If set, no other documents are run.",
        write="the path of a manifest file",
    )
    smtp_url: Annotated[SecretStr, AfterValidator(_smtp)] | None = _setting(
        "The mail server for daily words: `smtp://user:password@host:587`, or `smtps://` for implicit TLS.",
        write="an address such as smtp://user:password@mail.example.com:587",
    )
    mail_from: Annotated[str, AfterValidator(_sender)] | None = _setting(
        "The sender of daily words: `Words <words@example.com>`.",
        write="an address such as words@example.com, or a name with one: Words <words@example.com>",
        shown="the user of `RINGSIDE_SMTP_URL` if that is an address, otherwise ringside@ its host",
    )
    public_url: Annotated[str, AfterValidator(_web)] = _setting(
        "The service's public address. Unsubscribe links start with it.",
        write="an address such as https://api.example.com",
        default="http://127.0.0.1:8000",
    )
    day_begins_at: int = _setting(
        "The hour at which a member's day begins, in their time zone: with 4, a quiz at 3:59 is the previous day's.",
        write="an hour from 0 to 12",
        default=0,
        ge=0,
        le=12,
    )
    cors_origins: Annotated[_Listed[str], AfterValidator(_origins)] = _setting(
        "Origins of other sites whose pages may send requests, comma-separated.",
        write="origins such as https://www.example.com, without a path or a trailing slash",
        default=(),
    )
    log: Annotated[Log, NoDecode, BeforeValidator(_log)] = _setting(
        "The log's level (`debug`, `info`, `warning`, `error`) and format (`json`, `console`): `debug`, `info,json`.",
        write="a level and, after a comma, a format, such as info,json",
        default=Log(),
        shown="`info`, `console` on a terminal, otherwise `json`",
    )
    otlp_endpoint: Annotated[str, AfterValidator(_web)] | None = _setting(
        "The endpoint for traces (OTLP over HTTP). Without it, nothing is traced.",
        write="an address such as http://127.0.0.1:4318",
    )
    engine_binary: Annotated[Path, AfterValidator(_program)] | None = _setting(
        "The embedded engine's binary, if it is not found automatically.",
        write="the path of the dynoxide binary",
    )
    request_timeout: float = _setting(
        "Seconds a request may take, including its engine calls.",
        write="seconds from 0.1 to 300, such as 10",
        default=10.0,
        ge=0.1,
        le=300,
        allow_inf_nan=False,
    )
    max_body_bytes: int = _setting(
        "The largest request body accepted, in bytes.",
        write="bytes from 1024 to 16777216, such as 1048576",
        default=1_048_576,
        ge=1024,
        le=16_777_216,
    )
    max_in_flight: int = _setting(
        "Concurrent requests per process; any more get 503 with `Retry-After`.",
        write="a whole number from 1 to 100000, such as 256",
        default=256,
        ge=1,
        le=100_000,
    )

    comment_rate: str | None = _setting(
        "Limit per member for each of posting, editing and reporting comments: `30/minute`. Unlimited if not set.",
        write="a number per second, minute, hour or day, such as 30/minute",
        pattern="^[1-9][0-9]{0,5}/(second|minute|hour|day)$",
    )
    premoderation: bool = _setting(
        "Whether comments wait for a moderator before others see them.",
        write="true or false",
        default=False,
    )
    demo: bool = _setting(
        "Whether `/` serves the voting page; `ringside serve --demo` also adds the demo data.",
        write="true or false",
        default=False,
    )
    ballot_hours: float = _setting(
        "Hours until a drawn ballot expires.",
        write="hours from 0.0001 to 8760, such as 24",
        default=24.0,
        ge=0.0001,
        le=8760,
        allow_inf_nan=False,
    )
    votes_per_visitor: Annotated[str, AfterValidator(_rate)] = _setting(
        "Draws, and votes, allowed per visitor or member, per process.",
        write="a number per second, minute, hour or day, such as 60/minute",
        default="3000/minute",
    )
    votes_per_address: Annotated[str, AfterValidator(_rate)] = _setting(
        "The same per address, which may be shared by a whole school.",
        write="a number per second, minute, hour or day, such as 600/minute",
        default="60000/minute",
    )

    @classmethod
    def load(cls) -> Self:
        """Read the environment and create the embedded engine's secret if there is none; may raise BadSettings."""
        problems = [*_typing_errors(os.environ)]
        try:
            settings = cls()
        except ValidationError as refusal:
            problems += map(_explained, _refused(refusal))
            raise BadSettings("\n".join(problems)) from None
        if not settings.secrets:
            try:
                settings = settings._with_stored_secrets()
            except UnreadableSecret as refusal:
                problems.append(f"{PREFIX}SECRETS is not set, {refusal}")
        if problems:
            raise BadSettings("\n".join(problems))
        return settings

    @property
    def embedded(self) -> bool:
        """Whether this process starts the engine."""
        return self.dynamodb_url == EMBEDDED

    def seal(self) -> Seal:
        """Return the seal for these secrets."""
        return Seal([secret.get_secret_value() for secret in self.secrets])

    def _with_stored_secrets(self) -> Self:
        if not self.embedded:
            raise UnreadableSecret(f"and the engine is not the embedded one. Write {_write('secrets')}.")
        secrets = _long_enough(tuple(map(SecretStr, load_or_create_secrets(self.data))))
        return self.model_copy(update={"secrets": secrets})


def variable(field: str) -> str:
    """Return the environment variable of a setting."""
    return f"{PREFIX}{field.upper()}"


def settings_table() -> str:
    """Return the README's table, in Markdown."""
    rows = (f"| `{name}` | {meaning} | {default} |" for name, meaning, default in _described())
    return "\n".join(["| variable | meaning | default |", "|---|---|---|", *rows])


def settings_help() -> str:
    """Return the part of `ringside serve --help` about the environment: a paragraph for each variable."""
    return "\n\n".join(
        f"{name}: {meaning}" + (f" Default: {default}." if default else "")
        for name, meaning, default in ((name, m.replace("`", ""), d.replace("`", "")) for name, m, d in _described())
    )


def _described() -> Iterator[tuple[str, str, str]]:
    for name, field in Settings.model_fields.items():
        yield variable(name), field.description or "", _extra(field, "shown") or _shown(field.default)


def _shown(default: object) -> str:
    match default:
        case None | ():
            return ""
        case bool():
            return f"`{str(default).lower()}`"
        case float():
            return f"`{default:g}`"
    return f"`{default}`"


def _extra(field: FieldInfo, key: str) -> str:
    extra = field.json_schema_extra
    return str(extra[key]) if isinstance(extra, dict) else ""


def _write(name: str) -> str:
    return _extra(Settings.model_fields[name], "write")


def _refused(refusal: ValidationError) -> Iterator[ErrorDetails]:
    """Skip the error about a default that depends on another, invalid setting."""
    for error in refusal.errors(include_input=False, include_url=False):
        if error["type"] != "default_factory_not_called":
            yield error


def _explained(error: ErrorDetails) -> str:
    """Name the variable, the problem and a correct value. The given value is never shown: it may be a secret."""
    name = str(error["loc"][0]).lower().removeprefix(PREFIX.lower())
    wrong = error["msg"].removeprefix("Value error, ").removeprefix("Input ").removeprefix("String ")
    wrong = "it has invalid characters or the wrong length" if "pattern" in error["type"] else wrong
    wrong = f"it {wrong}" if wrong.startswith("should") else wrong
    also = f" (or {' or '.join(REGIONS)})" if name == "aws_region" else ""
    return f"{variable(name)}{also} is invalid: {wrong}. Write {_write(name)}."


def _typing_errors(environment: Mapping[str, str]) -> Iterator[str]:
    """Report misspelt variables. Unrelated ones are allowed: Kubernetes sets RINGSIDE_SERVICE_HOST and the like."""
    known = {name.upper() for name in Settings.model_fields}
    for name in sorted(environment):
        if name.upper().startswith(PREFIX):
            rest = name.upper().removeprefix(PREFIX)
            near = [] if rest in known else get_close_matches(rest, known, n=1, cutoff=0.75)
            yield from (f"{name} is not a setting. Did you mean {PREFIX}{match}?" for match in near)
