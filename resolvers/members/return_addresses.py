"""Where a sign-in leads back to: a path of the service, or a page of a site that the operator lists. Nowhere else."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from datastore.refusals import InvalidInput
from resolvers.requests.policy import Policy, origin_of

LONGEST = 2000
_CHARACTERS = re.compile(r"[!#-;=?-\[\]_a-z~]+")
"""Printable ASCII without quotes, angle brackets, braces and the backslash, which browsers take for a slash."""


def parse_return_address(policy: Policy, text: str, path: tuple[str, ...] = ("input", "returnTo")) -> str:
    """The address; InvalidInput for one that leads to anybody else."""
    if len(text) <= LONGEST and _CHARACTERS.fullmatch(text) and (_is_path(text) or origin_in(policy, text)):
        return text
    raise InvalidInput(
        f"returnTo is a path of this service such as /, or an address on a site that RINGSIDE_CORS_ORIGINS lists, of "
        f"at most {LONGEST} characters.",
        path=path,
    )


def _is_path(text: str) -> bool:
    return text.startswith("/") and not text.startswith("//")


def origin_in(policy: Policy, text: str) -> str | None:
    """The listed origin of an address; None for a path, and for an address of any other origin."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and parts.username is None and parts.password is None
    except ValueError:
        return None
    origin = origin_of(text) if usable else ""
    return origin if origin in policy.page_origins else None
