"""The settings of sign-in: whose tokens are accepted, and where they hold a member's name, email and roles."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, NoDecode

from resolvers.requests.viewer import Role
from server.settings.claims import ClaimPath, parse_groups, validate_claim
from server.settings.fields import setting, variable
from server.settings.values import CommaSeparated, parse_jwks_address, validate_issuer


class SignInSettings(BaseSettings):
    """The part of the settings about tokens."""

    jwks_url: Annotated[str, AfterValidator(parse_jwks_address)] | None = setting(
        "Keys of an OIDC provider. If set, only its tokens are accepted; those of `ringside token` are refused.",
        write="an address such as https://login.example.com/.well-known/jwks.json",
    )
    oidc_issuer: Annotated[str, AfterValidator(validate_issuer)] | None = setting(
        "The OIDC provider, which says where its keys are; replaces `RINGSIDE_JWKS_URL`. Tokens must have this `iss`.",
        write="the issuer in your provider's /.well-known/openid-configuration, such as https://login.example.com/",
    )
    jwt_audience: str | None = setting(
        "The `aud` that a token must have. Without it, the OIDC provider's tokens for other services are accepted.",
        write="the audience as your provider writes it",
    )
    jwt_issuer: str | None = setting(
        "The `iss` that a token must have.",
        write="the issuer as your provider writes it",
    )
    jwt_client_ids: CommaSeparated[str] = setting(
        "Clients, comma-separated, whose access tokens are accepted by `client_id`, if they have `token_use: access` "
        "and no `aud`.",
        write="client ids, with RINGSIDE_OIDC_ISSUER or RINGSIDE_JWKS_URL",
        default=(),
    )
    jwt_roles_claim: ClaimPath = setting(
        "The claim with the roles: keys separated by dots, a literal dot as `\\.`. A list, or text split at spaces and "
        "commas.",
        write="a claim such as realm_access.roles, or https://example\\.com/roles",
        default=("roles",),
        shown="`roles`",
    )
    jwt_name_claim: ClaimPath = setting(
        "The claim with the member's name, written in the same way.",
        write="a claim such as preferred_username",
        default=("name",),
        shown="`name`",
        validate_default=True,
    )
    jwt_email_claim: ClaimPath = setting(
        "The claim with the member's email address, written in the same way.",
        write="a claim such as email",
        default=("email",),
        shown="`email`",
        validate_default=True,
    )
    jwt_roles: Annotated[Mapping[str, Role] | None, NoDecode, BeforeValidator(parse_groups)] = setting(
        'The roles of groups in the roles claim, as JSON: `{"site-editors": "editor"}`. If set, other groups give no '
        "role, whatever their name.",
        write='a JSON object such as {"site-editors": "editor"}; the roles are member, moderator, editor and admin',
    )

    @property
    def has_provider(self) -> bool:
        """Whether tokens come from an OIDC provider."""
        return bool(self.jwks_url or self.oidc_issuer)

    @property
    def token_issuer(self) -> str | None:
        """The `iss` that a token must have."""
        return self.oidc_issuer or self.jwt_issuer

    @field_validator("oidc_issuer")
    @classmethod
    def _validate_one_address(cls, issuer: str | None, info: ValidationInfo) -> str | None:
        if issuer and info.data.get("jwks_url"):
            raise ValueError(f"{variable('jwks_url')} is set too, and only one can say where the keys are")
        return issuer

    @field_validator("jwt_issuer")
    @classmethod
    def _validate_same_issuer(cls, issuer: str | None, info: ValidationInfo) -> str | None:
        if issuer and info.data.get("oidc_issuer") not in (None, issuer):
            raise ValueError(f"it differs from {variable('oidc_issuer')}, which tokens must name")
        return issuer

    @field_validator("jwt_client_ids")
    @classmethod
    def _validate_provider(cls, ids: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if ids and all(info.data.get(name, "invalid") is None for name in ("jwks_url", "oidc_issuer")):
            raise ValueError("no OIDC provider is set")
        return ids

    @field_validator("jwt_roles_claim", "jwt_name_claim", "jwt_email_claim")
    @classmethod
    def _validate_claim(cls, path: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        earlier = [name for name in ("jwt_roles_claim", "jwt_name_claim") if name in info.data]
        return validate_claim(path, {variable(name): info.data[name] for name in earlier})
