"""Identities: by what a member is found who signs in.

| wanted                     | read or write                                                     | requests     |
|----------------------------|-------------------------------------------------------------------|--------------|
| whose an identity is       | GetItem IDENTITY#<method>#<hash>, consistent                      | 1            |
| a member's identities      | GetItem USER#<id> PROFILE names them; BatchGetItem                | 2            |
| a member's first use       | transaction: identity and profile, if neither is there            | 1            |
| a guest writes something   | transaction: identity and profile, if they are there              | 1 a guest    |
| another one; one less      | transaction: identity, and profile if its identities are the same | 3            |
| used on another day        | Update, if it is still the member's                               | 1 a day      |
| a member is erased         | Put of each identity, with the job that erases                    | 0 more       |
| with more than 70          | BatchGetItem; BatchWriteItem of the others before it              | and by 25    |
| another issuer             | Scan; for each identity a transaction: both of them, the profile  | 1 and 3 each |

A member's id says nothing about them. Identities lead to it and hold what their issuers call the member, an address
say; nothing else in the table does. The hash has no secret, since members must be found after secrets were replaced.

An erased member's identities stay without the member's id, the name and the address, for a time in which they sign
nobody in. Nothing else keeps an erased member's token, which is valid until it expires, from making another member.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from itertools import chain, count
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import idna

from datastore.changes.occurrences import Kind
from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import ConditionFailed, Table, optimistic
from datastore.dynamo.entity import Entity, Key
from datastore.dynamo.writes import Put, Write, absent, less, present, where
from datastore.people.profiles import NO_EMAIL, PROFILE, Profile, proven, read_profile
from datastore.refusals import Conflict, NotAllowed, NotFound, NotSignedIn
from datastore.values.folding import in_form

# ── records ──


class MemberErased(NotAllowed):
    explanation = "This account was erased."


MOST_IDENTITIES = 10
"""Of one member."""


class TooManyIdentities(Conflict):
    explanation = f"You have {MOST_IDENTITIES} ways to sign in, which is the limit. Remove one first."


MOST_ERASED_AT_ONCE = 70
"""Identities, in a transaction of at most 100 writes. Imports bring a member any number of them."""

IMPORT_ISSUER = "import:"
"""What the issuers of imported authors begin with: no server's tokens may name one, so nobody signs in by these."""


class SignInMethod(StrEnum):
    """How somebody signs in."""

    PROVIDER = "PROVIDER"
    EMAIL = "EMAIL"
    GUEST = "GUEST"
    SITE = "SITE"


class IdentityKey(NamedTuple):
    """Where an identity is found."""

    method: SignInMethod
    hash: str

    def __str__(self) -> str:
        return f"{self.method.value}.{self.hash}"

    @classmethod
    def parse(cls, text: str) -> IdentityKey:
        method, _, hashed = text.partition(".")
        return cls(SignInMethod(method), hashed)


@dataclass(frozen=True, slots=True)
class Proven:
    """Who somebody is, as they have shown by one method: what `issuer` calls them."""

    method: SignInMethod
    issuer: str
    subject: str
    label: str
    """By what people recognise it: the address, the issuer's name, "Guest"."""

    @property
    def key(self) -> IdentityKey:
        return IdentityKey(self.method, identity_hash(self.method, self.issuer, self.subject))


@dataclass(frozen=True, slots=True)
class Identity:
    """What an issuer calls somebody, and which member that is, or was until they were erased."""

    method: SignInMethod
    hash: str
    since: datetime
    user: str | None = None
    """None once the member is erased."""
    issuer: str = ""
    subject: str = ""
    label: str = ""
    last_used_at: datetime | None = None
    """To the day; None before the first use, if an import or a command made the member."""
    expires: datetime | None = None
    """Until when an erased member's identity signs nobody in; when a guest ends who has written nothing."""

    @property
    def key(self) -> IdentityKey:
        return IdentityKey(self.method, self.hash)

    @property
    def is_imported(self) -> bool:
        """Whether it is what another system calls the author of imported comments: nobody signs in by it."""
        return self.issuer.startswith(IMPORT_ISSUER)

    def is_free_at(self, now: datetime) -> bool:
        """Whether it is over, although the engine has yet to remove it."""
        return self.user is None and (self.expires is None or self.expires <= now)


