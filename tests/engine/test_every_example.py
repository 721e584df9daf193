"""Every example of `examples/`, run in an order in which an owner and members might, against the demo."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import httpx
import pytest

from datastore.dynamo import iso
from tests.command import ringside
from tests.confirmations import link_in
from tests.mail_server import Mailbox, body_of, mail_server_beside
from tests.operations import EXAMPLES
from tests.service import Service, running_service
from tests.waiting import LONGEST

OTHER_SITE = "https://blog.example.org"


def until(is_true: Callable[[], Any]) -> Any:
    """What is true after a while: an email has arrived, a job has ended."""
    ends = time.monotonic() + LONGEST
    while not (found := is_true()):
        assert time.monotonic() < ends
        time.sleep(0.1)
    return found


@dataclass
class People:
    """Clients of the service; and the examples that have run."""

    service: Service
    mailbox: Mailbox
    ran: set[str] = field(default_factory=set)

    def who(self, user: str, *roles: str) -> Person:
        arguments = [word for role in roles for word in ("--role", role)]
        return Person(self, {"Authorization": f"Bearer {self.service.token(user, *arguments)}"})

    def visitor(self, **headers: str) -> Person:
        return Person(self, headers)


@dataclass
class Person:
    people: People
    headers: Mapping[str, str]

    def run(self, name: str, /, **variables: Any) -> Any:
        """The answer of an example's only field, or the whole data; neither an error nor a refusal."""
        self.people.ran.add(name)
        return self.ask(EXAMPLES[name], **variables)

    def ask(self, query: str, /, **variables: Any) -> Any:
        body = {"query": query, "variables": variables}
        answer = httpx.post(f"{self.people.service.url}/graphql", json=body, headers=self.headers, timeout=60).json()
        assert "errors" not in answer, answer
        data = answer["data"]
        assert not any(isinstance(value, dict) and "code" in value and "message" in value for value in data.values()), (
            data
        )
        return next(iter(data.values())) if len(data) == 1 else data

    def run_to_its_end(self, name: str, number: str, /, **variables: Any) -> Any:
        """The answer of an example that does so much, once all is done: after five seconds it names a job instead."""
        self.people.ran.add(name)
        answer = self.ask(EXAMPLES[name].replace(f" {number}\n", f" {number} job {{ id }}\n"), **variables)
        if answer["job"] is None:
            return answer
        job = until(lambda: (found := self.run("Job", job=answer["job"]["id"]))["state"] == "DONE" and found)
        return {**answer, number: job["done"], "job": None}

    def listen(self, name: str, act: Any = None, /, **variables: Any) -> Any:
        """The first event of a subscription; `act` makes it happen."""
        self.people.ran.add(name)
        body = {"query": EXAMPLES[name], "variables": variables}
        headers = {**self.headers, "Accept": "text/event-stream"}
        url = f"{self.people.service.url}/graphql"
        with httpx.stream("POST", url, json=body, headers=headers, timeout=60) as stream:
            lines = stream.iter_lines()
            next(lines)
            if act is not None:
                act()
            data = json.loads(next(line for line in lines if line.startswith("data:"))[5:])["data"]
        return next(iter(data.values()))


@pytest.fixture
def people(demo_data: Callable[[], str], tmp_path: Path) -> Iterator[People]:
    mailbox = Mailbox()
    with mail_server_beside(mailbox, tmp_path) as mail:
        variables = {"RINGSIDE_DATA": demo_data(), "RINGSIDE_SMTP_URL": mail, "RINGSIDE_CORS_ORIGINS": OTHER_SITE}
        variables |= {"RINGSIDE_GUESTS": "comments", "RINGSIDE_REQUEST_TIMEOUT": "60"}
        with running_service(variables, ["--demo"]) as service:
            yield People(service, mailbox)


