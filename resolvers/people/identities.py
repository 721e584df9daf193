"""Finding the member of who signs in, and making one at the first use.

A process remembers for `KNOWN_SECONDS` whose an identity is, or that its member was erased. That it is nobody's is
never remembered: the next request may be the first on another process that finds the member.

Whoever has a valid token and has written nothing is nobody in the table: what they read, a new member would read. They
become a member before their first mutation, or when they ask who they are. Streams that are open look again before each
event whether their viewer has become one.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from datastore.dynamo import DynamoError, Reads, SingleFlight, deadline, shared_context, within_deadline
from datastore.people import identities as identity_store
from datastore.people import profiles as profile_store
from datastore.people.identities import (
    Identity,
    IdentityKey,
    MemberErased,
    Proven,
    SignInMethod,
    not_erased,
    of_address,
)
from datastore.people.imported import make_author
from datastore.people.profiles import Profile
from datastore.refusals import NotSignedIn
from resolvers.requests.context import LONGEST_NAME, MEMBER_AGE, Context, Services, Viewer, member_name
from resolvers.values.texts import is_line

# ── members ──

KNOWN_SECONDS = 25.0
"""Together with the half minute after which open sockets are checked again, this is less than a minute."""
KNOWN_TO_STREAMS_SECONDS = 60.0
"""Longer than the time between two checks of an open stream's token, by which a process finds who joined elsewhere."""
USE_INTERVAL = timedelta(days=1)
"""The time between two writes of when an identity was used."""
WRITE_SECONDS = 10.0


