"""The small pages that links in emails open: to confirm, and to unsubscribe. They run no scripts."""

from contextlib import suppress
from dataclasses import replace
from html import escape

import structlog
from starlette.requests import Request
from starlette.responses import HTMLResponse

from datastore.dynamo import DynamoError, deadline
from datastore.people import profiles as profile_store
from datastore.people.profiles import Profile
from datastore.refusals import Conflict, NotAllowed, NotFound
from datastore.values.seal import Forged
from datastore.vocabulary import lists, subscriptions
from datastore.vocabulary.subscriptions import AddressClaim, ConfirmationUsed
from resolvers.people.confirmations import LINK_HOURS, Link, Purpose
from resolvers.requests.context import Services
from resolvers.vocabulary.subscriptions import RECORD_PREFIX, confirm_subscription, read_list_to_confirm
from server.http.messages import SECURITY_HEADERS
from server.mail.message import OtherEmails, Unsubscription, isolate

# ── pages ──

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title></head>
<body style="font-family:system-ui,sans-serif;max-width:32em;margin:4em auto;padding:0 1em">
<h1>{title}</h1>
{content}
</body></html>
"""
_BUTTON = '<form method="post"><button style="font-size:1em;padding:.5em 1em">{label}</button></form>'


def text_page(title: str, text: str, status: int = 200) -> HTMLResponse:
    """A page that tells something."""
    return _page(title, f"<p>{escape(text)}</p>", status)


def button_page(title: str, label: str, text: str = "") -> HTMLResponse:
    """A page whose button posts to its own address."""
    line = f"<p>{escape(text)}</p>\n" if text else ""
    return _page(title, line + _BUTTON.format(label=escape(label)), 200)


def _page(title: str, content: str, status: int) -> HTMLResponse:
    headers = {**SECURITY_HEADERS, "content-security-policy": _POLICY, "cache-control": "no-store"}
    return HTMLResponse(_PAGE.format(title=escape(title), content=content), status, headers)


# ── unsubscribe ──
# /unsubscribe: the link in every email. Its signed token names the member, so nobody has to sign in.
#
# The one-click button of a mail program sends a POST (RFC 8058), which ends the subscriptions at once. Opening the link
# is a GET, which mail scanners send too: it shows a page with a button and changes nothing.
#
# A link of an address without an account means, once a member has claimed its subscriptions, the member's. If it cannot
# tell whose they are now, the page says so: nobody must believe that the emails end while they go on.

TIMEOUT = 10.0
_log = structlog.get_logger("ringside.unsubscribe")

_UNSUBSCRIBE_BUTTON = "Yes, unsubscribe"
_QUESTIONS = {
    OtherEmails.REMINDERS: "No more reminders of missing predictions?",
    OtherEmails.REPLIES: "No more emails about replies to your comments?",
}
_SETTINGS = {OtherEmails.REMINDERS: "lock_reminder_hours", OtherEmails.REPLIES: "reply_emails"}
"""What a profile has for those who want them."""
_OUT_OF_DATE = (
    "The subscriptions of this address were moved to an account. If you still receive these words, use the link in the "
    "newest email, or sign in and unsubscribe there."
)


async def unsubscribe(request: Request) -> HTMLResponse:
    """End the subscriptions that a signed link names. The services are in the state of the lifespan."""
    services: Services = request.state.services
    try:
        unsubscription = Unsubscription.parse(services.seal, request.query_params.get("token", ""))
    except Forged:
        text = "Copy the whole link from the email. If it is very old, use the link in a newer email."
        return text_page("This link is not complete", text, 400)
    try:
        with deadline(TIMEOUT):
            if request.method == "POST":
                return await _unsubscribe(services, unsubscription)
            return await _confirmation_page(services, unsubscription)
    except (DynamoError, Conflict):
        return text_page("Please try again in a minute", "The service is busy; nothing was changed.", 503)


async def _confirmation_page(services: Services, unsubscription: Unsubscription) -> HTMLResponse:
    if unsubscription.other is not None:
        return button_page(_QUESTIONS[unsubscription.other], _UNSUBSCRIBE_BUTTON)
    if unsubscription.list is None:
        return button_page("Unsubscribe from all daily words?", _UNSUBSCRIBE_BUTTON)
    word_list = await lists.read_list(services.table, unsubscription.list)
    name = word_list.name if word_list is not None else "this list"
    return button_page(f"Unsubscribe from the daily words of {isolate(name)}?", _UNSUBSCRIBE_BUTTON)


async def _unsubscribe(services: Services, unsubscription: Unsubscription) -> HTMLResponse:
    user = unsubscription.user
    if unsubscription.other is not None:
        return await _end_other(services, user, unsubscription.other)
    claims = await _standing_claims(services, unsubscription)
    ended = await _end(services, user, unsubscription)
    if len(claims) == 1:
        ended += await _end(services, claims[0].user, unsubscription)
    elif claims or not (ended or await _is_in_use(services, user)):
        return text_page("This link is out of date", _OUT_OF_DATE, 410)
    _log.info("unsubscribed by link", all_lists=unsubscription.list is None, ended=ended)
    return text_page("Done", "You will not receive these words again.")


async def _end(services: Services, user: str, unsubscription: Unsubscription) -> int:
    """End those of a member's subscriptions that the link means; how many there were."""
    ended, unit = 0, services.unit(f"User:{user}")
    for subscription in await subscriptions.read_subscriptions(services.table, user):
        if subscription.active and unsubscription.includes(subscription):
            ended += 1
            with suppress(NotFound):  # the job that erases a member deletes their subscriptions
                key = (user, subscription.list, subscription.character_set)
                await subscriptions.unsubscribe(services.table, *key, unit)
    return ended


