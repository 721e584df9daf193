"""/confirm: the link in an email that asks for a confirmation; and the sending of such emails.

Opening the link is a GET, which mail scanners send too: it shows a page with a button and changes nothing. The button
sends a POST, which confirms.

| answer | when                                                                                |
|--------|-------------------------------------------------------------------------------------|
| 200    | the page with the button; after the button: confirmed                               |
| 400    | the link was altered or cut                                                         |
| 404    | the list was deleted, or the account                                                |
| 410    | the link was used, or a day has passed, or another address was asked for since      |
| 409    | the address has as many subscriptions as it may have                                |
| 503    | the table does not answer                                                           |
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import structlog
from starlette.requests import Request
from starlette.responses import HTMLResponse

from datastore.dynamo import DynamoError, deadline
from datastore.people import profiles as profile_store
from datastore.refusals import Conflict, InvalidInput, NotAllowed, NotFound
from datastore.values.seal import Forged
from datastore.vocabulary.subscriptions import ConfirmationUsed
from resolvers.people.confirmations import (
    LINK_HOURS,
    PATH,
    Confirmations,
    Link,
    NotSent,
    PerhapsSent,
    Purpose,
    Undeliverable,
)
from resolvers.requests.context import Services
from resolvers.vocabulary.subscriptions import confirm_subscription, read_list_to_confirm
from server.mail.message import compose, host_of
from server.mail.pages import button_page, text_page
from server.mail.rendering import EmailKind, EmailTemplates, isolate
from server.mail.smtp import (
    AddressNotTaken,
    DeliveryUnknown,
    EmailRejected,
    ServerUnreachable,
    SmtpTransport,
    sender_address,
)
from server.settings import Settings

TIMEOUT = 10.0
_KINDS = {Purpose.SUBSCRIPTION: EmailKind.CONFIRM_SUBSCRIPTION, Purpose.ADDRESS: EmailKind.CONFIRM_ADDRESS}
_log = structlog.get_logger("ringside.confirmations")


# ── the page ──


async def confirm(request: Request) -> HTMLResponse:
    """Show what a sealed link confirms, or confirm it."""
    services: Services = request.state.services
    try:
        link = Link.parse(services.seal, request.query_params.get("token", ""))
    except Forged:
        return text_page("This link is not complete", "Copy the whole link from the email.", 400)
    if link.expires <= services.clock():
        return text_page("This link has expired", f"It was good for {LINK_HOURS} hours. Ask for a new one.", 410)
    try:
        with deadline(TIMEOUT):
            return await (_confirm if request.method == "POST" else _confirmation_page)(services, link)
    except (NotFound, NotAllowed, Conflict, DynamoError) as error:
        return _refused(error)


def _refused(error: NotFound | NotAllowed | Conflict | DynamoError) -> HTMLResponse:
    match error:
        case NotFound() | NotAllowed():
            return text_page("This link no longer confirms anything", error.message, 404)
        case ConfirmationUsed():
            return text_page("This link was already used", "It works once. Ask for a new one to subscribe again.", 410)
        case Conflict():
            return text_page("Nothing was changed", error.message, 409)
        case _:
            return text_page("Please try again in a minute", "The service is busy; nothing was changed.", 503)


async def _confirmation_page(services: Services, link: Link) -> HTMLResponse:
    if link.purpose is Purpose.ADDRESS:
        title = "Receive emails at this address?"
        return button_page(title, "Yes, this is my address", f"{link.email} becomes the address of your account.")
    word_list = await read_list_to_confirm(services, link)
    title = f"Receive the daily words of {isolate(word_list.name)}?"
    return button_page(title, "Yes, send them", f"They are sent to {link.email}, until you unsubscribe.")


async def _confirm(services: Services, link: Link) -> HTMLResponse:
    if link.purpose is Purpose.SUBSCRIPTION:
        word_list = await confirm_subscription(services, link)
        _log.info("a subscription was confirmed by link", list=word_list.list)
        return text_page("Done", f"You will receive the daily words of {isolate(word_list.name)} at {link.email}.")
    user = link.about[0]
    unit = services.unit(f"User:{user}")
    profile = await profile_store.confirm_email(services.table, user, link.email, link.address, unit)
    if profile is None:
        text = "It was already used, or another address was asked for since: then use the link sent there."
        return text_page("This link is no longer valid", text, 410)
    services.profiles.put(user, services.with_name(profile))
    _log.info("an address was confirmed by link")
    return text_page("Done", f"Your emails will be sent to {link.email}.")


# ── the email ──


def _short(services: Services, link: Link) -> str:
    """Return what identifies the member: two members who ask for the same address get an email each."""
    return services.seal.keyed_hash("confirmation id", link.about[0].encode()).hex()[:16]


@asynccontextmanager
async def sending_confirmations(settings: Settings, services: Services) -> AsyncIterator[None]:
    """Send the emails that requests ask for, if a mail server is set."""
    if settings.smtp_url is None:
        yield
        return
    sender = sender_address(settings)
    url = settings.smtp_url.get_secret_value()
    transport = SmtpTransport(url, sender, for_requests=True)
    templates = EmailTemplates(settings.email_templates)

    async def send(link: Link, values: dict[str, Any]) -> None:
        address = f"{settings.public_url.rstrip('/')}{PATH}?token={link.token(services.seal)}"
        shown = {**values, "address": link.email, "link": address, "hours": LINK_HOURS}
        about = link.address if link.purpose is Purpose.SUBSCRIPTION else f"{link.address}.{_short(services, link)}"
        identifier = f"<confirm.{link.purpose.value.lower()}.{link.on:%Y%m%d}.{about}@{host_of(sender)}>"
        try:
            email = compose(sender, link.email, templates.render(_KINDS[link.purpose], shown), identifier)
            await transport.send(email)
        except AddressNotTaken as error:
            raise Undeliverable(str(error)) from None
        except (EmailRejected, ServerUnreachable, InvalidInput) as error:
            raise NotSent(str(error)) from None
        except DeliveryUnknown as error:
            raise PerhapsSent(str(error)) from None

    services.get(Confirmations).start(send)
    try:
        yield
    finally:
        await transport.close()
