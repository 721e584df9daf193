"""The community's rules that an operator sets; `Settings.policy` fills them."""

import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from resolvers.values.texts import ascii_domain


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of one deployment."""

    comment_rate: str | None = None
    """How often a member may post, edit, report or mark comments, each: "30/minute"; None for unlimited."""
    premoderation: bool = False
    """Whether members' comments wait for a moderator before others see them."""
    one_review: bool = False
    """Whether a member has at most one rated comment on a product."""
    ballot_seconds: float = 24 * 3600.0
    """How long a ballot is valid after it was drawn."""
    votes_per_visitor: str = "3000/minute"
    """Draws, and votes, per visitor or member: far more than a person makes, fewer than a program."""
    votes_per_address: str = "6000/minute"
    """Votes per address, which may be shared by a whole school, over all processes; "0" for unlimited."""
    new_visitors_per_address: str = "1000/hour"
    """Visitors per address who draw their first pair, over all processes; "0" for unlimited."""
    new_guests_per_address: str = "20/hour"
    """Guests that an address may sign in as, over all processes; "0" for unlimited."""
    emails_per_address: str = "20/hour"
    """Emails with a link or a code that an address may ask for, over all processes; "0" for unlimited."""
    sign_in_methods: frozenset[str] = frozenset()
    """Those of the methods of `SignInMethod` that the settings offer: all but the one by email."""
    token_issuers: frozenset[tuple[str, str]] = frozenset({("SITE", "")})
    """By whose tokens members sign in: the method and the issuer, as identities have them."""
    guests: frozenset[str] = frozenset()
    """What guests may do beyond what visitors may; nobody signs in as a guest if it is empty."""
    challenge: frozenset[str] = frozenset()
    """Who has to show a proof of work: `guests`, and members for their `first` comment."""
    role_origins: frozenset[str] = frozenset()
    """Origins of other sites on whose pages a session has its member's roles."""
    image_hosts: tuple[str, ...] = ()
    """Hosts whose pictures may be shown; none if empty."""
    journal_days: int = 90
    """How long the journal keeps what was done; 0 for not at all."""
    erased_days: int = 30
    """How long an erased member's identities sign nobody in: their tokens may still be valid."""
    webhook_networks: tuple[str, ...] = ()
    """Networks that webhooks may be in although they are not public."""
    day_begins_at: int = 0
    """The hour at which a learner's day begins, in their time zone."""
    page_origins: frozenset[str] = frozenset()
    """Origins of other sites whose pages may use the service."""
    public_url: str = ""
    """The address at which clients reach the service, for links in answers; without it links are relative."""
    quiz_seconds_per_question: float = 1.0
    """The least time that answering a question of a quiz takes; 0 for none."""
    request_seconds: float = 10.0
    """How long a request may take: a write is committed at most so long after its id was made."""

    def admits_page(self, origin: str, own_origin: str) -> bool:
        """Whether a page of this origin may use the service at its own origin."""
        return origin in self.page_origins or self.is_own(origin, own_origin)

    def gives_roles(self, origin: str | None) -> bool:
        """Whether a session that counts on this origin's pages, or not on one alone, has its member's roles."""
        return origin is None or origin in self.role_origins

    def is_own(self, origin: str, own_origin: str) -> bool:
        """Whether an origin is the service's own: the one that a request is addressed to, or the public one."""
        return origin != "" and origin.lower() in (own_origin, self.public_origin)

    @property
    def public_origin(self) -> str:
        """The origin of the public address; empty without one."""
        return origin_of(self.public_url)


_HOST_AND_PORT = re.compile(r"(.*?)((?::[0-9]*)?)", re.DOTALL)
_IMPLIED_PORTS = {"http": ":80", "https": ":443"}


@lru_cache(256)  # bounded, since clients give some of them
def origin_of(address: str) -> str:
    """The origin of an address, as browsers name it; empty for a text that has none.

    Browsers name a host in ASCII, and no port that the scheme implies.
    """
    parts = urlsplit(address)
    if not parts.netloc:
        return ""
    host, port = _HOST_AND_PORT.fullmatch(parts.netloc.lower()).groups()  # type: ignore[union-attr]  # fits any text
    return f"{parts.scheme}://{ascii_domain(host)}{'' if port == _IMPLIED_PORTS.get(parts.scheme) else port}"
