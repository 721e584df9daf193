"""What editors tell about contenders: description, link, and pictures by address or as SVG."""

from threading import get_ident
from typing import Any

import pytest

from datastore.dynamo import Table
from datastore.voting.contenders import DETAILS
from resolvers.voting import boards
from resolvers.voting.svg import LARGEST_RESULT, parse_picture
from tests.client import Client, serving
from tests.conftest import settings_for
from tests.engines import RunningEngine
from tests.queries import LEADERBOARD, UPDATE_BOARD
from tests.voting import assert_consistent, editor, settle_votes, vote

FIELDS = "id name description link imageUrl svg"
ADD = f"""mutation ($input: AddContenderInput!) {{ addContender(input: $input) {{
  ... on ContenderAdded {{ contender {{ {FIELDS} }} }} ... on Refused {{ code message path }} }} }}"""
UPDATE = f"""mutation ($input: UpdateContenderInput!) {{ updateContender(input: $input) {{
  ... on ContenderUpdated {{ contender {{ {FIELDS} }} }} ... on Refused {{ code message path }} }} }}"""
LINK = "https://example.com/fighters/ada?from=ring#top"
IMAGE = "https://images.example.com/ada.png"
SQUARE = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><rect width="1" height="1"/></svg>'
HOSTS = ("images.example.com", "cdn.example.net")


async def add(client: Client, name: str = "Ada", **details: Any) -> dict[str, Any]:
    answer = await editor(client).ask(ADD, input={"name": name, **details})
    added: dict[str, Any] = answer.get("contender", answer)
    return added


async def update(client: Client, contender: str, **changes: Any) -> dict[str, Any]:
    answer = await editor(client).ask(UPDATE, input={"contender": contender, **changes})
    updated: dict[str, Any] = answer.get("contender", answer)
    return updated


@pytest.mark.lagging
async def test_details_are_added_changed_and_removed(table: Table, engine: RunningEngine) -> None:
    """Each field by itself: null removes it, absence leaves it. The one who changed them sees it at once."""
    async with serving(settings_for(engine, table.name, image_hosts=HOSTS)) as client:
        added = await add(client, description=" Two lines,\r\nno more. ", link=LINK, imageUrl=IMAGE, svg=SQUARE)
        assert (added["description"], added["link"], added["imageUrl"]) == ("Two lines,\nno more.", LINK, IMAGE)
        assert "<rect" in added["svg"]
        changed = await update(client, added["id"], description='<b>Bold</b> & "quoted"')
        assert changed == {**added, "description": '<b>Bold</b> & "quoted"'}
        changed = await update(client, added["id"], link=None, name="Bea")
        assert (changed["link"], changed["name"], changed["imageUrl"]) == (None, "Bea", IMAGE)
        changed = await update(
            client, added["id"], svg=None, description=None, imageUrl="https://cdn.example.net/b.gif"
        )
        assert changed == {
            "id": added["id"], "name": "Bea", "description": None, "link": None, "svg": None,
            "imageUrl": "https://cdn.example.net/b.gif",
        }  # fmt: skip
        assert (await update(client, added["id"], imageUrl=None))["imageUrl"] is None
        await client.caught_up("everybody sees the contender as it is")
        assert [details async for details in table.scan(DETAILS, consistent=True)] == []
        [node] = (await client.ask(f"{{ contenders {{ nodes {{ {FIELDS} }} }} }}"))["nodes"]
        assert (node["name"], node["description"]) == ("Bea", None)
        await assert_consistent(client)


@pytest.mark.lagging
async def test_settling_and_changes_keep_the_details(client: Client) -> None:
    """Votes, a rename, and a retirement leave them alone; they are shown on the leaderboard."""
    ada = await add(client, description="The first", link=LINK)
    await add(client, "Bea")
    await vote(client.visitor())
    await settle_votes(client)
    await update(client, ada["id"], name="Adele")
    await client.caught_up("the leaderboard shows the settled counts and the new name")
    query = LEADERBOARD.replace("contender { id", "contender { description link id")
    rows = {row["contender"]["name"]: row["contender"] for row in (await client.ask(query))["nodes"]}
    assert (rows["Adele"]["description"], rows["Adele"]["link"]) == ("The first", LINK)
    assert (rows["Bea"]["description"], rows["Bea"]["link"]) == (None, None)
    await assert_consistent(client)


@pytest.mark.parametrize(
    "link",
    [
        "", " ", "http://example.com/", "javascript:alert(1)", "https:example.com", "https://", "https:///path",
        "https://user@example.com/", "https://user:secret@example.com/", "https://example.com:0/",
        "https://example.com:99999/", "https://exa mple.com/", "https://example.com/a b", "https://example.com/\\@evil",
        'https://example.com/"onclick=', "https://example.com/<script>", "https://bücher.example/",
        "https://exam\nple.com/", "//example.com/", "https://[::1", "data:text/html,x",
        "https://localhost/", f"https://example.com/{'x' * 2000}", "ftp://example.com/", "https://-/", "https://.../",
    ],
)  # fmt: skip
async def test_a_link_that_is_none_is_refused(one_client: Client, link: str) -> None:
    """The message says what a link looks like, the path which field is wrong; nothing is added."""
    refused = await add(one_client, link=link)
    assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "link"])
    assert "starts with https://" in refused["message"]
    assert await one_client.ask("{ contenders { totalCount } }") == {"totalCount": 0}


