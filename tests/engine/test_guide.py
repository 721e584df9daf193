"""The guide: it builds without a broken link, and what it tells people to type works against the demo."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
import pytest
from graphql import FieldNode, OperationDefinitionNode, OperationType, parse, print_ast

from datastore.dynamo import iso
from resolvers.values.node_ids import node_id
from server.demo.people import MEMBERS
from tests.command import environment
from tests.generated import ROOT
from tests.mail_server import Mailbox, mail_server_beside
from tests.service import Service, running_service
from tests.waiting import LONGEST

PAGES = sorted(page for page in (ROOT / "docs").glob("*.md") if page.name != "reference.md")
BLOCKS = re.compile(r"```(graphql|sh)\n(.*?)```", re.DOTALL)
ELSEWHERE = {
    "aws", "cat", "cd", "docker", "echo", "exit", "export", "git", "helm", "kubectl", "npm", "openssl", "sudo",
    "systemctl",
}  # fmt: skip
"""What these do is up to the reader's machine."""
OTHER_SITE = "https://blog.example.org"
FOR_VISITORS = {"startVisit"}
"""A member's token makes these unnecessary, so they refuse it."""


def blocks(language: str) -> list[Any]:
    return [
        pytest.param(text, id=f"{page.stem}: {' '.join(text.split())[:40]}")
        for page in PAGES
        for found, text in BLOCKS.findall(page.read_text(encoding="utf-8"))
        if found == language
    ]


def operations() -> list[Any]:
    """Those of the first day are examples, which test_every_example.py runs in their order."""
    return [
        pytest.param(definition, id=f"{block.id}: {definition.name.value if definition.name else ''}")
        for block in blocks("graphql")
        if not str(block.id).startswith("first-day:")
        for definition in parse(block.values[0]).definitions
        if isinstance(definition, OperationDefinitionNode) and definition.operation is not OperationType.SUBSCRIPTION
    ]