IDENTITY = Entity(Identity, Key("IDENTITY#{method}#{hash}", "IDENTITY"), ttl="expires")


def identity_hash(method: SignInMethod, issuer: str, subject: str) -> str:
    return sha256(f"{method.value}\0{issuer}\0{subject}".encode()).hexdigest()


def of_issuer(method: SignInMethod, issuer: str, subject: str) -> Proven:
    """What a token has shown; without an issuer it is one of `ringside token`."""
    return Proven(method, issuer, subject, urlsplit(issuer).hostname or issuer or "ringside token")


def of_address(email: str) -> Proven:
    """What the owner of an address has shown."""
    return Proven(SignInMethod.EMAIL, "", comparable_address(email), email)


def comparable_address(email: str) -> str:
    """One spelling for all that mean the same address, as far as mail servers agree."""
    name, _, domain = email.rpartition("@")
    with suppress(UnicodeError):  # a domain that IDNA 2008 does not allow is only compared
        domain = idna.encode(domain, uts46=True).decode()
    return f"{in_form('NFC', name).lower()}@{domain.lower()}"


def unused(shown: Proven, user: str, now: datetime) -> Identity:
    """The identity of a member whom others have made. Of an address that nobody has confirmed only the hash is kept."""
    stored = replace(_stored(shown, user, now), last_used_at=None)
    return replace(stored, subject="", label="") if shown.method is SignInMethod.EMAIL else stored


def _stored(shown: Proven, user: str, now: datetime) -> Identity:
    key = shown.key
    return Identity(key.method, key.hash, now, user, shown.issuer, shown.subject, shown.label, now)


# ── reads ──


async def read_identities(table: Table, keys: Sequence[IdentityKey]) -> Mapping[IdentityKey, Identity]:
    """Those that are there, consistently; erased ones too."""
    found = await table.find_many([IDENTITY.at(method=key.method, hash=key.hash) for key in keys], consistent=True)
    return {identity.key: identity for identity in found}


async def find_identity(table: Table, key: IdentityKey, now: datetime) -> Identity | None:
    """Whose it is, consistently; None if it is nobody's, MemberErased if that member was erased."""
    return not_erased((await read_identities(table, [key])).get(key), now)


def not_erased(identity: Identity | None, now: datetime) -> Identity | None:
    """An identity that signs somebody in; None for a free one, MemberErased if its member was erased."""
    if identity is None or identity.is_free_at(now):
        return None
    if identity.user is None:
        raise MemberErased
    return identity


async def identities_of(table: Table, profile: Profile) -> list[Identity]:
    """A member's identities, the oldest first."""
    keys = [IdentityKey.parse(text) for text in profile.identities]
    found = (await read_identities(table, keys)).values()
    return sorted((each for each in found if each.user == profile.user), key=lambda each: (each.since, each.key))


# ── first use ──


async def make_member(
    table: Table, shown: Proven, profile: Profile, unit: UnitOfWork, *, used: bool
) -> tuple[Identity, bool]:
    """Make a member with an identity, unless it is somebody's already; return whose it is then, and if they joined now.

    However many processes do so at once, there is one member. MemberErased if there was one. `used`: somebody signs in
    by it now; otherwise an import or a command makes the member.
    """
    new = (_stored if used else unused)(shown, profile.user, unit.now)
    new = replace(new, expires=profile.expires)
    made = replace(profile, identities=(str(new.key),))
    try:
        await table.transact(put_new(new, unit.now), PROFILE.put(made, when=absent()))
    except ConditionFailed:
        found = await find_identity(table, new.key, unit.now)
        if found is None:
            raise
        if used and found.last_used_at is None:
            return await _join(table, found, shown, unit)
        return found, used and found.user == profile.user  # an attempt whose answer was lost has made them
    return new, used


