"""The community's rules that an operator sets; `server/app.py` fills them from the settings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of one deployment."""

    comment_rate: str | None = None
    """How often a member may post, edit or report comments: "30/minute"; None for unlimited."""
    premoderation: bool = False
    """Whether members' comments wait for a moderator before others see them."""
    ballot_seconds: float = 24 * 3600.0
    """How long a ballot is valid after it was drawn."""
    votes_per_visitor: str = "3000/minute"
    """Draws, and votes, per visitor or member: far more than a person makes, fewer than a program."""
    votes_per_address: str = "60000/minute"
    """The same per address, which may be shared by a whole school."""
    day_begins_at: int = 0
    """The hour at which a learner's day begins, in their time zone."""
