"""The authorization code flow over HTTP: whom the provider names is signed in, and nobody by a forged answer."""

import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import jwt
import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from datastore.dynamo import Rates, Rejected, Table
from datastore.members.sessions import begin_session, key_in, new_session
from datastore.people.identities import MOST_IDENTITIES, SignInMethod, add_identity, of_address, of_issuer
from datastore.people.profiles import read_profiles, set_email
from resolvers.members.sessions import Sessions
from resolvers.requests.context import Role
from resolvers.values.node_ids import parse_node_key
from server.auth.jwt_verification import FRESH_SECONDS
from server.commands.emails import remove_addresses
from server.settings import Settings
from server.settings.values import parse_site_keys
from tests.client import Client, serving
from tests.confirmations import list_key, migrated_record, subscriptions_of
from tests.intercepted import Send, intercepted
from tests.oidc_provider import CLIENT, SECRET, OidcProvider, authorized, oidc_provider
from tests.queries import CREATE_LIST, mutation
from tests.sign_in import SIGN_OUT, VIEWER, in_session, on_page, with_session

PUBLIC = "https://ringside.test"
SITES = {"shop": "a secret of the shop and this service", "forum": "a secret of the forum and this service"}

REMOVE = mutation("removeIdentity", "IdentityRemoved", "user { id }")
ERASE = """mutation ($user: ID!) { eraseMember(input: { user: $user, contributions: ANONYMISE }) {
  ... on MemberErasure { job { id } } ... on Refused { code message } } }"""


@pytest.fixture(scope="module")
def local_provider() -> Iterator[OidcProvider]:
    with oidc_provider() as provider:
        yield provider


@pytest.fixture
def provider(local_provider: OidcProvider) -> OidcProvider:
    """With nothing wrong about it yet."""
    local_provider.claims, local_provider.parameters, local_provider.refusals = {}, {}, []
    local_provider.keys_fail, local_provider.discovered = False, {}
    return local_provider


@pytest.fixture
async def service(one_table: Table, settings: Settings, provider: OidcProvider) -> AsyncIterator[Client]:
    assert one_table.name == settings.table
    sites = json.dumps([{"issuer": site, "hs256": key} for site, key in SITES.items()])
    given = {
        "site_keys": parse_site_keys(sites),
        "oidc_issuer": provider.issuer,
        "oidc_client_id": CLIENT,
        "oidc_client_secret": SecretStr(SECRET),
    }
    async with serving(settings.model_copy(update={**given, "public_url": PUBLIC})) as client:
        yield client


@dataclass
class Browser:
    """Somebody's browser on the page, who signs in at the provider."""

    client: Client
    provider: OidcProvider

    async def begin(self, asked: str = "", **more: Any) -> dict[str, str]:
        """What the provider is asked for."""
        answer = await self.client.http.post("/sign-in", json={"asked": asked, **more})
        assert answer.status_code == 200, answer.text
        address = urlsplit(answer.json()["location"])
        assert f"{address.scheme}://{address.netloc}" == self.provider.issuer
        return {name: values[0] for name, values in parse_qs(address.query).items()}

    async def come_back(self, address: str) -> httpx.Response:
        return await self.client.http.get(urlsplit(address)._replace(scheme="", netloc="").geturl())

    async def sign_in(self, asked: str = "", **more: Any) -> httpx.Response:
        return await self.come_back(authorized(self.provider, await self.begin(asked, **more)))

    async def name(self) -> str | None:
        viewer = await self.client.ask(VIEWER)
        return None if viewer is None else str(viewer["name"])


@pytest.fixture
def browser(service: Client, provider: OidcProvider) -> Browser:
    return Browser(on_page(service), provider)


async def test_whom_the_provider_names_is_signed_in_and_led_back(browser: Browser) -> None:
    """With what the page was asked for; the same person is the same member in another browser."""
    back = await browser.sign_in("?returnTo=/&link=x&error=y")
    assert (back.status_code, back.headers["location"]) == (303, "/sign-in/done?returnTo=%2F")
    assert await browser.name() == "Ada"
    other = Browser(on_page(browser.client), browser.provider)
    await other.sign_in()
    assert await other.client.ask(VIEWER) == await browser.client.ask(VIEWER)
    assert browser.provider.refusals == []


