"""Pictures as the API stores them, inlined into a page: whatever an editor sent, none acts, loads or restyles."""

from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.attack.svg_vectors import VECTORS
from tests.browser.inlined import look_at, new_page
from tests.browser.pages import PATIENT
from tests.pictures import MARK, SVG
from tests.queries import ADD_CONTENDER, CREATE_BOARD
from tests.service import Service, running_service
from tests.waiting import LONGEST

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stored(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[list[str]]:
    """What `addContender` made of every vector that it accepted."""
    with running_service({"RINGSIDE_DATA": str(tmp_path_factory.mktemp("pictures")), **PATIENT}) as service:
        yield await _store(service)


async def _store(service: Service) -> list[str]:
    headers = {"authorization": f"Bearer {service.token('editor', '--role', 'editor')}"}
    pictures: list[str] = []
    async with httpx.AsyncClient(base_url=service.url, headers=headers, timeout=LONGEST) as http:
        board = {"slug": "hostile", "title": "Hostile"}
        await http.post("/graphql", json={"query": CREATE_BOARD, "variables": {"input": board}})
        for number, vector in enumerate(VECTORS.values()):
            contender = {"board": "hostile", "name": f"Picture {number}", "svg": SVG % (vector + MARK)}
            response = await http.post("/graphql", json={"query": ADD_CONTENDER, "variables": {"input": contender}})
            answer = response.json()["data"]["addContender"]
            assert "contender" in answer or answer["code"] == "INVALID_INPUT", answer
            pictures += [answer["contender"]["svg"]] if "contender" in answer else []
    return pictures


async def test_no_stored_picture_acts_on_a_page(browser: Browser, stored: list[str]) -> None:
    """No script runs, no address is asked for, nothing is a link, and the page looks as it does without them."""
    assert len(VECTORS) >= 121
    assert len(stored) > len(VECTORS) / 2
    async with new_page(browser) as page:
        expected, _ = await look_at(page, "")
        boxes = "".join(f'<div style="height:2px;overflow:hidden">{picture}</div>' for picture in stored)
        look, addresses = await look_at(page, boxes)
    assert addresses == []
    assert look == expected


async def test_the_page_would_notice_the_vectors(browser: Browser) -> None:
    """The control: as they were sent, scripts run and addresses are asked for."""
    async with new_page(browser) as page:
        expected, _ = await look_at(page, "")
        look, addresses = await look_at(page, "".join(SVG % vector for vector in VECTORS.values()))
    assert addresses
    assert look != expected
