"""The viewer of a request: a member with roles, or a visitor without."""

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """Permissions beyond reading. Every member is a MEMBER; an admin has all roles."""

    MEMBER = "member"
    MODERATOR = "moderator"
    EDITOR = "editor"
    ADMIN = "admin"


class Kind(StrEnum):
    """Identified by a token (member) or by a cookie (visitor)."""

    MEMBER = "member"
    VISITOR = "visitor"


@dataclass(frozen=True, slots=True)
class Viewer:
    """A person identified before the first resolver runs."""

    id: str
    kind: Kind
    name: str | None = None
    email: str | None = None
    roles: frozenset[Role] = frozenset()

    @property
    def is_member(self) -> bool:
        """Whether this is a signed-in user, who may write in their own name."""
        return self.kind is Kind.MEMBER

    def may(self, role: Role) -> bool:
        """Whether the viewer has the role, or one that implies it. A visitor has no role, even if some are given."""
        return self.kind is Kind.MEMBER and (role is Role.MEMBER or role in self.roles or Role.ADMIN in self.roles)