async def test_what_the_provider_signed_for_another_client_is_nobody_s_here(browser: Browser) -> None:
    """At Google any site gets tokens: otherwise the owner of one could act here as its visitors."""
    await browser.sign_in()
    me, other = await browser.client.ask(VIEWER), on_page(browser.client)
    bearers = [
        {"authorization": f"Bearer {browser.provider.id_token({'client_id': client})}"}
        for client in (CLIENT, "another site")
    ]
    own, foreign = [await other.http.post("/graphql", json={"query": VIEWER}, headers=bearer) for bearer in bearers]
    assert own.json()["data"]["viewer"] == me
    assert (foreign.status_code, "another audience" in foreign.text) == (401, True)


async def test_the_provider_s_session_lasts_as_long_in_the_browser_as_others(browser: Browser) -> None:
    await browser.sign_in()
    (cookie,) = [each for each in browser.client.http.cookies.jar if each.name == "__Host-ringside_session"]
    assert cookie.expires is not None
    assert timedelta(seconds=cookie.expires - time.time()) > timedelta(days=179)


async def test_a_sign_in_at_the_provider_is_as_recent_as_the_provider_says(browser: Browser) -> None:
    """The provider's own session answers without asking, so such a sign-in is as old as that session."""
    browser.provider.claims = {"auth_time": int(time.time()) - 3600}
    assert int((await browser.begin())["max_age"]) == 180 * 86400
    await browser.sign_in()
    me = await browser.client.ask(VIEWER)
    assert await browser.client.code(ERASE, user=me["id"]) == "NOT_SIGNED_IN"
    asked = await browser.begin("?again=1")
    assert (asked["prompt"], asked["max_age"]) == ("login", "0")
    browser.provider.claims = {"auth_time": int(time.time()) + 60}
    await browser.come_back(authorized(browser.provider, asked))
    assert "job" in await browser.client.ask(ERASE, user=me["id"])


@pytest.mark.parametrize("auth_time", ["now", True, -1, 10**400, 1_000_000_000], ids=str)
async def test_a_time_at_the_provider_that_cannot_be_keeps_nobody_out(browser: Browser, auth_time: object) -> None:
    """One from years ago says no more than one from yesterday: the session lasts."""
    browser.provider.claims = {"auth_time": auth_time}
    await browser.sign_in()
    assert await browser.name() == "Ada"


async def test_an_address_counts_if_the_provider_has_verified_it(browser: Browser) -> None:
    """It is then the member's, with what it subscribed to. Nobody is found by it: another `sub` is another member."""
    services, editor = browser.client.services, await in_session(browser.client, "ines", Role.EDITOR)
    words = list_key((await editor.ask(CREATE_LIST, input={"name": "First words", "public": True}))["list"]["id"])
    await migrated_record(services, "ada@example.org", words)
    ids = []
    for claims in ({"email_verified": False}, {"sub": "eve", "email_verified": True}, {"email_verified": True}):
        browser.provider.claims = claims
        signed_in = Browser(on_page(browser.client), browser.provider)
        await signed_in.sign_in()
        ids.append(parse_node_key("User", (await signed_in.client.ask(VIEWER))["id"]))
    ada, eve = ids[0], ids[1]
    assert ids == [ada, eve, ada]
    profiles = await read_profiles(services.table, ids, consistent=True)
    assert [profiles[user].proven_email for user in (ada, eve)] == ["ada@example.org"] * 2
    assert await subscriptions_of(browser.client, ada) == []
    assert await subscriptions_of(browser.client, eve) == [(words, True)]


async def test_an_address_that_bounced_is_not_given_back_by_the_provider(browser: Browser) -> None:
    """It is the member's again once they set it themselves, and a sign-in then leaves it."""
    services = browser.client.services

    async def address() -> str | None:
        await browser.sign_in()
        viewer = await browser.client.ask("{ viewer { id email } }")
        return str(viewer["email"]) if viewer["email"] else None

    browser.provider.claims = {"email_verified": True}
    assert await address() == "ada@example.org"
    assert await remove_addresses(services, {"ada@example.org"}) == {"ada@example.org": 1}
    assert await address() is None
    user = parse_node_key("User", (await browser.client.ask(VIEWER))["id"])
    assert await set_email(services.table, user, "ada@example.org", services.unit())
    browser.provider.claims = {"email_verified": True, "email": "ada@work.example"}
    assert await address() == "ada@example.org"


