"""The small pages that links in emails open: to confirm, and to unsubscribe.

They run no scripts, and are in the language that the browser asks for. Their texts are in `texts/`.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from html import escape

import structlog
from starlette.requests import Request
from starlette.responses import HTMLResponse

from datastore.dynamo import DynamoError
from datastore.people import profiles as profile_store
from datastore.people.profiles import Profile
from datastore.refusals import Conflict, NotFound, Overloaded
from datastore.values.seal import Forged
from datastore.vocabulary import lists, subscriptions
from datastore.vocabulary.subscriptions import AddressClaim, ConfirmationUsed
from resolvers.people.confirmations import LINK_HOURS, Link, Purpose
from resolvers.requests.context import Services
from resolvers.values.languages import page_direction, page_language
from resolvers.vocabulary.subscriptions import RECORD_PREFIX, confirm_subscription, read_list_to_confirm
from server.http.messages import SECURITY_HEADERS, client_address
from server.http.pipeline import Pipeline
from server.mail.message import ISOLATES, OtherEmails, Unsubscription, isolate, texts_in

# ── pages ──

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
_PAGE = """<!doctype html>
<html lang="{language}" dir="{direction}"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title></head>
<body style="font-family:system-ui,sans-serif;max-width:32em;margin:4em auto;padding:0 1em">
<h1>{title}</h1>
{content}
</body></html>
"""
_BUTTON = '<form method="post"><button style="font-size:1em;padding:.5em 1em">{label}</button></form>'


@dataclass(frozen=True, slots=True)
class _Pages:
    """The pages in a reader's language. Texts are given by their names, with the values that they show."""

    language: str

    def tell(self, title: str, text: str, status: int = 200, **values: str) -> HTMLResponse:
        return self._page(self.text(title, **values), f"<p>{escape(self.text(text, **values))}</p>", status)

    def busy(self) -> HTMLResponse:
        page = self.tell("tryAgain", "busy", 503)
        page.headers["retry-after"] = "1"
        return page

    def ask(self, title: str, label: str, text: str | None = None, **values: str) -> HTMLResponse:
        """A page whose button posts to its own address."""
        line = f"<p>{escape(self.text(text, **values))}</p>\n" if text is not None else ""
        return self._page(self.text(title, **values), line + _BUTTON.format(label=escape(self.text(label))), 200)

    def text(self, name: str, **values: str) -> str:
        isolated = {key: self._isolate(value) for key, value in values.items()}
        return texts_in(self.language)["pages"][name].format(**isolated)

    @property
    def _direction(self) -> str:
        return page_direction(self.language)

    def _isolate(self, value: str) -> str:
        """A value whose direction leaves the sentence around it in order."""
        return value.join(ISOLATES) if self._direction == "rtl" else isolate(value)

    def _page(self, title: str, content: str, status: int) -> HTMLResponse:
        headers = {**SECURITY_HEADERS, "content-security-policy": _POLICY, "cache-control": "no-store"}
        html = _PAGE.format(language=self.language, direction=self._direction, title=escape(title), content=content)
        return HTMLResponse(html, status, headers)


def _pages_for(request: Request) -> _Pages:
    return _Pages(page_language(request.headers.get("accept-language", "")))


# ── unsubscribe ──
# /unsubscribe: the link in every email. Its signed token names the member, so nobody has to sign in.
#
# The one-click button of a mail program sends a POST (RFC 8058), which ends the subscriptions at once. Opening the link
# is a GET, which mail scanners send too: it shows a page with a button and changes nothing.
#
# A link of an address without an account means, once a member has claimed its subscriptions, the member's. If it cannot
# tell whose they are now, the page says so: nobody must believe that the emails end while they go on.

_log = structlog.get_logger("ringside.unsubscribe")

_QUESTIONS = {OtherEmails.REMINDERS: "endReminders", OtherEmails.REPLIES: "endReplies"}
_SETTINGS = {OtherEmails.REMINDERS: "lock_reminder_hours", OtherEmails.REPLIES: "reply_emails"}
"""What a profile has for those who want them."""


async def unsubscribe(request: Request) -> HTMLResponse:
    """End the subscriptions that a signed link names. The pipeline is in the state of the lifespan."""
    pipeline: Pipeline = request.state.pipeline
    services = pipeline.services
    pages = _pages_for(request)
    try:
        unsubscription = Unsubscription.parse(services.seal, request.query_params.get("token", ""))
    except Forged:
        return pages.tell("incomplete", "copyLinkOrNewer", 400)
    try:
        async with pipeline.plain_request(client_address(request.scope)):
            if request.method == "POST":
                return await _unsubscribe(services, pages, unsubscription)
            return await _confirmation_page(services, pages, unsubscription)
    except (Overloaded, DynamoError, Conflict):
        return pages.busy()


