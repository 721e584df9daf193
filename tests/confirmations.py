"""A service that sends emails to a real mail server, what people do with the links in them, and what comes of it."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import httpx
from pydantic import SecretStr

from datastore.people.profiles import PROFILE, Profile
from datastore.vocabulary import subscriptions
from datastore.vocabulary.subscriptions import SUBSCRIPTION, CharacterSet, Subscription
from resolvers.people.confirmations import Confirmations
from resolvers.requests.context import Services
from resolvers.values.node_ids import parse_node_key
from resolvers.vocabulary.subscriptions import record_id
from server.settings import Settings
from tests.client import Client, serving
from tests.mail_server import Mailbox, body_of, mail_server
from tests.queries import mutation
from tests.waiting import LONGEST

REQUEST_SUBSCRIPTION = mutation(
    "requestSubscription", "SubscriptionRequested", "email", refused="code message path retryAfterSeconds"
)
CLAIM_SUBSCRIPTIONS = mutation(
    "claimSubscriptions", "SubscriptionsClaimed", "subscriptions { list { id } characterSet active since }"
)
ADA = "ada@example.org"
_LINK = re.compile(r"http://127\.0\.0\.1:\d+(/confirm\?token=[\w-]+)")


def link_in(email: EmailMessage) -> str:
    """The link's path and token."""
    found = _LINK.search(body_of(email))
    assert found is not None
    return found[1]


class Clock:
    """Noon of the day, until a test moves it: no test passes midnight."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        return self.now


@dataclass
class MailingService:
    """A visitor of the service, its emails, and its clock."""

    client: Client
    mailbox: Mailbox
    clock: Clock

    def links(self, address: str) -> list[str]:
        """The links that were sent to an address, oldest first."""
        return [link_in(email) for recipient, email in self.mailbox.emails if recipient == address]

    async def ask(self, address: str, list_id: str, **more: Any) -> Any:
        """What a visitor is answered who asks for a subscription of this address."""
        answer = await self.client.ask(REQUEST_SUBSCRIPTION, input={"email": address, "list": list_id, **more})
        await self.client.services.get(Confirmations).all_ended()
        return answer

    async def press(self, link: str) -> httpx.Response:
        """The answer to the button of a link's page."""
        return await self.client.http.post(link)

    async def profile(self, address: str) -> Profile | None:
        """The profile that has an address, found by a scan."""
        profile: Profile
        async for profile in self.client.services.table.consistent().scan(PROFILE):
            if profile.email == address:
                return profile
        return None


@asynccontextmanager
async def mailing(
    settings: Settings, folder: Path, mailbox: Mailbox | None = None, *, utf8: bool = True
) -> AsyncIterator[MailingService]:
    """The service of these settings with a mail server, which takes only ASCII addresses without `utf8`.

    A member who asks for an email waits until it is sent, however busy the machine is.
    """
    mailbox = mailbox or Mailbox()
    async with (
        mail_server(mailbox, folder, utf8=utf8) as url,
        serving(settings.model_copy(update={"smtp_url": SecretStr(url)})) as client,
    ):
        client.services.clock = clock = Clock()
        client.services.get(Confirmations).patience = LONGEST
        yield MailingService(client, mailbox, clock)


async def subscriptions_of(client: Client, user: str) -> list[tuple[str, bool]]:
    stored = await subscriptions.read_subscriptions(client.services.table, user)
    return [(each.list, each.active) for each in stored]


async def active_subscriptions(client: Client) -> list[Subscription]:
    return [each async for each in client.services.table.consistent().scan(SUBSCRIPTION) if each.active]


async def subscriber_count(client: Client, list_id: str) -> int:
    query = "query ($id: ID!) { wordList(id: $id) { subscriberCount } }"
    return int((await client.ask(query, id=list_id))["subscriberCount"])


async def migrated(mail: MailingService, address: str, *lists: str) -> str:
    """A record as `ringside migrate legacy` makes it; its id."""
    return await migrated_record(mail.client.services, address, *lists)


async def migrated_record(services: Services, address: str, *lists: str) -> str:
    user = record_id(services.seal, address)
    await services.table.write(PROFILE.put(Profile(user, "Reader", services.clock(), email=address)))
    for list_id in lists:
        old = Subscription(user, list_id, CharacterSet.SIMPLIFIED, active=True, since=services.clock())
        await subscriptions.import_subscription(services.table, old)
    return user


def list_key(list_id: str) -> str:
    """The key in a list's node id."""
    return parse_node_key("WordList", list_id)
