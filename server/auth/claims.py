"""A member's claims, wherever this deployment's provider puts them.

RINGSIDE_JWT_NAME_CLAIM, RINGSIDE_JWT_EMAIL_CLAIM and RINGSIDE_JWT_ROLES_CLAIM say where, and RINGSIDE_JWT_ROLES which
of the provider's groups have which role.
"""

import re
from collections.abc import Iterable
from typing import Any

from datastore.changes.tombstones import VISITOR_PREFIX
from datastore.dynamo import BadKey, key_text
from datastore.members.api_keys import ID_PREFIX
from resolvers.requests.viewer import (
    FORMER_PREFIX,
    Kind,
    Role,
    Viewer,
)
from resolvers.values.email_addresses import is_email_address
from resolvers.values.texts import CONTROL_CHARACTERS
from server.auth.errors import Unauthenticated
from server.settings import Settings

MAX_ID_LENGTH = 128
MAX_NAME_LENGTH = 100
RESERVED = {FORMER_PREFIX: "former members", VISITOR_PREFIX: "visitors", ID_PREFIX: "API keys"}
"""What the ids of others than members begin with."""
_SEPARATORS = re.compile(r"[\s,]+")


class MemberClaims:
    """Reads and writes the claims about members."""

    def __init__(self, settings: Settings) -> None:
        self._name, self._email = settings.jwt_name_claim, settings.jwt_email_claim
        self._has_issuer = settings.token_issuer is not None
        self._roles, self._groups = settings.jwt_roles_claim, settings.jwt_roles

    def parse_member(self, claims: dict[str, Any]) -> Viewer:
        """The member who verified claims name, or Unauthenticated."""
        user = _parse_user_id(claims["sub"])
        name, email = _claim(claims, self._name), _claim(claims, self._email)
        if not isinstance(name, str | None) or not isinstance(email, str | None):
            raise Unauthenticated("The token's name and email must be text.")
        verified = self._verified(claims)
        if not email or not is_email_address(email) or any(value in (False, "false") for value in verified):
            email = None
        return Viewer(
            id=user,
            kind=Kind.MEMBER,
            name=_name(name, user),
            email=email,
            roles=self._parse_roles(_claim(claims, self._roles)) | {Role.MEMBER},
            verified_email=email if self._has_issuer and any(value in (True, "true") for value in verified) else None,
        )

    def write(self, claims: dict[str, Any], name: str | None, email: str | None, roles: Iterable[Role]) -> None:
        """Add the claims that `parse_member` reads. ValueError for a role that no group has."""
        for path, value in ((self._name, name), (self._email, email), (self._roles, self._group_names(roles))):
            if value is not None:
                inner = claims
                for key in path[:-1]:
                    inner = inner.setdefault(key, {})
                inner[path[-1]] = value

    def _parse_roles(self, value: object) -> frozenset[Role]:
        if not isinstance(value, str | list | None):
            raise Unauthenticated("The token's roles must be a list, or text.")
        texts = _SEPARATORS.split(value) if isinstance(value, str) else value or ()
        names = {text for text in texts if isinstance(text, str)}
        if self._groups is None:
            return frozenset(role for role in Role if role in names)
        return frozenset(role for group, role in self._groups.items() if group in names)

    def _verified(self, claims: dict[str, Any]) -> list[bool | str]:
        """The values of `email_verified`, next to the email claim or at the top level. Cognito may send text."""
        said = (claims.get("email_verified"), _claim(claims, (*self._email[:-1], "email_verified")))
        return [value for value in said if isinstance(value, bool | str)]

    def _group_names(self, roles: Iterable[Role]) -> list[str]:
        if self._groups is None:
            return sorted(roles)
        groups = {role: group for group, role in self._groups.items()}
        if missing := [role for role in roles if role not in groups and role is not Role.MEMBER]:
            raise ValueError(f"RINGSIDE_JWT_ROLES gives no group the role {missing[0].value}.")
        return sorted(groups[role] for role in roles if role in groups)


def _claim(claims: dict[str, Any], path: Iterable[str]) -> Any:
    """The value at a path, or None if there is none."""
    value: Any = claims
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _name(name: str | None, user: str) -> str | None:
    """The name to show, if any: neither the id, nor an address, which only the member and admins may see."""
    # Replaced, not refused: members cannot change what their provider says of them.
    shown = CONTROL_CHARACTERS.sub(" ", name or "").strip()
    return None if shown == user or is_email_address(shown) else shown[:MAX_NAME_LENGTH] or None


def _parse_user_id(sub: str) -> str:
    try:
        key_text(sub)
    except BadKey:
        raise Unauthenticated("The token's sub is empty, or holds a # or a control character.") from None
    if len(sub) > MAX_ID_LENGTH:
        raise Unauthenticated(f"The token's sub has more than {MAX_ID_LENGTH} characters.")
    for prefix, others in RESERVED.items():
        if sub.lower().startswith(prefix):
            raise Unauthenticated(f"The token's sub must not begin with {prefix}, which names {others}.")
    return sub
