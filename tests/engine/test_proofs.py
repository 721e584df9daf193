"""Proofs of purchase: what a shop signs and what is refused; lists and numbers of verified comments."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from jwt.algorithms import RSAAlgorithm

from datastore.people.profiles import set_email
from resolvers.requests.context import Role
from resolvers.values.node_ids import node_id
from server.audit import find_suspects
from server.settings import Settings
from tests.client import Client, pages, serving
from tests.comments import post
from tests.confirmations import ADA, mailing
from tests.oidc_provider import KEY, oidc_provider
from tests.queries import DELETE_COMMENT, EDIT_COMMENT, MODERATE_COMMENT, mutation
from tests.sign_in import asked, signed_in

SECRET = "a shop's secret of 32 characters or more"
POST = mutation("postComment", "CommentPosted", "comment { id verifiedAt }", refused="code path message")
ADD = mutation("addIdentity", "IdentityAdded", "user { id }")
PAGE = """
query ($first: Int, $after: String, $verified: Boolean, $order: CommentOrder! = NEWEST, $languages: [String!]) {
  comments(product: "42", first: $first, after: $after, verified: $verified, order: $order, languages: $languages) {
    totalCount nodes { id replyCount helpful } pageInfo { hasNextPage endCursor } } }"""
NUMBERS = """{ commentStatistics(product: "42") { total verified verifiedHistogram { rating count } } }"""
DAY = 86_400
"""Seconds. What is made when the tests are collected must be what it is still when they run."""
MARK = """mutation ($input: MarkHelpfulInput!) { markHelpful(input: $input) { __typename } }"""


@pytest.fixture
async def shop(client: Client) -> AsyncIterator[Client]:
    """The same table, where a shop's proofs count."""
    keys = json.dumps([{"issuer": "shop", "hs256": SECRET}])
    settings = Settings.model_validate({**client.settings.model_dump(), "proof_keys": keys})
    async with serving(settings) as other:
        yield other


def proof(user: str | None = "ada", *, key: Any = SECRET, algorithm: str = "HS256", **claims: Any) -> str:
    now = int(time.time())
    sub = None if user is None else node_id("User", user)
    stated = {"iss": "shop", "aud": "ringside-proof", "iat": now, "exp": now + DAY, "product": "42", "sub": sub}
    whole = {name: value for name, value in {**stated, **claims}.items() if value is not None}
    return jwt.encode(whole, key, algorithm=algorithm)


async def show(member: Client, shown: str, **more: Any) -> dict[str, Any]:
    fields = {"product": "42", "language": "en", "rating": 5, "body": "Well made.", "proof": shown, **more}
    answer: dict[str, Any] = await member.ask(POST, input=fields)
    return answer


async def listed(client: Client, **filters: Any) -> list[str]:
    return [node["id"] for node in await pages(client, PAGE, **filters)]


async def test_a_proof_verifies_the_comment_that_it_is_shown_for(shop: Client) -> None:
    ada = shop.member("ada")
    comment = (await show(ada, proof()))["comment"]
    assert comment["verifiedAt"] is not None
    other = await post(shop.member("bob"))
    assert await listed(shop, verified=True) == [comment["id"]]
    assert await listed(shop, verified=False) == [other["id"]]
    assert await listed(shop) == [other["id"], comment["id"]]
    for verified, number in ((True, 1), (False, 1), (None, 2)):
        assert (await shop.ask(PAGE, verified=verified))["totalCount"] == number
    numbers = await shop.ask(NUMBERS)
    assert (numbers["total"], numbers["verified"]) == (2, 1)
    assert numbers["verifiedHistogram"][0] == {"rating": 5, "count": 1}
    assert await find_suspects(shop.services, "comments") == []


