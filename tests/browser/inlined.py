"""A page that inlines pictures, and how it looks."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import Browser, Page

from tests.browser.pages import new_context

ADDRESS = "http://pictures.example/"
CANARY = """
<!doctype html><html><head><style>.modal { position: fixed; inset: 0 }</style></head>
<body><p id="canary" style="width:300px;height:40px">As it was.</p>
<div id="pictures" style="width:200px;height:200px">%s</div></body></html>
"""
LOOK = """() => {
    const canary = document.getElementById("canary"), box = canary.getBoundingClientRect();
    const style = getComputedStyle(canary), body = getComputedStyle(document.body);
    return {
        box: [box.x, box.y, box.width, box.height],
        style: [style.display, style.color, style.position, style.font, body.display, body.backgroundColor],
        uncovered: document.elementFromPoint(box.x + 5, box.y + 5) === canary,
        sheets: document.styleSheets.length,
        ran: globalThis.ran ?? 0,
        links: document.querySelectorAll("#pictures a, #pictures image, #pictures [href^='http']").length,
        animations: document.getAnimations().length,
    };
}"""


@asynccontextmanager
async def new_page(browser: Browser) -> AsyncIterator[Page]:
    """A page that counts what runs in it; its requests are answered here."""
    context = await new_context(browser, viewport={"width": 600, "height": 600})
    page = await context.new_page()
    await page.add_init_script("globalThis.alert = () => { globalThis.ran = (globalThis.ran ?? 0) + 1 }")
    yield page
    await context.close()


async def look_at(page: Page, pictures: str) -> tuple[Any, list[str]]:
    """How a page looks that inlines these pictures, and the addresses it asked for."""
    addresses: list[str] = []

    async def answer(route: Any) -> None:
        addresses.append(route.request.url)
        is_page = route.request.url == ADDRESS
        await route.fulfill(status=200 if is_page else 404, content_type="text/html", body=CANARY % pictures)

    await page.unroute_all()
    await page.route("**/*", answer)
    await page.goto(ADDRESS)
    await page.mouse.move(100, 150)
    await page.mouse.click(100, 150)
    look = await page.evaluate(LOOK)
    return look, [address for address in addresses if address != ADDRESS]