async def test_a_sub_of_another_issuer_is_another_member(service: Client, browser: Browser) -> None:
    """A site's token with the provider's `sub`, and another site's."""
    await browser.sign_in()
    ids = {(await browser.client.ask(VIEWER))["id"]}
    claims = {"sub": "ada", "aud": PUBLIC, "exp": int(time.time()) + 600}
    for site, key in SITES.items():
        member = Client(service.served, service.settings, jwt.encode({**claims, "iss": site}, key, algorithm="HS256"))
        ids.add((await member.ask(VIEWER))["id"])
    assert len(ids) == 3


FORGERIES: list[dict[str, Any]] = [
    {"parameters": {"state": "another"}},
    {"parameters": {"iss": "https://evil.example"}},
    {"parameters": {"code": "invented"}},
    {"claims": {"nonce": "another"}},
    {"claims": {"nonce": None}},
    {"claims": {"iss": "https://evil.example"}},
    {"claims": {"aud": "another client"}},
    {"claims": {"aud": None}},
    {"claims": {"aud": [CLIENT, "another"], "azp": "another"}},
    {"claims": {"exp": 1_700_000_000}},
    {"claims": {"sub": ""}},
]


@pytest.mark.parametrize("forgery", FORGERIES, ids=str)
async def test_a_forged_answer_signs_nobody_in(browser: Browser, forgery: dict[str, Any]) -> None:
    """The page says that it did not work, and the flow is over."""
    for name, values in forgery.items():
        setattr(browser.provider, name, values)
    back = await browser.sign_in()
    assert back.headers["location"] == "/sign-in?error=provider"
    assert await browser.name() is None


async def test_who_comes_back_while_the_provider_s_keys_cannot_be_read_is_led_to_the_page(browser: Browser) -> None:
    """Which says that it did not work: a person comes back, not a program."""
    browser.provider.keys_fail = True
    assert (await browser.sign_in()).headers["location"] == "/sign-in?error=provider"


async def test_who_comes_back_while_the_service_is_full_loads_the_page_again(browser: Browser) -> None:
    """Neither the provider's code nor the browser's cookie is used up."""
    address = authorized(browser.provider, await browser.begin())
    with ExitStack() as begun:
        while not (requests := browser.client.served.state["pipeline"].requests).is_full("127.0.0.1"):
            begun.enter_context(requests.held("127.0.0.1"))
        busy = await browser.come_back(address)
    assert (busy.status_code, busy.headers["retry-after"]) == (503, "1")
    assert (await browser.come_back(address)).status_code == 303
    assert await browser.name() == "Ada"


async def test_who_comes_back_while_sessions_cannot_be_read_is_led_to_the_page(browser: Browser) -> None:
    """To add what the provider says to the member whose session it is."""
    await browser.sign_in()
    services, address = browser.client.services, authorized(browser.provider, await browser.begin(add=True))
    token = next(each.value for each in browser.client.http.cookies.jar if "session" in each.name)
    key = key_in(token or "")
    assert key is not None
    services.get(Sessions).ended([key])  # what is known of it is read again

    async def reject(_: str, __: Send) -> None:
        raise Rejected("a call that may not be made")

    with intercepted(services.table, ("batch_get_item",), reject):
        assert (await browser.come_back(address)).headers["location"] == "/sign-in?error=failed"


