"""Signing in by email, as several tests do it: asking for a code, reading the email, giving the digits."""

import re
from email.message import EmailMessage
from typing import Any

import httpx

from datastore.members import suspensions as suspension_store
from datastore.members.suspensions import MemberRoles
from datastore.people.identities import SignInMethod
from datastore.people.profiles import read_profile
from resolvers.members.sign_in_codes import SignInCodes
from resolvers.members.signing_in import begin_for_page
from resolvers.members.suspensions import Suspensions
from resolvers.requests.context import Role
from tests.client import Client
from tests.confirmations import MailingService
from tests.mail_server import body_of
from tests.members import introduce
from tests.queries import mutation

REQUEST_SIGN_IN = mutation(
    "requestSignIn", "SignInRequested", "email request", refused="code message path retryAfterSeconds"
)
SIGN_IN = mutation("signIn", "SignedIn", "user { id name email } token expiresAt")
SIGN_OUT = mutation("signOut", "SignedOut", "signedOut", refused="code message")
VIEWER = "{ viewer { id name email } }"
_DIGITS = re.compile(r"^(\d{6})\s*$", re.MULTILINE)
_LINK = re.compile(r"/sign-in\?link=([\w-]+)")


def digits_in(email: EmailMessage) -> str:
    found = _DIGITS.search(body_of(email))
    assert found is not None
    return found[1]


def link_in(email: EmailMessage) -> str:
    """The text that the link of an email carries."""
    found = _LINK.search(body_of(email))
    assert found is not None
    return found[1]


def on_page(client: Client, origin: str = "https://ringside.test", token: str | None = None) -> Client:
    """A browser on a page of an origin, by default the service's own, over TLS."""
    page = Client(client.served, client.settings, token)
    page.http = httpx.AsyncClient(
        transport=httpx.ASGITransport(client.served),
        base_url="https://ringside.test",
        headers={"origin": origin, **({"authorization": f"Bearer {token}"} if token else {})},
        timeout=120,
    )
    return page


async def asked(mail: MailingService, address: str, client: Client | None = None, **more: Any) -> dict[str, Any]:
    """The request, the digits and the link that somebody gets who asks for a code."""
    sent = len(mail.mailbox.emails)
    answer: dict[str, Any] = await (client or mail.client.visitor()).ask(
        REQUEST_SIGN_IN, input={"email": address, **more}
    )
    assert "request" in answer, answer
    await mail.client.services.get(SignInCodes).all_sent()
    ((_, email),) = mail.mailbox.emails[sent:]
    return {"request": answer["request"], "code": digits_in(email), "link": link_in(email)}


async def signed_in(mail: MailingService, address: str, client: Client | None = None) -> dict[str, Any]:
    """The answer to the digits: the member, and a token unless the page keeps a cookie."""
    client = client or mail.client.visitor()
    code = await asked(mail, address, client)
    answer: dict[str, Any] = await client.ask(SIGN_IN, input={"request": code["request"], "code": code["code"]})
    assert "user" in answer, answer
    return answer


def with_session(name: str) -> str:
    """The id of the member whom `in_session` signs in: a session's token has room for 26 letters."""
    return name.upper().ljust(26, "0")


async def in_session(client: Client, name: str, *roles: Role) -> Client:
    """A member with these roles, new if need be, signed in by a session instead of a token."""
    services, user = client.services, with_session(name)
    await introduce(services.table, user, name=name.title())
    member = await read_profile(services.table, user)
    assert member is not None
    if roles:
        given = MemberRoles(user, roles)
        await suspension_store.set_roles(services.table, services.unit(), member, given, besides=None)
        services.get(Suspensions).roles_changed(given)
    _, token = await begin_for_page(services, member, SignInMethod.EMAIL)
    return Client(client.served, client.settings, token)
