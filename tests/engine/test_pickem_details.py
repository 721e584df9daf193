"""What an event is about, where it takes place, and its picture."""

from typing import Any

from tests.client import Client, serving
from tests.queries import mutation
from tests.season import EventEditor, in_hours

DETAILS = "id description place imageUrl"
CREATE = mutation("createEvent", "EventCreated", f"event {{ {DETAILS} }}")
UPDATE = mutation("updateEvent", "EventUpdated", f"event {{ {DETAILS} }}")
PICTURE = "https://images.example.com/a/b.png?size=2"


def with_pictures(client: Client) -> Any:
    return serving(client.settings.model_copy(update={"image_hosts": ("images.example.com",)}))


async def test_details_of_an_event_can_be_set_changed_and_removed(client: Client) -> None:
    """At its creation and later, also after the lock; null removes, and what is left out stays."""
    async with with_pictures(client) as site:
        editor = EventEditor(site)
        given = {"description": "Line one \r\n\r\n  two\t3", "place": " Wien,  Österreich ", "imageUrl": PICTURE}
        fields = {"name": "Show", "season": "2026", "startsAt": in_hours(2), **given}
        created = (await editor.client.ask(CREATE, input=fields))["event"]
        event = created.pop("id")
        expected = {"description": "Line one\n\n  two\t3", "place": "Wien, Österreich", "imageUrl": PICTURE}
        assert created == expected
        await editor.lock(event)
        changed = await editor.client.ask(UPDATE, input={"event": event, "place": "Graz", "imageUrl": None})
        assert changed["event"] == {**expected, "id": event, "place": "Graz", "imageUrl": None}
        seen = await site.ask(f"query ($id: ID!) {{ event(id: $id) {{ {DETAILS} }} }}", id=event)
        assert seen == changed["event"]


async def test_details_that_cannot_be_shown_are_refused(one_client: Client) -> None:
    """Empty, invisible, too long, with control characters; addresses of other hosts, other schemes, or none allowed."""
    async with with_pictures(one_client) as site:
        editor = EventEditor(site)
        event = (await editor.event())["id"]
        for name, wrong in (
            ("description", ("", " \n ", "x" * 2001, "a\x07b", "a\u202eb", "\u200b\n\u200b")),
            ("place", ("", "x" * 201, "a\x1bb", "\u200b")),
            (
                "imageUrl",
                (
                    "",
                    "http://images.example.com/a.png",
                    "https://images.example.com.evil.example/a.png",
                    "https://evil.example/images.example.com",
                    "https://images.example.com@evil.example/a.png",
                    "https://user:word@images.example.com/a.png",
                    "https://images.example.com:8443/a.png",
                    "https:\\\\images.example.com/a.png",
                    "javascript:alert(1)",
                    "data:image/png;base64,AAAA",
                    "https://images.example.com/" + "a" * 2000,
                    'https://images.example.com/"onload=alert(1)',
                    "https://images.example.com/ä.png",
                ),
            ),
        ):
            for value in wrong:
                refused = await editor.client.ask(UPDATE, input={"event": event, name: value})
                assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", name]), value
    refused = await EventEditor(one_client).client.ask(UPDATE, input={"event": event, "imageUrl": PICTURE})
    assert (refused["code"], "allow the hosts" in refused["message"]) == ("INVALID_INPUT", True)