async def test_nobody_makes_the_service_ask_the_provider_without_end(browser: Browser) -> None:
    """By invented codes, with the flow of a browser of their own, or by beginning flows; other networks go on."""
    browser.client.services.rates = Rates(clock=lambda: 0.0)  # all of it within a minute
    asked = await browser.begin()
    flow = browser.client.http.cookies
    invented = f"{PUBLIC}/sign-in/callback?state={asked['state']}&code="
    answers = []
    for number in range(70):
        browser.client.http.cookies = httpx.Cookies(flow)
        answers.append((await browser.come_back(f"{invented}{number}")).headers["location"])
    assert len(browser.provider.refusals) == answers.count("/sign-in?error=provider") == 60
    assert answers[60:] == ["/sign-in?error=failed"] * 10
    begun = [(await browser.client.http.post("/sign-in", json={"asked": ""})) for _ in range(70)]
    assert [answer.status_code for answer in begun] == [200] * 59 + [429] * 11
    assert int(begun[-1].headers["retry-after"]) > 0
    elsewhere = Browser(on_page(browser.client), browser.provider)
    transport = httpx.ASGITransport(browser.client.served, client=("192.0.2.7", 1))
    elsewhere.client.http = httpx.AsyncClient(transport=transport, base_url=PUBLIC, headers={"origin": PUBLIC})
    assert (await elsewhere.sign_in()).headers["location"] == "/sign-in/done"


async def test_an_answer_counts_in_the_browser_that_asked_and_once(browser: Browser) -> None:
    """An attacker's answer in a victim's browser, which would sign the victim in as the attacker, and a replay."""
    address = authorized(browser.provider, await browser.begin())
    victim = Browser(on_page(browser.client), browser.provider)
    await victim.begin()
    assert (await victim.come_back(address)).headers["location"] == "/sign-in?error=provider"
    assert await victim.name() is None
    assert (await browser.come_back(address)).headers["location"] == "/sign-in/done"
    assert (await browser.come_back(address)).headers["location"] == "/sign-in?error=provider"


async def test_of_two_tabs_that_sign_in_the_one_that_asked_last_does(browser: Browser) -> None:
    """Though the other one comes back first: its answer is refused and ends nothing."""
    first, second = await browser.begin("?returnTo=/one"), await browser.begin("?returnTo=/two")
    back = await browser.come_back(authorized(browser.provider, first))
    assert back.headers["location"].endswith("error=provider")
    back = await browser.come_back(authorized(browser.provider, second))
    assert back.headers["location"] == "/sign-in/done?returnTo=%2Ftwo"
    assert await browser.name() == "Ada"


async def test_the_provider_is_kept_if_nothing_else_signs_in_any_more(service: Client, browser: Browser) -> None:
    """An address does not where no email is sent, nor does what a site says whose key is in the settings no more."""
    await browser.sign_in()
    services, removing = service.services, {"method": "PROVIDER", "label": "127.0.0.1"}
    user = parse_node_key("User", (await browser.client.ask(VIEWER))["id"])
    for other in (of_address("ada@example.org"), of_issuer(SignInMethod.SITE, "a site of old", "ada")):
        await add_identity(services.table, user, other, services.unit())
    assert await browser.client.code(REMOVE, input=removing) == "CONFLICT"
    await add_identity(services.table, user, of_issuer(SignInMethod.SITE, next(iter(SITES)), "ada"), services.unit())
    assert "user" in await browser.client.ask(REMOVE, input=removing)


async def test_of_two_accounts_at_the_provider_the_one_that_is_named_is_removed(browser: Browser) -> None:
    """They have the provider's name, the second with a number. The first still signs in as the same member."""
    await browser.sign_in()
    member = await browser.client.ask(VIEWER)
    browser.provider.claims = {"sub": "another account"}
    await browser.sign_in(add=True)
    shown = (await browser.client.ask("{ viewer { identities { label } } }"))["identities"]
    assert [each["label"] for each in shown] == ["127.0.0.1", "127.0.0.1 (2)"]
    assert "user" in await browser.client.ask(REMOVE, input={"method": "PROVIDER", "label": "127.0.0.1 (2)"})
    other = Browser(on_page(browser.client), browser.provider)
    await other.sign_in()
    assert (await other.client.ask(VIEWER))["id"] != member["id"]
    browser.provider.claims = {}
    await other.sign_in()
    assert await other.client.ask(VIEWER) == member


