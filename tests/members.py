"""Members of tests. The id of each is the name that their token has, so that a test can say whom it means.

Where ids of their own are made is tested by tokens whose bearers nobody has introduced.
"""

from dataclasses import replace
from datetime import datetime

from datastore.dynamo import ConditionFailed, Table
from datastore.dynamo.writes import absent
from datastore.people.identities import IDENTITY, Identity, SignInMethod, of_issuer
from datastore.people.profiles import PROFILE, Profile, read_profile
from resolvers.requests.context import utc_now


async def introduce(
    table: Table, *users: str, name: str | None = None, email: str | None = None, now: datetime | None = None
) -> list[Profile]:
    """Make and return the members whom tokens name, as if each had signed in, but for those who are there or erased."""
    now, made = now or utc_now(), list[Profile]()
    for user in users:
        shown = of_issuer(SignInMethod.SITE, "", user)
        identity = Identity(*shown.key, now, user, shown.issuer, shown.subject, shown.label, now)
        profile = await read_profile(table, user) or Profile(user, name or user.title(), now, email=email)
        new = replace(profile, identities=(str(identity.key),))
        try:
            await table.transact(IDENTITY.put(identity, when=absent()), PROFILE.put(new))
        except ConditionFailed:
            continue
        made.append(new)
    return made
