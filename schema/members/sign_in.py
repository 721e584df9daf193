"""Signing in and out: codes by email, sessions, and what a deployment offers."""

from __future__ import annotations

from datetime import datetime

import strawberry

from datastore.people.identities import SignInMethod
from resolvers.members import sessions, sign_in_codes, sign_in_methods, signing_in, visibility
from resolvers.people.visibility import show_changed
from resolvers.voting import continuing
from resolvers.whole import signing_in as whole_signing_in
from resolvers.whole.mutations import Terms
from schema.framework.declarations import LazyUser, described, field, mutation, object_type, record_type

_OF_EVERYBODY = Terms(while_suspended=True, guests=True)
_VISIT = "The token of the page's visit: what its visitor has begun on boards, the member goes on with."


@record_type(visibility.ShownSignIn, "Somebody is signed in.")
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
        sign_in_methods.sign_in_methods, "By which methods people sign in here; perhaps none."
    )


@strawberry.type
class SignInMutation:
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
        terms=Terms(
            while_suspended=True,
            guests=True,
            receipt_of=sign_in_codes.receipt_owner,
        ),
        input_description="An address to sign in by.",
        result_description="What the digits count with, or why no email is sent.",
        email="The address.",
        return_to="Where the link leads after signing in: a path of the service such as /, or an address on a site "
        "that RINGSIDE_CORS_ORIGINS lists.",
        language="The language of the email, such as de; without it `Accept-Language` decides.",
    )
    sign_in = mutation(
        whole_signing_in.sign_in,
        "Begins a session of whom a code or a link names; a member is made of a new address.",
        SignedIn,
        show=visibility.show_signed_in,
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
        show=visibility.show_signed_in,
        terms=Terms(receipt_of=whole_signing_in.guest_receipt_owner),
        input_description="A guest's name.",
        result_description="The guest with their session, or why nobody is signed in.",
        name="The name shown to others, 1 to 80 characters.",
        visit=_VISIT,
        solution="The solution of a `challenge`, where one is asked of guests: its token, a colon and the number.",
    )
    continue_visit = mutation(
        continuing.continue_visit,
        "Lets the viewer go on with what they have begun on boards as a visitor of this page, before they signed in. "
        "That visitor votes no more. `signIn` and `signInAsGuest` do the same with their `visit`.",
        object_type("VisitContinued", "The visitor's votes are the member's.", user=(LazyUser, "The member.")),
        terms=_OF_EVERYBODY,
        show=show_changed,
        input_description="A visit of the page that asks.",
        result_description="The member, or why the visit is not continued.",
        visit="The token of the visit.",
    )
    add_identity = mutation(
        whole_signing_in.add_identity,
        "Lets the viewer sign in by another address, too. A guest becomes a member with everything they wrote.",
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
            "SignedOut", "Nobody is signed in any more.", signed_out=(bool, "False if there was no session to end.")
        ),
        terms=_OF_EVERYBODY,
        input_description="Whether to end all sessions.",
        result_description="Whether a session ended, or why none did.",
        everywhere="Ends all sessions of the member, on whatever machine.",
    )
