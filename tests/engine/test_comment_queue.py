"""How many comments wait for a moderator."""

from dataclasses import replace
from datetime import timedelta

import pytest

from datastore.comments import changes
from resolvers.requests.context import Role
from server.mail.message import Letterhead
from server.mail.runs import DigestSchedule
from server.settings.values import Digest
from tests.client import Client
from tests.comments import post
from tests.queries import DELETE_COMMENT, EDIT_COMMENT, MODERATE_COMMENT, REPORT_COMMENT

WAITING = "query ($status: CommentStatus) { moderationQueue(status: $status, first: 1) { waiting } }"
LATEST = "query ($status: CommentStatus) { latestComments(status: $status, first: 1) { waiting } }"


async def waiting(moderator: Client, status: str) -> int:
    await moderator.caught_up("the queue is complete")
    counts = [(await moderator.ask(query, status=status))["waiting"] for query in (WAITING, LATEST)]
    assert counts[0] == counts[1]
    return int(counts[0])


async def test_what_waits_is_counted_for_each_status(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through decisions, edits and deletions; a report of a comment that is held counts once it is visible again."""
    ada, bob, mod = client.member("ada"), client.member("bob"), client.member("mod", Role.MODERATOR)
    for number in range(3):
        visible = (await post(ada, body=f"{number}"))["id"]
        await post(bob, rating=None, inReplyTo=visible)
        await bob.ask(REPORT_COMMENT, input={"comment": visible, "reason": "Rude."})
    client.services.policy = replace(client.services.policy, premoderation=True)
    held = [(await post(ada, body="Held."))["id"] for _ in range(5)]
    assert [await waiting(mod, status) for status in ("PENDING", "PUBLISHED", "REJECTED")] == [5, 3, 0]
    await mod.ask(MODERATE_COMMENT, input={"comment": held[0], "status": "PUBLISHED"})
    await mod.ask(MODERATE_COMMENT, input={"comment": held[1], "status": "REJECTED"})
    await ada.ask(DELETE_COMMENT, input={"comment": held[2]})
    await ada.ask(EDIT_COMMENT, input={"comment": visible, "body": "Changed."})
    assert [await waiting(mod, status) for status in ("PENDING", "PUBLISHED", "REJECTED")] == [3, 2, 1]
    assert (await mod.ask("{ latestComments { waiting } }"))["waiting"] == 3
    monkeypatch.setattr(changes, "MOST_COUNTED", 1)
    assert [await waiting(mod, status) for status in ("PENDING", "PUBLISHED", "REJECTED")] == [2, 2, 1]
    digest = DigestSchedule(client.services, client.settings, Digest("m@example.org", timedelta(hours=1), "en"))
    email = await digest.render(Letterhead("f@example.org", "https://f.example", client.services.seal), None)
    assert email is not None
    assert email.subject == "f.example: comments that wait: 1+, reported: 1+"
    assert "since the last email: 1+." in email.text
