"""An owner's first day, walked by what docs/first-day.md says and nothing else.

Before there was this page it took an owner 28 documents written by hand: 16 for a page with all parts and 12 for the
chores. The page is `examples/page.html` now, which needs none; this counts what the chores need.
"""

import asyncio
import re
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.command import ringside
from tests.generated import ROOT
from tests.queries import POST_COMMENT, REPORT_COMMENT
from tests.service import Service, running_service
from tests.waiting import until

PAGE = (ROOT / "docs" / "first-day.md").read_text(encoding="utf-8")
DOCUMENTS = {
    re.search(r"(?:mutation|query) (\w+)", text)[1]: text  # type: ignore[index]
    for text in re.findall(r"```graphql\n(.*?)```", PAGE, re.DOTALL)
}
MOST_DOCUMENTS = 20
ADDRESS = "you@example.org"


class Owner:
    """Somebody who pastes the page's documents, and gives the variables that their answers name."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.pasted = Counter[str]()
        self.headers = signed_in(service)

    def paste(self, name: str, /, **variables: Any) -> Any:
        self.pasted[name] += 1
        return ask(self.service, DOCUMENTS[name], self.headers, **variables)


def signed_in(service: Service) -> dict[str, str]:
    """What the owner's browser sends, signed in on the service's own page by the code that a demo shows there."""
    with httpx.Client(base_url=service.url, headers={"origin": service.url}, timeout=60) as browser:

        def send(mutation: str) -> Any:
            answer = browser.post("/graphql", json={"query": f"mutation {{ {mutation} }}"}).json()
            return answer["data"].popitem()[1]

        asked = send(f'requestSignIn(input: {{ email: "{ADDRESS}" }}) {{ ... on SignInRequested {{ request }} }}')
        (email,) = httpx.get(f"{service.url}/sign-in/emails", timeout=60).json()
        (code,) = re.findall(r"^\d{6}$", email["text"], re.MULTILINE)
        given = f'request: "{asked["request"]}", code: "{code}"'
        assert send(f"signIn(input: {{ {given} }}) {{ __typename }}") == {"__typename": "SignedIn"}
        cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        return {"origin": service.url, "cookie": cookies}


def ask(service: Service, query: str, headers: dict[str, str], **variables: Any) -> Any:
    body = {"query": query, "variables": variables}
    answer = httpx.post(f"{service.url}/graphql", json=body, headers=headers, timeout=60).json()
    assert "errors" not in answer, answer
    (value,) = answer["data"].values()
    assert "message" not in value, value
    return value


@pytest.fixture
def service(tmp_path: Path) -> Any:
    variables = {"RINGSIDE_DATA": str(tmp_path / "data"), "RINGSIDE_DEMO": "on", "RINGSIDE_REQUEST_TIMEOUT": "60"}
    for command in (("table", "create"), ("member", "role", ADDRESS, "--role", "admin")):
        assert ringside(*command, **variables).returncode == 0
    with running_service(variables, []) as service:
        yield service


def test_a_first_day_takes_twenty_pasted_documents_and_none_of_one_s_own(service: Service, tmp_path: Path) -> None:
    """The chores of a page with all parts: a board of five, an event of two matches, comments, words, a backup."""
    owner, fan = Owner(service), {"Authorization": f"Bearer {service.token('fan')}"}
    assert owner.paste("CreateBoard")["board"]["slug"] == "finals"
    for name in ("Captain Comet", "The Quill", "Vega", "Ruiz", "Okafor"):
        assert owner.paste("AddContender", name=name)["contender"]["name"] == name

    event = owner.paste("CreateEvent")["event"]["id"]
    matches = [owner.paste("AddMatch", event=event, name=name)["match"]["id"] for name in ("Opener", "Main event")]
    assert [match["name"] for match in owner.paste("Next")["matches"]] == ["Opener", "Main event"]
    owner.paste("LockEvent", event=event)
    assert owner.paste("Card", event=event)["state"] == "LOCKED"
    for match in matches:
        assert owner.paste("RecordResult", match=match)["match"]["result"] == {"outcome": "WON", "winner": 0}
    owner.paste("RecordTieBreak", event=event)

    def is_scored() -> bool:  # after five seconds it answers before that, and the scoring goes on
        return bool(owner.paste("ScoreEvent", event=event)["event"]["state"] == "SCORED")

    asyncio.run(until(is_scored, "the event is scored"))

    review = {"product": "mug", "language": "en", "rating": 1, "body": "Buy my mugs instead."}
    comment = ask(service, POST_COMMENT, fan, input=review)["comment"]["id"]
    reader = {"Authorization": f"Bearer {service.token('reader')}"}
    ask(service, REPORT_COMMENT, reader, input={"comment": comment, "reason": "SPAM"})
    queue = owner.paste("Queue", status="PUBLISHED")
    assert comment in str(queue)
    assert owner.paste("ModerateComment", comment=comment)["comment"]["status"] == "REJECTED"
    author = ask(service, "{ viewer { id } }", fan)["id"]
    assert owner.paste("SuspendMember", user=author)["user"]

    words = owner.paste("CreateWordList")["list"]
    assert words["public"] is True
    owner.paste("AddWords", list=words["id"])
    kinds = {occurrence["kind"] for occurrence in owner.paste("Journal")["nodes"]}
    assert {"comment.moderated", "member.suspended"} <= kinds
    other = ask(service, "{ viewer { id } }", reader)["id"]
    assert owner.paste("SetRoles", user=other)["user"]["roles"] == ["member", "moderator"]
    assert owner.paste("CreateApiKey")["secret"].startswith("rsk_")
    ringside("backup", str(tmp_path / "copy"), **service.variables)

    assert owner.pasted.keys() == DOCUMENTS.keys()
    assert len(owner.pasted) <= MOST_DOCUMENTS, owner.pasted