class Members:
    """The members who sign in to this process, by their identities."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._found: Reads[IdentityKey, Identity] = services.cache.batches(
            "identities",
            partial(identity_store.read_identities, services.table),
            age=KNOWN_SECONDS,
            kept=KNOWN_TO_STREAMS_SECONDS,
        )
        self._making: SingleFlight[IdentityKey, Identity] = SingleFlight(shared_context)
        self._uses: SingleFlight[IdentityKey, None] = SingleFlight(shared_context)

    async def find(self, shown: Proven, age: float = KNOWN_SECONDS) -> Identity | None:
        """Whose this is; None if nobody has signed in by it yet, MemberErased if that member was erased."""
        found = await self.known(shown, age)
        if found is None or found.last_used_at is None:
            return None
        self._note_use(found, self._services.clock())
        return found

    async def known(self, shown: Proven, age: float = KNOWN_SECONDS) -> Identity | None:
        """The same, also of a member who was made by others and has not joined yet."""
        return not_erased(await self._found.load(shown.key, age), self._services.clock())

    def joined(self, shown: Proven) -> Identity | None:
        """Who has signed in by this meanwhile, as far as this process has found out; MemberErased as above."""
        found = self._found.known(shown.key, KNOWN_TO_STREAMS_SECONDS)
        return None if found is None or found.last_used_at is None else not_erased(found, self._services.clock())

    async def confirm(self, viewer: Viewer) -> None:
        """NotSignedIn if the bearer of a token signs in by it no more, of which this process may have yet to hear."""
        if viewer.identity is not None:
            found = await self._found.load(viewer.identity, 0)
            if found is None or found.user != viewer.id:
                raise NotSignedIn

    async def make(self, shown: Proven, *, name: str | None = None, email: str | None = None) -> str:
        """The id of whose this is; of a new member with this name and address, if it was nobody's. Or MemberErased.

        Sessions begin by the answer, so it is never of an identity that was removed before, here or elsewhere.
        """
        known = await self.find(shown, 0)
        if known is None:
            profile = self._new_profile(shown, name, email)
            making = self._making.run(shown.key, partial(self._make, shown, profile, used=True))
            known = await within_deadline(making)
        return known.user or ""

    async def introduce(self, shown: Proven, *, name: str | None = None) -> str:
        """The id of whose this is; of a member who is made now and joins at their first sign-in, if it was nobody's."""
        known = await self.known(shown)
        known = known or await self._make(shown, self._new_profile(shown, name, None, used=False), used=False)
        return known.user or ""

    async def introduce_author(self, shown: Proven, *, name: str | None, email: str | None) -> str:
        """The id of an author of another system; of a member who is made now, if an import brings them first.

        MemberErased if they were erased, or whoever has the address.
        """
        address = None if email is None else of_address(email)
        wanted = [one.key for one in (shown, address) if one is not None]
        now = self._services.clock()
        known, *_ = [not_erased(found, now) for found in await self._found.load_many(wanted)]
        if known is None:
            profile = self._new_profile(shown, name, None, used=False)
            known = await make_author(self._services.table, shown, address, profile, self._services.unit())
            self._found.put(shown.key, known)
        return known.user or ""

    async def keep_guest(self, user: str) -> None:
        """Let a guest stay who is about to write something: one who has not ends after a time."""
        table, profiles = self._services.table, self._services.profiles
        profile = await profiles.load(user, MEMBER_AGE) or await profile_store.read_profile(table, user)
        if profile is not None and profile.expires is not None:
            await identity_store.keep_guest(table, profile)
            profiles.amend(user, replace(profile, expires=None))

    async def of_profile(self, profile: Profile) -> list[Identity]:
        """By what a member signs in, the oldest first; of an imported author, by what they were imported."""
        found = await self._found.load_many([IdentityKey.parse(text) for text in profile.identities])
        own = [each for each in found if each is not None and each.user == profile.user]
        shown = [each for each in own if not each.is_imported] or own
        return sorted(shown, key=lambda each: (each.since, each.key))

    async def addresses_of(self, profile: Profile) -> set[IdentityKey]:
        """The addresses that a member has confirmed."""
        own = [each for each in await self.of_profile(profile) if each.method is SignInMethod.EMAIL]
        confirmed = {each.key for each in own if each.last_used_at is not None}
        return confirmed if profile.proven_email is None else {*confirmed, of_address(profile.proven_email).key}

    def forget(self, keys: Iterable[IdentityKey]) -> None:
        """Read anew what this process has changed."""
        for key in keys:
            self._found.forget(key)

    async def close(self) -> None:
        await self._making.close()
        await self._uses.close()

    def _new_profile(self, shown: Proven, name: str | None, email: str | None, *, used: bool = True) -> Profile:
        now = self._services.clock()
        user = self._services.ids.next(now)
        if name is not None and not is_line(name[:LONGEST_NAME], LONGEST_NAME):
            name = None  # members may call themselves so elsewhere, and here nobody could see it
        profile = Profile(user, member_name(self._services.seal, user, name), joined_at=now, email=email)
        by_email = used and shown.method is SignInMethod.EMAIL
        return replace(profile, email=shown.label, email_confirmed=now) if by_email else profile

    async def _make(self, shown: Proven, profile: Profile, *, used: bool) -> Identity:
        table, unit = self._services.table, self._services.unit()
        identity, joined = await identity_store.make_member(table, shown, profile, unit, used=used)
        self._found.put(identity.key, identity)
        self._services.profiles.forget(identity.user or "")
        made = await profile_store.read_profile(table, identity.user or "") if used else None
        if made is not None:  # known at once: plain reads may be behind, and show no such member
            self._services.profiles.put(made.user, self._services.with_name(made))
        if joined:
            self._services.activity["new_members"] += 1
        return identity

    def _note_use(self, identity: Identity, now: datetime) -> None:
        """Store the use in the background, at most once a day for all processes together."""
        if identity.last_used_at is not None and not now - USE_INTERVAL < identity.last_used_at < now + USE_INTERVAL:
            self._found.amend(identity.key, replace(identity, last_used_at=now))
            self._uses.begin(identity.key, partial(self._record_use, identity, now))

    async def _record_use(self, identity: Identity, now: datetime) -> None:
        with suppress(DynamoError), deadline(WRITE_SECONDS):  # it helps people only; the next use stores it
            await identity_store.record_use(self._services.table, identity, now)


async def make_viewer(ctx: Context) -> None:
    """Make the viewer a member if they are nobody yet: before whatever they write, or ask about themselves."""
    viewer = ctx.viewer
    if viewer.proven is not None:
        user = await ctx.services.get(Members).make(viewer.proven, name=viewer.name, email=viewer.email)
        ctx.viewer = replace(viewer, id=user, proven=None)


def look_again(ctx: Context) -> None:
    """Know the viewer of a stream as the member whom other requests have made of them since it began.

    It reads nothing: this process has made the member, or has found them when it last checked the stream's token.
    """
    viewer = ctx.viewer
    if viewer.proven is not None:
        with suppress(MemberErased):  # the next check of their token ends the stream
            identity = ctx.services.get(Members).joined(viewer.proven)
            if identity is not None:
                ctx.viewer = replace(viewer, id=identity.user or "", proven=None, identity=identity.key)
