"""No page in a browser reaches the embedded engine, which answers every origin and checks no credentials."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from playwright.async_api import Browser, Error, Page

from server.engine import run_engine_async
from server.settings.values import BAD_PORTS
from tests.browser.pages import new_context
from tests.engines import engine_program

pytestmark = pytest.mark.asyncio(loop_scope="session")

LIST_TABLES = """
async url => {
  const headers = {
    "content-type": "application/x-amz-json-1.0",
    "x-amz-target": "DynamoDB_20120810.ListTables",
    "x-amz-date": "20260101T000000Z",
    "authorization": "AWS4-HMAC-SHA256 Credential=x/2/us-east-1/dynamodb/aws4_request,SignedHeaders=,Signature=0",
  };
  const answer = await fetch(url, { method: "POST", headers, body: "{}" });
  return await answer.json();
}
"""


@asynccontextmanager
async def blank_page(browser: Browser) -> AsyncIterator[Page]:
    """A page of some site, served from this machine."""

    async def blank(_: web.BaseRequest) -> web.Response:
        return web.Response(text="<title>Some site</title>", content_type="text/html")

    server = await asyncio.get_running_loop().create_server(web.Server(blank), "127.0.0.1", 0)
    context = await new_context(browser)
    try:
        page = await context.new_page()
        await page.goto(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
        yield page
    finally:
        await context.close()
        server.close()


async def _failure(page: Page, url: str) -> str | None:
    """Why the browser did not carry out the page's request; None if the page got the engine's answer."""
    failures: list[str | None] = []
    page.on("requestfailed", lambda request: failures.append(request.failure))
    try:
        answer = await page.evaluate(LIST_TABLES, url)
    except Error:
        return failures[-1]
    assert "TableNames" in answer
    return None


async def test_a_page_cannot_reach_the_engine(browser: Browser, tmp_path: Path) -> None:
    """The browser refuses before it connects, also to a page that wants to navigate there."""
    program = engine_program("dynoxide", tmp_path)
    async with run_engine_async(tmp_path, program=program) as engine, blank_page(browser) as page:
        assert await _failure(page, engine.url) == "net::ERR_UNSAFE_PORT"
        with pytest.raises(Error, match="ERR_UNSAFE_PORT"):
            await page.goto(engine.url)


async def test_a_page_reaches_an_engine_at_an_ordinary_port(
    browser: Browser, tmp_path: Path, only_port: Callable[[int], None]
) -> None:
    """The control: without the choice of the port, any page reads and writes the table."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        only_port(unused.getsockname()[1])
    program = engine_program("dynoxide", tmp_path)
    async with run_engine_async(tmp_path, program=program) as engine, blank_page(browser) as page:
        assert await _failure(page, engine.url) is None


async def test_the_browser_refuses_every_port_that_the_engine_may_use(browser: Browser) -> None:
    """The standard lists more ports than Chromium refuses, so each one is tried."""
    async with blank_page(browser) as page:
        failures = {port: await _failure(page, f"http://127.0.0.1:{port}/") for port in BAD_PORTS}
    assert failures == dict.fromkeys(BAD_PORTS, "net::ERR_UNSAFE_PORT")
