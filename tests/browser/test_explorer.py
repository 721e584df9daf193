"""The explorer in a real browser, on the running service."""

import json
from pathlib import Path
from typing import Literal
from uuid import uuid4

import pytest
from playwright.async_api import Browser, expect

from server.execution.documents import write_manifest
from tests.browser.pages import PATIENT, VIEWPORT, ExplorerPage, new_context
from tests.service import Service, running_service
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_all_requests_go_to_the_service(explorer: ExplorerPage) -> None:
    """Those for workers, fonts and icons too; and none of them fails."""
    await explorer.show("Viewer")
    await explorer.run("Viewer")
    await expect(explorer.answer).to_contain_text('"data"')
    await explorer.page.get_by_label("Show Documentation Explorer").click()
    await expect(explorer.page.get_by_text("Root Types")).to_be_visible()
    assert [url for url in explorer.requests if not url.startswith((f"{explorer.origin}/", "data:"))] == []
    assert explorer.errors == []


async def test_the_page_leads_to_the_licences_of_what_is_shipped(explorer: ExplorerPage) -> None:
    """As a text that lists the page's own packages."""
    async with explorer.page.expect_popup() as opened:
        await explorer.page.get_by_role("link", name="Licences").click()
    licences = await opened.value
    await expect(licences.locator("body")).to_contain_text("## graphiql - ")
    assert explorer.errors == []


async def test_the_content_security_policy_blocks_nothing_of_the_page(explorer: ExplorerPage) -> None:
    """No violation with every panel opened and the completion list shown."""
    for button in ("Show Documentation Explorer", "Show History", "Open short keys dialog", "Open settings dialog"):
        await explorer.page.get_by_label(button).click()
        await explorer.page.keyboard.press("Escape")
    await explorer.write(explorer.query, "{ ")
    await expect(explorer.suggestions.first).to_be_visible()
    assert await explorer.violations() == []
    assert explorer.errors == []


async def test_an_inline_script_is_blocked(explorer: ExplorerPage) -> None:
    """The control: the policy is active, and its violations are recorded."""
    await explorer.page.evaluate(
        """() => {
          const script = document.createElement('script');
          script.textContent = 'globalThis.ran = true';
          document.body.append(script);
        }"""
    )
    assert await until(explorer.violations, "the violation is told") == ["script-src-elem: inline"]
    assert await explorer.page.evaluate("globalThis.ran") is None


async def test_the_editor_completes_a_field(explorer: ExplorerPage) -> None:
    """Four letters and Enter."""
    await explorer.write(explorer.query, "{ view")
    await expect(explorer.suggestions.first).to_contain_text("viewer")
    await explorer.page.keyboard.press("Enter")
    await expect(explorer.query).to_contain_text("viewer")


async def test_the_editor_marks_a_mistake(explorer: ExplorerPage) -> None:
    """Before anything is sent."""
    await explorer.write(explorer.query, "{ nothing")
    await expect(explorer.page.locator(".squiggly-error")).to_be_visible()


async def test_the_first_example_answers(explorer: ExplorerPage) -> None:
    """One press of the button gives data, without a tab to open or a token to fetch."""
    await explorer.run()
    await expect(explorer.answer).to_contain_text('"rank": 1')


async def test_what_is_pasted_and_run_at_once_is_what_runs(explorer: ExplorerPage) -> None:
    """Although the editor still knows the operations of the text before."""
    await explorer.query.click()
    await explorer.page.keyboard.press("ControlOrMeta+A")
    await explorer.page.keyboard.insert_text('{ board(slug: "main") { slug } ')  # the editor adds a bracket
    await explorer.page.keyboard.press("ControlOrMeta+Enter")
    await expect(explorer.answer).to_contain_text('"slug": "main"')


