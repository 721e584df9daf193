"""Members: what is done with one as a whole; signing in and out; the keys of machines."""

from datetime import datetime

import strawberry

from datastore.members import api_keys as api_key_store
from datastore.members import suspensions as suspension_store
from datastore.people.identities import SignInMethod
from resolvers.members import api_keys as api_key_resolvers
from resolvers.members import sessions, sign_in_codes, signing_in, suspensions, visibility
from resolvers.people.member_data import Contributions, Part
from resolvers.people.visibility import show_changed
from resolvers.voting import continuing
from resolvers.whole import erasing, exporting
from resolvers.whole import signing_in as whole_signing_in
from resolvers.whole.mutations import Terms
from schema.framework.declarations import Node, connection, described, enum, field, mutation, object_type, record_type
from schema.framework.lazy import LazyUser
from schema.jobs import Job

enum(
    SignInMethod,
    "How somebody signs in.",
    PROVIDER="By the OpenID Connect provider.",
    EMAIL="By a code or a link that was sent to an address.",
    GUEST="By a name alone.",
    SITE="By a token of a site that has its own accounts, or of `ringside token`.",
)

# ── suspensions and erasure ──


@record_type(
    suspension_store.Suspension,
    "A suspended member can read as before, but not write, except to export or erase their own data.",
)
class Suspension:
    until: datetime | None = described("When it ends; null if a moderator has to end it.")
    reason: str = described("Why, in a moderator's words. The member sees it.")
    at: datetime = described("When it began.")


@strawberry.type
class SuspensionOfUser:
    """What suspensions and roles add to a member."""

    suspension: Suspension | None = field(
        visibility.suspension, "The suspension that is in force; for the member and moderators."
    )
    roles: list[str] | None = field(
        visibility.roles,
        "What the member may do: member, moderator, editor, admin. Visible to admins, and to the member: with what "
        "their token gives them, and `member` alone in a session on another site's pages that has no roles there.",
    )


enum(
    Part,
    "A part of what is stored about a member.",
    VOTES="Votes on all boards.",
    PREDICTIONS="Predictions, with the points they gave.",
    COMMENTS="Comments.",
    QUIZZES="Quiz results.",
    SENTENCES="Practice sentences.",
    SUBSCRIPTIONS="Subscriptions to word lists.",
    PROFILE="The profile.",
)


enum(
    Contributions,
    "What becomes of an erased member's contributions.",
    REMOVE="They are deleted: every total and rank is as if the member had never been there.",
    ANONYMISE='They stay, by a "Former member": every total and rank stays as it is, except in leagues.',
)


# ── API keys ──


@record_type(api_key_store.ApiKey, "A key by which a machine signs in, sent as `Authorization: Bearer rsk_…`.")
class ApiKey(Node):
    name: str = described("What it is for.")
    roles: list[str] = described("What it may do: member, moderator, editor, admin.")
    created_at: datetime = described("When it was created.")
    expires_at: datetime | None = described("When it stops working; null if it works until it is revoked.")
    last_used_at: datetime | None = described("When it was last used, to the minute; null if it never was.")
    prefix: str = described("The beginning of the key, to recognise it by.")


ApiKeyConnection = connection(ApiKey, "A page of API keys.", edge="An API key in a list.")


@strawberry.type
class ApiKeysQuery:
    api_keys: ApiKeyConnection = field(api_key_resolvers.api_keys, "All API keys, newest first. For admins.")


@strawberry.type
class ApiKeysMutation:
    create_api_key = mutation(
        api_key_resolvers.create_api_key,
        "Creates an API key for a machine. For admins.",
        object_type(
            "ApiKeyCreated",
            "The key was created.",
            api_key=(ApiKey, "The new key."),
            secret=(
                str | None,
                (
                    "The key itself, shown this once, since only its hash is stored. Null when a request is repeated "
                    "with its idempotency key."
                ),
            ),
        ),
        terms=Terms(recent=True),
        input_description="A new API key.",
        result_description="The key with its secret, or why none was created.",
        name="What the key is for, 1 to 80 characters.",
        roles="What it may do: member, moderator, editor, admin; at least one.",
        days="The number of days after which it expires, 1 to 3,650. Without it the key works until it is revoked.",
    )
    revoke_api_key = mutation(
        api_key_resolvers.revoke_api_key,
        "Revokes an API key for good. For admins.",
        object_type(
            "ApiKeyRevoked",
            "The key was revoked.",
            api_key=(ApiKey, "The key as it was. It is refused everywhere within a minute."),
        ),
        terms=Terms(recent=True),
        input_description="An API key to revoke.",
        result_description="The revoked key, or why it was not revoked.",
        key="The key's id.",
    )