async def test_a_provider_that_is_one_way_to_sign_in_too_many_is_not_taken_for_another_member_s(
    service: Client, browser: Browser
) -> None:
    """Whoever reads that looks for an account that is not there."""
    bob = await in_session(browser.client, "bob")
    user = parse_node_key("User", (await bob.ask(VIEWER))["id"])
    for place in range(MOST_IDENTITIES - 1):
        address = of_address(f"bob{place}@example.org")
        await add_identity(service.services.table, user, address, service.services.unit())
    browser.client.http.cookies.set("__Host-ringside_session", bob.http.headers["authorization"].split()[1])
    back = await browser.come_back(authorized(browser.provider, await browser.begin(add=True)))
    assert back.headers["location"] == "/sign-in?error=tooMany"


async def test_who_signs_out_while_a_provider_is_being_added_is_told_that(browser: Browser) -> None:
    """And not that it is another member's; whom the provider names can still be added."""
    token = (await in_session(browser.client, "bob")).http.headers["authorization"].split()[1]
    browser.client.http.cookies.set("__Host-ringside_session", token)
    address = authorized(browser.provider, await browser.begin(add=True))
    browser.client.http.cookies.delete("__Host-ringside_session")
    assert (await browser.come_back(address)).headers["location"] == "/sign-in?error=changed"
    browser.client.http.cookies.set("__Host-ringside_session", token)
    assert (await browser.sign_in(add=True)).headers["location"] == "/sign-in/done"
    assert await browser.name() == "Bob"


async def test_an_ended_session_adds_no_provider(service: Client, provider: OidcProvider) -> None:
    """Nor on a process that has yet to hear of its end: who took it would sign in by their own account there."""
    bob = await in_session(service, "bob")
    async with serving(service.settings) as other:
        thief = Browser(on_page(other), provider)
        thief.client.http.cookies.set("__Host-ringside_session", bob.http.headers["authorization"].split()[1])
        address = authorized(provider, await thief.begin(add=True))
        await bob.ask(SIGN_OUT, input={})
        assert (await thief.come_back(address)).headers["location"] == "/sign-in?error=changed"


async def test_who_has_roles_adds_a_provider_soon_after_a_sign_in_alone(browser: Browser) -> None:
    """Or a session that was left open would let somebody sign in as an editor for good."""
    client, now = browser.client, browser.client.services.clock()
    await in_session(client, "ines", Role.EDITOR)
    old, token = new_session(with_session("ines"), "EMAIL", None, now, signed_in_at=now - timedelta(minutes=16))
    await begin_session(client.services.table, client.services.unit(), None, old)
    client.http.cookies.set("__Host-ringside_session", token)
    asked = {"asked": "?returnTo=/admin&link=x", "add": True}
    answer = await client.http.post("/sign-in", json=asked)
    assert answer.json() == {"location": "/sign-in?again=1&returnTo=%2Fadmin"}
    fresh = (await in_session(client, "ines")).http.headers["authorization"].split()[1]
    client.http.cookies.set("__Host-ringside_session", fresh)
    assert (await browser.sign_in(add=True)).headers["location"] == "/sign-in/done"


async def test_a_guest_who_adds_a_provider_is_a_member_on_every_process_at_once(
    service: Client, provider: OidcProvider
) -> None:
    """Also on one that has just known them as a guest: the sign-in at the provider begins a session."""
    guests = service.settings.model_copy(update={"guests": ("comments",)})
    async with serving(guests) as here, serving(guests) as elsewhere:
        ann, there = Browser(on_page(here), provider), on_page(elsewhere)
        await ann.client.ask('mutation { signInAsGuest(input: { name: "Ann" }) { __typename } }')
        there.http.cookies = ann.client.http.cookies
        assert await there.ask("{ viewer { name isGuest } }") == {"name": "Ann", "isGuest": True}
        assert (await ann.sign_in(add=True)).headers["location"] == "/sign-in/done"
        there.http.cookies = ann.client.http.cookies
        assert "list" in await there.ask(CREATE_LIST, input={"name": "Mine", "public": False})