async def test_a_session_that_has_ended_and_does_not_go_away_is_asked_about_twice(
    browser: Browser, service: Service
) -> None:
    """As by a cookie of another path, which the service's answer does not delete."""
    context = await new_context(browser, viewport=VIEWPORT)
    await context.add_cookies(
        [{"name": "ringside_session", "value": "rst_ended", "domain": "127.0.0.1", "path": "/graphql"}]
    )
    explorer = ExplorerPage(await context.new_page(), service.url)
    await explorer.page.goto(f"{service.url}/graphql")

    def asked() -> int:
        return len([url for url in explorer.requests if "signInMethods" in url])

    await until(lambda: asked() == 2, "the session is asked about again")
    await explorer.know_language()
    await explorer.run()
    await expect(explorer.answer).to_contain_text("UNAUTHENTICATED")
    assert asked() == 2


async def test_where_only_trusted_documents_run_the_explorer_runs_those(browser: Browser, tmp_path: Path) -> None:
    """What the page asks about its session and the schema are none of them, and are refused."""
    manifest, text = tmp_path / "manifest.json", "{ boards(first: 1) { nodes { slug } } }"
    manifest.write_text(write_manifest([text]), encoding="utf-8")
    variables = {"RINGSIDE_DATA": str(tmp_path / "data"), "RINGSIDE_TRUSTED_DOCUMENTS": str(manifest), **PATIENT}
    with running_service(variables) as service:
        context = await new_context(browser, viewport=VIEWPORT)
        explorer = ExplorerPage(await context.new_page(), service.url)
        async with explorer.page.expect_response(lambda response: "signInMethods" in response.url) as asked:
            await explorer.page.goto(f"{service.url}/graphql")
        assert "data" not in await (await asked.value).json()
        await explorer.know_language()
        await explorer.query.click()
        await explorer.page.keyboard.press("ControlOrMeta+A")
        await explorer.page.keyboard.insert_text(text.removesuffix("}"))  # the editor adds a bracket
        await explorer.page.keyboard.press("ControlOrMeta+Enter")
        await expect(explorer.answer).to_contain_text('"slug": "main"')


async def test_one_click_signs_in_as_a_member_or_an_editor_of_the_demo(explorer: ExplorerPage) -> None:
    """And as a visitor again. The tab's own headers come first."""
    await explorer.show("Viewer")
    for choice, name in (("Ada Abara, member", "Ada"), ("Ines Castillo, editor", "Ines Castillo")):
        await explorer.sign_in(choice)
        await explorer.run("Viewer")
        await expect(explorer.answer).to_contain_text(f'"name": "{name}')
    await explorer.sign_in("visitor")
    await explorer.run("Viewer")
    await expect(explorer.answer).to_contain_text('"viewer": null')
    assert explorer.errors == []
    await explorer.sign_in("Ada Abara, member")
    await explorer.write(explorer.headers, '{ "Authorization": "Bearer forged')
    await explorer.run("Viewer")
    await expect(explorer.answer).to_contain_text("UNAUTHENTICATED")


async def test_a_member_of_the_demo_sees_their_leagues(explorer: ExplorerPage) -> None:
    """Both of them, and the code of the private one, whose captain they are."""
    await explorer.show("Leagues")
    await explorer.sign_in("Ada Abara, member")
    await explorer.run("Leagues")
    for text in ('"Ringside Regulars"', '"Front Row"', '"entry": "CODE"', '"CAPTAIN"'):
        await expect(explorer.answer).to_contain_text(text)
    assert explorer.errors == []