def test_every_example_runs_and_answers_what_it_is_for(people: People) -> None:
    """With the values that stand in it, and ids from the answers before it. The audit finds nothing wrong then."""
    owner, ada, bo = people.who("owner", "admin"), people.who("ada-abara"), people.who("bo-abara")
    looks_around(people, ada)
    board(people, owner)
    event(owner, ada)
    league(ada, bo)
    comments(owner, ada, bo)
    words(people, owner, ada)
    machines(owner)
    members(people, owner)
    signs_in(people)
    assert people.ran == EXAMPLES.keys()
    audited = ringside("audit", **people.service.variables)
    assert audited.returncode == 0, audited.stderr


def looks_around(people: People, ada: Person) -> None:
    visitor = people.visitor()
    welcome = visitor.run("Welcome")
    assert [len(welcome[name]["nodes"]) for name in ("leaderboard", "events", "topProducts", "wordLists")] == [3] * 4
    assert ada.run("UpdateProfile")["user"]["name"] == "Ada"
    me = ada.run("Viewer")
    assert me["name"] == "Ada"
    assert visitor.run("Node")["id"]
    assert visitor.run("Nodes", ids=[me["id"]]) == [{"id": me["id"], "name": "Ada"}]
    other_site = people.visitor(Origin=OTHER_SITE)
    visit = other_site.run("StartVisit")
    assert visit["token"]
    voter = people.visitor(Origin=OTHER_SITE, Authorization=f"Visitor {visit['token']}")
    drawn = voter.run("Draw")
    assert drawn["progress"]["seen"] == 0
    vote = voter.run("Vote", token=drawn["token"])
    assert vote["winner"]["name"] == drawn["left"]["name"]
    ada_there = people.visitor(Origin=OTHER_SITE, **ada.headers)
    assert ada_there.run("ContinueVisit", visit=visit["token"])["user"]["name"] == "Ada"
    assert visitor.run("BoardOfContenders")["title"] == "Which mask wins?"
    assert visitor.run("AllContenders")["totalCount"] == 24
    assert visitor.run("Leaderboard")["totalCount"] == 24
    assert len(visitor.run("Matchups")["nodes"]) == 5
    assert len(visitor.listen("WatchLeaderboard")) == 5
    assert visitor.run("Seasons")["nodes"][0]["name"] == "2026"
    assert visitor.run("SeasonStandings")["totalCount"] > 0


def board(people: People, owner: Person) -> None:
    created = owner.run("CreateBoard")["board"]
    assert (created["slug"], created["closesAt"]) == ("finals", "2035-01-01T00:00:00.000Z")
    left = owner.run("AddContender")["contender"]
    right = owner.run("AddContender", name="The Tide")["contender"]
    assert (left["name"], left["description"]) == ("Captain Comet", "Unbeaten since spring.")
    changed = owner.run("UpdateContender", contender=left["id"])["contender"]
    assert changed == {"name": "Captain Comet", "link": "https://example.com/comet"}
    assert owner.run("RetireContender", contender=left["id"])["contender"]["retired"]
    assert not owner.run("RestoreContender", contender=left["id"])["contender"]["retired"]
    assert owner.run("UpdateBoard")["board"] == {"title": "Finals", "closesAt": None}
    boards = {node["slug"]: node["contenderCount"] for node in owner.run("Boards")["nodes"]}
    assert boards == {"finals": 2, "main": 24}
    assert owner.run("ImportContenders", dryRun=True)["added"] == 2
    assert owner.ask('{ contenders(board: "finals", first: 1) { totalCount } }')["totalCount"] == 2
    draw = 'mutation { drawMatchup(input: { board: "finals" }) { ... on Ballot { token voter left { id } } } }'
    voter = people.who("cy-abara")
    ballot = voter.ask(draw)
    voter.run("Vote", token=ballot["token"])
    record = owner.run("Matchup", left=left["id"], right=right["id"])
    assert record["leftWins"] + record["rightWins"] == 1
    assert owner.run_to_its_end("VoidVoter", "votesRemoved", voter=ballot["voter"])["votesRemoved"] == 1
    search = owner.run("FindSuspects")["job"]["id"]
    until(lambda: owner.run("Job", job=search)["state"] == "DONE")
    assert owner.run("Suspects")["nodes"] == []
    job = owner.run("VoidVoters", voters=[ballot["voter"]])["job"]["id"]
    until(lambda: owner.run("Job", job=job)["state"] == "DONE")
    restoring = owner.run("RestoreVoters", job=job)["job"]["id"]
    until(lambda: owner.run("Job", job=restoring)["state"] == "DONE")
    assert owner.run("PreviewContender")["removed"] == ["onload"]
    found = owner.run("Contender", contender=left["id"])
    assert (found["wins"], found["losses"], found["retired"]) == (0, 0, False)


