"""The declaration of every setting: its type, its bounds, its meaning and a correct example."""

import os
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, AliasChoices, BeforeValidator, SecretStr, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from datastore.seal import Seal
from server.auth.secret import MIN_SECRET_LENGTH, UnreadableSecret, load_or_create_secrets
from server.settings.fields import PREFIX, REGIONS, extra, setting
from server.settings.problems import BadSettings, describe_refusal, misspelt_variables
from server.settings.values import (
    EMBEDDED,
    CommaSeparated,
    Introspection,
    Log,
    parse_engine,
    parse_jwks_address,
    parse_log,
    parse_sender,
    parse_web_address,
    validate_file,
    validate_origins,
    validate_program,
    validate_rate,
    validate_secrets,
    validate_smtp_address,
)


def _default_introspection(given: dict[str, Any]) -> Introspection:
    return Introspection.ON if given.get("dynamodb_url") == EMBEDDED else Introspection.ROLE


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

    dynamodb_url: Annotated[str, AfterValidator(parse_engine)] = setting(
        "The engine that holds the table: an address, `embedded` to start one here, `aws` for DynamoDB.",
        write="embedded, aws, or an address such as http://127.0.0.1:8001",
        default=EMBEDDED,
    )
    data: Path = setting(
        "Folder for the embedded engine's table and its generated secret.",
        write="a folder that this user may write to",
        default=Path(".ringside"),
    )
    table: str = setting(
        "Name of the table. It is created at startup if the engine is embedded.",
        write="3 to 255 letters, digits, dots, dashes or underscores",
        default="ringside",
        pattern="^[A-Za-z0-9_.-]{3,255}$",
    )
    aws_region: str | None = setting(
        "Region of the table; `AWS_REGION` and `AWS_DEFAULT_REGION` work too.",
        write="a region such as eu-central-1",
        shown="the AWS SDK's own",
        pattern="^[a-z0-9-]{3,40}$",
        validation_alias=AliasChoices(f"{PREFIX}AWS_REGION", *REGIONS),
    )
    secrets: Annotated[CommaSeparated[SecretStr], AfterValidator(validate_secrets)] = setting(
        "Secrets that sign cookies, ballots, cursors and development tokens: comma-separated, newest first, "
        f"each of {MIN_SECRET_LENGTH} characters or more.",
        write="the output of `openssl rand -base64 48`; keep the old secret after a comma until all it signed expired",
        default=(),
        shown="generated once in `RINGSIDE_DATA` if embedded; otherwise required",
    )
    jwks_url: Annotated[str, AfterValidator(parse_jwks_address)] | None = setting(
        "Keys of an OIDC provider. If set, only its tokens are accepted; those of `ringside token` are refused.",
        write="an address such as https://login.example.com/.well-known/jwks.json",
    )
    jwt_audience: str | None = setting(
        "The `aud` that a token must have. Without it, the OIDC provider's tokens for other services are accepted.",
        write="the audience as your provider writes it",
    )
    jwt_issuer: str | None = setting(
        "The `iss` that a token must have.",
        write="the issuer as your provider writes it",
    )
    introspection: Introspection = setting(
        "Who may introspect the schema: everyone (`on`), no one (`off`), editors and admins (`role`).",
        write="on, off or role",
        shown="`on` if embedded, otherwise `role`",
        default_factory=_default_introspection,
    )
    trusted_documents: Annotated[Path, AfterValidator(validate_file)] | None = setting(
        "A manifest file of trusted documents. If set, no other documents are run.",
        write="the path of a manifest file",
    )
    smtp_url: Annotated[SecretStr, AfterValidator(validate_smtp_address)] | None = setting(
        "The mail server for daily words: `smtp://user:password@host:587`, or `smtps://` for implicit TLS.",
        write="an address such as smtp://user:password@mail.example.com:587",
    )
    mail_from: Annotated[str, AfterValidator(parse_sender)] | None = setting(
        "The sender of daily words: `Words <words@example.com>`.",
        write="an address such as words@example.com, or a name with one: Words <words@example.com>",
        shown="the user of `RINGSIDE_SMTP_URL` if that is an address, otherwise ringside@ its host",
    )
    public_url: Annotated[str, AfterValidator(parse_web_address)] = setting(
        "The service's public address. Unsubscribe links start with it.",
        write="an address such as https://api.example.com",
        default="http://127.0.0.1:8000",
    )
    day_begins_at: int = setting(
        "The hour at which a member's day begins, in their time zone: with 4, a quiz at 3:59 is the previous day's.",
        write="an hour from 0 to 12",
        default=0,
        ge=0,
        le=12,
    )
    cors_origins: Annotated[CommaSeparated[str], AfterValidator(validate_origins)] = setting(
        "Origins of other sites whose pages may send requests, comma-separated.",
        write="origins such as https://www.example.com, without a path or a trailing slash",
        default=(),
    )
    log: Annotated[Log, NoDecode, BeforeValidator(parse_log)] = setting(
        "The log's level (`debug`, `info`, `warning`, `error`) and format (`json`, `console`): `debug`, `info,json`.",
        write="a level and, after a comma, a format, such as info,json",
        default=Log(),
        shown="`info`, `console` on a terminal, otherwise `json`",
    )
    otlp_endpoint: Annotated[str, AfterValidator(parse_web_address)] | None = setting(
        "The endpoint for traces (OTLP over HTTP). Without it, nothing is traced.",
        write="an address such as http://127.0.0.1:4318",
    )
    engine_binary: Annotated[Path, AfterValidator(validate_program)] | None = setting(
        "The embedded engine's binary, if it is not found automatically.",
        write="the path of the dynoxide binary",
    )
    request_timeout: float = setting(
        "Seconds a request may take, including its engine calls.",
        write="seconds from 0.1 to 300, such as 10",
        default=10.0,
        ge=0.1,
        le=300,
        allow_inf_nan=False,
    )
    max_body_bytes: int = setting(
        "The largest request body accepted, in bytes.",
        write="bytes from 1024 to 16777216, such as 1048576",
        default=1_048_576,
        ge=1024,
        le=16_777_216,
    )
    max_in_flight: int = setting(
        "Concurrent requests per process; any more get 503 with `Retry-After`.",
        write="a whole number from 1 to 100000, such as 256",
        default=256,
        ge=1,
        le=100_000,
    )

    comment_rate: str | None = setting(
        "Limit per member for each of posting, editing and reporting comments: `30/minute`. Unlimited if not set.",
        write="a number per second, minute, hour or day, such as 30/minute",
        pattern="^[1-9][0-9]{0,5}/(second|minute|hour|day)$",
    )
    premoderation: bool = setting(
        "Whether comments wait for a moderator before others see them.",
        write="true or false",
        default=False,
    )
    demo: bool = setting(
        "Whether `/` serves the voting page; `ringside serve --demo` also adds the demo data.",
        write="true or false",
        default=False,
    )
    ballot_hours: float = setting(
        "Hours until a drawn ballot expires.",
        write="hours from 0.0001 to 8760, such as 24",
        default=24.0,
        ge=0.0001,
        le=8760,
        allow_inf_nan=False,
    )
    votes_per_visitor: Annotated[str, AfterValidator(validate_rate)] = setting(
        "Draws, and votes, allowed per visitor or member, per process.",
        write="a number per second, minute, hour or day, such as 60/minute",
        default="3000/minute",
    )
    votes_per_address: Annotated[str, AfterValidator(validate_rate)] = setting(
        "The same per address, which may be shared by a whole school.",
        write="a number per second, minute, hour or day, such as 600/minute",
        default="60000/minute",
    )

    @classmethod
    def load(cls) -> Self:
        """Read the environment and create the embedded engine's secret if there is none; may raise BadSettings."""
        problems = list(misspelt_variables(os.environ, cls.model_fields))
        try:
            settings = cls()
        except ValidationError as refusal:
            problems += describe_refusal(refusal, cls.model_fields)
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
            correct = extra(type(self).model_fields["secrets"], "write")
            raise UnreadableSecret(f"and the engine is not the embedded one. Write {correct}.")
        secrets = validate_secrets(tuple(map(SecretStr, load_or_create_secrets(self.data))))
        return self.model_copy(update={"secrets": secrets})