async def test_the_listed_editor_may_edit(explorer: ExplorerPage) -> None:
    """What the listed member may not."""
    slug = f"b{uuid4().hex[:8]}"
    answers = await explorer.page.evaluate(
        """async (slug) => {
          const viewers = JSON.parse(document.querySelector('meta[property="demo-viewers"]').content);
          const query = `mutation { createBoard(input: { slug: "${slug}", title: "B" }) { __typename } }`;
          const ask = ({ token }) => fetch('/graphql', { method: 'POST', body: JSON.stringify({ query }), headers: {
            'Content-Type': 'application/json', Authorization: `Bearer ${token}` } });
          return [await (await ask(viewers[0])).text(), await (await ask(viewers.at(-1))).text()];
        }""",
        slug,
    )
    assert [json.loads(answer)["data"]["createBoard"]["__typename"] for answer in answers] == [
        "Refused",
        "BoardCreated",
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_nobody_is_kept_out_by_the_page(
    browser: Browser, service: Service, scheme: Literal["light", "dark"]
) -> None:
    """But by GraphiQL's own tabs, with buttons in them, and the colours of its editors."""
    context = await new_context(browser, viewport=VIEWPORT, color_scheme=scheme)
    explorer = ExplorerPage(await context.new_page(), service.url)
    await explorer.open()
    assert await explorer.barriers("nested-interactive", beside=".monaco-editor") == []


async def test_the_panes_stack_on_a_narrow_screen(explorer: ExplorerPage) -> None:
    """The answer is below the query, and nothing is wider than the screen."""
    await explorer.page.set_viewport_size({"width": 390, "height": 844})
    await explorer.run()
    await expect(explorer.answer).to_contain_text('"rank": 1')
    query, answer = await explorer.query.bounding_box(), await explorer.answer.bounding_box()
    assert query is not None
    assert answer is not None
    assert answer["y"] >= query["y"] + 100
    assert await explorer.page.evaluate("document.documentElement.scrollWidth") <= 390


async def test_the_settings_fit_a_narrow_screen(explorer: ExplorerPage) -> None:
    """Every button is whole within the dialog, which cuts off what is wider."""
    await explorer.page.set_viewport_size({"width": 390, "height": 844})
    await explorer.page.get_by_label("Open settings dialog").click()
    dialog = explorer.page.get_by_role("dialog")
    await expect(dialog.get_by_role("button", name="Dark")).to_be_visible()
    outside = """(dialog) => [...dialog.querySelectorAll('button')]
      .filter((button) => button.getBoundingClientRect().right > dialog.getBoundingClientRect().right)
      .map((button) => button.textContent)"""
    assert await dialog.evaluate(outside) == []


async def test_the_explorer_takes_less_than_two_megabytes_over_the_wire(browser: Browser, service: Service) -> None:
    """Page, editors and workers, with nothing cached."""
    context = await new_context(browser)
    page = await context.new_page()
    received: list[int] = []
    session = await context.new_cdp_session(page)
    await session.send("Network.enable")
    session.on("Network.loadingFinished", lambda event: received.append(event["encodedDataLength"]))
    explorer = ExplorerPage(page, service.url)
    await explorer.open()
    await explorer.run()
    await expect(explorer.answer).to_contain_text('"rank": 1')
    assert 500_000 < sum(received) < 2_000_000


async def test_a_token_in_the_headers_signs_a_member_in(
    explorer: ExplorerPage, service: Service, screenshots: Path | None
) -> None:
    """With the header that the hint shows, the examples run unchanged."""
    await explorer.show("Viewer")
    await explorer.write(explorer.headers, f'{{ "Authorization": "Bearer {service.token("ada-abara")}')
    for operation in ("UpdateProfile", "Viewer"):
        await explorer.run(operation)
        await expect(explorer.answer).to_contain_text('"name": "Ada"')
    if screenshots is not None:
        await explorer.take_screenshot(screenshots / "explorer.png")


async def test_a_forged_token_gives_a_readable_error(explorer: ExplorerPage, service: Service) -> None:
    """It is not treated as a visitor's request."""
    await explorer.show("Viewer")
    forged = service.token("ada-abara")[:-4] + "AAAA"
    await explorer.write(explorer.headers, f'{{ "Authorization": "Bearer {forged}')
    await explorer.run("Viewer")
    await expect(explorer.answer).to_contain_text("UNAUTHENTICATED")


async def test_an_error_is_shown(explorer: ExplorerPage) -> None:
    """With its message and its place in the document."""
    await explorer.write(explorer.query, "{ nothing")
    await explorer.run()
    await expect(explorer.answer).to_contain_text("Cannot query field 'nothing' on type 'Query'.")
    await expect(explorer.answer).to_contain_text('"line": 1')


async def test_invalid_headers_are_not_sent(explorer: ExplorerPage) -> None:
    """The explorer says where they are not JSON."""
    await explorer.show("Viewer")
    await explorer.write(explorer.headers, '{ "Authorization" "Bearer')
    await explorer.run("Viewer")
    await expect(explorer.answer).to_contain_text("Request headers are invalid JSON: expected a colon at line 1")