def event(owner: Person, ada: Person) -> None:
    created = owner.run("CreateEvent")["event"]
    assert (created["name"], created["state"]) == ("Winter Finals", "UPCOMING")
    id_ = created["id"]
    matches = [owner.run("AddMatch", event=id_, name=name)["match"] for name in ("Opener", "Spare", "Main event")]
    first, spare, main = (match["id"] for match in matches)
    assert [match["order"] for match in matches] == [1, 2, 3]
    assert owner.run("UpdateMatch", match=main)["match"] == {"points": 25, "championships": ["World title"]}
    ordered = owner.run("ReorderMatches", event=id_, matches=[main, first, spare])["event"]
    assert [match["id"] for match in ordered["matches"]] == [main, first, spare]
    left = owner.run("RemoveMatch", match=spare)["event"]
    assert [match["name"] for match in left["matches"]] == ["Main event", "Opener"]
    assert owner.run("UpdateEvent", event=id_)["event"]["name"] == "Winter Finals, live"
    assert ada.run("Next")["name"]
    assert ada.run("Upcoming")["nodes"]
    picked = ada.run("SubmitPrediction", event=id_, picks=[{"match": main, "team": 0}])["prediction"]
    assert picked["picks"] == [{"match": main, "team": 0}]
    assert ada.listen("WatchEvent", event=id_)["state"] == "UPCOMING"
    assert owner.run("LockEvent", event=id_)["event"]["state"] == "LOCKED"
    for match in (main, first):
        assert owner.run("RecordResult", match=match)["match"]["result"] == {"outcome": "WON", "winner": 0}
    assert owner.run("RecordTieBreak", event=id_)["event"]["tieBreak"]["answer"] == 21.5
    card = owner.run("Card", event=id_)
    assert [match["result"]["winner"] for match in card["matches"]] == [0, 0]
    assert owner.run_to_its_end("ScoreEvent", "predictionsScored", event=id_)["predictionsScored"] == 1
    assert owner.run("Card", event=id_)["state"] == "SCORED"
    [row] = owner.run("Predictions", event=id_)["nodes"]
    assert (row["rank"], row["points"], row["user"]["name"]) == (1, 25, "Ada")
    assert ada.run("EventScreen", event=id_)["viewerPrediction"]["points"] == 25
    until(lambda: owner.run("UnscoreEvent", event=id_)["event"]["state"] == "LOCKED")
    assert owner.run_to_its_end("ImportEvents", "added") == {"added": 1, "problems": [], "job": None}


