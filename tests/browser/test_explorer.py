"""The explorer in a real browser, on the running service."""

from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser.pages import ExplorerPage
from tests.service import Service

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_all_requests_go_to_the_service(explorer: ExplorerPage) -> None:
    """Those for workers, fonts and icons too; and none of them fails."""
    await explorer.run("Viewer")
    await expect(explorer.answer).to_contain_text('"data"')
    await explorer.page.get_by_label("Show Documentation Explorer").click()
    await expect(explorer.page.get_by_text("Root Types")).to_be_visible()
    assert [url for url in explorer.requests if not url.startswith((f"{explorer.origin}/", "data:"))] == []
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
    assert await explorer.page.evaluate("globalThis.ran") is None
    assert await explorer.violations() == ["script-src-elem: inline"]


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
    """One press of the button gives data."""
    await explorer.run("Viewer")
    await expect(explorer.answer).to_contain_text('"viewer": null')


async def test_a_token_in_the_headers_signs_a_member_in(
    explorer: ExplorerPage, service: Service, screenshots: Path | None
) -> None:
    """With the header that the hint shows, the examples run unchanged."""
    await explorer.write(explorer.headers, f'{{ "Authorization": "Bearer {service.token("ada-abara")}')
    for operation in ("UpdateProfile", "Node", "Viewer"):
        await explorer.run(operation)
        await expect(explorer.answer).to_contain_text('"name": "Ada"')
    if screenshots is not None:
        await explorer.take_screenshot(screenshots / "explorer.png")


async def test_a_forged_token_gives_a_readable_error(explorer: ExplorerPage, service: Service) -> None:
    """It is not treated as a visitor's request."""
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
    await explorer.write(explorer.headers, '{ "Authorization" "Bearer')
    await explorer.run("Viewer")
    await expect(explorer.answer).to_contain_text("Request headers are invalid JSON: expected a colon at line 1")
