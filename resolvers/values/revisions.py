"""Changes that are made only to what their editor has seen."""

from __future__ import annotations

from datastore.refusals import Conflict


def require_revision(current: int, seen: int | None) -> None:
    """Conflict if somebody has changed what the editor saw. Without a revision, whatever is there is changed."""
    if seen is not None and seen != current:
        raise Conflict(
            "Somebody else has changed this in the meantime. Look at it again, then change it.",
            path=("input", "revision"),
        )
