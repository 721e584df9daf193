"""Who is asking is proven, new, or refused with a reason; never guessed."""

import json
import math
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from datastore.values.seal import Seal
from resolvers.requests.context import Kind, Role, Services, Viewer
from server.auth.cookies import COOKIE, READER_COOKIE
from server.auth.identification import Identification, Identified, parse_authorizations
from server.auth.tokens import MAX_CACHED, MAX_TOKEN_LENGTH, Tokens, mint
from server.auth.verification import Unauthenticated
from server.settings import Settings

NEW = "the newest of our secrets, used to sign"
OLD = "the one before it, which still opens it"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

Headers = list[tuple[bytes, bytes]]


def deployment(*secrets: str, **more: Any) -> Settings:
    return Settings(
        dynamodb_url="http://127.0.0.1:1", secrets=tuple(map(SecretStr, secrets or (NEW, OLD))), data=Path(), **more
    )


def identification(settings: Settings | None = None) -> Identification:
    settings = settings or deployment()
    nobody = SimpleNamespace(find_many=_find_nobody)
    return Identification(settings, Services(nobody, settings.seal()))  # type: ignore[arg-type]  # no table


async def _find_nobody(_: Sequence[object], *, consistent: bool) -> list[None]:
    assert consistent
    return []


def sub_of(viewer: Viewer) -> str:
    """What the token calls its bearer, who is nobody's member yet."""
    assert viewer.proven is not None
    return viewer.proven.subject


def signed(secret: str = NEW, algorithm: str = "HS256", **claims: object) -> str:
    # Some are made when tests are collected, long before they run.
    whole = {"sub": "ann", "exp": int(time.time()) + 86_400} | claims
    return jwt.encode({key: value for key, value in whole.items() if value is not None}, secret, algorithm=algorithm)


def bearer(token: str) -> Headers:
    return [(b"host", b"x"), (b"authorization", f"Bearer {token}".encode("latin-1"))]


async def asked(token: str, settings: Settings | None = None) -> Viewer:
    identified = await identification(settings).identify(bearer(token), secure=False)
    assert (identified.reader_cookie, identified.mutation_cookie) == (None, None)
    return identified.viewer


async def refusal(token: str, settings: Settings | None = None) -> str:
    with pytest.raises(Unauthenticated) as refused:
        await asked(token, settings)
    return refused.value.detail


# ─── Members ──────────────────────────────────────────────────────────────────────────────────


async def test_a_token_minted_here_says_who_it_is() -> None:
    """The whole way of `ringside token`."""
    token = mint(deployment(), "ann", name="Ann", email="ann@example.com", roles=[Role.EDITOR])
    viewer = await asked(token)
    assert sub_of(viewer) == "ann"
    assert (viewer.kind, viewer.name, viewer.email) == (Kind.MEMBER, "Ann", "ann@example.com")
    assert viewer.roles == {Role.MEMBER, Role.EDITOR}


async def test_any_library_can_mint_with_the_secret_unchanged() -> None:
    """`sub` and `exp` are enough."""
    viewer = await asked(signed())
    assert (sub_of(viewer), viewer.name) == ("ann", None)
    assert viewer.roles == {Role.MEMBER}


async def test_secrets_rotate() -> None:
    """All of them open; a dropped one does not; the newest mints."""
    assert sub_of(await asked(signed(OLD))) == "ann"
    assert sub_of(await asked(mint(deployment(), "ann"), deployment(NEW))) == "ann"
    assert "not signed" in await refusal(signed(OLD), deployment(NEW))


@pytest.mark.parametrize(
    ("roles", "may"),
    [
        ([], {Role.MEMBER}),
        (["moderator"], {Role.MEMBER, Role.MODERATOR}),
        (["editor", "moderator"], {Role.MEMBER, Role.MODERATOR, Role.EDITOR}),
        (["admin"], set(Role)),
        (["root", "Admin", 7, None, ["admin"], {"admin": 1}, "editor"], {Role.MEMBER, Role.EDITOR}),
        (None, {Role.MEMBER}),
    ],
)
async def test_roles_imply_others_and_unknown_ones_give_nothing(roles: list[Any] | None, may: set[Role]) -> None:
    """An admin may everything, everybody with a token is a member."""
    viewer = await asked(signed(roles=roles))
    assert {role for role in Role if viewer.may(role)} == may


