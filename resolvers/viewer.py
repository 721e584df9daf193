"""Who is asking, as far as a resolver needs to know: a member with roles, or a visitor with none."""

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What somebody may do beyond reading. Every member is a MEMBER; an admin is everything."""

    MEMBER = "member"
    MODERATOR = "moderator"
    EDITOR = "editor"
    ADMIN = "admin"


class Kind(StrEnum):
    """Known by a token, or only recognised by a cookie."""

    MEMBER = "member"
    VISITOR = "visitor"


@dataclass(frozen=True, slots=True)
class Viewer:
    """Somebody whose identity was proven before the first resolver ran."""

    id: str
    kind: Kind
    name: str | None = None
    email: str | None = None
    roles: frozenset[Role] = frozenset()

    @property
    def is_member(self) -> bool:
        """Whether there is a user behind it, who may write in their own name."""
        return self.kind is Kind.MEMBER

    def may(self, role: Role) -> bool:
        """Say whether the viewer has the role, or one that implies it. A visitor has none, whatever is claimed."""
        return self.kind is Kind.MEMBER and (role is Role.MEMBER or role in self.roles or Role.ADMIN in self.roles)
