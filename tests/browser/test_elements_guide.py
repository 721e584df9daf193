"""What the guide shows about elements, as a reader would run it."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.browser.sites import EXAMPLES, Visited, visited_demo
from tests.command import ROOT
from tests.queries import POST_COMMENT
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

SCRIPT = ROOT / "docs" / "elements-script.md"
RUN = """
const posted = 'subscription { commentPosted(product: "lines") { body } }';
const draw = `mutation { drawMatchup(input: {}) {
  ... on Ballot { voter left { name } } ... on Refused { message } } }`;
globalThis.heard = [];
live(posted, {}, ({ commentPosted }) => heard.push(commentPosted.body));
globalThis.ready = (async () => {
  const { leaderboard } = await ask('{ leaderboard(first: 3) { nodes { contender { name } } } }');
  const drawn = [await ask(draw), await ask(draw)];
  return [leaderboard.nodes.length, ...drawn.map(({ drawMatchup }) => drawMatchup.voter)];
})();
"""


DRAW_TWICE = """async (address) => {
  const { ask, session } = await import(address);
  const draw = `fragment C on Contender { name }
    mutation { drawMatchup(input: {}) { ... on Ballot { voter left { ...C } } } }`.replace(/\\s+/g, ' ');
  await ask('query { now } # no mutation {');
  const visits = [session.visit !== null];
  const drawn = [await ask(draw), await ask(draw)];
  return [drawn.map(({ drawMatchup }) => drawMatchup.voter), [...visits, session.visit !== null]];
}"""


def plain_lines() -> str:
    """The guide's script without any of ours."""
    text = SCRIPT.read_text(encoding="utf-8")
    (script,) = re.findall(r"```js\n(const api = .*?)```", text, re.DOTALL)
    return str(script)


async def test_the_guides_thirty_lines_ask_and_listen(visited: Visited, browser: Browser) -> None:
    """On another site, in no more than thirty lines: the visitor is the same in both draws, and a comment arrives."""
    script = plain_lines()
    assert len([line for line in script.splitlines() if line.strip()]) <= 30
    visited.site.pages["/thirty.js"] = script + RUN
    async with visited.page(browser, '<script type="module" src="/thirty.js"></script>') as page:
        leaders, first, second = await page.page.evaluate("ready")
        assert leaders == 3
        assert first == second
        given = {"product": "lines", "language": "en", "body": "In thirty lines."}

        async def is_heard() -> bool:
            visited.edit(POST_COMMENT, by="cy-abara", role="member", **given)
            return bool(await page.page.evaluate("heard.includes('In thirty lines.')"))

        await until(is_heard, "a comment is heard, which may be the first after the subscription", pause=1)


async def test_the_guides_thirty_lines_go_on_without_a_visit_that_counts(
    demo_data: Callable[[], str], browser: Browser
) -> None:
    """Once a visit has ended they read on and start another; while none can be started, nothing is stored as one."""
    with visited_demo(demo_data(), RINGSIDE_NEW_VISITORS_PER_ADDRESS="1/day") as visited:
        visited.site.pages["/thirty.js"] = "localStorage.visit ??= 'ended';" + plain_lines() + RUN
        script = '<script type="module" src="/thirty.js"></script>'
        async with visited.page(browser, script) as page:
            leaders, first, second = await page.page.evaluate("ready")
            assert (leaders, first is not None) == (3, True)
            assert first == second
        async with visited.page(browser, script) as page:
            assert await page.page.evaluate("ready") == [3, None, None]
            assert await page.page.evaluate("localStorage.visit") is None


async def test_a_mutation_behind_a_fragment_starts_the_visit_that_it_needs(visited: Visited, browser: Browser) -> None:
    """So the visitor is the same in both draws. A query whose comment has the word starts none."""
    async with visited.page(browser, "") as page:
        voters, visits = await page.page.evaluate(DRAW_TWICE, f"{visited.service.url}/elements.js")
    assert voters[0] == voters[1]
    assert visits == [False, True]


async def test_the_guide_shows_each_element_with_its_attributes(
    visited: Visited, browser: Browser, tmp_path: Path
) -> None:
    """Against the service that the reader names; an attribute that is changed shows at once."""
    shutil.copy(ROOT / "zensical.toml", tmp_path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    zensical = Path(sys.executable).with_name("zensical")
    built = subprocess.run([zensical, "build"], capture_output=True, cwd=tmp_path, check=False)
    assert built.returncode == 0, built.stdout
    visited.site.folder = tmp_path / "site"
    try:
        async with visited.page(browser, "") as page:
            await page.page.goto(f"{visited.site.address}/elements-try/")
            await page.page.get_by_label("Service").fill(visited.service.url)
            for name in ("board", "event", "standings", "word", "comments", "sign-in"):
                await page.page.get_by_label("Element").select_option(f"ringside-{name}")
                await expect(page.page.locator(f"#tried ringside-{name}").locator("button, h2").first).to_be_visible()
            await page.page.get_by_label("Element").select_option("ringside-board")
            await page.page.get_by_label("board", exact=True).fill("nothing-here")
            await page.page.get_by_label("lang").fill("de")
            await page.page.get_by_label("lang").blur()
            await expect(page.page.locator("#tried ringside-board")).to_contain_text("nothing-here")
            await expect(page.page.locator("#try code")).to_contain_text(
                '<ringside-board board="nothing-here" lang="de">'
            )
    finally:
        visited.site.folder = EXAMPLES
