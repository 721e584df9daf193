"""Finding out who is a member, and guessing codes."""

import asyncio
from collections.abc import AsyncIterator
from contextvars import ContextVar
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from datastore.dynamo import Rates, Table, parse_rate
from datastore.people.identities import of_address
from resolvers.members.sign_in_codes import TRIES, CodeEmail, SignInCodes
from resolvers.people.identities import Members
from resolvers.requests.address_limits import AddressLimits
from server.settings import Settings
from tests.confirmations import MailingService, mailing
from tests.intercepted import intercepted
from tests.sign_in import REQUEST_SIGN_IN, SIGN_IN, asked

CALLS = ("get_item", "batch_get_item", "query", "put_item", "update_item", "transact_write_items")
_asking: ContextVar[bool] = ContextVar("asking", default=False)


@pytest.fixture
async def mail(one_table: Table, settings: Settings, tmp_path: Path) -> AsyncIterator[MailingService]:
    """A service that sends codes to whoever asks."""
    assert one_table.name == settings.table
    async with mailing(settings.model_copy(update={"emails_per_address": "0"}), tmp_path) as mail:
        yield mail


@pytest.mark.parametrize("pairs", [100, pytest.param(500, marks=pytest.mark.soak)])
async def test_an_address_says_by_nothing_whether_it_is_a_member_s(mail: MailingService, pairs: int) -> None:
    """In many requests: the same answer and the same calls to the table, of the same sizes; both get an email."""
    members, table = mail.client.services.get(Members), mail.client.services.table
    observed: dict[bool, list[Observed]] = {True: [], False: []}
    for number in range(pairs):
        for is_known, name in ((True, "known"), (False, "other")):
            address = f"{name}{number:03}@example.org"
            if is_known:
                await members.make(of_address(address))
            observed[is_known].append(await _observed(mail, table, address))
            await mail.client.services.get(SignInCodes).all_sent()  # a process has no more than some emails waiting
    assert len(mail.mailbox.emails) == 2 * pairs
    for known, other in zip(observed[True], observed[False], strict=True):
        assert known.calls == other.calls
        assert abs(known.sent - other.sent) <= 64
        assert known.answered == other.answered


async def test_the_email_is_sent_after_the_answer(mail: MailingService) -> None:
    """So the time until the answer says nothing about the mail server, or whether it takes the address."""
    may_send, sent = asyncio.Event(), list[str]()

    async def slow(email: CodeEmail) -> None:
        await may_send.wait()
        sent.append(email.email)

    codes = mail.client.services.get(SignInCodes)
    codes.start(slow)
    answer = await mail.client.visitor().ask(REQUEST_SIGN_IN, input={"email": "ada@example.org"})
    assert answer.keys() == {"email", "request"}
    assert (answer["email"], sent) == ("ada@example.org", [])
    may_send.set()
    await codes.all_sent()
    assert sent == ["ada@example.org"]


async def test_a_network_that_asks_on_and_on_keeps_nobody_else_from_their_codes(mail: MailingService) -> None:
    """It gets five emails a day. Whoever asks from elsewhere still gets theirs."""
    mail.client.services.get(AddressLimits).interval = 0.0
    hostile = mail.client.visitor()
    transport = httpx.ASGITransport(mail.client.served, client=("198.51.100.1", 1))
    hostile.http = httpx.AsyncClient(transport=transport, base_url="http://ringside.test")
    for _ in range(25):
        assert "request" in await hostile.ask(REQUEST_SIGN_IN, input={"email": "ada@example.org"})
    await mail.client.services.get(SignInCodes).all_sent()
    assert len(mail.mailbox.emails) == 5
    mail.clock.now += timedelta(hours=2)
    assert await asked(mail, "ada@example.org")


class Observed(NamedTuple):
    """What a request did: its calls by kind, the bytes that they sent, what it was answered beside the address."""

    calls: tuple[str, ...]
    sent: int
    answered: dict[str, int]
    """The length of each value."""


async def _observed(mail: MailingService, table: Table, address: str) -> Observed:
    made: list[tuple[str, int]] = []

    async def call(name: str, send: Any) -> Any:
        if _asking.get():  # and not in the background of the process
            made.append((name, len(repr(send.keywords))))
        return await send()

    _asking.set(True)
    with intercepted(table, CALLS, call):
        answer = await mail.client.visitor().ask(REQUEST_SIGN_IN, input={"email": address})
    assert made
    _asking.set(False)
    assert answer.pop("email") == address
    lengths = {name: len(value) for name, value in answer.items()}
    return Observed(tuple(sorted(name for name, _ in made)), sum(sent for _, sent in made), lengths)


async def test_used_codes_are_looked_at_no_more_than_so_often_for_a_network(mail: MailingService) -> None:
    """Or a document of forty costs as many calls each time. Another network signs in meanwhile."""
    mail.client.services.rates = Rates(lambda: 0.0)
    used, other = await asked(mail, "mallory@example.org"), await asked(mail, "ada@example.org")
    digits, link = {"request": used["request"], "code": used["code"]}, {"token": used["link"]}
    assert "user" in await mail.client.ask(SIGN_IN, input=digits)
    for proof in (link, *[digits] * (parse_rate(TRIES).limit - 2)):
        assert await mail.client.code(SIGN_IN, input=proof) == "TOKEN_SPENT"
    assert [await mail.client.code(SIGN_IN, input=proof) for proof in (digits, link)] == ["RATE_LIMITED"] * 2
    mail.client.http = httpx.AsyncClient(
        transport=httpx.ASGITransport(mail.client.served, client=("198.51.100.1", 1)), base_url="http://ringside.test"
    )
    assert "user" in await mail.client.ask(SIGN_IN, input={"token": other["link"]})


@pytest.mark.soak
async def test_ten_thousand_guesses_are_five(mail: MailingService) -> None:
    """However many come at once; the owner's own code, asked for meanwhile, still signs in."""
    victim = "victim@example.org"
    mail.client.services.rates = Rates(count(step=60).__next__)  # as if from many networks
    stranger_s = await asked(mail, victim)
    mine = await asked(mail, victim)
    wrong = [f"{number:06d}" for number in range(10_000) if f"{number:06d}" != stranger_s["code"]]
    aliased, request = 20, stranger_s["request"]

    async def guess(digits: list[str]) -> list[str]:
        fields = "\n".join(
            f'g{n}: signIn(input: {{request: "{request}", code: "{each}"}}) {{ ... on Refused {{ code }} }}'
            for n, each in enumerate(digits)
        )
        body = await mail.client.answer(f"mutation {{ {fields} }}")
        assert "data" in body, body
        return [each["code"] for each in body["data"].values()]

    codes: list[str] = []
    for start in range(0, len(wrong), aliased * 10):
        batch = [wrong[start + n * aliased : start + (n + 1) * aliased] for n in range(10)]
        codes += [code for each in await asyncio.gather(*map(guess, batch)) for code in each]
    assert codes.count("TOKEN_UNKNOWN") == 5
    assert set(codes) == {"TOKEN_UNKNOWN", "TOKEN_SPENT"}
    assert await mail.client.code(SIGN_IN, input={"request": stranger_s["request"], "code": stranger_s["code"]}) == (
        "TOKEN_SPENT"
    )
    answer = await mail.client.ask(SIGN_IN, input={"request": mine["request"], "code": mine["code"]})
    assert answer["user"]["email"] == victim
