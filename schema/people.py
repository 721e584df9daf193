"""Members: the type, and who is asking."""

from __future__ import annotations

from datetime import datetime

import strawberry

from datastore import people as records
from resolvers import people
from schema.pickem import PickemOfUser
from schema.shapes import IDEMPOTENCY_KEY, Node, answers, described, field, mutation, shape, unset
from schema.vocabulary import VocabularyOfUser


@shape(records.Profile, "A member of the community.")
class User(PickemOfUser, VocabularyOfUser, Node):
    name: str = described("The name shown to others.")
    avatar_url: str | None = described("A picture's address.")
    email: str | None = field(people.email, "Shown to the member and to admins only.")
    time_zone: str | None = field(
        people.time_zone, "An IANA time zone; decides the member's day. Shown to the member only."
    )
    joined_at: datetime = described("When the member first wrote something.")


@strawberry.type
class PeopleQuery:
    viewer: User | None = field(people.viewer, "Who is asking; null for an anonymous visitor.")
    user: User | None = field(people.user, "A member.", id="The member's id.")


@strawberry.input(description="Changes to one's own profile. What is left out stays; null clears what may be empty.")
class UpdateProfileInput:
    name: str | None = unset("The name shown to others, 1 to 80 characters.")
    avatar_url: str | None = unset("A picture's address; it begins with https://.")
    email: str | None = unset("Where the daily mail goes.")
    time_zone: str | None = unset("An IANA time zone such as Europe/Vienna.")
    idempotency_key: str | None = unset(IDEMPOTENCY_KEY)


@strawberry.type(description="The profile was changed.")
class ProfileUpdated:
    user: User = described("The member as they are now.")


UpdateProfileResult = answers("UpdateProfileResult", ProfileUpdated, "The changed profile, or why it was not changed.")


@strawberry.type
class PeopleMutation:
    update_profile: UpdateProfileResult = mutation(
        people.update_profile, UpdateProfileInput, ProfileUpdated, "Changes one's own profile."
    )
