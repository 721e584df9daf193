"""The explorer as a person meets it, in a real browser on the real service."""

from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser.visit import Visit
from tests.service import Service

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_page_asks_nobody_else(visit: Visit) -> None:
    """Workers, fonts and icons included, every request goes to the service; and nothing fails."""
    await visit.run("Viewer")
    await expect(visit.answer).to_contain_text('"data"')
    await visit.page.get_by_label("Show Documentation Explorer").click()
    await expect(visit.page.get_by_text("Root Types")).to_be_visible()
    assert [url for url in visit.requests if not url.startswith((f"{visit.origin}/", "data:"))] == []
    assert visit.complaints == []


async def test_the_page_keeps_to_its_policy(visit: Visit) -> None:
    """Not one violation, with every panel opened and the completion list shown."""
    for button in ("Show Documentation Explorer", "Show History", "Open short keys dialog", "Open settings dialog"):
        await visit.page.get_by_label(button).click()
        await visit.page.keyboard.press("Escape")
    await visit.write(visit.query, "{ ")
    await expect(visit.suggestions.first).to_be_visible()
    assert await visit.violations() == []
    assert visit.complaints == []


async def test_a_script_in_the_page_is_stopped(visit: Visit) -> None:
    """The control: the policy is in force, and its violations are heard."""
    await visit.page.evaluate(
        """() => {
          const script = document.createElement('script');
          script.textContent = 'globalThis.ran = true';
          document.body.append(script);
        }"""
    )
    assert await visit.page.evaluate("globalThis.ran") is None
    assert await visit.violations() == ["script-src-elem: inline"]


async def test_the_editor_completes_a_field(visit: Visit) -> None:
    """Four letters and Enter."""
    await visit.write(visit.query, "{ view")
    await expect(visit.suggestions.first).to_contain_text("viewer")
    await visit.page.keyboard.press("Enter")
    await expect(visit.query).to_contain_text("viewer")


async def test_the_editor_marks_a_mistake(visit: Visit) -> None:
    """Before anything is sent."""
    await visit.write(visit.query, "{ nothing")
    await expect(visit.page.locator(".squiggly-error")).to_be_visible()


async def test_the_first_example_answers(visit: Visit) -> None:
    """A newcomer presses the button and gets data."""
    await visit.run("Viewer")
    await expect(visit.answer).to_contain_text('"viewer": null')


async def test_a_member_asks_with_a_token(visit: Visit, service: Service, album: Path | None) -> None:
    """The header that the hint speaks of, and the examples run as they are."""
    await visit.write(visit.headers, f'{{ "Authorization": "Bearer {service.token("ada-abara")}')
    for operation in ("UpdateProfile", "Node", "Viewer"):
        await visit.run(operation)
        await expect(visit.answer).to_contain_text('"name": "Ada"')
    if album is not None:
        await visit.picture(album / "explorer.png")


async def test_a_forged_token_is_refused_readably(visit: Visit, service: Service) -> None:
    """Not taken for a visitor's question."""
    forged = service.token("ada-abara")[:-4] + "AAAA"
    await visit.write(visit.headers, f'{{ "Authorization": "Bearer {forged}')
    await visit.run("Viewer")
    await expect(visit.answer).to_contain_text("UNAUTHENTICATED")


async def test_an_error_can_be_read(visit: Visit) -> None:
    """What is wrong and where, as the service said it."""
    await visit.write(visit.query, "{ nothing")
    await visit.run()
    await expect(visit.answer).to_contain_text("Cannot query field 'nothing' on type 'Query'.")
    await expect(visit.answer).to_contain_text('"line": 1')


async def test_unreadable_headers_are_not_sent(visit: Visit) -> None:
    """The editor says where they stop being JSON."""
    await visit.write(visit.headers, '{ "Authorization" "Bearer')
    await visit.run("Viewer")
    await expect(visit.answer).to_contain_text("Request headers are invalid JSON: expected a colon at line 1")
