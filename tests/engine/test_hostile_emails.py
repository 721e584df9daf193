"""Texts of strangers in the daily email, from the API to a real mail server: they stay texts."""

import asyncio
import base64
from pathlib import Path

from datastore.dynamo import Table
from tests.client import Client
from tests.command import on_table, ringside
from tests.engines import RunningEngine
from tests.mail_server import Mailbox, body_of, mail_server
from tests.queries import ADD_WORDS, CREATE_LIST, SUBSCRIBE, UPDATE_PROFILE

SECRET = "a secret that is long enough to be one in tests"
SENDER = "Words <words@example.org>"

INJECTION = b"\r\nBcc: b@evil.example\r\nContent-Type: text/html\r\n\r\n<h1>Pay"
HOSTILE = [
    f"=?utf-8?b?{base64.b64encode(INJECTION).decode()}?=",
    "=?utf-8?q?=0D=0AX:_1?=",
    "=?us-ascii?Q?=0A=0Abody?= =?utf-16?b?AA0ACg==?=",
    "<h1>Pay</h1>",
    "\u6f22\u5b57\r\nBcc: b@evil.example\r\n.\r\nMAIL FROM:<b@evil.example>",
]
HEADERS = [
    "Auto-Submitted", "Content-Type", "Date", "From", "List-Unsubscribe", "List-Unsubscribe-Post", "MIME-Version",
    "Message-ID", "Subject", "To", "X-MailFrom", "X-Peer", "X-RcptTo",
]  # fmt: skip


async def subscribe_to_hostile_words(client: Client, name: str, text: str) -> None:
    """A member makes a private list in which every text is hostile, and subscribes to it."""
    member = client.member(name, email=f"{name}@example.org")
    updated = await member.ask(UPDATE_PROFILE, input={"name": text[:80]})
    assert updated["user"]["email"] == f"{name}@example.org"
    created = await member.ask(CREATE_LIST, input={"name": text[:80]})
    list_id = created["list"]["id"]
    word = {"simplified": text, "traditional": text, "pinyin": text, "definition": text}
    added = await member.ask(ADD_WORDS, input={"list": list_id, "words": [word]})
    assert added["list"]["wordCount"] == 1
    assert (await member.ask(SUBSCRIBE, input={"list": list_id}))["subscription"]["active"]


async def test_no_text_of_a_member_adds_a_header_or_a_part(
    one_client: Client, one_table: Table, default_engine: RunningEngine, tmp_path: Path
) -> None:
    """RFC 2047 words and line ends in every text of a list: only our headers and parts arrive, to one recipient."""
    for number, text in enumerate(HOSTILE):
        await subscribe_to_hostile_words(one_client, f"member{number}", text)
    mailbox = Mailbox()
    async with mail_server(mailbox, tmp_path) as url:
        variables = on_table(
            default_engine.url,
            one_table.name,
            RINGSIDE_SECRETS=SECRET,
            RINGSIDE_SMTP_URL=url,
            RINGSIDE_MAIL_FROM=SENDER,
        )
        done = await asyncio.to_thread(ringside, "emails", **variables)
    assert done.returncode == 0, done.stderr
    assert mailbox.recipients == [f"member{number}@example.org" for number in range(len(HOSTILE))]
    for recipient, email in mailbox.emails:
        assert set(email.keys()) <= set(HEADERS)
        assert len(email.keys()) == len(set(email.keys()))
        assert (email["To"], email["From"]) == (recipient, SENDER)
        assert [part.get_content_type() for part in email.walk()] == [
            "multipart/alternative", "text/plain", "text/html",
        ]  # fmt: skip
        assert "<h1>" not in body_of(email, "html")
