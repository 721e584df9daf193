"""The declaration of every setting: its type, its bounds, its meaning and a correct example."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Self

import pydantic
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from datastore.values.seal import Seal
from resolvers.requests.context import Role
from resolvers.requests.policy import Policy
from server.settings import values
from server.settings.fields import (
    MIN_SECRET_LENGTH,
    PREFIX,
    REGIONS,
    BadSettings,
    UnreadableSecret,
    describe_refusal,
    extra,
    load_or_create_secrets,
    misspelt_variables,
    number,
    setting,
    variable,
)

# ── declaration ──


def _default_introspection(given: dict[str, Any]) -> values.Introspection:
    return values.Introspection.ON if given.get("dynamodb_url") == values.EMBEDDED else values.Introspection.ROLE


_NEEDED = {
    "oidc_client_id": (("oidc_issuer",), f"{variable('oidc_issuer')} is not set, which says where members sign in"),
    "oidc_client_secret": (("oidc_client_id",), f"{variable('oidc_client_id')} is not set"),
    "jwt_client_ids": (("jwks_url", "oidc_issuer"), "no OIDC provider is set"),
}
"""Settings that count only with one of these others, and what is wrong without them."""


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

    # ── what is stored, and the secrets that sign what clients keep ──

    dynamodb_url: Annotated[str, pydantic.AfterValidator(values.parse_engine)] = setting(
        "The engine that holds the table: an address, `embedded` to start one here, `aws` for DynamoDB.",
        write="embedded, aws, or an address such as http://127.0.0.1:8001",
        default=values.EMBEDDED,
    )
    data: Path = setting(
        "Folder for the embedded engine's table and its generated secret.",
        write="a folder that this user may write to",
        default=Path(".ringside"),
    )
    backup_hours: float | None = number(
        "Hours between backups of the embedded engine's table, to `backups` in `RINGSIDE_DATA`, where 7 are kept.",
        default=None,
        within=(0.25, 720),
        unit="hours",
        shown="none are made",
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
        validation_alias=pydantic.AliasChoices(f"{PREFIX}AWS_REGION", *REGIONS),
    )
    secrets: Annotated[values.CommaSeparated[pydantic.SecretStr], pydantic.AfterValidator(values.validate_secrets)] = (
        setting(
            f"Up to four secrets, comma-separated, each of {MIN_SECRET_LENGTH} characters or more. The first one signs "
            "cookies, ballots, cursors and development tokens; what any of them has signed is accepted.",
            write="the output of `openssl rand -base64 48`; keep the old one after a comma, unless it was stolen",
            default=(),
            shown="generated once in `RINGSIDE_DATA` if embedded; otherwise required",
        )
    )

    # ── sign in: whose tokens are accepted, and where they hold a member's name, email and roles ──

    jwks_url: Annotated[str, pydantic.AfterValidator(values.parse_jwks_address)] | None = setting(
        "Keys of an OIDC provider. If set, only its tokens are accepted; those of `ringside token` are refused.",
        write="an address such as https://login.example.com/.well-known/jwks.json",
    )
    oidc_issuer: Annotated[str, pydantic.AfterValidator(values.validate_issuer)] | None = setting(
        "The OIDC provider, which says where its keys are; replaces `RINGSIDE_JWKS_URL`. Tokens must have this `iss`.",
        write="the issuer in your provider's /.well-known/openid-configuration, such as https://login.example.com/",
    )
    jwt_audience: str | None = setting(
        "The `aud` that a token must have. Without it and `RINGSIDE_JWT_CLIENT_IDS`, that is "
        "`RINGSIDE_OIDC_CLIENT_ID`; without all three, the OIDC provider's tokens for other services are accepted.",
        write="the audience as your provider writes it",
    )
    jwt_issuer: str | None = setting(
        "The `iss` that a token must have; required with `RINGSIDE_JWKS_URL`.",
        write="the issuer as your provider writes it",
        validate_default=True,
    )
    jwt_client_ids: values.CommaSeparated[str] = setting(
        "Clients, comma-separated, whose access tokens are accepted by `client_id`, if they have `token_use: access` "
        "and no `aud`.",
        write="client ids, with RINGSIDE_OIDC_ISSUER or RINGSIDE_JWKS_URL",
        default=(),
    )
    jwt_roles_claim: values.ClaimPath = setting(
        "The claim with the roles: keys separated by dots, a literal dot as `\\.`. A list, or text split at spaces and "
        "commas.",
        write="a claim such as realm_access.roles, or https://example\\.com/roles",
        default=("roles",),
        shown="`roles`",
    )
    jwt_name_claim: values.ClaimPath = setting(
        "The claim with the member's name, written in the same way.",
        write="a claim such as preferred_username",
        default=("name",),
        shown="`name`",
        validate_default=True,
    )
    jwt_email_claim: values.ClaimPath = setting(
        "The claim with the member's email address, written in the same way.",
        write="a claim such as email",
        default=("email",),
        shown="`email`",
        validate_default=True,
    )
    jwt_roles: Annotated[Mapping[str, Role] | None, NoDecode, pydantic.BeforeValidator(values.parse_groups)] = setting(
        'The roles of groups in the roles claim, as JSON: `{"site-editors": "editor"}`. If set, other groups give no '
        "role, whatever their name.",
        write='a JSON object such as {"site-editors": "editor"}; the roles are member, moderator, editor and admin',
    )
    oidc_client_id: str | None = setting(
        "The client as which `/sign-in` signs members in by the OIDC provider of `RINGSIDE_OIDC_ISSUER`.",
        write="the client's id as your provider shows it, with RINGSIDE_OIDC_ISSUER",
        pattern="^[!-~]{1,200}$",
    )
    oidc_client_secret: pydantic.SecretStr | None = setting(
        "That client's secret, if the provider gave it one.",
        write="the client's secret, with RINGSIDE_OIDC_CLIENT_ID",
    )
    site_keys: values.SiteKeys = setting(
        "Keys of sites whose own tokens sign members in, as JSON: "
        '`[{"issuer": "shop", "hs256": "32 characters or more"}]`, or `"jwks": "https://…"` in place of `hs256`. With '
        '`"roles": true` the tokens of an issuer may give roles.',
        write='JSON such as [{"issuer": "shop", "jwks": "https://www.example.com/jwks.json"}]; '
        f"an hs256 has {MIN_SECRET_LENGTH} characters or more",
        default=(),
    )
    proof_keys: values.ProofKeys = setting(
        "Keys of shops whose proofs of purchase mark comments as verified, written in the same way.",
        write='JSON such as [{"issuer": "shop", "jwks": "https://shop.example.com/jwks.json"}]; '
        f"an hs256 has {MIN_SECRET_LENGTH} characters or more",
        default=(),
    )
    guests: Annotated[values.CommaSeparated[str], pydantic.AfterValidator(values.validate_guests)] = setting(
        "Lets people sign in with a name alone. Such guests may do what visitors may, and what is listed here, "
        "comma-separated: `comments`, `predictions`, `quizzes`.",
        write="some of comments, predictions and quizzes, separated by commas",
        default=(),
        shown="nobody signs in as a guest",
    )

    challenge: Annotated[values.CommaSeparated[str], pydantic.AfterValidator(values.validate_challenged)] = setting(
        "Who has to show a proof of work, comma-separated: `guests`, to sign in and to comment; and members for their "
        "`first` comment, until one is published.",
        write="guests, first, or both, separated by a comma",
        default=(),
        shown="nobody",
    )

    @property
    def has_provider(self) -> bool:
        """Whether tokens come from an OIDC provider."""
        return bool(self.jwks_url or self.oidc_issuer)

    @property
    def token_issuer(self) -> str | None:
        """The `iss` that a token must have."""
        return self.oidc_issuer or self.jwt_issuer

    @property
    def token_audience(self) -> str | None:
        """The `aud` that the provider's tokens must have: unless it is said otherwise, the page's own client."""
        return self.jwt_audience or (None if self.jwt_client_ids else self.oidc_client_id)

    @pydantic.field_validator("oidc_issuer")
    @classmethod
    def _validate_one_address(cls, issuer: str | None, info: pydantic.ValidationInfo) -> str | None:
        if issuer and info.data.get("jwks_url"):
            raise ValueError(f"{variable('jwks_url')} is set too, and only one can say where the keys are")
        return issuer

    @pydantic.field_validator("jwt_issuer")
    @classmethod
    def _validate_same_issuer(cls, issuer: str | None, info: pydantic.ValidationInfo) -> str | None:
        if issuer and info.data.get("oidc_issuer") not in (None, issuer):
            raise ValueError(f"it differs from {variable('oidc_issuer')}, which tokens must name")
        if issuer is None and info.data.get("jwks_url") and "oidc_issuer" in info.data:
            raise ValueError(f"{variable('jwks_url')} is set, and its keys count only for tokens of one issuer")
        return issuer

    @pydantic.field_validator(*_NEEDED)
    @classmethod
    def _validate_needed(cls, given: Any, info: pydantic.ValidationInfo) -> Any:
        others, problem = _NEEDED[info.field_name or ""]
        if given and all(info.data.get(name, "invalid") is None for name in others):
            raise ValueError(problem)
        return given

    @pydantic.field_validator("site_keys")
    @classmethod
    def _validate_other_issuers(
        cls, keys: tuple[values.TokenKey, ...], info: pydantic.ValidationInfo
    ) -> tuple[values.TokenKey, ...]:
        if {info.data.get("oidc_issuer"), info.data.get("jwt_issuer")} & {key.issuer for key in keys}:
            raise ValueError("it names the issuer of the OIDC provider, whose keys are its own")
        return keys

    @pydantic.field_validator("jwt_roles_claim", "jwt_name_claim", "jwt_email_claim")
    @classmethod
    def _validate_claim(cls, path: tuple[str, ...], info: pydantic.ValidationInfo) -> tuple[str, ...]:
        earlier = [name for name in ("jwt_roles_claim", "jwt_name_claim") if name in info.data]
        return values.validate_claim(path, {variable(name): info.data[name] for name in earlier})

    # ── all else ──

    introspection: values.Introspection = setting(
        "Who may introspect the schema: everyone (`on`), no one (`off`), editors and admins (`role`).",
        write="on, off or role",
        shown="`on` if embedded, otherwise `role`",
        default_factory=_default_introspection,
    )
    trusted_documents: pydantic.FilePath | None = setting(
        "A manifest file of trusted documents. If set, no other documents are run.",
        write="the path of a manifest file",
    )
    smtp_url: Annotated[pydantic.SecretStr, pydantic.AfterValidator(values.validate_smtp_address)] | None = setting(
        "The mail server for emails: `smtp://user:password@host:587`, or `smtps://` for implicit TLS. Special "
        "characters of a password are percent-encoded: `%23` for `#`, `%2F` for `/`, `%25` for `%`.",
        write="an address such as smtp://user:password@mail.example.com:587, the special characters of its password "
        "percent-encoded, as %23 for #",
    )
    mail_from: Annotated[str, pydantic.AfterValidator(values.parse_sender)] | None = setting(
        "The sender of all emails: `Words <words@example.com>`.",
        write="an address such as words@example.com, or a name with one: Words <words@example.com>",
        shown="the user of `RINGSIDE_SMTP_URL` if that is an address, otherwise ringside@ its host",
    )
    email_minutes: float | None = number(
        "Minutes between the service's own runs of `ringside emails`, by one process at a time.",
        default=None,
        within=(1, 360),
        unit="minutes",
        shown="none: cron runs the command",
    )
    moderation_emails: Annotated[
        values.CommaSeparated[Annotated[values.Digest, pydantic.BeforeValidator(values.parse_digest)]],
        pydantic.AfterValidator(values.validate_digests),
    ] = setting(
        "Addresses that are told which comments wait for moderators, comma-separated, each with how often, from `15m` "
        "to `7d`, and maybe a language: `mods@example.com=1h, ada@example.com=1d/de`.",
        write="addresses and how often each is told, such as mods@example.com=1h, ada@example.com=1d/de",
        default=(),
        shown="nobody",
    )
    email_templates: pydantic.DirectoryPath | None = setting(
        "A folder with templates of emails, each of which replaces the built-in one of the same name.",
        write="the path of a folder with templates such as daily-word.html",
    )
    public_url: Annotated[str, pydantic.AfterValidator(values.parse_public_address)] = setting(
        "The address at which browsers reach the service. Links in emails, the provider's redirect, and the `aud` of "
        "sites' tokens are made of it; its host is allowed, and its pages count as the service's own.",
        write="an address such as https://api.example.com",
        default="http://127.0.0.1:8000",
        shown="`http://127.0.0.1:8000`; of `ringside serve`, the address that it listens on",
    )
    journal_days: int = number(
        "Days for which the journal keeps who did what; 0 turns it off.",
        default=90,
        within=(0, 3650),
    )
    erased_days: int = number(
        "Days for which an erased member's identities sign nobody in, unless a suspension of theirs ends later: at "
        "least as long as a token can be valid.",
        default=30,
        within=(1, 3650),
    )
    webhook_networks: Annotated[values.CommaSeparated[str], pydantic.AfterValidator(values.validate_networks)] = (
        setting(
            "Networks, comma-separated, that webhooks may be in even though they are not public; http is allowed there "
            "too.",
            write="addresses or networks such as 127.0.0.1, 10.0.0.0/8",
            default=(),
        )
    )
    quiz_seconds_per_question: float = number(
        "Minimum seconds per question of a quiz, counted from its start or the member's latest answer to another: "
        "faster answers are refused. `0` accepts any.",
        default=1.0,
        within=(0, 60),
        unit="a number",
    )
    day_begins_at: int = number(
        "The hour at which a member's day begins, in their time zone: with 4, a quiz at 3:59 counts for the previous "
        "day.",
        default=0,
        within=(0, 12),
        unit="an hour",
    )
    allowed_hosts: Annotated[values.CommaSeparated[str], pydantic.AfterValidator(values.validate_hosts)] = setting(
        "Hosts that requests may name besides the public address's, comma-separated; `*` for any.",
        write="host names such as api.example.com, without a scheme or a port, or *",
        default=(),
        shown="`*`, but on loopback `localhost,127.0.0.1,[::1]`",
    )
    cors_origins: Annotated[values.CommaSeparated[str], pydantic.AfterValidator(values.validate_origins)] = setting(
        "Origins of other sites whose pages may send requests, comma-separated.",
        write="origins such as https://www.example.com, without a path or a trailing slash",
        default=(),
    )
    role_origins: Annotated[values.CommaSeparated[str], pydantic.AfterValidator(values.validate_origins)] = setting(
        "Those of them on whose pages members act with their roles; on the others a session has the role `member`.",
        write="origins that RINGSIDE_CORS_ORIGINS lists, without a path or a trailing slash",
        default=(),
    )
    log: Annotated[values.Log, NoDecode, pydantic.BeforeValidator(values.parse_log)] = setting(
        "The log's level (`debug`, `info`, `warning`, `error`) and format (`json`, `console`): `debug`, `info,json`.",
        write="a level and, after a comma, a format, such as info,json",
        default=values.Log(),
        shown="`info`, `console` on a terminal, otherwise `json`",
    )
    otlp_endpoint: Annotated[str, pydantic.AfterValidator(values.parse_web_address)] | None = setting(
        "The endpoint for traces (OTLP over HTTP). Without it, nothing is traced.",
        write="an address such as http://127.0.0.1:4318",
    )
    engine_binary: Annotated[pydantic.FilePath, pydantic.AfterValidator(values.validate_program)] | None = setting(
        "The embedded engine's binary, if it is not found automatically.",
        write="the path of the dynoxide binary",
    )
    request_timeout: float = number(
        "Seconds a request may take, including its engine calls.",
        default=10.0,
        within=(0.1, 300),
        unit="seconds",
    )
    max_body_bytes: int = number(
        "The largest request body accepted, in bytes.",
        default=1_048_576,
        within=(1024, 16_777_216),
        unit="bytes",
    )
    max_header_bytes: int = number(
        "The largest headers of a request accepted, in bytes.",
        default=65_536,
        within=(4096, 1_048_576),
        unit="bytes",
    )
    header_timeout: float = number(
        "Seconds a client may take to send a request's headers.",
        default=10.0,
        within=(0.1, 300),
        unit="seconds",
    )
    body_timeout: float = number(
        "Seconds a client may take to send a request's body, and to accept some of an answer.",
        default=30.0,
        within=(0.1, 3600),
        unit="seconds",
    )
    idle_timeout: float = number(
        "Seconds an idle connection is kept for the client's next request; set it longer than your proxy's.",
        default=75.0,
        within=(0.1, 3600),
        unit="seconds",
    )
    max_connections: int = number(
        "Connections per process; fewer if the system allows fewer open files. At the limit, new ones replace "
        "idle ones, or get 503.",
        default=4096,
        within=(16, 100_000),
    )
    max_in_flight: int = number(
        "Concurrent requests per process; any more, and more than half of them from one address, get 503 with "
        "`Retry-After`.",
        default=256,
        within=(1, 100_000),
    )
    max_complexity: int = number(
        "Fields that one operation may ask for, each counted once per object it is read from. The elements ask for up "
        "to 3,500, the admin pages for up to 9,000: with less they are refused.",
        default=10_000,
        within=(100, 1_000_000),
    )
    max_document_tokens: int = number(
        "Tokens in a GraphQL document. Checking takes some 15 microseconds a token, in a thread.",
        default=2_000,
        within=(500, 10_000),
    )
    document_cache_bytes: int = number(
        "Memory for checked documents and their compiled operations, in bytes, per process.",
        default=64 * 2**20,
        within=(2**20, 2**32),
        unit="bytes",
    )

    max_streams: int = number(
        "WebSockets and event streams per process, at most half of its connections; any more get 503.",
        default=2_000,
        within=(1, 100_000),
    )
    streams_per_address: int = number(
        "The same per client address, or IPv6 network of 64 bits.",
        default=250,
        within=(1, 100_000),
    )
    max_subscriptions: int = number(
        "Open subscriptions per process; any more are refused with OVERLOADED.",
        default=2_000,
        within=(1, 100_000),
    )
    subscriptions_per_address: int = number(
        "The same per client address.",
        default=500,
        within=(1, 100_000),
    )
    operations_per_socket: int = number(
        "Concurrent operations of a WebSocket, open subscriptions included.",
        default=32,
        within=(1, 1000),
    )

    comment_rate: str | None = setting(
        "Limit per member for each of posting, editing, reporting and marking comments: `30/minute`. Unlimited if not "
        "set, but for guests: 10 a minute.",
        write="a number per second, minute, hour or day, such as 30/minute",
        pattern="^[1-9][0-9]{0,5}/(second|minute|hour|day)$",
    )
    premoderation: bool = setting(
        "Whether comments wait for a moderator before others see them.",
        write="true or false",
        default=False,
    )
    one_review_per_product: bool = setting(
        "Whether a member may have one rated comment on a product only. What exists stays as it is.",
        write="true or false",
        default=False,
    )
    demo: bool = setting(
        "Whether this is a demo, with the front page; `ringside serve --demo` also adds the demo data. On this machine "
        "alone, and without a mail server, its sign-in page shows the codes that it would send by email.",
        write="true or false",
        default=False,
    )
    front_page: bool = setting(
        "Whether `/` is a page with all elements. A demo has it in any case.",
        write="true or false",
        default=False,
    )
    ballot_hours: float = number(
        "Hours until a drawn ballot expires.",
        default=24.0,
        within=(0.0001, 8760),
        unit="hours",
    )
    votes_per_visitor: Annotated[str, pydantic.AfterValidator(values.validate_rate)] = setting(
        "Draws, and votes, allowed per visitor or member, per process.",
        write="a number per second, minute, hour or day, such as 60/minute",
        default="3000/minute",
    )
    votes_per_address: Annotated[str, pydantic.AfterValidator(values.validate_rate_or_off)] = setting(
        "Votes allowed per network address (IPv6: per /64), over all processes; `0` for any number.",
        write="a number per second, minute, hour or day, such as 6000/minute, or 0",
        default="6000/minute",
    )
    new_visitors_per_address: Annotated[str, pydantic.AfterValidator(values.validate_rate_or_off)] = setting(
        "New visitors per network address (IPv6: per /64) who may draw pairs, over all processes; `0` for any number.",
        write="a number per second, minute, hour or day, such as 1000/hour, or 0",
        default="1000/hour",
    )
    new_guests_per_address: Annotated[str, pydantic.AfterValidator(values.validate_rate_or_off)] = setting(
        "New guests per network address (IPv6: per /64), over all processes; `0` for any number.",
        write="a number per second, minute, hour or day, such as 20/hour, or 0",
        default="20/hour",
    )
    emails_per_address: Annotated[str, pydantic.AfterValidator(values.validate_rate_or_off)] = setting(
        "Emails with a link or a code that a network address (IPv6: a /64) may ask for, over all processes; `0` for "
        "any number.",
        write="a number per second, minute, hour or day, such as 20/hour, or 0",
        default="20/hour",
    )
    image_hosts: Annotated[values.CommaSeparated[str], pydantic.AfterValidator(values.validate_image_hosts)] = setting(
        "Hosts whose pictures events and contenders may show by their `imageUrl`, comma-separated. None if not set.",
        write="host names such as images.example.com, without a scheme, a port or a wildcard",
        default=(),
    )
    trusted_proxies: Annotated[values.CommaSeparated[str], pydantic.AfterValidator(values.validate_networks)] = setting(
        "Networks of the proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed, comma-separated.",
        write="addresses or networks such as 127.0.0.1, 10.0.0.0/8",
        default=(),
    )

    @pydantic.field_validator("role_origins")
    @classmethod
    def _validate_listed(cls, origins: tuple[str, ...], info: pydantic.ValidationInfo) -> tuple[str, ...]:
        if missing := [origin for origin in origins if origin not in info.data.get("cors_origins", origins)]:
            raise ValueError(f"{variable('cors_origins')} does not list {missing[0]}")
        return origins

    @classmethod
    def load(cls) -> Self:
        """Read the environment and create the embedded engine's secret if there is none; may raise BadSettings."""
        settings = cls.from_environment()
        problems = list(misspelt_variables(os.environ, cls.model_fields))
        if settings.backup_hours is not None and not (settings.embedded or values.is_embedded(settings.dynamodb_url)):
            problems.append(
                f"{PREFIX}BACKUP_HOURS is for the embedded engine, and {PREFIX}DYNAMODB_URL names another one. "
                "Leave it out, and use the backups of that engine."
            )
        if not settings.secrets and settings.embedded:
            try:
                stored = tuple(map(pydantic.SecretStr, load_or_create_secrets(settings.data)))
                settings = settings.model_copy(update={"secrets": stored})
            except UnreadableSecret as refusal:
                problems.append(f"{PREFIX}SECRETS is not set, {refusal}")
        elif not settings.secrets:
            correct = extra(cls.model_fields["secrets"], "write")
            problems.append(f"{PREFIX}SECRETS is not set, and the engine is not the embedded one. Write {correct}.")
        if problems:
            raise BadSettings("\n".join(problems))
        return settings

    @classmethod
    def from_environment(cls) -> Self:
        """Only read the environment, each variable for itself; may raise BadSettings."""
        try:
            return cls()
        except pydantic.ValidationError as refusal:
            problems = (
                *misspelt_variables(os.environ, cls.model_fields),
                *describe_refusal(refusal, cls.model_fields),
            )
            raise BadSettings("\n".join(problems)) from None

    @property
    def embedded(self) -> bool:
        """Whether this process starts the engine."""
        return self.dynamodb_url == values.EMBEDDED

    def seal(self) -> Seal:
        """Return the seal for these secrets."""
        return Seal([secret.get_secret_value() for secret in self.secrets])

    def policy(self) -> Policy:
        """Return the rules that the operator set."""
        return Policy(
            comment_rate=self.comment_rate,
            premoderation=self.premoderation,
            one_review=self.one_review_per_product,
            ballot_seconds=self.ballot_hours * 3600,
            votes_per_visitor=self.votes_per_visitor,
            votes_per_address=self.votes_per_address,
            new_visitors_per_address=self.new_visitors_per_address,
            new_guests_per_address=self.new_guests_per_address,
            emails_per_address=self.emails_per_address,
            sign_in_methods=self._sign_in_methods(),
            token_issuers=self._token_issuers(),
            guests=frozenset(self.guests),
            challenge=frozenset(self.challenge),
            role_origins=frozenset(self.role_origins),
            image_hosts=self.image_hosts,
            journal_days=self.journal_days,
            erased_days=self.erased_days,
            webhook_networks=self.webhook_networks,
            day_begins_at=self.day_begins_at,
            page_origins=frozenset(self.cors_origins),
            public_url=self.public_url,
            quiz_seconds_per_question=self.quiz_seconds_per_question,
            request_seconds=self.request_timeout,
        )

    def _sign_in_methods(self) -> frozenset[str]:
        offered = {"PROVIDER": self.oidc_client_id, "GUEST": self.guests, "SITE": self.site_keys}
        return frozenset(name for name, value in offered.items() if value)

    def _token_issuers(self) -> frozenset[tuple[str, str]]:
        """Those of the provider and of sites; without any, our own tokens count, which have none."""
        issuers = {("SITE", key.issuer) for key in self.site_keys}
        if self.has_provider:
            issuers.add(("PROVIDER", self.token_issuer or ""))
        return frozenset(issuers or {("SITE", "")})


# ── documentation ──
# The settings as the guide and `ringside serve --help` list them.


def settings_table() -> str:
    """Return the guide's table, in Markdown."""
    rows = (f"| `{name}` | {meaning} | {default} |" for name, meaning, default in _described())
    return "\n".join(["| variable | meaning | default |", "|---|---|---|", *rows])


def settings_help() -> str:
    """Return the part of `ringside serve --help` about the environment: a paragraph for each variable."""
    return "\n\n".join(
        f"{name}: {meaning}" + (f" Default: {default}." if default else "") for name, meaning, default in _described()
    ).replace("`", "")


def _described() -> Iterator[tuple[str, str, str]]:
    for name, field in Settings.model_fields.items():
        yield variable(name), field.description or "", extra(field, "shown") or _shown(field.default)


def _shown(default: object) -> str:
    match default:
        case None | ():
            return ""
        case bool():
            return f"`{str(default).lower()}`"
        case float():
            return f"`{default:g}`"
    return f"`{default}`"