def test_the_guide_builds_without_a_broken_link(tmp_path: Path) -> None:
    """And none of its pages loads anything from elsewhere, so that it works offline."""
    shutil.copy(ROOT / "zensical.toml", tmp_path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    built = subprocess.run(
        [str(Path(sys.executable).with_name("zensical")), "build", "--strict"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > len(PAGES)
    for page in pages:
        assert re.findall(r'(?:src=|<link[^>]+href=)"https?://[^"]*"', page.read_text(encoding="utf-8")) == []
    assert [link for page in pages if page.name != "404.html" for link in dead_links(page, tmp_path / "site")] == []


def dead_links(page: Path, site: Path) -> Iterator[str]:
    """Links that lead out of the site, to a page or to a heading that it does not have."""
    for link in re.findall(r'<a\b[^>]*?\bhref="?([^"\s>]+)', page.read_text(encoding="utf-8")):
        path, _, heading = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        target = target / "index.html" if target.is_dir() else target
        if re.match(r"[a-z]+:", link):
            continue
        known = target.is_relative_to(site.resolve()) and target.is_file()
        if not known or (heading and heading not in headings(target)):
            yield f"{page.relative_to(site)}: {link}"


@cache
def headings(page: Path) -> frozenset[str]:
    return frozenset(re.findall(r'\bid="?([^"\s>]+)', page.read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def service(demo_data: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A demo of its own: the guide's examples add to it."""
    folder = tmp_path_factory.mktemp("guide")
    with mail_server_beside(Mailbox(), folder) as mail:
        variables = {
            "RINGSIDE_DATA": demo_data(), "RINGSIDE_CORS_ORIGINS": OTHER_SITE, "RINGSIDE_SMTP_URL": mail,
            "RINGSIDE_REQUEST_TIMEOUT": "60",
        }  # fmt: skip
        with running_service(variables, ["--demo"]) as service:
            yield service


@pytest.fixture(scope="module")
def demo(service: Service) -> Iterator[Demo]:
    headers = {"Authorization": f"Bearer {service.token('ada-abara', '--role', 'admin')}"}
    with httpx.Client(base_url=service.url, headers=headers, timeout=LONGEST) as http:
        yield Demo(http, service.token("bo-abara"))


@dataclass
class Demo:
    """A client of the demo, and the values that the guide's variables stand for."""

    http: httpx.Client
    other: str
    """The token of another member."""

    def ask(self, query: str, **variables: Any) -> Any:
        return _data(self.http.post("/graphql", json={"query": query, "variables": variables}))

    def ask_as_visitor(self, query: str, **variables: Any) -> Any:
        """From a page on another site."""
        body = {"query": query, "variables": variables}
        url, headers = f"{self.http.base_url}/graphql", {"Origin": OTHER_SITE}
        return _data(httpx.post(url, json=body, headers=headers, timeout=LONGEST))

    def value(self, name: str) -> Any:
        fixed = {"product": "ringside-tee", "season": "2026", "name": "The Guide's Own", "email": "ada@example.org"}
        return fixed[name] if name in fixed else getattr(self, name)()

    def token(self) -> str:
        draw = 'mutation { drawMatchup(input: { board: "main" }) { ... on Ballot { token } } }'
        return str(self.ask(draw)["drawMatchup"]["token"])

    def list(self) -> str:
        return str(self.ask("{ wordLists(first: 1) { nodes { id } } }")["wordLists"]["nodes"][0]["id"])

    def comment(self) -> str:
        return str(self.comments()[0])

    def revision(self) -> int:
        return int(self.ask("{ holdRules { revision } }")["holdRules"]["revision"])

    def event(self) -> str:
        return str(self._upcoming()["id"])

    def finished(self) -> str:
        return str(self.ask("{ events(state: SCORED, first: 1) { nodes { id } } }")["events"]["nodes"][0]["id"])

    def picks(self) -> Any:
        return [{"match": match["id"], "team": 0} for match in self._upcoming()["matches"]]

    def member(self) -> str:
        """Whose data the page about members is about; no other page needs them."""
        return node_id("User", MEMBERS[-1][0])

    def appointed(self) -> str:
        return self.member()

    def erased(self) -> str:
        return node_id("User", MEMBERS[-2][0])

    def suspended(self) -> str:
        suspend = """mutation ($id: ID!) {
          suspendMember(input: { user: $id, reason: "A test" }) { ... on MemberSuspended { user { id } } } }"""
        return str(self.ask(suspend, id=self.member())["suspendMember"]["user"]["id"])

    def until(self) -> str:
        return iso(datetime.now(UTC) + timedelta(days=7))

    def job(self) -> str:
        export = "mutation ($id: ID!) { exportMember(input: { user: $id }) { ... on MemberExport { job { id } } } }"
        return str(self.ask(export, id=self.member())["exportMember"]["job"]["id"])

    def league(self) -> str:
        """The private one of the two in the demo, whose captain the client is."""
        nodes = self.ask("{ viewer { leagues { nodes { id name } } } }")["viewer"]["leagues"]["nodes"]
        return next(str(node["id"]) for node in nodes if node["name"] == "Front Row")

    def code(self) -> str:
        """Of a league that somebody else has just created."""
        create = """mutation { createLeague(input: { name: "Others", season: "2026", entry: CODE }) {
          ... on LeagueCreated { league { code } } } }"""
        other = {"Authorization": f"Bearer {self.other}"}
        created = _data(self.http.post("/graphql", json={"query": create}, headers=other))
        return str(created["createLeague"]["league"]["code"])

    def user(self) -> str:
        """A member of the private league."""
        members = "query ($id: ID) { league(id: $id) { members(first: 9) { nodes { membership user { id } } } } }"
        nodes = self.ask(members, id=self.league())["league"]["members"]["nodes"]
        return next(str(node["user"]["id"]) for node in nodes if node["membership"] == "MEMBER")

    def comments(self) -> Any:
        """The latest one."""
        latest = self.ask("{ latestComments(status: PUBLISHED, first: 1) { nodes { id } } }")["latestComments"]
        return [node["id"] for node in latest["nodes"]]

    def _upcoming(self) -> Any:
        return self.ask("{ events(state: UPCOMING, first: 1) { nodes { id matches { id } } } }")["events"]["nodes"][0]


def _data(response: httpx.Response) -> Any:
    answer = response.json()
    assert "errors" not in answer, answer
    return answer["data"]


NULL_IN_THE_DEMO = {"challenge"}
"""It asks nobody for a proof of work."""
IN_A_SESSION = {"setRoles"}
"""Refused to a token; `test_every_example` runs it in a session."""


@pytest.mark.parametrize("operation", operations())
def test_a_query_of_the_guide_answers(operation: OperationDefinitionNode, demo: Demo) -> None:
    """With data, and not with a refusal."""
    names = [definition.variable.name.value for definition in operation.variable_definitions or ()]
    fields = {field.name.value for field in operation.selection_set.selections if isinstance(field, FieldNode)}
    ask = demo.ask_as_visitor if fields & FOR_VISITORS else demo.ask
    data = ask(print_ast(operation), **{name: demo.value(name) for name in names})
    for field, answer in data.items():
        assert answer is not None or field in NULL_IN_THE_DEMO, field
        assert ("code" in (answer or {})) is (field in IN_A_SESSION), answer


@pytest.mark.parametrize("block", blocks("sh"))
def test_a_command_of_the_guide_works(block: str, service: Service, tmp_path: Path) -> None:
    """`ringside`, `python3` and `curl` are run, `make` is looked up. Lines with a gap (…) are the reader's to fill."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for line in block.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if not words or "…" in line or words[0] in ELSEWHERE or words[0].split("=")[0].isupper():
            continue
        if words[0] == "make":
            assert words[1] in targets
            continue
        assert words[0] in {"ringside", ".venv/bin/ringside", "python3", "curl"}, line
        if {"aws", "serve"} & set(words):  # it needs an account, or does not end
            words = [*takewhile(lambda word: not word.startswith("-"), words), "--help"]
        run(words, service, tmp_path)


def run(words: list[str], service: Service, folder: Path) -> None:
    binary = Path(sys.executable)
    start = {"python3": [str(binary)], "curl": ["curl", "--fail-with-body", "-sS"]}.get(
        words[0], [str(binary), "-m", "server"]
    )
    arguments = [word.replace("http://127.0.0.1:8000", service.url) for word in words[1:]]
    (folder / "lock").touch()  # as if a service had used it
    variables = environment(RINGSIDE_DATA=str(folder))
    done = subprocess.run(
        [*start, *arguments], cwd=ROOT, env=variables, capture_output=True, text=True, timeout=LONGEST, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"errors"' not in done.stdout, done.stdout
