"""Members: the type, and the viewer's own profile."""

from __future__ import annotations

from datetime import datetime

import strawberry

from datastore.people import profiles as profile_store
from resolvers.people import profile as profile_resolvers
from resolvers.people import visibility
from schema.comments import CommentsOfUser
from schema.framework.fields import described, field
from schema.framework.mutations import mutation
from schema.framework.types import Node, object_type, record_type
from schema.members.members import SuspensionOfUser
from schema.pickem.events import PickemOfUser
from schema.pickem.leagues import LeaguesOfUser
from schema.vocabulary.learning import LearningOfUser
from schema.vocabulary.lists import VocabularyOfUser


@record_type(profile_store.Profile, "A member of the community.")
class User(SuspensionOfUser, CommentsOfUser, PickemOfUser, LeaguesOfUser, VocabularyOfUser, LearningOfUser, Node):
    name: str = described("The name shown to others.")
    avatar_url: str | None = described("The address of a picture.")
    email: str | None = field(visibility.email, "Visible to the member and to admins only.")
    time_zone: str | None = field(
        visibility.time_zone, "An IANA time zone, which decides the member's day. Visible to the member only."
    )
    daily_word_at: str | None = field(
        visibility.daily_word_at,
        "When the daily words are sent, in the member's time zone: 07:30. Null means as soon as the date has begun. "
        "Visible to the member only.",
    )
    lock_reminder_hours: int | None = field(
        visibility.lock_reminder_hours,
        "How many hours before an event's lock the member is reminded by email of a missing prediction; null for none. "
        "Visible to the member only.",
    )
    joined_at: datetime = described("When the member first wrote something.")


@strawberry.type
class PeopleQuery:
    viewer: User | None = field(visibility.viewer, "The signed-in member; null for a visitor.")
    user: User | None = field(visibility.user, "A member.", id="The member's id.")


@strawberry.type
class PeopleMutation:
    update_profile = mutation(
        profile_resolvers.update_profile,
        "Changes the viewer's profile.",
        object_type("ProfileUpdated", "The profile was changed.", user=(User, "The member as they are now.")),
        show=visibility.show_changed,
        input_description="Changes to the viewer's profile. Omitted fields stay as they are; null clears an optional "
        "field.",
        result_description="The changed profile, or why it was not changed.",
        name="The name shown to others, 1 to 80 characters.",
        avatar_url="The address of a picture, starting with https://.",
        email="The address for emails. It takes effect once the link sent to it is confirmed; until then the profile "
        "keeps its current address.",
        time_zone="An IANA time zone such as Europe/Vienna.",
        daily_word_at="The time of day for the daily words, in the member's time zone, such as 07:30.",
        lock_reminder_hours="Hours before an event's lock, 1 to 168, at which a member without a prediction is "
        "reminded by email; 0 for none.",
    )
