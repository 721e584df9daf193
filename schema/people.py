"""Members: the type, and the viewer's own profile."""

from datetime import datetime

import strawberry

from datastore.people import profiles as profile_store
from datastore.people.identities import Identity as Identity_
from datastore.people.identities import SignInMethod
from resolvers.people import profile as profile_resolvers
from resolvers.people import visibility
from resolvers.whole import signing_in
from resolvers.whole.mutations import Terms
from schema.comments import CommentsOfUser
from schema.framework.declarations import READ, Node, connection, described, field, mutation, object_type, record_type
from schema.members import SuspensionOfUser
from schema.pickem import PickemOfUser
from schema.vocabulary import VocabularyOfUser


@record_type(Identity_, "By what a member signs in.")
class Identity:
    method: SignInMethod = described("How.")
    label: str = described('What people recognise it by: the address, the issuer\'s name, "Guest".')
    since: datetime = described("When it was added.")
    last_used_at: datetime | None = described("When it was last used, to the day; null if it never was.")


@record_type(profile_store.Profile, "A member of the community.")
class User(SuspensionOfUser, CommentsOfUser, PickemOfUser, VocabularyOfUser, Node):
    name: str = described("The name shown to others.")
    avatar_url: str | None = described("The address of a picture.")
    email: str | None = field(visibility.email, "Visible to the member and to admins only.")
    time_zone: str | None = field(
        visibility.time_zone,
        "An IANA time zone, which decides the member's day: UTC if null. Visible to the member only.",
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
    reply_emails: bool | None = field(
        visibility.reply_emails,
        "Whether the member is told of replies to their comments by email. Visible to the member only.",
    )
    joined_at: datetime = described(
        "When the member first signed in; for a former guest, when they first added a way to sign in; for the author "
        "of imported comments who has not signed in, when these were imported; for a former member, the beginning of "
        "1970."
    )
    is_guest: bool = described("Whether the member has signed in with a name alone, so that anyone may have that name.")
    identities: list[Identity] | None = field(
        visibility.identities,
        "By what the member signs in, the oldest first. Visible to the member and to admins only.",
        complexity=READ,
    )


UserConnection = connection(User, "A page of members.", edge="A member in a list.")


@strawberry.type
class PeopleQuery:
    viewer: User | None = field(visibility.viewer, "The signed-in member; null for a visitor.")
    user: User | None = field(visibility.user, "A member.", id="The member's id.")
    members: UserConnection = field(
        visibility.find_members,
        "Members, the newest first; or those that a search finds, by name. For moderators.",
        search="The beginning of a name, in whatever case, or an id; for admins, also a whole email address that the "
        "member signs in by.",
    )


@strawberry.type
class PeopleMutation:
    update_profile = mutation(
        profile_resolvers.update_profile,
        "Changes the viewer's profile.",
        object_type("ProfileUpdated", "The profile was changed.", user=(User, "The member as they are now.")),
        show=visibility.show_changed,
        terms=Terms(guests=True),
        input_description="Changes to the viewer's profile. Omitted fields stay as they are; null clears an optional "
        "field.",
        result_description="The changed profile, or why it was not changed.",
        name="The name shown to others, 1 to 80 characters.",
        avatar_url="The address of a picture, starting with https://.",
        email="The address for emails. One that the member's token proves takes effect at once; another once the link "
        "sent to it is confirmed, and until then the profile keeps its current address.",
        time_zone="An IANA time zone such as Europe/Vienna.",
        daily_word_at="The time of day for the daily words, in the member's time zone, such as 07:30.",
        lock_reminder_hours="Hours before an event's lock, 1 to 168, at which a member without a prediction is "
        "reminded by email; 0 for none.",
        reply_emails="Whether to tell the viewer of replies to comments by email, once their address is confirmed.",
    )
    remove_identity = mutation(
        signing_in.remove_identity,
        "Removes an identity: the viewer signs in by it no more. The only one by which a member can sign in here "
        "cannot be removed. Emails that went to a removed address go to another one that the member signs in by; "
        "without one, the member has no address.",
        object_type("IdentityRemoved", "The identity was removed.", user=(User, "The member as they are now.")),
        terms=Terms(recent=True),
        show=visibility.show_changed,
        input_description="An identity of the viewer's.",
        result_description="The member without the identity, or why it was not removed.",
        method="How one signs in by it.",
        label="Its label, as `User.identities` shows it.",
    )