def league(ada: Person, bo: Person) -> None:
    made = ada.run("CreateLeague")["league"]
    id_ = made["id"]
    assert bo.run("JoinLeague", code=made["code"])["membership"] == "MEMBER"
    me = bo.run("Viewer")["id"]
    assert ada.run("League", league=id_)["memberCount"] == 2
    event_id = ada.ask("{ events(state: SCORED, first: 1) { nodes { id } } }")["nodes"][0]["id"]
    assert ada.run("LeagueEvent", league=id_, event=event_id)["event"]["event"]["state"] == "SCORED"
    assert ada.listen("WatchStandings", league=id_)
    assert ada.run("RotateCode", league=id_)["league"]["code"] != made["code"]
    assert ada.run("RemoveFromLeague", league=id_, user=me)["league"]["memberCount"] == 1
    code = ada.run("RotateCode", league=id_)["league"]["code"]
    bo.run("JoinLeague", code=code)
    assert bo.run("Leave", league=id_)["league"]["name"] == "Friends"
    asked = EXAMPLES["CreateLeague"].replace("CODE", "APPROVAL")
    approval = ada.ask(asked, name="Asked")["league"]["id"]
    bo.ask("mutation ($id: ID) { joinLeague(input: { league: $id }) { __typename } }", id=approval)
    assert ada.run("Admit", league=approval, user=me)["member"]["membership"] == "MEMBER"
    names = {node["name"] for node in ada.run("Leagues")["leagues"]["nodes"]}
    assert {"Friends", "Asked"} <= names
    assert ada.run("DeleteLeague", league=id_)["deletedId"] == id_


def comments(owner: Person, ada: Person, bo: Person) -> None:
    assert ada.run("Comments")["totalCount"] > 0
    statistics = ada.run("Statistics")
    assert sum(row["count"] for row in statistics["histogram"]) == statistics["rated"] <= statistics["total"]
    assert len(ada.run("Threads")["nodes"]) == 3
    assert len(ada.run("StatisticsOfMany")) > 1
    assert ada.run("TopProducts")["nodes"]
    assert ada.run("Challenge") is None
    posted = ada.run("PostComment")["comment"]
    id_ = posted["id"]
    assert posted["status"] == "PUBLISHED"
    heard = ada.listen("CommentPosted", lambda: bo.run("PostComment"))
    assert heard["body"] == "Bought one, then two more."
    assert ada.run("EditComment", comment=id_)["comment"]["rating"] == 4
    assert ada.run("OneComment", comment=id_)["viewerCanEdit"]
    marked = bo.run("MarkHelpful", comment=id_)["comment"]
    assert (marked["helpful"], marked["viewerFoundHelpful"]) == (1, True)
    until(lambda: bo.run("MostHelpful")["nodes"][0]["viewerFoundHelpful"])
    assert bo.run("VerifiedComments")["commentStatistics"]["verified"] == 0
    assert owner.run("AnswerComment", comment=id_)["comment"]["answer"]["body"].startswith("Thank you.")
    assert bo.run("ReportComment", comment=id_)["comment"]["status"] == "PUBLISHED"
    until(lambda: owner.run("Queue", status="PUBLISHED")["waiting"] == 1)
    assert owner.run("Queue", status="PUBLISHED")["nodes"][0]["reportReasons"] == ["Advertising."]
    decided = owner.run("ModerateComment", comment=id_)["comment"]
    assert (decided["status"], decided["moderationNote"]) == ("REJECTED", "Please write about the shirt.")
    assert owner.run("PreviewHoldRules") == []
    assert owner.run("SetHoldRules")["rules"]["revision"] == 1
    assert [rule["name"] for rule in owner.run("HoldRules")["rules"]] == ["Links", "Too many"]
    assert len(owner.run("LatestComments")["nodes"]) == 10
    many = owner.run("ModerateComments", comments=[id_])
    assert (many["comments"], many["refused"]) == ([{"id": id_, "status": "REJECTED"}], [])
    assert ada.run("DeleteComment", comment=id_)["deletedId"] == id_