async def seed_members(table: Table, members: Iterable[tuple[Profile, Proven]]) -> None:
    """Write members in bulk, each with the identity that they have used, replacing the same ones."""
    stored = [(profile, _stored(shown, profile.user, profile.joined_at)) for profile, shown in members]
    await table.write_many(IDENTITY.put(identity) for _, identity in stored)
    await table.write_many(
        PROFILE.put(replace(profile, identities=(str(identity.key),))) for profile, identity in stored
    )


async def _join(table: Table, identity: Identity, shown: Proven, unit: UnitOfWork) -> tuple[Identity, bool]:
    """Let a member who was made by others join now, as they sign in for the first time; return whether they did.

    Who claimed what was imported under an address has joined before they first sign in by that address.
    """
    values: dict[str, Any] = {"last_used_at": unit.now, "subject": shown.subject, "label": shown.label}
    used = IDENTITY.update(IDENTITY.item_key(identity), values=values, when=absent("last_used_at") & present("user"))
    key = PROFILE.at(user=identity.user or "")
    profile = await table.get(key, consistent=True)
    known = [] if profile is None else await identities_of(table, profile)
    has_joined = any(each.last_used_at is not None for each in known)
    joined = PROFILE.update(key, values={"joined_at": unit.now}, when=present())
    try:
        await table.transact(used, PROFILE.check(key, present()) if has_joined else joined)
    except ConditionFailed as failed:  # on another process, unless an attempt whose answer was lost has
        has_joined = has_joined or not failed.was_written(IDENTITY, replace(identity, **values))
    return replace(identity, **values), not has_joined


def put_new(identity: Identity, now: datetime) -> Put:
    return IDENTITY.put(identity, when=absent() | (absent("user") & less("expires", now)))


# ── changes ──


async def keep_guest(table: Table, profile: Profile) -> None:
    """Let a guest stay who is about to write something; MemberErased if they have ended.

    Who has meanwhile added an identity is no guest any longer, and stays.
    """
    keys = [IdentityKey.parse(text) for text in profile.identities]
    kept = [
        IDENTITY.update(IDENTITY.at(method=key.method, hash=key.hash), values={"expires": None}, when=present())
        for key in keys
    ]
    stays = PROFILE.update(PROFILE.item_key(profile), values={"expires": None}, when=present())
    try:
        await table.transact(stays, *kept)
    except ConditionFailed:
        stored = await read_profile(table, profile.user)
        if stored is None or stored.is_guest:
            raise MemberErased from None


async def add_identity(
    table: Table,
    user: str,
    shown: Proven,
    unit: UnitOfWork,
    *used_up: Write,
    by: Write | None = None,
    bearer: IdentityKey | None = None,
) -> Profile:
    """Let a member sign in by what was shown, too; CONFLICT if that is another member's.

    `used_up` is what else belongs in the transaction. NotSignedIn if `by` fails, the check of the session that asks, or
    if the member has lost the identity `bearer`, by whose token they ask. A guest's name alone signs in nobody who has
    something better, and a guest joins now: names are given away at will, so how long one was used says nothing. The
    receipt holds the profile as it then is.
    """
    new = _stored(shown, user, unit.now)

    async def add(profile: Profile | None) -> Profile:
        if profile is None:
            raise NotFound("There is no such member any more.")
        if bearer is not None and str(bearer) not in profile.identities:
            raise NotSignedIn
        found = await read_identities(table, [*{new.key, *map(IdentityKey.parse, profile.identities)}])
        stored = not_erased(found.get(new.key), unit.now)
        if stored is not None and stored.user != user:
            raise Conflict("This already signs in another member.", path=("input",))
        asks = () if by is None else (by,)
        if str(new.key) in profile.identities:
            await _use_up(table, profile, unit, asks, used_up)
            return profile
        if sum(each.user == user and not each.is_imported for each in found.values()) >= MOST_IDENTITIES:
            raise TooManyIdentities
        labelled = _labelled(new, found.values())
        values = _with_another(profile, new, shown, unit.now)
        changed = replace(profile, **values)
        gone = [key for key in profile.identities if key not in changed.identities]
        writes = [*asks, put_new(labelled, unit.now), *(_delete(key, user) for key in gone), *used_up]
        try:
            return await _change(table, profile, changed, values, unit, *writes)
        except ConditionFailed as failed:
            if asks and failed.at(1) and not failed.doubtful:
                raise NotSignedIn from None
            raise

    return await optimistic(lambda: read_profile(table, user), add, idempotent=True)