async def test_pictures_come_from_the_operator_s_hosts_only(one_table: Table, default_engine: RunningEngine) -> None:
    """Exactly these hosts, on the usual port; none if the operator named none."""
    async with serving(settings_for(default_engine, one_table.name, image_hosts=HOSTS)) as client:
        for url in (
            "https://evil.example/a.png",
            "https://images.example.com.evil.example/a.png",
            "https://evil.images.example.com/a.png",
            "https://images.example.com:8443/a.png",
            "https://images.example.com./a.png",
            "https://images.example.com@evil.example/a.png",
            "http://images.example.com/a.png",
            "data:image/png;base64,AAAA",
            "https://evil.example\\@images.example.com/",
        ):
            refused = await add(client, imageUrl=url)
            assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "imageUrl"]), url
        refused = await add(client, imageUrl="https://evil.example/a.png")
        assert refused["message"].endswith("only: cdn.example.net, images.example.com.")
        assert (await add(client, imageUrl="https://IMAGES.example.com:443/a.png"))["name"] == "Ada"
    async with serving(settings_for(default_engine, one_table.name)) as client:
        refused = await add(client, "Bea", imageUrl=IMAGE)
        assert "allow the hosts" in refused["message"]


@pytest.mark.parametrize("description", ["", "  \n ", "\u200d", "a\u202eb", "a\x07b", "x" * 501])
async def test_a_description_that_is_none_is_refused(one_client: Client, description: str) -> None:
    """Blank, invisible, or too long."""
    refused = await add(one_client, description=description)
    assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "description"])


async def test_a_description_may_have_what_texts_have_that_are_pasted(one_client: Client) -> None:
    """Hyphens and marks that nobody sees, as pages and writing from right to left have them, and other line ends."""
    added = await add(one_client, description="Hin\u00adter\u200bgrund\u2028\u200fאבג!\u200f\x0b1\t2")
    assert added["description"] == "Hin\u00adter\u200bgrund\n\u200fאבג!\u200f\n1\t2"
    titled = await editor(one_client).ask(UPDATE_BOARD, input={"slug": "main", "title": "Wahl\u00adabend"})
    assert titled["board"]["title"] == "Wahl\u00adabend"


async def test_a_picture_that_would_be_invisible_is_refused(one_client: Client) -> None:
    """Told which elements are removed; the contender keeps the picture it has."""
    image = '<svg xmlns="http://www.w3.org/2000/svg"><image href="data:image/png;base64,AAAA"/></svg>'
    refused = await add(one_client, svg=image)
    assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "svg"])
    assert "<image> is removed" in refused["message"]
    ada = await add(one_client, svg=SQUARE)
    assert (await update(one_client, ada["id"], svg="<svg><script>1</script></svg>"))["code"] == "INVALID_INPUT"
    node = await one_client.ask(f"query ($id: ID!) {{ contender(id: $id) {{ {FIELDS} }} }}", id=ada["id"])
    assert node["svg"] == ada["svg"]


async def test_an_older_client_s_receipt_still_holds(one_client: Client) -> None:
    """A request without the new fields has the same hash as one that leaves them null."""
    first = await add(one_client, idempotencyKey="k")
    assert await add(one_client, idempotencyKey="k", description=None) == first
    assert (await add(one_client, idempotencyKey="k", description="x"))["code"] == "IDEMPOTENCY_MISMATCH"


async def test_the_largest_picture_fits_into_an_item(client: Client) -> None:
    """Rules make a picture larger than it was sent. One that would not fit is refused."""
    elements = 100
    sheet = "g{font-family:%s}" % ("a" * (LARGEST_RESULT // elements - 40))
    large = f'<svg xmlns="http://www.w3.org/2000/svg"><style>{sheet}</style><path d="M0 0h9v9z"/>%s</svg>'
    added = await add(client, svg=large % ("<g/>" * elements))
    assert LARGEST_RESULT - 4_000 < len(added["svg"]) <= LARGEST_RESULT
    refused = await update(client, added["id"], svg=large % ("<g/>" * elements * 20))
    assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "svg"])


async def test_pictures_are_sanitised_beside_the_event_loop(
    one_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of 48 KB takes tens of milliseconds, in which nobody else would be answered."""
    threads = list[int]()

    def parse(text: str) -> str:
        threads.append(get_ident())
        return parse_picture(text)

    monkeypatch.setattr(boards, "parse_picture", parse)
    ada = await add(one_client, svg=SQUARE)
    assert (await update(one_client, ada["id"], svg=SQUARE))["svg"] == ada["svg"]
    assert len(threads) == 2
    assert get_ident() not in threads


PREVIEW = "query ($svg: String!) { previewContender(svg: $svg) { svg removed } }"


async def test_a_picture_is_previewed_with_what_it_loses(one_client: Client) -> None:
    """And it is stored as it was shown."""
    given = (
        '<svg viewBox="0 0 9 9" onload="x()"><script>x()</script><style>.a { fill: red }</style>'
        '<a href="https://example.com"><rect class="a" width="3" height="3"/></a>'
        '<use href="#b"/><use href="//evil.example/b"/></svg>'
    )
    shown = await editor(one_client).ask(PREVIEW, svg=given)
    assert shown["removed"] == ["<a>", "<script>", "href", "onload"]
    added = await editor(one_client).ask(
        'mutation ($svg: String) { addContender(input: { name: "A", svg: $svg }) '
        "{ ... on ContenderAdded { contender { svg } } } }",
        svg=given,
    )
    assert added["contender"]["svg"] == shown["svg"]
    plain = await editor(one_client).ask(PREVIEW, svg=shown["svg"])
    assert plain == {"svg": shown["svg"], "removed": []}


@pytest.mark.parametrize("svg", ["", "<svg/>", "<p>no</p>", "<svg><svg>", "x" * 60_000])
async def test_what_is_no_picture_has_no_preview(one_client: Client, svg: str) -> None:
    assert await editor(one_client).code(PREVIEW, svg=svg) == "BAD_USER_INPUT"
