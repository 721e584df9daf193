"""The viewer of a request: a member or a machine with roles, or a visitor without."""

from dataclasses import dataclass
from enum import StrEnum

from datastore.values.seal import Seal

LONGEST_NAME = 80
FORMER_PREFIX = "former-"
"""How the ids begin that stand for erased members, whose contributions stay."""
_LETTERS = "bcdfghjkmnpqrstvwxyz"
"""No vowels, so that four of them are hardly ever a word, and no l, which looks like other letters."""


class Role(StrEnum):
    """Permissions beyond reading. Every member is a MEMBER; an admin has all roles."""

    MEMBER = "member"
    MODERATOR = "moderator"
    EDITOR = "editor"
    ADMIN = "admin"


class Kind(StrEnum):
    """Identified by a token (member), by an API key (a machine), or by a cookie or the token of a visit (visitor)."""

    MEMBER = "member"
    KEY = "key"
    VISITOR = "visitor"


@dataclass(frozen=True, slots=True)
class Viewer:
    """A person or a machine, identified before the first resolver runs."""

    id: str
    kind: Kind
    name: str | None = None
    email: str | None = None
    roles: frozenset[Role] = frozenset()
    verified_email: str | None = None
    """`email`, if the token's issuer is the configured one and says that the address is the member's."""

    @property
    def is_member(self) -> bool:
        """Whether this is a signed-in user, who may write in their own name."""
        return self.kind is Kind.MEMBER

    @property
    def member_id(self) -> str | None:
        """The id of the member; None for a visitor and the machine of an API key."""
        return self.id if self.is_member else None

    def is_user(self, user: str) -> bool:
        """Whether this is the member with this id, who may see and change what is their own."""
        return self.member_id == user

    @property
    def is_signed_in(self) -> bool:
        """Whether this is a member or the machine of an API key, either of which may have roles."""
        return self.kind is not Kind.VISITOR

    @property
    def node(self) -> str | None:
        """What the journal calls the viewer; None for a visitor."""
        if not self.is_signed_in:
            return None
        return f"{'User' if self.is_member else 'ApiKey'}:{self.id}"

    def may(self, role: Role) -> bool:
        """Whether the viewer has the role, or one that implies it. A visitor has no role, even if some are given."""
        if role is Role.MEMBER:
            return self.kind is Kind.MEMBER
        return self.kind is not Kind.VISITOR and (role in self.roles or Role.ADMIN in self.roles)


def member_name(seal: Seal, user: str, name: str | None) -> str:
    """The name shown to others. Without one, or one that repeats the id, "Member" and four letters of a keyed hash."""
    if user.startswith(FORMER_PREFIX):
        return "Former member"
    if name and name[:LONGEST_NAME] != user[:LONGEST_NAME]:
        return name[:LONGEST_NAME]
    number = int.from_bytes(seal.keyed_hash("member name", user.encode()))
    return "Member " + "".join(_LETTERS[number // len(_LETTERS) ** place % len(_LETTERS)] for place in range(4))
