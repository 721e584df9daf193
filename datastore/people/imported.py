"""Authors whom an import has brought from another system, and who of them an address belongs to.

| wanted                         | read or write                                                     | requests |
|--------------------------------|-------------------------------------------------------------------|----------|
| the member of an author        | BatchGetItem of both identities, consistent                       | 1        |
| a new one                      | transaction: identities, profile, USER#<u> IMPORTED#<hash>        | 1 more   |
| authors with an address        | gsi1 IMPORTED#<hash>                                              | 1        |
| an author becomes a member     | transaction: identities, profiles, IMPORTED, checks of no rights  | 5        |

An author is found by what the other system calls them, or by the address alone where a line names no system. Nobody can
sign in by what the other system calls them: the author is whoever confirms the address, of which only a hash is kept.
If the address is another member's already, it stays theirs, and they may claim what the author wrote.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from datastore.changes.occurrences import Kind
from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import Table, optimistic
from datastore.dynamo.entity import Entity, Key
from datastore.dynamo.writes import Write, absent, present, where
from datastore.people import identities
from datastore.people.identities import Identity, IdentityKey, Proven, SignInMethod
from datastore.people.profiles import PROFILE, Profile, read_profiles


@dataclass(frozen=True, slots=True)
class ImportedAuthor:
    """That an author whom an import brought had this address."""

    user: str
    address: str
    """The hash of its identity."""


IMPORTED = Entity(ImportedAuthor, Key("USER#{user}", "IMPORTED#{address}"), gsi1=Key("IMPORTED#{address}", "{user}"))


async def make_author(
    table: Table, shown: Proven, address: Proven | None, profile: Profile, unit: UnitOfWork
) -> Identity:
    """The identity of an author, who is made if the import brings them for the first time.

    An author may be known by the address alone, as what was `shown`. MemberErased if they, or the member who has
    the address, were erased lately.
    """
    wanted = [shown.key] if address is None else [shown.key, address.key]
    claimed_by = shown if shown.method is SignInMethod.EMAIL else address

    async def make(found: Mapping[IdentityKey, Identity]) -> Identity:
        known = identities.not_erased(found.get(shown.key), unit.now)
        owner = None if address is None else identities.not_erased(found.get(address.key), unit.now)
        if known is not None:
            return known
        new = identities.unused(shown, profile.user, unit.now)
        own, writes = [new], list[Write]()
        if claimed_by is not None:
            writes.append(IMPORTED.put(ImportedAuthor(profile.user, claimed_by.key.hash)))
        if address is not None and owner is None:
            own.append(identities.unused(address, profile.user, unit.now))
        made = replace(profile, identities=tuple(str(each.key) for each in own))
        writes += [identities.put_new(each, unit.now) for each in own]
        await table.transact(*writes, PROFILE.put(made, when=absent()))
        return new

    return await optimistic(lambda: identities.read_identities(table, wanted), make, idempotent=True)


async def authors_with(table: Table, address: str) -> list[str]:
    """The authors with an address, by its hash, as far as the index shows them."""
    return [one.user async for one in table.iterate(IMPORTED.on("gsi1", address=address))]


def _moved(key: IdentityKey, user: str, shown: Proven | None) -> Write:
    """An identity becomes a member's, who has shown that an address is theirs."""
    values = {"user": user}
    if shown is not None and shown.key == key:
        values |= {"subject": shown.subject, "label": shown.label}
    return identities.IDENTITY.update(
        identities.IDENTITY.at(method=key.method, hash=key.hash), values=values, when=present() & absent("last_used_at")
    )


WithoutRights = Callable[[Table, str, datetime], Awaitable[Sequence[Write] | None]]
"""The checks that a member has no rights of their own; None if they have some."""


async def become(
    table: Table, author: str, user: str, unit: UnitOfWork, without_rights: WithoutRights
) -> list[IdentityKey]:
    """Let a member be an imported author, of whom nothing is left but what leads to the member: the identities.

    An author who has joined meanwhile, or been given rights, stays a member. Safe to repeat.
    """

    async def move(profiles: tuple[Profile | None, Profile | None]) -> list[IdentityKey]:
        gone, member = profiles
        if gone is None or member is None:
            return []
        if any(each.last_used_at for each in await identities.identities_of(table, gone)):
            return []
        checks = await without_rights(table, author, unit.now)
        if checks is None:
            return []
        keys = [IdentityKey.parse(text) for text in gone.identities]
        shown = None if member.proven_email is None else identities.of_address(member.proven_email)
        moved = [_moved(key, user, shown) for key in keys]
        changed = PROFILE.update(
            PROFILE.item_key(member),
            values={"identities": (*member.identities, *gone.identities)},
            when=where(identities=member.identities),
        )
        left = [PROFILE.delete(PROFILE.item_key(gone), when=where(identities=gone.identities))]
        own = table.iterate(IMPORTED.on(user=author), consistent=True)
        imported = [IMPORTED.delete(IMPORTED.item_key(one)) async for one in own]
        occurrence = unit.occurred(Kind.PROFILE_CHANGED, f"User:{user}")
        await unit.apply(table, changed, *moved, *left, *imported, *checks, *occurrence)
        return keys

    async def read() -> tuple[Profile | None, Profile | None]:
        found = await read_profiles(table, [author, user], consistent=True)
        return found.get(author), found.get(user)

    return await optimistic(read, move, idempotent=True)