async def test_a_code_is_worth_nothing_without_its_verifier(browser: Browser) -> None:
    """Whoever steals one from the address bar cannot use it in a flow of their own: PKCE."""
    stolen = authorized(browser.provider, await browser.begin())
    thief = Browser(on_page(browser.client), browser.provider)
    own = await thief.begin()
    code = parse_qs(urlsplit(stolen).query)["code"][0]
    back = await thief.come_back(f"{PUBLIC}/sign-in/callback?code={code}&state={own['state']}")
    assert back.headers["location"] == "/sign-in?error=provider"
    assert browser.provider.refusals == ["code_verifier"]


async def test_who_was_erased_is_told_so(service: Client, browser: Browser) -> None:
    """And not to try again in a moment."""
    await browser.sign_in()
    me = await browser.client.ask(VIEWER)
    await browser.client.ask(ERASE, user=me["id"])
    stranger = Browser(on_page(service, PUBLIC), browser.provider)
    assert (await stranger.sign_in()).headers["location"] == "/sign-in?error=erased"


async def test_the_log_says_why_the_provider_refused(browser: Browser) -> None:
    """It did answer: an operator who has set another secret than the provider's reads its reason."""
    browser.provider.parameters = {"code": "invented"}
    with capture_logs() as logs:
        await browser.sign_in()
    (reason,) = [log["reason"] for log in logs if log["event"] == "the provider signed nobody in"]
    assert reason == f"{browser.provider.issuer}/token answered 400: invalid_grant"


@pytest.mark.parametrize(
    "wrong",
    [
        {"issuer": "https://evil.example"},
        {"authorization_endpoint": None},
        {"authorization_endpoint": "https://[broken"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"token_endpoint": "http://ringside.example:99999999/"},
        {"token_endpoint": 7},
    ],
    ids=str,
)
async def test_a_wrong_discovery_document_sends_nobody_anywhere(browser: Browser, wrong: dict[str, Any]) -> None:
    browser.provider.discovered = wrong
    with capture_logs() as logs:
        answer = await browser.client.http.post("/sign-in", json={"asked": ""})
    assert (answer.status_code, "The provider does not answer" in answer.text) == (503, True)
    assert ["its discovery document is wrong" in log["reason"] for log in logs] == [True]


async def test_a_provider_that_moves_is_followed(browser: Browser) -> None:
    """Without a new start of the service; while its discovery document is wrong, people sign in where they did."""
    provider, cache = browser.provider, browser.client.services.cache

    async def page() -> str:
        answer = await browser.client.http.post("/sign-in", json={"asked": ""})
        return urlsplit(str(answer.json()["location"])).path

    assert await page() == "/authorize"
    for discovered in ({"authorization_endpoint": f"{provider.issuer}/moved"}, {"issuer": "https://evil.example"}):
        provider.discovered = discovered
        later = cache.clock() + FRESH_SECONDS
        cache.clock = partial(float, later)
        assert await page() == "/moved"


async def test_a_host_that_cannot_be_ends_a_sign_in_with_a_word(browser: Browser) -> None:
    browser.provider.discovered = {"token_endpoint": "http://xn--/token"}
    assert (await browser.sign_in()).headers["location"] == "/sign-in?error=provider"


async def test_a_long_address_fits_into_the_cookie_of_the_flow_or_is_refused(browser: Browser) -> None:
    """Browsers drop cookies of more than 4,096 characters without a word."""
    back = "x" * 1999
    assert (await browser.sign_in(f"?returnTo=/{back}")).headers["location"].endswith(back)
    for asked in ("x" * 2700, "x" * 2800, "x" * 2801, "x" * 3000, '"' * 2800):
        answer = await browser.client.http.post("/sign-in", json={"asked": asked})
        kept = max(map(len, answer.headers.get("set-cookie", "").split("; ")))
        assert (answer.status_code, kept <= 4096) == (200 if len(asked) <= 2800 and "x" in asked else 400, True)


async def test_only_the_page_of_the_service_begins(browser: Browser) -> None:
    """A page of another site cannot send people through a flow of its own making."""
    for origin in ("https://evil.example", "null", ""):
        headers = {"origin": origin} if origin else {}
        answer = await browser.client.http.post("/sign-in", json={"asked": ""}, headers={"origin": "x", **headers})
        assert answer.status_code == 403