def words(people: People, owner: Person, ada: Person) -> None:
    made = owner.run("CreateWordList")["list"]
    id_ = made["id"]
    assert (made["name"], made["public"]) == ("Holds and throws", True)
    added = owner.run("AddWords", list=id_)
    assert added["list"]["wordCount"] == 3
    word = added["words"][0]["id"]
    assert owner.run("UpdateWord", word=word)["word"]["reading"] == "YAH-beh"
    assert owner.run("UpdateWordList", list=id_)["list"] == {"name": "Holds", "level": 2, "public": True}
    assert owner.run("OneList", list=id_)["dailyWord"]["word"]["term"]
    assert {day["word"]["id"] for day in owner.run("UpcomingWords", list=id_)} == {one["id"] for one in added["words"]}
    assert len(ada.run("WordsOfTheDay")) > 1
    assert ada.run("Lists")["nodes"]
    assert ada.run("Subscribe", input={"list": id_})["subscription"]["active"]
    learns(ada, id_, word)
    assert not ada.run("Unsubscribe", list=id_)["subscription"]["active"]
    assert people.visitor().run("RequestSubscription", list=id_)["email"] == "fan@example.com"
    claims(people)
    assert owner.run_to_its_end("ImportWords", "added", list=id_) == {"added": 2, "problems": [], "job": None}
    assert owner.run("RemoveWord", word=word)["list"]["wordCount"] == 4
    assert owner.run("DeleteWordList", list=id_)["deletedId"] == id_


def learns(ada: Person, list_id: str, word: str) -> None:
    quiz = ada.run("StartQuiz", list=list_id)
    early = datetime.fromisoformat(quiz["earliestAnswerAt"])
    until(lambda: datetime.now(UTC) > early)
    answers = [question["choices"][0] for question in quiz["questions"]]
    graded = ada.run("AnswerQuiz", token=quiz["token"], answers=answers)
    assert graded["result"]["total"] == 3
    assert graded["streak"]["current"] >= 1
    assert ada.run("ReviewWord", word=word)["card"]["reviews"] == 2
    assert "dueCount" in ada.run("Due")
    assert ada.run("RecordQuiz", list=list_id)["streak"]["current"] >= 1
    sentence = ada.run("WriteSentence", word=word)["sentence"]
    assert sentence["text"] == "Una frase mía."
    assert ada.run("Learner")["sentences"]["nodes"]
    assert "nodes" in ada.run("QuizLeaderboard", on=datetime.now(UTC).date().isoformat())
    assert ada.run("DeleteSentence", sentence=sentence["id"])["deletedId"] == sentence["id"]


def claims(people: People) -> None:
    """A visitor's subscription becomes the member's who proves the same address."""
    fan = people.who("fan")
    press_next_link(people, 1)
    fan.ask('mutation { updateProfile(input: { email: "fan@example.com" }) { __typename } }')
    press_next_link(people, 2)
    [claimed] = fan.run("ClaimSubscriptions")["subscriptions"]
    assert fan.run("ClaimComments")["job"]["state"] == "RUNNING"
    assert claimed == {"list": {"name": "Holds"}, "active": True}


def press_next_link(people: People, number: int) -> None:
    """The link of an email to the fan."""

    def emails() -> list[EmailMessage]:
        return [email for recipient, email in people.mailbox.emails if recipient == "fan@example.com"]

    until(lambda: len(emails()) >= number)
    link = link_in(emails()[number - 1])
    assert httpx.post(people.service.url + link, timeout=60).status_code == 200


def signs_in(people: People) -> None:
    visitor = people.visitor()
    ringside("member", "role", "owner@example.com", "--role", "admin", **people.service.variables)
    assert visitor.run("SignInMethods") == ["EMAIL", "GUEST"]
    first = digits(people, visitor.run("RequestSignIn"))
    signed = visitor.run("SignIn", **first)
    assert signed["user"]["name"]
    fan = people.visitor(Authorization=f"Bearer {signed['token']}")
    second = digits(people, fan.run("RequestSignIn", email="fan@example.net"))
    added = fan.run("AddIdentity", **second)["user"]["identities"]
    assert {one["label"] for one in added} == {"fan@example.com", "fan@example.net"}
    assert fan.run("RemoveIdentity")["user"] == {"identities": [{"label": "fan@example.net"}]}
    assert fan.run("Identities")["identities"] == [{"method": "EMAIL", "label": "fan@example.net"}]
    third = digits(people, visitor.run("RequestSignIn", email="owner@example.com"))
    owner = people.visitor(Authorization=f"Bearer {visitor.run('SignIn', **third)['token']}")
    until(lambda: "admin" in owner.ask("{ viewer { roles } }")["roles"])
    assert owner.run("SetRoles", user=signed["user"]["id"])["user"]["roles"] == ["member", "moderator"]
    assert fan.run("SignOut")["signedOut"]
    guest = people.visitor().run("SignInAsGuest")
    assert guest["user"] == {"name": "Passer-by", "isGuest": True}