def test_a_visitor_has_no_role_whatever_is_claimed() -> None:
    """Not even the member's."""
    visitor = Viewer("visitor-x", Kind.VISITOR, roles=frozenset(Role))
    assert not visitor.is_member
    assert not any(visitor.may(role) for role in Role)


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        (signed(exp=int(time.time()) - 1), "has expired"),
        (signed(exp=None), "has no exp"),
        (signed(sub=None), "has no sub"),
        (signed("another secret, of more than 32 letters"), "not signed by a key known here"),
        (signed(nbf=int(time.time()) + 43_200), "not valid yet"),
        (signed(exp="tomorrow"), "exp must be a number"),
        (signed(exp=True), "exp must be a number"),
        (signed(exp=math.inf), "exp must be a number"),
        (signed(exp=math.nan), "exp must be a number"),
        (signed(exp=-math.inf), "exp must be a number"),
        (signed(nbf=[1]), "nbf must be a number"),
        (signed(sub=""), "1 to 255 bytes"),
        (signed(sub="a\ud800b"), "1 to 255 bytes"),
        (signed(sub="x" * 256), "1 to 255 bytes"),
        (signed(name=["Ann"]), "must be text"),
        (signed(email=5), "must be text"),
        (signed(roles=7), "roles must be a list, or text"),
        (signed(2 * NEW, algorithm="HS512"), "algorithm is not accepted"),
        (jwt.encode({"sub": "ann", "exp": 2**40}, "", algorithm="none"), "algorithm is not accepted"),
        ("not.a.token", "not a JSON Web Token"),
        ("nonsense", "not a JSON Web Token"),
        ("é.é.é", "not a JSON Web Token"),
        ("x" * (MAX_TOKEN_LENGTH + 1), "more than 8192 characters"),
        (urlsafe_b64encode(b"[" * 3000).decode() + "..", "not a JSON Web Token"),
    ],
)
async def test_a_bad_token_is_refused_with_its_reason(token: str, reason: str) -> None:
    """Never served as a visitor; the reason fits into a header and repeats nothing of the token."""
    text = await refusal(token)
    assert reason in text
    assert text.isascii()
    assert not set('"\\\r\n') & set(text)


async def test_an_expiry_after_the_end_of_time_is_refused() -> None:
    """And a number of thousands of digits is no more than nonsense."""
    assert sub_of(await asked(signed(exp=253_402_300_799))) == "ann"
    for exp in (253_402_300_800, 10**400):
        assert "before the year 10000" in await refusal(signed(exp=exp))
    header, _, _ = signed().split(".")
    payload = urlsafe_b64encode(b'{"sub":"ann","exp":' + b"9" * 5000 + b"}").rstrip(b"=").decode()
    assert "JSON Web Token" in await refusal(f"{header}.{payload}.{_mac(f'{header}.{payload}')}")


def _mac(signing: str) -> str:
    mac = jwt.get_algorithm_by_name("HS256").sign(signing.encode(), NEW.encode())
    return urlsafe_b64encode(mac).rstrip(b"=").decode()


def altered(text: str, letters: str, place: int, step: int) -> str:
    """The same with another letter somewhere. What is drawn must not depend on the text, which is new every time."""
    at = place % len(text)
    other = letters[(letters.find(text[at]) + step) % len(letters)]
    return text[:at] + other + text[at + 1 :]


@given(st.integers(0, 10_000), st.integers(1, len(LETTERS)))
async def test_any_changed_character_of_a_token_is_refused(place: int, step: int) -> None:
    """In header, payload and signature alike."""
    with pytest.raises(Unauthenticated):
        await Tokens(deployment()).member(altered(signed(name="Ann"), LETTERS + ".=+/", place, step))


@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda raw: raw.decode("latin-1")))
async def test_nonsense_is_refused_and_nothing_else_happens(token: str) -> None:
    """Lone surrogates included, which a WebSocket's JSON can carry."""
    with pytest.raises(Unauthenticated):
        await Tokens(deployment()).member(token)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.fixed_dictionaries(
        {"sub": json_values, "exp": json_values | st.just(2**40)},
        optional=dict.fromkeys(("name", "email", "roles", "nbf", "iat", "jti", "aud", "iss"), json_values),
    )
)
async def test_unusual_claims_are_accepted_or_refused(claims: Mapping[str, Any]) -> None:
    """Signed by us or not: whatever JSON holds, there is a member fit for a key, or a reason."""
    payload = urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    signing = f"{signed().split('.')[0]}.{payload}"
    try:
        viewer, _ = await Tokens(deployment()).member(f"{signing}.{_mac(signing)}")
    except Unauthenticated:
        return
    assert sub_of(viewer) == claims["sub"]
    assert sub_of(viewer).encode()
    assert sub_of(viewer) not in viewer.id