async def _confirmation_page(services: Services, pages: _Pages, unsubscription: Unsubscription) -> HTMLResponse:
    if unsubscription.other is not None:
        return pages.ask(_QUESTIONS[unsubscription.other], "unsubscribe")
    if unsubscription.list is None:
        return pages.ask("endAllWords", "unsubscribe")
    word_list = await lists.read_list(services.table, unsubscription.list)
    name = word_list.name if word_list is not None else pages.text("thisList")
    return pages.ask("endWords", "unsubscribe", list=name)


async def _unsubscribe(services: Services, pages: _Pages, unsubscription: Unsubscription) -> HTMLResponse:
    user = unsubscription.user
    if unsubscription.other is not None:
        return await _end_other(services, pages, user, unsubscription.other)
    claims = await _standing_claims(services, unsubscription)
    ended = await _end(services, user, unsubscription)
    if len(claims) == 1:
        ended += await _end(services, claims[0].user, unsubscription)
    elif claims or not (ended or await _is_in_use(services, user)):
        return pages.tell("outOfDate", "moved", 410)
    _log.info("unsubscribed by link", all_lists=unsubscription.list is None, ended=ended)
    return pages.tell("done", "wordsEnded")


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


async def _end_other(services: Services, pages: _Pages, user: str, emails: OtherEmails) -> HTMLResponse:
    unit, name = services.unit(f"User:{user}"), _SETTINGS[emails]
    profile = await profile_store.read_profile(services.table, user)
    if profile is not None and getattr(profile, name):
        changed: Profile = replace(services.with_name(profile), **{name: None})  # type: ignore[arg-type]
        with suppress(NotFound):
            await profile_store.update_profile(services.table, changed, [name], unit)
            services.profiles.put(user, changed)
    _log.info("emails ended by link", emails=emails.value)
    return pages.tell("done", "emailsEnded")


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
# | 404    | the list was deleted                                                                |
# | 410    | the link was used, or a day has passed, or another address was asked for since, or  |
# |        | the account was deleted                                                             |
# | 409    | the address has as many subscriptions as it may have                                |
# | 503    | the service or its table is busy, or others change the same all the time            |

_confirm_log = structlog.get_logger("ringside.confirmations")


async def confirm(request: Request) -> HTMLResponse:
    """Show what a sealed link confirms, or confirm it."""
    pipeline: Pipeline = request.state.pipeline
    services = pipeline.services
    pages = _pages_for(request)
    try:
        link = Link.parse(services.seal, request.query_params.get("token", ""))
    except Forged:
        return pages.tell("incomplete", "copyLink", 400)
    if link.expires <= services.clock():
        return pages.tell("expired", "wasGoodFor", 410, hours=str(LINK_HOURS))
    try:
        async with pipeline.plain_request(client_address(request.scope)):
            return await (_confirm if request.method == "POST" else _page_of_link)(services, pages, link)
    except (NotFound, Conflict, Overloaded, DynamoError) as error:
        return _refusal_page(pages, error)


def _refusal_page(pages: _Pages, error: NotFound | Conflict | Overloaded | DynamoError) -> HTMLResponse:
    match error:
        case NotFound():
            return pages.tell("confirmsNothing", "listDeleted", 404)
        case ConfirmationUsed():
            return pages.tell("used", "worksOnce", 410)
        case Conflict(retry_after=None):
            return pages.tell("unchanged", "tooMany", 409)
        case _:
            return pages.busy()


async def _page_of_link(services: Services, pages: _Pages, link: Link) -> HTMLResponse:
    if link.purpose is Purpose.ADDRESS:
        return pages.ask("confirmAddress", "myAddress", "becomesAddress", email=link.email)
    word_list = await read_list_to_confirm(services, link)
    return pages.ask("confirmWords", "sendWords", "sentUntil", list=word_list.name, email=link.email)


async def _confirm(services: Services, pages: _Pages, link: Link) -> HTMLResponse:
    if link.purpose is Purpose.SUBSCRIPTION:
        word_list = await confirm_subscription(services, link)
        _confirm_log.info("a subscription was confirmed by link", list=word_list.list)
        return pages.tell("done", "wordsConfirmed", list=word_list.name, email=link.email)
    user = link.about[0]
    unit = services.unit(f"User:{user}")
    profile = await profile_store.confirm_email(services.table, user, link.email, link.address, unit)
    if profile is None:
        return pages.tell("notValid", "usedOrReplaced", 410)
    services.profiles.put(user, services.with_name(profile))
    _confirm_log.info("an address was confirmed by link")
    return pages.tell("done", "addressConfirmed", email=link.email)