def digits(people: People, asked: Mapping[str, str]) -> dict[str, str]:
    """What signs in whoever reads the email that was asked for."""

    def found() -> list[str]:
        emails = [email for recipient, email in people.mailbox.emails if recipient == asked["email"]]
        return [code for email in emails for code in re.findall(r"^(\d{6})\s*$", body_of(email), re.MULTILINE)]

    return {"request": asked["request"], "code": until(found)[-1]}


def machines(owner: Person) -> None:
    created = owner.run("CreateApiKey")
    assert (created["apiKey"]["name"], created["apiKey"]["roles"]) == ("Shop", ["moderator"])
    assert created["secret"]
    assert [node["name"] for node in owner.run("ApiKeys")["nodes"]] == ["Shop"]
    assert owner.run("RevokeApiKey", key=created["apiKey"]["id"])["apiKey"] == {"name": "Shop"}
    added = owner.run("AddWebhook")
    hook = added["webhook"]["id"]
    assert added["webhook"]["kinds"] == ["comment.posted", "event.scored"]
    assert owner.run("RotateWebhookSecret", webhook=hook)["secret"] != added["secret"]
    assert owner.run("Redeliver", webhook=hook, since=an_hour_ago())["job"]["id"]
    assert [node["active"] for node in owner.run("Webhooks")["nodes"]] == [True]
    assert owner.run("RemoveWebhook", webhook=hook)["deletedId"] == hook


def members(people: People, owner: Person) -> None:
    cy = people.who("cy-abara")
    id_ = cy.run("Viewer")["id"]
    assert [node["id"] for node in owner.run("FindMembers", search=id_)["nodes"]] == [id_]
    assert owner.run("Member", user=id_)["suspension"] is None
    tomorrow = iso(datetime.now(UTC) + timedelta(days=1))
    assert owner.run("SuspendMember", user=id_, until=tomorrow)["user"]["suspension"]["until"] == tomorrow
    assert owner.run("ReinstateMember", user=id_)["user"]["suspension"] is None
    assert owner.run("TakeBack", user=id_, since=an_hour_ago())["job"]["id"]
    kinds = {node["kind"]: node["actorUser"] for node in owner.run("Journal")["nodes"]}
    assert kinds["member.suspended"] is not None
    exported = owner.run("ExportMember", user=id_)
    assert "/member-export" in exported["url"]
    until(lambda: owner.run("Job", job=exported["job"]["id"])["state"] == "DONE")
    figures(owner)
    erased = owner.run("EraseMember", user=id_)["job"]["id"]
    until(lambda: owner.run("Job", job=erased)["state"] == "DONE")


def figures(owner: Person) -> None:
    today, now = datetime.now(UTC).date().isoformat(), iso(datetime.now(UTC))
    assert [row["day"] for row in owner.run("Activity", **{"from": today, "to": today})] == [today]
    assert isinstance(owner.run("Operations", **{"from": an_hour_ago(), "to": now}), list)
    assert owner.run("Lag")["oldestJobSeconds"] >= 0
    assert {node["kind"] for node in owner.run("Jobs")["nodes"]}
    assert owner.run("Clock")[:10] == today


def an_hour_ago() -> str:
    return iso(datetime.now(UTC) - timedelta(hours=1))