async def _standing_claims(services: Services, unsubscription: Unsubscription) -> list[AddressClaim]:
    """The claims of a record's subscriptions; none if the address has subscribed again, maybe for somebody else.

    A subscription that the link does not include says nothing about who has those that it does.
    """
    claims = await subscriptions.read_claims(services.table, unsubscription.user)
    if not claims:
        return []
    newest = max(claim.claimed_at for claim in claims)
    own = await subscriptions.read_subscriptions(services.table, unsubscription.user)
    return [] if any(each.since > newest and unsubscription.includes(each) for each in own) else claims


async def _is_in_use(services: Services, user: str) -> bool:
    """False for the record of an address that lost it to a claim of which there is no note."""
    if not user.startswith(RECORD_PREFIX):
        return True
    profile = await profile_store.read_profile(services.table, user)
    return profile is not None and profile.email is not None


async def _end_other(services: Services, user: str, emails: OtherEmails) -> HTMLResponse:
    unit, name = services.unit(f"User:{user}"), _SETTINGS[emails]
    profile = await profile_store.read_profile(services.table, user)
    if profile is not None and getattr(profile, name):
        changed: Profile = replace(services.with_name(profile), **{name: None})  # type: ignore[arg-type]
        with suppress(NotFound):
            await profile_store.update_profile(services.table, changed, [name], unit)
            services.profiles.put(user, changed)
    _log.info("emails ended by link", emails=emails.value)
    return text_page("Done", "You will not receive these emails again.")


# ── confirmation ──
# /confirm: the link in an email that asks for a confirmation.
#
# Opening the link is a GET, which mail scanners send too: it shows a page with a button and changes nothing. The button
# sends a POST, which confirms.
#
# | answer | when                                                                                |
# |--------|-------------------------------------------------------------------------------------|
# | 200    | the page with the button; after the button: confirmed                               |
# | 400    | the link was altered or cut                                                         |
# | 404    | the list was deleted, or the account                                                |
# | 410    | the link was used, or a day has passed, or another address was asked for since      |
# | 409    | the address has as many subscriptions as it may have                                |
# | 503    | the table does not answer                                                           |

_confirm_log = structlog.get_logger("ringside.confirmations")


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
            return await (_confirm if request.method == "POST" else _page_of_link)(services, link)
    except (NotFound, NotAllowed, Conflict, DynamoError) as error:
        return _refusal_page(error)


def _refusal_page(error: NotFound | NotAllowed | Conflict | DynamoError) -> HTMLResponse:
    match error:
        case NotFound() | NotAllowed():
            return text_page("This link no longer confirms anything", error.message, 404)
        case ConfirmationUsed():
            return text_page("This link was already used", "It works once. Ask for a new one to subscribe again.", 410)
        case Conflict():
            return text_page("Nothing was changed", error.message, 409)
        case _:
            return text_page("Please try again in a minute", "The service is busy; nothing was changed.", 503)


async def _page_of_link(services: Services, link: Link) -> HTMLResponse:
    if link.purpose is Purpose.ADDRESS:
        title = "Receive emails at this address?"
        return button_page(title, "Yes, this is my address", f"{link.email} becomes the address of your account.")
    word_list = await read_list_to_confirm(services, link)
    title = f"Receive the daily words of {isolate(word_list.name)}?"
    return button_page(title, "Yes, send them", f"They are sent to {link.email}, until you unsubscribe.")


async def _confirm(services: Services, link: Link) -> HTMLResponse:
    if link.purpose is Purpose.SUBSCRIPTION:
        word_list = await confirm_subscription(services, link)
        _confirm_log.info("a subscription was confirmed by link", list=word_list.list)
        return text_page("Done", f"You will receive the daily words of {isolate(word_list.name)} at {link.email}.")
    user = link.about[0]
    unit = services.unit(f"User:{user}")
    profile = await profile_store.confirm_email(services.table, user, link.email, link.address, unit)
    if profile is None:
        text = "It was already used, or another address was asked for since: then use the link sent there."
        return text_page("This link is no longer valid", text, 410)
    services.profiles.put(user, services.with_name(profile))
    _confirm_log.info("an address was confirmed by link")
    return text_page("Done", f"Your emails will be sent to {link.email}.")
