"""What an operator may decide about the community's life; `server/app.py` fills it from the settings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of one deployment."""

    comment_rate: str | None = None
    """How often one member may post, edit or report: "30/minute"; None sets no bound."""
    premoderation: bool = False
    """Whether what members write waits for a moderator before others see it."""
    ballot_seconds: float = 24 * 3600.0
    """How long a drawn matchup may be voted on."""

    votes_per_visitor: str = "3000/minute"
    """Draws, and votes, that one visitor or member may make: no person comes near it, a program does."""

    votes_per_address: str = "60000/minute"
    """The same for all who come from one address: a whole school may sit behind it."""
    day_begins_at: int = 0
    """The hour at which a learner's day begins, in their own zone."""