async def test_audience_and_issuer_are_checked_once_they_are_set() -> None:
    """Without them, tokens of any audience pass; with them, only theirs."""
    strict = deployment(jwt_audience="ringside", jwt_issuer="https://login.example.com/")
    right: dict[str, Any] = {"aud": ["other", "ringside"], "iss": "https://login.example.com/"}
    assert sub_of(await asked(signed(**right), strict)) == "ann"
    assert sub_of(await asked(signed(aud="other", iss="anybody"))) == "ann"
    assert "another audience" in await refusal(signed(**right | {"aud": "other"}), strict)
    assert "has no aud" in await refusal(signed(**right | {"aud": None}), strict)
    assert "another issuer" in await refusal(signed(**right | {"iss": "https://evil.example/"}), strict)
    assert "has no iss" in await refusal(signed(**right | {"iss": None}), strict)
    assert sub_of(await asked(mint(strict, "ann"), strict)) == "ann"


async def test_clocks_may_differ_a_little() -> None:
    """A token issued by a machine that is ten seconds ahead is good."""
    ahead = int(time.time()) + 10
    assert sub_of(await asked(signed(nbf=ahead, iat=ahead))) == "ann"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Ann", "Ann"),
        (" ", None),
        ("", None),
        ("A\x00n\nn\u202en", "A n n n"),
        ("Ann  Lee\u00a0 ", "Ann Lee"),  # first, no middle and last name
        ("می‌نا", "می‌نا"),
        ("x" * 500, "x" * 100),
    ],
)
async def test_a_name_is_reduced_to_one_line(name: str, shown: str | None) -> None:
    """What a provider says of a person, that person cannot mend; joiners belong to names."""
    assert (await asked(signed(name=name))).name == shown


@pytest.mark.parametrize(
    ("claims", "email"),
    [
        ({"email": "ann@example.com"}, "ann@example.com"),
        ({"email": "ann@example.com", "email_verified": True}, "ann@example.com"),
        ({"email": "ann@example.com", "email_verified": False}, None),
        ({"email": "ann"}, None),
        ({"email": "-oQ/tmp@example.com"}, None),
        ({"email": "ann@example.com\r\nBcc: all@example.com"}, None),
        ({"email": f"{'x' * 250}@example.com"}, None),
    ],
)
async def test_a_valid_address_is_taken_from_the_token(claims: dict[str, Any], email: str | None) -> None:
    """Mail is sent there, so neither an unverified one nor a header in disguise."""
    assert (await asked(signed(**claims))).email == email


async def test_a_verified_token_is_remembered_but_never_past_its_expiry() -> None:
    """The second look is cheap; the first one at the expiry is a refusal."""
    now = float(int(time.time()))
    tokens = Tokens(deployment(), clock=lambda: now)
    token = signed(exp=int(now) + 10)
    assert (await tokens.member(token))[0] is (await tokens.member(token))[0]
    now += 10
    with pytest.raises(Unauthenticated, match="expired"):
        await tokens.member(token)


async def test_a_token_is_remembered_for_a_minute_after_the_clock_was_corrected() -> None:
    """Not until the time that it showed: the provider may withdraw a key."""
    now = time.time() + 7200
    tokens = Tokens(deployment(), clock=lambda: now)
    token = signed(exp=int(now) + 7200)
    ahead, _ = await tokens.member(token)
    now -= 7200
    corrected, _ = await tokens.member(token)
    assert corrected == ahead
    assert corrected is not ahead
    assert (await tokens.member(token))[0] is corrected


async def test_the_cache_of_tokens_is_bounded() -> None:
    """The oldest goes, and is verified again when it comes back."""
    tokens = Tokens(deployment())
    first, _ = await tokens.member(oldest := signed())
    for n in range(MAX_CACHED):
        await tokens.member(signed(sub=f"user-{n}"))
    again, _ = await tokens.member(oldest)
    assert again == first
    assert again is not first


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "Bearer "])
async def test_the_scheme_is_read_in_any_case(scheme: str) -> None:
    """RFC 9110 says so."""
    headers = [(b"authorization", f"{scheme} {signed()}".encode())]
    assert sub_of((await identification().identify(headers, secure=False)).viewer) == "ann"


@pytest.mark.parametrize("proof", [b"", b"Bearer", b"Bearer ", b"Basic YTpi", b"\xff\xfe"])
async def test_an_authorization_other_than_a_bearer_token_is_refused(proof: bytes) -> None:
    """It is not ignored: who sends one expects it to count."""
    with pytest.raises(Unauthenticated, match="must be Bearer, a space and the token"):
        await identification().identify([(b"authorization", proof)], secure=False)