NOW = int(time.time())
BAD = {
    "altered": (proof()[:-4] + "AAAA", "signed"),
    "no token": ("nonsense", "JSON Web Token"),
    "nothing": ("", "JSON Web Token"),
    "too long": ("x" * 5000, "4,096"),
    "none": (jwt.encode({"iss": "shop", "aud": "ringside-proof", "product": "42"}, "", algorithm="none"), "hold"),
    "another secret": (proof(key="another secret of 32 characters or so"), "signed"),
    "another issuer": (proof(iss="stranger"), "issuer"),
    "no issuer": (proof(iss=None), "iss"),
    "another audience": (proof(aud="https://ringside.test"), "audience"),
    "no audience": (proof(aud=None), "aud"),
    "another product": (proof(product="43"), "another product"),
    "no product": (proof(product=None), "another product"),
    "another member": (proof("bob"), "another member"),
    "another id": (proof(sub="ada"), "another member"),
    "nobody": (proof(None), "whom it is for"),
    "an address that is not confirmed": (proof(None, email="ada@example.com"), "another address"),
    "one's own id and another address": (proof(email="bob@example.com"), "another address"),
    "an address of another kind": (proof(None, email=7), "another address"),
    "expired": (proof(iat=NOW - 7200, exp=NOW - 3600), "too old"),
    "of the future": (proof(iat=NOW + DAY, exp=NOW + 2 * DAY), "future"),
    "for too long": (proof(exp=NOW + 366 * DAY), "365 days"),
    "without an end": (proof(exp=None), "exp"),
    "without a beginning": (proof(iat=None), "iat"),
    "a time that is none": (proof(iat="soon"), "iat"),
    "an endless time": (proof(exp=10**30), "iat"),
}


@pytest.mark.parametrize("name", BAD)
async def test_a_proof_that_does_not_hold_posts_nothing(shop: Client, name: str) -> None:
    shown, reason = BAD[name]
    refused = await show(shop.member("ada"), shown)
    assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "proof"])
    assert reason in refused["message"]
    assert await listed(shop) == []


async def test_where_no_shop_is_known_no_proof_counts(client: Client) -> None:
    refused = await show(client.member("ada"), proof())
    assert refused["code"] == "INVALID_INPUT"
    assert "No shop" in refused["message"]


async def test_a_shop_may_sign_by_public_keys_and_only_by_them(client: Client) -> None:
    """Whoever takes the public key for a secret signs nothing."""
    with oidc_provider() as provider:
        keys = json.dumps([{"issuer": "shop", "jwks": f"{provider.issuer}/keys"}])
        settings = Settings.model_validate({**client.settings.model_dump(), "proof_keys": keys})
        async with serving(settings) as shop:
            ada = shop.member("ada")
            public = json.dumps(RSAAlgorithm.to_jwk(KEY.public_key()))
            confused = await show(ada, proof(key=public + " " * 64))
            assert confused["code"] == "INVALID_INPUT"
            assert (await show(ada, proof(key=KEY, algorithm="RS256")))["comment"]["verifiedAt"]


async def test_a_proof_for_an_address_is_for_whoever_confirmed_it(shop: Client) -> None:
    ada = shop.member("ada")
    await ada.ask("{ viewer { id } }")
    await post(ada, "before")  # introduces the member
    await set_email(shop.services.table, "ada", "ada@example.com", shop.services.unit())
    shop.services.profiles.forget("ada")
    assert (await show(ada, proof(None, email="Ada@Example.COM")))["comment"]["verifiedAt"]
    assert (await show(shop.member("bob"), proof(None, email="ada@example.com")))["code"] == "INVALID_INPUT"


async def test_a_proof_for_any_address_of_a_member_holds(shop: Client, tmp_path: Path) -> None:
    """That by which they came, and one that they added."""
    async with mailing(shop.settings, tmp_path) as mail:
        mail.client.services.clock = shop.services.clock
        token = (await signed_in(mail, ADA))["token"]
        ada = Client(mail.client.served, mail.client.settings, token)
        code = await asked(mail, "ada@new.example", ada)
        await ada.ask(ADD, input={"request": code["request"], "code": code["code"]})
        for address in (ADA, "ada@new.example"):
            assert (await show(ada, proof(None, email=address)))["comment"]["verifiedAt"]