def _labelled(new: Identity, known: Iterable[Identity]) -> Identity:
    """An identity by a label of its own, as a member may have several accounts at one issuer: "example.com (2)"."""
    taken = {each.label for each in known if (each.user, each.method) == (new.user, new.method)}
    numbered = (f"{new.label} ({number})" for number in count(2))
    return replace(new, label=next(label for label in chain([new.label], numbered) if label not in taken))


async def _use_up(
    table: Table, member: Profile, unit: UnitOfWork, asks: Sequence[Write], used_up: Sequence[Write]
) -> None:
    """Use up what shows an identity that the member has already, perhaps by an attempt whose answer was lost."""
    if asks or used_up:
        try:
            await unit.transact(table, member, *asks, *used_up)
        except ConditionFailed as failed:
            if asks and failed.at(0):
                raise NotSignedIn from None


def _with_another(profile: Profile, new: Identity, shown: Proven, now: datetime) -> dict[str, Any]:
    """The values of a profile with one more identity, which takes the place of a guest's."""
    kept = (key for key in profile.identities if IdentityKey.parse(key).method is not SignInMethod.GUEST)
    values: dict[str, Any] = {"identities": (*kept, str(new.key)), "expires": None}
    if profile.is_guest:
        values["joined_at"] = now
    return values | proven(shown.label, now) if shown.method is SignInMethod.EMAIL else values


async def remove_identity(
    table: Table, user: str, method: SignInMethod, label: str, unit: UnitOfWork, signs_in: Callable[[Identity], bool]
) -> Profile:
    """Remove an identity, by which its member signs in no more; CONFLICT unless another one is left that `signs_in`."""

    async def remove(profile: Profile | None) -> Profile:
        own = [] if profile is None else await identities_of(table, profile)
        named = (each for each in own if (each.method, each.label) == (method, label) and not each.is_imported)
        found = next(named, None)
        if profile is None or found is None:
            raise NotFound("You do not sign in by this.", path=("input", "label"))
        if not any(signs_in(each) for each in own if each != found):
            raise Conflict("This is your only way to sign in: add another one first.", path=("input", "label"))
        values = _without(profile, found, own, unit.now)
        changed = replace(profile, **values)
        return await _change(table, profile, changed, values, unit, _delete(str(found.key), user))

    return await optimistic(lambda: read_profile(table, user), remove)


def _without(profile: Profile, gone: Identity, own: Sequence[Identity], now: datetime) -> dict[str, Any]:
    """The values of a profile with one identity less. Emails go to its address no more, but to the last one added."""
    values: dict[str, Any] = {"identities": tuple(key for key in profile.identities if key != str(gone.key))}
    if profile.email is None or of_address(profile.email).key != gone.key:
        return values
    others = [one for one in own if one != gone and one.method is SignInMethod.EMAIL and one.last_used_at is not None]
    return {**values, **(proven(others[-1].label, now) if others else NO_EMAIL)}


async def _change(
    table: Table, before: Profile, changed: Profile, values: Mapping[str, Any], unit: UnitOfWork, *writes: Write
) -> Profile:
    """Write a profile with other identities first, unless another address was chosen, and the identities."""
    unchanged = where(identities=before.identities, email=before.email)
    update = PROFILE.update(PROFILE.item_key(before), values=values, when=unchanged)
    occurrence = unit.occurred(Kind.PROFILE_CHANGED, f"User:{before.user}")
    await unit.transact(table, changed, update, *writes, *occurrence)
    return changed


def _delete(key: str, user: str) -> Write:
    method, hashed = IdentityKey.parse(key)
    return IDENTITY.delete(IDENTITY.at(method=method, hash=hashed), when=where(user=user))