async def test_two_authorizations_are_refused() -> None:
    """An intermediary might read the other one."""
    with pytest.raises(Unauthenticated, match="more than one"):
        await identification().identify(bearer(signed()) + bearer(signed(sub="bob")), secure=False)


def test_a_refusal_carries_its_challenge() -> None:
    """What RFC 6750 asks for."""
    challenge = 'Bearer error="invalid_token", error_description="The token has expired: get a new one."'
    assert Unauthenticated("The token has expired: get a new one.").headers == {"WWW-Authenticate": challenge}


# ─── WebSockets ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("key", ["Authorization", "authorization", "AUTHORIZATION"])
async def test_a_websocket_may_bring_its_token_in_connection_init(key: str) -> None:
    """Browsers cannot set headers there; what they do bring, the cookie's session included, counts less."""
    given = parse_authorizations({key: f"Bearer {signed()}", "other": 1})
    answers = [
        await identification().identify(headers, secure=True, authorizations=given) for headers in ([], bearer("old"))
    ]
    assert [sub_of(answer.viewer) for answer in answers] == ["ann", "ann"]


@pytest.mark.parametrize("value", [5, "", [], {"a": 1}, "Bearer \ud800"])
async def test_a_websocket_with_an_invalid_token_is_refused(value: object) -> None:
    """As over HTTP."""
    with pytest.raises(Unauthenticated):
        await identification().identify([], secure=True, authorizations=parse_authorizations({"Authorization": value}))


@pytest.mark.parametrize("params", [{"headers": {"authorization": "{}"}}, {"Headers": {"AUTHORIZATION": "{}"}}])
async def test_a_websocket_may_bring_its_token_among_headers_in_connection_init(params: dict[str, Any]) -> None:
    """Some clients send the headers that they send over HTTP."""
    [(name, headers)] = params.items()
    sent = {name: {key: value.format(f"Bearer {signed()}") for key, value in headers.items()}, "other": 1}
    given = parse_authorizations(sent)
    assert sub_of((await identification().identify([], secure=True, authorizations=given)).viewer) == "ann"
    twice = parse_authorizations({**sent, "Authorization": f"Bearer {signed()}"})
    with pytest.raises(Unauthenticated, match="more than one"):
        await identification().identify([], secure=True, authorizations=twice)


@pytest.mark.parametrize(
    "params",
    [{}, {"Authorization": None}, {"theme": "dark"}, {"headers": None}, {"headers": "x"}, {"headers": {"a": 1}}],
)
async def test_a_websocket_without_a_token_in_connection_init_uses_its_headers(params: dict[str, object]) -> None:
    """The token or the cookie of the handshake."""
    given = parse_authorizations(params)
    identified = await identification().identify(bearer(signed()), secure=True, authorizations=given)
    assert sub_of(identified.viewer) == "ann"


# ─── Visitors ─────────────────────────────────────────────────────────────────────────────────


def cookie_of(identified: Identified) -> str:
    assert identified.mutation_cookie
    return identified.mutation_cookie.partition(";")[0].partition("=")[2]


def cookies(*values: str) -> Headers:
    return [(b"cookie", value.encode("latin-1")) for value in values]


async def test_a_visitor_gets_a_cookie_once_and_stays_the_same() -> None:
    """The second time there is nothing to set."""
    who = identification()
    first = await who.identify([], secure=False)
    second = await who.identify(cookies(f"theme=dark; {COOKIE}={cookie_of(first)}; lang=en"), secure=False)
    assert second == Identified(first.viewer)
    assert first.viewer.kind is Kind.VISITOR
    assert first.viewer.id.startswith("visitor-")
    assert len(first.viewer.id) == len("visitor-") + 26


async def test_two_visitors_have_two_ids() -> None:
    """Sixteen random bytes each."""
    who = identification()
    assert (await who.identify([], secure=False)).viewer.id != (await who.identify([], secure=False)).viewer.id


@pytest.mark.parametrize(
    ("secure", "end"), [(True, "; HttpOnly; SameSite=Lax; Secure"), (False, "; HttpOnly; SameSite=Lax")]
)
async def test_the_cookie_is_hidden_from_scripts_other_sites_and_plain_http(secure: bool, end: str) -> None:  # noqa: FBT001
    """Behind TLS it is sent over TLS only."""
    visitor = await identification().identify([], secure=secure)
    for cookie in (visitor.reader_cookie, visitor.mutation_cookie):
        assert cookie
        assert cookie.endswith(f"; Path=/; Max-Age=31536000{end}")