async def test_a_proof_counts_once_until_its_comment_is_deleted(shop: Client) -> None:
    """However many show it at once; what a moderator rejects is not deleted."""
    ada, shown = shop.member("ada"), proof()
    answers = await asyncio.gather(*(show(ada, shown) for _ in range(6)))
    (comment,) = [answer["comment"] for answer in answers if "comment" in answer]
    assert {answer.get("code") for answer in answers if "comment" not in answer} == {"INVALID_INPUT"}
    moderator = shop.member("mod", Role.MODERATOR)
    await moderator.ask(MODERATE_COMMENT, input={"comment": comment["id"], "status": "REJECTED"})
    assert (await show(ada, shown))["code"] == "INVALID_INPUT"
    await ada.ask(DELETE_COMMENT, input={"comment": comment["id"]})
    assert (await show(ada, shown))["comment"]["verifiedAt"]
    assert len(await listed(shop, verified=True)) == 1
    assert await find_suspects(shop.services, "comments") == []


async def test_the_same_statement_with_another_signature_is_the_same_proof(shop: Client) -> None:
    ada, shown = shop.member("ada"), proof()
    await show(ada, shown)
    assert (await show(ada, shown + "="))["code"] == "INVALID_INPUT"


async def test_the_lists_of_verified_comments_follow_every_change(shop: Client) -> None:
    """Editing, holding, publishing, replies, helpful marks and deleting."""
    ada, bob, moderator = shop.member("ada"), shop.member("bob"), shop.member("mod", Role.MODERATOR)
    comment = (await show(ada, proof()))["comment"]["id"]
    await bob.ask(MARK, input={"comment": comment, "helpful": True})
    await post(bob, rating=None, inReplyTo=comment)
    page = await shop.ask(PAGE, verified=True)
    assert page["nodes"] == [{"id": comment, "replyCount": 1, "helpful": 1}]
    await ada.ask(EDIT_COMMENT, input={"comment": comment, "language": "de", "rating": 2})
    assert await listed(shop, verified=True, languages=["en"]) == []
    assert await listed(shop, verified=True, languages=["de"]) == [comment]
    assert (await shop.ask(NUMBERS))["verifiedHistogram"][3] == {"rating": 2, "count": 1}
    await moderator.ask(MODERATE_COMMENT, input={"comment": comment, "status": "PENDING"})
    assert await listed(shop, verified=True) == []
    assert (await shop.ask(NUMBERS))["verified"] == 0
    assert await find_suspects(shop.services, "comments") == []
    await moderator.ask(MODERATE_COMMENT, input={"comment": comment, "status": "PUBLISHED"})
    assert await listed(shop, verified=True) == [comment]
    assert await find_suspects(shop.services, "comments") == []
    await ada.ask(DELETE_COMMENT, input={"comment": comment})
    assert await listed(shop, verified=True) == []
    assert await find_suspects(shop.services, "comments") == []


async def test_the_most_helpful_can_be_the_verified_ones(shop: Client) -> None:
    verified = (await show(shop.member("ada"), proof()))["comment"]["id"]
    others = [(await post(shop.member("bob")))["id"] for _ in range(3)]
    for comment in (others[0], verified):
        await shop.member("cy").ask(MARK, input={"comment": comment, "helpful": True})
    assert await listed(shop, verified=True, order="HELPFUL") == [verified]
    assert sorted(await listed(shop, verified=False, order="HELPFUL")) == sorted(others)


async def test_a_reply_takes_no_proof(shop: Client) -> None:
    comment = await post(shop.member("bob"))
    refused = await show(shop.member("ada"), proof(), rating=None, inReplyTo=comment["id"])
    assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "proof"])