async def record_use(table: Table, identity: Identity, now: datetime) -> None:
    """Store that it is used now, unless the member has lost it meanwhile."""
    update = IDENTITY.update(IDENTITY.item_key(identity), values={"last_used_at": now}, when=where(user=identity.user))
    await table.try_write(update)


# ── auditing ──


def all_members(table: Table) -> AsyncIterator[Profile | Identity]:
    """Every profile and every identity, found by a scan of the whole table."""
    return table.scan(PROFILE, IDENTITY)


# ── erasing ──


async def address_of_nobody(table: Table, profile: Profile, now: datetime) -> IdentityKey | None:
    """The address by which nobody signs in of a member who has proven it, or of a profile to which nobody does."""
    email = profile.proven_email if profile.signs_in else profile.email
    if email is None:
        return None
    key = of_address(email).key
    if str(key) in profile.identities:
        return None
    found = (await read_identities(table, [key])).get(key)
    return key if found is None or found.is_free_at(now) else None


async def erase_surplus(table: Table, profile: Profile, now: datetime, until: datetime) -> Collection[IdentityKey]:
    """Leave as erased those of a member's identities for which a transaction has no room; return these.

    They are of imports, by which nobody signs in. If the process ends now, the member can be erased again.
    """
    keys = [IdentityKey.parse(text) for text in profile.identities]
    if len(keys) <= MOST_ERASED_AT_ONCE:
        return ()
    signs_in = {each.key for each in await identities_of(table, profile) if not each.is_imported}
    surplus = sorted(keys, key=lambda key: key not in signs_in)[MOST_ERASED_AT_ONCE:]
    await table.write_many(_erased(surplus, now, until))
    return surplus


def erase_profile(
    profile: Profile,
    now: datetime,
    until: datetime,
    address: IdentityKey | None = None,
    surplus: Collection[IdentityKey] = (),
) -> list[Write]:
    """The writes that erase a profile, if it has the same identities, and leave these as erased until a time.

    An `address` of nobody is left so, too; the `surplus` has been already.
    """
    keys = [key for key in map(IdentityKey.parse, profile.identities) if key not in surplus]
    left = _erased(keys, now, until)
    if address is not None:
        left.append(put_new(Identity(address.method, address.hash, now, expires=until), now))
    return [PROFILE.delete(PROFILE.item_key(profile), when=where(identities=profile.identities)), *left]


def _erased(keys: Iterable[IdentityKey], now: datetime, until: datetime) -> list[Put]:
    return [IDENTITY.put(Identity(key.method, key.hash, now, expires=until)) for key in keys]


# ── other issuers ──


async def identities_by_issuer(table: Table, method: SignInMethod, issuer: str) -> AsyncIterator[Identity]:
    """Those of members who sign in so, found by a scan of the whole table."""
    async for identity in table.scan(IDENTITY):
        if identity.user is not None and (identity.method, identity.issuer) == (method, issuer):
            yield identity


async def move_identity(table: Table, identity: Identity, shown: Proven, unit: UnitOfWork) -> bool:
    """Let a member sign in by another issuer's name instead; False if that is another member's. Safe to repeat."""
    old, new = str(identity.key), str(shown.key)
    user = identity.user or ""

    async def move(profile: Profile | None) -> bool:
        own = set() if profile is None else set(map(IdentityKey.parse, profile.identities))
        found = await read_identities(table, [*{shown.key, *own}])
        stored = found.get(shown.key)
        if stored is not None and not stored.is_free_at(unit.now):
            return stored.user == user
        if profile is None or old not in profile.identities:
            return False
        kept = tuple(new if key == old else key for key in profile.identities)
        moved = replace(_stored(shown, user, unit.now), since=identity.since, last_used_at=identity.last_used_at)
        moved = _labelled(moved, (each for each in found.values() if each.key != identity.key))
        writes = [put_new(moved, unit.now), _delete(old, user)]
        await _change(table, profile, replace(profile, identities=kept), {"identities": kept}, unit, *writes)
        return True

    return await optimistic(lambda: read_profile(table, user), move, idempotent=True)