# ── signing in ──

_OF_EVERYBODY = Terms(while_suspended=True, guests=True)
_VISIT = "The token of the page's visit: what its visitor has begun on boards, the member goes on with."


@record_type(signing_in.SignedIn, "Somebody is signed in.")
class SignedIn:
    user: LazyUser = described("The member.")
    token: str | None = described(
        "The session, sent as `Authorization: Bearer rst_…`, shown this once. Null on the service's own origin, where "
        "an HttpOnly cookie holds it, and when a request is repeated with its idempotency key. On pages of another "
        "origin it counts with that `Origin` alone."
    )
    expires_at: datetime = described("When the session ends at the latest, unless it is used on another day.")


@strawberry.type
class SignInQuery:
    sign_in_methods: list[SignInMethod] = field(
        sign_in_codes.sign_in_methods, "By which methods people sign in here; perhaps none."
    )


# ── mutations ──


@strawberry.type
class MembersMutation:
    request_sign_in = mutation(
        sign_in_codes.request_sign_in,
        "Sends an email with six digits and a link, which sign in once within 15 minutes. The answer is the same for "
        "every address, whether it is a member's or not, and comes before the email is sent.",
        object_type(
            "SignInRequested",
            "An email is sent, if the address can be reached and gets one.",
            email=(str, "The address."),
            request=(strawberry.ID, "Keep it: the digits count only together with it."),
        ),
        terms=Terms(while_suspended=True, guests=True, receipt_of=sign_in_codes.receipt_owner),
        input_description="An address to sign in by.",
        result_description="What the digits count with, or why no email is sent.",
        email="The address.",
        return_to="Where the link leads after signing in: a path of the service such as /, or an address on a site "
        "that RINGSIDE_CORS_ORIGINS lists.",
        language="The language of the email, such as de; without it `Accept-Language` decides.",
    )
    sign_in = mutation(
        whole_signing_in.sign_in,
        "Begins a session for whoever has the code or the link. Somebody with a new address becomes a member.",
        SignedIn,
        terms=Terms(while_suspended=True, guests=True, receipt_of=signing_in.receipt_owner),
        input_description="Who somebody is: a request and its code, or a token alone.",
        result_description="The member with their session, or why nobody is signed in.",
        request="What `requestSignIn` answered.",
        code="The six digits of the email. Five wrong ones end them.",
        token="The token of the email's link, or the code that `/sign-in/done` led back with.",  # noqa: S106 - a description
        visit=_VISIT,
    )
    sign_in_as_guest = mutation(
        whole_signing_in.sign_in_as_guest,
        "Signs in with a name alone, where the operator allows guests. A guest may do what visitors may, and what "
        "RINGSIDE_GUESTS lists.",
        SignedIn,
        terms=Terms(receipt_of=whole_signing_in.guest_receipt_owner),
        input_description="A guest's name. Its `idempotencyKey` has 22 random letters or more.",
        result_description="The guest with their session, or why nobody is signed in.",
        name="The name shown to others, 1 to 80 characters.",
        visit=_VISIT,
        solution="The solution of a `challenge`, where one is asked of guests: its token, a colon and the number.",
    )
    continue_visit = mutation(
        continuing.continue_visit,
        "Lets the viewer go on with what they have begun on boards as a visitor of this page, before they signed in. "
        "That visitor votes no more there. `signIn` and `signInAsGuest` do the same with their `visit`.",
        object_type("VisitContinued", "The visitor's votes are the member's.", user=(LazyUser, "The member.")),
        terms=_OF_EVERYBODY,
        show=show_changed,
        input_description="A visit of the page that asks.",
        result_description="The member, or why the visit is not continued.",
        visit="The token of the visit.",
    )
    add_identity = mutation(
        whole_signing_in.add_identity,
        "Lets the viewer sign in by another address, too; emails go to it from then on. A guest becomes a member with "
        "everything they wrote; a member's session must be of a sign-in of the last 15 minutes.",
        object_type(
            "IdentityAdded", "There is another way to sign in.", user=(LazyUser, "The member as they are now.")
        ),
        terms=_OF_EVERYBODY,
        show=show_changed,
        input_description="An address that was shown to be the viewer's.",
        result_description="The member, or why the address was not added: CONFLICT if it is another member's.",
        request="What `requestSignIn` answered.",
        code="The six digits of its email.",
    )
    sign_out = mutation(
        sessions.sign_out,
        "Ends the viewer's session. It is refused everywhere within a minute, on open sockets and streams too.",
        object_type(
            "SignedOut",
            "Nobody is signed in any more.",
            signed_out=(
                bool,
                "False if there was no session to end. A session cannot repeat the request that ended it.",
            ),
        ),
        terms=_OF_EVERYBODY,
        input_description="Whether to end all sessions.",
        result_description="Whether a session ended, or why none did.",
        everywhere="Ends all sessions of the member, on whatever machine.",
    )
    export_member = mutation(
        exporting.export_member,
        "Exports everything that is stored about a member. For the member, even while suspended, and for admins.",
        object_type(
            "MemberExport",
            "The member's file is being written.",
            job=(Job, "The job that writes it."),
            url=(
                str,
                (
                    "The file as JSON Lines, once, within an hour after the job is done. Until then the answer is 425, "
                    "with a Retry-After. Anyone with this link can fetch the file."
                ),
            ),
        ),
        input_description="A member to export.",
        result_description="The job and the link to its file, or why it was not started.",
        terms=Terms(while_suspended=True, guests=True),
        user="The member's id.",
    )
    erase_member = mutation(
        erasing.erase_member,
        "Erases a member: profile, identities, subscriptions, cards and private lists. Leagues are left: where the "
        "member was the only captain, whoever joined first becomes one; a league without another member is deleted. "
        "Every process refuses them within a minute, and what they have written until then is erased too. For the "
        "member, even while suspended, and for admins.",
        object_type("MemberErasure", "The member is being erased.", job=(Job, "The job that does it.")),
        input_description="A member to erase.",
        result_description="The job that erases them, or why it was not started.",
        terms=Terms(while_suspended=True, guests=True, recent=True),
        user="The member's id. Admins can be erased only by themselves.",
        contributions="What becomes of votes, predictions, comments, quiz results and sentences.",
    )
    take_back = mutation(
        erasing.take_back,
        "Takes back what a member contributed: votes are voided, comments rejected, marks of helpful comments, "
        "predictions, quiz results and sentences removed, and events scored again, so that every total and rank is as "
        "if they had not been there. For moderators.",
        object_type("TakenBack", "The contributions are being taken back.", job=(Job, "The job that does it.")),
        input_description="Contributions to take back.",
        result_description="The job that takes them back, or why it was not started.",
        user="The member's id.",
        since="Only what they contributed since this time.",
        parts="What to take back: any parts but SUBSCRIPTIONS and PROFILE.",
    )
    suspend_member = mutation(
        suspensions.suspend_member,
        "Suspends a member, or changes their suspension. For moderators.",
        object_type(
            "MemberSuspended",
            "The member is suspended. Every process refuses their mutations within a minute, except `exportMember` "
            "and `eraseMember` of themselves, and what signing in and out takes.",
            user=(LazyUser, "The member."),
        ),
        show=show_changed,
        input_description="A member to suspend.",
        result_description="The suspended member, or why they were not suspended.",
        user="The member's id. Admins cannot be suspended, and nobody can suspend themselves.",
        until="When the suspension ends, within ten years; without it, when a moderator ends it.",
        reason="Why, 1 to 500 characters. The member sees it.",
    )
    set_roles = mutation(
        suspensions.set_roles,
        "Gives a member these roles and no others. For admins who have signed in at `/sign-in`: tokens of a provider, "
        "of a site and of `ringside token`, and API keys, may not.",
        object_type(
            "RolesSet",
            "The member has these roles, besides those that their token gives them. One that they had ends within a "
            "minute.",
            user=(LazyUser, "The member."),
        ),
        show=show_changed,
        terms=Terms(recent=True),
        input_description="A member's roles.",
        result_description="The member, or why the roles were not set.",
        user="The member's id. A guest has no roles, and the last admin cannot take their own away.",
        roles="moderator, editor, admin; none for a member without one.",
    )
    reinstate_member = mutation(
        suspensions.reinstate_member,
        "Ends a member's suspension. For moderators.",
        object_type(
            "MemberReinstated",
            "The member may write again. Every process knows within a minute.",
            user=(LazyUser, "The member."),
        ),
        show=show_changed,
        input_description="A suspended member to reinstate.",
        result_description="The member, or why they were not reinstated.",
        user="The member's id.",
    )
