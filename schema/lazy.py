"""Types that parts refer to before they are made: every part names members, and the member's type names every part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import strawberry

if TYPE_CHECKING:
    from schema.people import User

LazyUser = Annotated["User", strawberry.lazy("schema.people")]
