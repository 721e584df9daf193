"""The member's type before it is made: every part refers to members, and a member has fields of several parts."""

from typing import TYPE_CHECKING, Annotated

import strawberry

if TYPE_CHECKING:
    from schema.people import User

LazyUser = Annotated["User", strawberry.lazy("schema.people")]