async def test_the_cookie_of_a_mutation_takes_precedence_and_keeps_a_reader_s_visitor() -> None:
    """In any order, in one header or, as over HTTP/2, in several; then no answer sets another."""
    who = identification()
    reader, voter = [await who.identify([], secure=False) for _ in range(2)]
    read = f"{READER_COOKIE}={cookie_of(reader)}"
    known = await who.identify(cookies(read), secure=False)
    assert (known.viewer, known.reader_cookie) == (reader.viewer, None)
    assert known.mutation_cookie == reader.mutation_cookie
    voted = f"{COOKIE}={cookie_of(voter)}"
    for headers in (cookies(f"{read}; {voted}"), cookies(voted, read), cookies(read, voted)):
        assert await who.identify(headers, secure=False) == Identified(voter.viewer)


async def test_a_visitor_s_cookie_survives_a_rotation() -> None:
    """And is refused once the secret is gone."""
    first = await identification(deployment(OLD)).identify([], secure=False)
    headers = cookies(f"{COOKIE}={cookie_of(first)}")
    assert (await identification(deployment(NEW, OLD)).identify(headers, secure=False)).viewer == first.viewer
    with pytest.raises(Unauthenticated):
        await identification(deployment(NEW)).identify(headers, secure=False)


@given(st.integers(0, 10_000), st.integers(1, len(LETTERS)))
async def test_any_changed_character_of_a_cookie_is_refused(place: int, step: int) -> None:
    """Nobody votes in another's name, or twice by counting upwards."""
    who = identification()
    cookie = altered(cookie_of(await who.identify([], secure=False)), LETTERS + "=+/é", place, step)
    with pytest.raises(Unauthenticated):
        await who.identify(cookies(f"{COOKIE}={cookie}"), secure=False)


@pytest.mark.parametrize("name", [COOKIE, READER_COOKIE])
@pytest.mark.parametrize("value", ["", "x", '"quoted"', "\xff"])
async def test_a_forged_cookie_is_refused_and_deleted(name: str, value: str) -> None:
    """Scripts cannot delete it, so the refusal does; the reason says so."""
    with pytest.raises(Unauthenticated, match=f"cookie {name} was altered.*ask again") as refused:
        await identification().identify(cookies(f"{name}={value}"), secure=True)
    deleted = f"{name}=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax; Secure"
    assert refused.value.clear_cookies == [deleted]


async def test_a_ballot_is_not_a_cookie() -> None:
    """Seals are bound to what they are for."""
    settings = deployment()
    ballot = settings.seal().sign_text("ballot", bytes(16))
    with pytest.raises(Unauthenticated):
        await identification(settings).identify(cookies(f"{COOKIE}={ballot}"), secure=False)


async def test_a_token_takes_precedence_over_a_cookie() -> None:
    """Somebody who signed in keeps their visitor's cookie and needs no other."""
    headers = bearer(signed()) + cookies(f"{COOKIE}=whatever")
    assert sub_of((await identification().identify(headers, secure=False)).viewer) == "ann"


async def test_other_cookies_are_ignored() -> None:
    """Nor is a name that only looks like ours."""
    headers = cookies("theme=dark", f"x{COOKIE}=1; {COOKIE}x=2; ; =; novalue")
    assert (await identification().identify(headers, secure=False)).reader_cookie


# ─── Minting ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("user", "more", "reason"),
    [("", {}, "1 to 255 bytes"), ("x" * 256, {}, "1 to 255 bytes")],
)
def test_a_token_that_would_be_refused_is_not_minted(user: str, more: dict[str, Any], reason: str) -> None:
    """The command line says why at once."""
    with pytest.raises(ValueError, match=reason):
        mint(deployment(), user, **more)


def test_no_token_is_minted_with_an_oidc_provider() -> None:
    """It would be refused."""
    with pytest.raises(ValueError, match="get a token from it"):
        mint(deployment(oidc_issuer="https://login.example.com/"), "ann")


async def test_a_minted_token_lives_as_long_as_was_asked_for() -> None:
    """A week unless said otherwise."""
    claims = jwt.decode(mint(deployment(), "ann"), NEW, algorithms=["HS256"])
    assert claims["exp"] - claims["iat"] == 7 * 24 * 60 * 60
    assert "has expired" in await refusal(mint(deployment(), "ann", lifetime=timedelta(seconds=-1)))


def test_seals_of_the_settings_open_each_other() -> None:
    """The seal that the application hands round is made of the same secrets."""
    assert Seal([NEW]).open("any", deployment().seal().sign("any", b"here")) == b"here"
