"""One site with an object of every kind and state, and a client for each kind of viewer."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Self

from datastore.changes.occurrences import DELIVERY, DeliveryState, Occurrence, new_delivery
from datastore.changes.unit_of_work import UnitOfWork
from datastore.comments.counts import settle_product
from datastore.jobs import jobs as job_store
from datastore.jobs.jobs import JobState
from datastore.journal.usage import OperationFigures
from datastore.journal.webhooks import DEAD_FOR
from datastore.members.suspensions import SUSPENSION, Suspension
from datastore.people import profiles as profile_store
from datastore.people.profiles import PROFILE, Profile
from datastore.vocabulary import quizzes, subscriptions
from datastore.vocabulary.subscriptions import CharacterSet, Subscription
from datastore.voting.suspects import SEARCH, SUSPECT, RankChange, Suspect, SuspectSearch
from resolvers.journal.usage import UsageReports
from resolvers.members.sign_in_codes import CodeEmail, SignInCodes
from resolvers.people.confirmations import Confirmations, Link
from resolvers.requests.context import Role
from resolvers.values.node_ids import node_id, parse_node_id, parse_node_key
from resolvers.vocabulary.schedules import Grade, reviewed
from resolvers.vocabulary.subscriptions import record_id
from tests.authorisation.rules import (
    ADMINS,
    AUTHOR,
    AUTHOR_OR_ADMIN,
    AUTHOR_OR_MEMBER,
    AUTHOR_OR_MODERATORS,
    EDITORS,
    EVERYBODY,
    FIELDS,
    MODERATORS,
    PERSONAL,
    Rule,
    Viewer,
    Viewers,
)
from tests.client import Client
from tests.sign_in import with_session
from tests.voting import settle_votes

SEASON: Final = "2026"
REFUSED: Final = "... on Refused { code message path }"
IN_A_DAY: Final = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
AN_HOUR_AGO: Final = (datetime.now(UTC) - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
RULES: Final = 'rules: [{name: "Tickets", words: ["tickets"]}]'
PICTURE: Final = 'svg: "<svg><path d=\\"M0 0h1v1z\\"/></svg>"'
PERIOD: Final = f'from: "{AN_HOUR_AGO[:10]}", to: "{IN_A_DAY[:10]}"'
HOURS: Final = f'from: "{AN_HOUR_AGO}", to: "{IN_A_DAY}"'
TEAMS: Final = [{"members": ["A"]}, {"members": ["B"]}]
LEAF: Final = {"__typename"}


async def clients_of(visitor: Client) -> dict[Viewer, Client]:
    admin = visitor.member(with_session("admin"), Role.ADMIN)
    return {
        Viewer.VISITOR: visitor,
        Viewer.MEMBER: visitor.member("stranger"),
        Viewer.AUTHOR: visitor.member("author", email="author@example.org"),
        Viewer.MODERATOR: visitor.member("moderator", Role.MODERATOR),
        Viewer.EDITOR: visitor.member("editor", Role.EDITOR),
        Viewer.ADMIN: admin,
        Viewer.KEY: await machine_of(admin, Role.MEMBER),
        Viewer.ADMIN_KEY: await machine_of(admin, Role.ADMIN),
    }


async def machine_of(admin: Client, role: Role) -> Client:
    """A machine with a new API key."""
    created = await admin.ask(statement("createApiKey", "ApiKeyCreated secret"), input={"name": role, "roles": [role]})
    return Client(admin.served, admin.settings, created["secret"])


@dataclass(frozen=True, slots=True)
class Instance:
    """An object of a type, the viewers who can see it at all, and where its state changes a field's rule."""

    name: str
    type: str
    query: str
    """A query with `SELECTION` in the place of the object's fields."""
    visible_to: Viewers = EVERYBODY
    rules: Mapping[str, Rule] = field(default_factory=dict)


@dataclass
class World:
    """The clients, the ids of the objects, and the objects as instances."""

    clients: Mapping[Viewer, Client]
    ids: dict[str, str] = field(default_factory=dict)

    @classmethod
    async def create(cls, visitor: Client) -> Self:
        world = cls(await clients_of(visitor))
        await world._people()
        await world._voting()
        await world._pickem()
        await world._leagues()
        await world._comments()
        await world._vocabulary()
        await world._job()
        await world._machines()
        await world._settle()
        operations = {"Vote": OperationFigures(1, 0, 2.0, 10.0)}
        await UsageReports(visitor.services, lambda: operations).report()
        return world

    async def do(self, viewer: Viewer, mutation: str, payload: str, **fields: Any) -> Any:
        """Carry out a mutation that must succeed; its payload's selected field."""
        answer = await self.clients[viewer].ask(statement(mutation, payload), input=fields)
        assert "code" not in answer, (mutation, answer)
        return next(iter(answer.values()))

    # ── objects that mutations use up ──

    async def contender(self) -> str:
        self.ids["count"] = f"{int(self.ids.get('count', '0')) + 1}"
        name = f"Contender {self.ids['count']}"
        added = await self.do(Viewer.EDITOR, "addContender", "ContenderAdded contender { id }", name=name)
        return str(added["id"])

    async def event(self, **more: Any) -> str:
        tie_break = {"question": "Minutes?"}
        fields = {"name": "Show", "season": SEASON, "startsAt": IN_A_DAY, "tieBreak": tie_break, **more}
        created = await self.do(Viewer.EDITOR, "createEvent", "EventCreated event { id }", **fields)
        return str(created["id"])

    async def match(self, event: str) -> str:
        fields = {"event": event, "name": "Singles", "points": 10, "teams": TEAMS}
        added = await self.do(Viewer.EDITOR, "addMatch", "MatchAdded match { id }", **fields)
        return str(added["id"])

    async def lock(self, event: str) -> None:
        await self.do(Viewer.EDITOR, "lockEvent", "EventLocked event { id }", event=event)

    async def score(self, event: str) -> None:
        """Score an event, and wait for the job that goes on after the answer on a busy machine."""
        scoring = statement("scoreEvent", "EventScored job { id }")
        while (await self.clients[Viewer.EDITOR].ask(scoring, input={"event": event}))["job"] is not None:
            pass

    async def finished_match(self) -> tuple[str, str]:
        """A match with a result, and its event, which is locked."""
        event = await self.event()
        match = await self.match(event)
        await self.do(
            Viewer.AUTHOR,
            "submitPrediction",
            "PredictionSubmitted prediction { id }",
            event=event,
            picks=[{"match": match, "team": 0}],
        )
        await self.lock(event)
        await self.do(
            Viewer.EDITOR, "recordResult", "ResultRecorded match { id }", match=match, outcome="WON", winner=0
        )
        return match, event

    async def comment(self, status: str = "PUBLISHED", by: Viewer = Viewer.AUTHOR) -> str:
        posted = await self.do(
            by, "postComment", "CommentPosted comment { id }", product="p", language="en", rating=5,
            title="Title", body="Body",
        )  # fmt: skip
        if status != "PUBLISHED":
            await self.do(
                Viewer.MODERATOR, "moderateComment", "CommentModerated comment { id }", comment=posted["id"],
                status=status, note="Please rephrase.",
            )  # fmt: skip
        return str(posted["id"])

    async def sentence(self) -> str:
        written = await self.do(Viewer.AUTHOR, "writeSentence", "SentenceWritten sentence { id }", text="A sentence.")
        return str(written["id"])

    async def api_key(self) -> str:
        key = await self.do(
            Viewer.ADMIN, "createApiKey", "ApiKeyCreated apiKey { id }", name="Robot", roles=["editor"], days=9
        )
        return str(key["id"])

    async def webhook(self) -> str:
        """Of a kind that never occurs: nothing is sent."""
        fields = {"url": "https://8.8.8.8/", "kinds": ["member.erased"]}
        added = await self.do(Viewer.ADMIN, "addWebhook", "WebhookAdded webhook { id }", **fields)
        return str(added["id"])

    async def quiz(self, viewer: Viewer) -> str:
        """The token of a quiz that the viewer may answer at once."""
        services = self.clients[viewer].services
        services.policy = replace(services.policy, quiz_seconds_per_question=0)
        quiz = await self.do(viewer, "startQuiz", "Quiz token", list=self.ids["public list"], size=3)
        return str(quiz)

    def send_emails(self) -> None:
        """As with a mail server: here it only matters who may ask for an email."""

        async def send(_link: Link, _values: dict[str, Any]) -> None:
            return

        async def send_code(_code: CodeEmail) -> None:
            return

        self.clients[Viewer.VISITOR].services.get(Confirmations).start(send)
        self.clients[Viewer.VISITOR].services.get(SignInCodes).start(send_code)

    async def confirm_address(self, viewer: Viewer) -> None:
        """As if the viewer, if they are a member, had opened the link to an address that subscribes to a list."""
        services = self.clients[viewer].services
        profile = await self.clients[viewer].ask("{ viewer { id } }")
        if profile is not None:
            values: dict[str, Any] = profile_store.proven(f"{viewer}@example.com", services.clock())
            user = parse_node_key("User", profile["id"])
            await services.table.write(PROFILE.update(PROFILE.at(user=user), values=values))
            record, words = (
                record_id(services.seal, values["email"]),
                parse_node_key("WordList", self.ids["public list"]),
            )
            reader = Profile(record, "Reader", services.clock(), email=values["email"])
            await profile_store.create_profile(services.table, reader)
            old = Subscription(record, words, CharacterSet.TRADITIONAL, active=True, since=services.clock())
            await subscriptions.subscribe(services.table, old, services.unit())

    async def ballot(self) -> Mapping[Viewer, str]:
        """A ballot of each viewer."""
        drawn = "mutation { drawMatchup(input: {}) { ... on Ballot { token } } }"
        return {viewer: (await client.ask(drawn))["token"] for viewer, client in self.clients.items()}

    # ── the world ──

    async def _people(self) -> None:
        profile = {
            "name": "The Author",
            "avatarUrl": "https://example.org/a.png",
            "timeZone": "Etc/UTC",
            "dailyWordAt": "00:00",
            "lockReminderHours": 3,
            "replyEmails": True,
        }
        user = await self.do(
            Viewer.AUTHOR, "updateProfile", "ProfileUpdated user { id }", **profile, email="author@example.org"
        )
        self.ids["user"] = user["id"]

    async def outlaw(self, *, suspended: bool) -> str:
        """The id of a member who is nobody's viewer."""
        services = self.clients[Viewer.VISITOR].services
        await profile_store.create_profile(services.table, Profile("outlaw", "Outlaw", services.clock()))
        if suspended:
            await self.suspend("outlaw")
        return node_id("User", "outlaw")

    async def suspend(self, user: str) -> None:
        """Suspend a member, also a viewer, without this process's refusing their mutations."""
        services = self.clients[Viewer.VISITOR].services
        suspended = Suspension(user, "Spam", services.clock(), services.clock() + timedelta(days=1))
        await services.table.write(SUSPENSION.put(suspended))

    async def _voting(self) -> None:
        svg = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><rect width="1" height="1"/></svg>'
        for name in ("left", "right"):
            added = await self.do(Viewer.EDITOR, "addContender", "ContenderAdded contender { id }", name=name, svg=svg)
            self.ids[name] = added["id"]
        token = (await self.ballot())[Viewer.AUTHOR]
        await self.do(Viewer.AUTHOR, "castVote", "VoteCast progress { seen }", token=token, verdict="LEFT")
        await self._suspect()
        for board, visible in (("closing", "AFTER_CLOSE"), ("polling", "AFTER_VOTING")):
            await self._hidden_board(board, visible)

    async def _suspect(self) -> None:
        """What a search has found on the main board."""
        services = self.clients[Viewer.VISITOR].services
        now, changes = services.clock(), (RankChange(0, 1, 2),)
        suspect = Suspect("main", "j", 0, "v", "suspect.v", 1, 1, 1e-6, ("1 of 1.",), changes, now + timedelta(days=1))
        await services.table.write(SUSPECT.put(suspect))
        await services.table.write(SEARCH.put(SuspectSearch("main", "j", 1, "j", now, 1, 1)))

    async def _hidden_board(self, board: str, visible: str) -> None:
        """A board on which the author has voted."""
        settings = {"slug": board, "title": "Hidden", "resultsVisible": visible}
        await self.do(Viewer.EDITOR, "createBoard", "BoardCreated board { id }", **settings)
        for name in ("left", "right"):
            new = {"board": board, "name": name}
            added = await self.do(Viewer.EDITOR, "addContender", "ContenderAdded contender { id }", **new)
            self.ids[f"{board} {name}"] = added["id"]
        token = await self.do(Viewer.AUTHOR, "drawMatchup", "Ballot token", board=board)
        await self.do(Viewer.AUTHOR, "castVote", "VoteCast progress { seen }", token=token, verdict="LEFT")

    async def _pickem(self) -> None:
        match, event = await self.finished_match()
        await self.score(event)
        self.ids |= {"scored": event, "scored match": match, "upcoming": await self.event()}
        self.ids["upcoming match"] = await self.match(self.ids["upcoming"])
        prediction = await self.do(
            Viewer.AUTHOR,
            "submitPrediction",
            "PredictionSubmitted prediction { id }",
            event=self.ids["upcoming"],
            picks=[{"match": self.ids["upcoming match"], "team": 1}],
            guess=12.5,
        )
        self.ids["upcoming prediction"] = prediction["id"]

    async def league(self, entry: str = "OPEN") -> str:
        """A league of the author."""
        given = {"name": "Friends", "season": SEASON, "entry": entry}
        created = await self.do(Viewer.AUTHOR, "createLeague", "LeagueCreated league { id code }", **given)
        self.ids["code"] = created["code"] or self.ids.get("code", "")
        return str(created["id"])

    async def _leagues(self) -> None:
        self.ids["open league"], self.ids["private league"] = await self.league(), await self.league("CODE")
        await self.do(Viewer.MEMBER, "joinLeague", "LeagueJoined membership", code=self.ids["code"])

    async def _comments(self) -> None:
        rules = [{"name": "Tickets", "language": "en", "words": ["tickets"], "links": 0, "firstComments": 9}]
        await self.do(Viewer.ADMIN, "setHoldRules", "HoldRulesSet rules { revision }", rules=rules, revision=0)
        held = {"product": "p", "language": "en", "body": "Cheap tickets: https://example.org/"}
        posted = await self.do(Viewer.AUTHOR, "postComment", "CommentPosted comment { id }", **held)
        self.ids["held comment"] = posted["id"]
        self.ids["published comment"] = published = await self.comment()
        self.ids["pending comment"] = await self.comment("PENDING")
        self.ids["rejected comment"] = await self.comment("REJECTED")
        answer = {"comment": published, "body": "Thank you."}
        await self.do(Viewer.EDITOR, "answerComment", "CommentAnswered comment { id }", **answer)
        mark = {"comment": published, "helpful": True}
        await self.do(Viewer.MEMBER, "markHelpful", "CommentMarked comment { id }", **mark)
        reason = {"comment": published, "reason": "Off topic."}
        await self.do(Viewer.MEMBER, "reportComment", "CommentReported comment { id }", **reason)
        await self.do(
            Viewer.MODERATOR, "moderateComment", "CommentModerated comment { id }", comment=published,
            status="PUBLISHED", note="Fine.", ground="OTHER",
        )  # fmt: skip
        journal = f'{{ journal(actor: "{node_id("User", "moderator")}", first: 1) {{ nodes {{ id }} }} }}'
        self.ids["decision"] = (await self.clients[Viewer.MODERATOR].ask(journal))["nodes"][0]["id"]
        await self.do(Viewer.MEMBER, "reportComment", "CommentReported comment { id }", **reason)

    async def _vocabulary(self) -> None:
        for kind, public in (("public", True), ("private", False)):
            owner = Viewer.EDITOR if public else Viewer.AUTHOR
            made = await self.do(owner, "createWordList", "WordListCreated list { id }", name=kind, public=public)
            self.ids[f"{kind} list"] = made["id"]
            word = {"simplified": "词", "traditional": "詞", "pinyin": "ci", "definition": "word"}
            more = [{"term": text, "definition": text} for text in ("one", "two", "three")]
            words = await self.do(owner, "addWords", "WordsAdded words { id }", list=made["id"], words=[word, *more])
            self.ids[f"{kind} word"] = words[0]["id"]
            quiz = {"list": made["id"], "correct": 8, "total": 9}
            result = await self.do(Viewer.AUTHOR, "recordQuiz", "QuizRecorded result { id }", **quiz)
            self.ids[f"{kind} quiz"] = result["id"]
            sentence = await self.do(
                Viewer.AUTHOR, "writeSentence", "SentenceWritten sentence { id }", word=words[0]["id"], text="A word."
            )
            self.ids[f"{kind} sentence"] = sentence["id"]
            await self.do(Viewer.AUTHOR, "subscribe", "Subscribed subscription { active }", list=made["id"])
            # The first to ask for a day's word draws it; the review shows it from then on.
            await self.clients[owner].ask(f'{{ wordList(id: "{made["id"]}") {{ dailyWord {{ date }} }} }}')

    async def _job(self) -> None:
        """Jobs that the author began, and that have ended: every field has a value. One is for editors too."""
        services = self.clients[Viewer.AUTHOR].services
        starter = services.seal.keyed_hash("job starter", b"author").hex()
        for name, role in (("job", None), ("editors job", Role.EDITOR)):
            now = services.clock()
            begun = job_store.Job(services.ids.next(now), "NOTHING", starter, now, role=role, total=1)
            job = await services.table.put_once(job_store.JOB, begun)
            lease = await services.leases.acquire(job)
            assert lease is not None
            await job_store.finish_job(lease, JobState.DONE, now, "Nothing was to be done.")
            self.ids[name] = node_id("Job", job.id)

    async def _machines(self) -> None:
        self.ids["key"] = await self.api_key()
        self.ids["webhook"] = await self.webhook()
        services = self.clients[Viewer.ADMIN].services
        webhook, occurred = parse_node_id(self.ids["webhook"])[1], services.ids.next(services.clock())
        occurrence = Occurrence(occurred, "member.erased", "User:admin")
        now = services.clock()
        delivery = new_delivery(webhook, occurrence)
        dead = replace(delivery, state=DeliveryState.DEAD, attempts=1, since=now, expires=now + DEAD_FOR)
        await services.table.write(DELIVERY.put(dead))
        self.ids["delivery"] = node_id("Delivery", delivery.node_key)

        await self._review(self.ids["public word"])

    async def _review(self, word: str) -> None:
        """The author reviewed a word yesterday, so it is due."""
        services = self.clients[Viewer.AUTHOR].services
        list_id, _, ordinal = parse_node_key("Word", word).rpartition(".")
        yesterday = services.clock() - timedelta(days=1)
        await quizzes.review_card(
            services.table, "author", list_id, int(ordinal),
            lambda before: reviewed(before, "author", (list_id, int(ordinal)), Grade.AGAIN, yesterday),
            UnitOfWork.unkeyed(yesterday),
        )  # fmt: skip

    async def _settle(self) -> None:
        """Count the votes and rank the products now, so that nothing changes between two viewers' answers."""
        visitor = self.clients[Viewer.VISITOR]
        for board in ("main", "closing", "polling"):
            await settle_votes(visitor, board)
        await settle_product(visitor.services.table, "p")

    def _results_of(self, board: str, seen_by: Viewers) -> list[Instance]:
        """A board whose results are hidden from others."""
        left, right = self.ids[f"{board} left"], self.ids[f"{board} right"]
        of_board: Mapping[str, Rule] = {"votes": seen_by, "leaderboard": seen_by, "resultsHidden": PERSONAL}
        matchup: Mapping[str, Rule] = dict.fromkeys(("leftWins", "rightWins", "ties", "votes"), seen_by)
        rows = f'leaderboard(board: "{board}") {{ nodes'
        return [
            Instance(f"{board} board", "Board", f'{{ board(slug: "{board}") {{ SELECTION }} }}', rules=of_board),
            _node(f"{board} contender", "Contender", left, rules=dict.fromkeys(_COUNTS, seen_by)),
            Instance(f"{board} row", "LeaderboardRow", f"{{ {rows} {{ SELECTION }} }} }}", seen_by),
            Instance(f"{board} strength", "Strength", f"{{ {rows} {{ strength {{ SELECTION }} }} }} }}", seen_by),
            Instance(
                f"{board} matchup",
                "Matchup",
                f'{{ matchup(left: "{left}", right: "{right}") {{ SELECTION }} }}',
                rules=matchup,
            ),
            Instance(
                f"{board} matchups",
                "Matchup",
                f'{{ matchups(board: "{board}") {{ nodes {{ SELECTION }} }} }}',
                seen_by,
            ),
        ]

    def instances(self) -> list[Instance]:
        """Every type of the rules that a query can reach, in each state that matters."""
        ids = self.ids
        today = datetime.now(UTC).date().isoformat()
        upcoming: Mapping[str, Rule] = {"picks": AUTHOR, "guess": AUTHOR}
        no_rule: Mapping[str, Rule] = {"heldBy": frozenset()}
        return [
            Instance("profile", "User", f'{{ user(id: "{ids["user"]}") {{ SELECTION }} }}'),
            Instance("streak", "Streak", f'{{ user(id: "{ids["user"]}") {{ streak {{ SELECTION }} }} }}'),
            Instance(
                "subscription",
                "ListSubscription",
                f'{{ user(id: "{ids["user"]}") {{ subscriptions {{ SELECTION }} }} }}',
                AUTHOR,
            ),
            Instance(
                "identity",
                "Identity",
                f'{{ user(id: "{ids["user"]}") {{ identities {{ SELECTION }} }} }}',
                AUTHOR_OR_ADMIN,
            ),
            Instance(
                "suspension",
                "Suspension",
                f'{{ user(id: "{ids["user"]}") {{ suspension {{ SELECTION }} }} }}',
                AUTHOR_OR_MODERATORS,
            ),
            _node("job", "Job", ids["job"], AUTHOR_OR_ADMIN),
            Instance(
                "scoring",
                "Job",
                f'{{ job(id: "{ids["editors job"]}") {{ SELECTION }} }}',
                AUTHOR | EDITORS,
                dict.fromkeys(FIELDS["Job"], AUTHOR | EDITORS),
            ),
            Instance(
                "due card", "DueCard", f'{{ user(id: "{ids["user"]}") {{ due {{ nodes {{ SELECTION }} }} }} }}', AUTHOR
            ),
            Instance("board", "Board", "{ board { SELECTION } }"),
            Instance("progress", "BoardProgress", "{ board { progress { SELECTION } } }"),
            Instance("row", "LeaderboardRow", "{ leaderboard { nodes { SELECTION } } }"),
            Instance("strength", "Strength", "{ leaderboard { nodes { strength { SELECTION } } } }"),
            Instance(
                "matchup", "Matchup", f'{{ matchup(left: "{ids["left"]}", right: "{ids["right"]}") {{ SELECTION }} }}'
            ),
            _node("contender", "Contender", ids["left"]),
            *self._results_of("closing", EDITORS),
            *self._results_of("polling", AUTHOR | EDITORS),
            _node("upcoming event", "Event", ids["upcoming"]),
            _node("scored event", "Event", ids["scored"]),
            _node(
                "upcoming match",
                "Match",
                ids["upcoming match"],
                rules={"pickCounts": frozenset(), "result": frozenset()},
            ),
            _node("scored match", "Match", ids["scored match"]),
            Instance("team", "Team", f'{{ event(id: "{ids["scored"]}") {{ matches {{ teams {{ SELECTION }} }} }} }}'),
            Instance(
                "result",
                "MatchResult",
                f'{{ event(id: "{ids["scored"]}") {{ matches {{ result {{ SELECTION }} }} }} }}',
            ),
            _node("hidden prediction", "Prediction", ids["upcoming prediction"], rules=upcoming),
            Instance(
                "prediction", "Prediction", f'{{ predictions(event: "{ids["scored"]}") {{ nodes {{ SELECTION }} }} }}'
            ),
            Instance(
                "pick", "Pick", f'{{ predictions(event: "{ids["scored"]}") {{ nodes {{ picks {{ SELECTION }} }} }} }}'
            ),
            Instance("season", "Season", "{ seasons { nodes { SELECTION } } }"),
            Instance("standing", "Standing", f'{{ standings(season: "{SEASON}") {{ nodes {{ SELECTION }} }} }}'),
            _node("decision", "Occurrence", ids["decision"], MODERATORS),
            Instance("suspect", "Suspect", "{ suspects { nodes { SELECTION } } }", EDITORS),
            Instance("change", "RankChange", "{ suspects { nodes { changes { SELECTION } } } }", EDITORS),
            Instance("picture", "PicturePreview", f"{{ previewContender({PICTURE}) {{ SELECTION }} }}", EDITORS),
            Instance("activity", "DayActivity", f"{{ activity({PERIOD}) {{ SELECTION }} }}", EDITORS),
            Instance("operation", "OperationFigures", f"{{ operations({HOURS}) {{ SELECTION }} }}", ADMINS),
            Instance("lag", "Lag", "{ lag { SELECTION } }", ADMINS),
            _node("published comment", "Comment", ids["published comment"], rules=no_rule),
            _node("pending comment", "Comment", ids["pending comment"], AUTHOR_OR_MODERATORS, rules=no_rule),
            _node("rejected comment", "Comment", ids["rejected comment"], AUTHOR_OR_MODERATORS, rules=no_rule),
            _node("held comment", "Comment", ids["held comment"], AUTHOR_OR_MODERATORS),
            Instance(
                "answer",
                "CommentAnswer",
                f'{{ comment(id: "{ids["published comment"]}") {{ answer {{ SELECTION }} }} }}',
            ),
            Instance("hold rules", "HoldRules", "{ holdRules { SELECTION } }", MODERATORS),
            Instance("hold rule", "HoldRule", "{ holdRules { rules { SELECTION } } }", MODERATORS),
            Instance("preview", "HeldComment", f"{{ previewHoldRules({RULES}) {{ SELECTION }} }}", MODERATORS),
            Instance("statistics", "CommentStatistics", '{ commentStatistics(product: "p") { SELECTION } }'),
            Instance("bar", "RatingCount", '{ commentStatistics(product: "p") { histogram { SELECTION } } }'),
            Instance("language", "LanguageCount", '{ commentStatistics(product: "p") { languages { SELECTION } } }'),
            Instance("tie-break", "TieBreak", f'{{ event(id: "{ids["upcoming"]}") {{ tieBreak {{ SELECTION }} }} }}'),
            _node("open league", "League", ids["open league"], rules={"code": frozenset()}),
            _node(
                "private league",
                "League",
                ids["private league"],
                rules=dict.fromkeys(("memberCount", "standings", "event", "members"), AUTHOR_OR_MEMBER),
            ),
            Instance(
                "league event",
                "LeagueEvent",
                f'{{ league(id: "{ids["private league"]}") {{ event(event: "{ids["scored"]}") {{ SELECTION }} }} }}',
                AUTHOR_OR_MEMBER,
            ),
            Instance(
                "league member",
                "LeagueMember",
                f'{{ league(id: "{ids["private league"]}") {{ members(first: 1) {{ nodes {{ SELECTION }} }} }} }}',
                AUTHOR_OR_MEMBER,
            ),
            Instance("product", "ProductStanding", "{ topProducts { nodes { SELECTION } } }"),
            _node("public list", "WordList", ids["public list"], rules={"level": frozenset(), "owner": EVERYBODY}),
            _node("private list", "WordList", ids["private list"], AUTHOR),
            _node("public word", "Word", ids["public word"]),
            _node("private word", "Word", ids["private word"], AUTHOR),
            Instance(
                "daily word", "DailyWord", f'{{ wordList(id: "{ids["public list"]}") {{ dailyWord {{ SELECTION }} }} }}'
            ),
            _node("public quiz", "QuizResult", ids["public quiz"]),
            _node("private quiz", "QuizResult", ids["private quiz"], AUTHOR),
            _node("API key", "ApiKey", ids["key"], ADMINS),
            _node("webhook", "Webhook", ids["webhook"], ADMINS),
            _node("delivery", "Delivery", ids["delivery"], ADMINS),
            _node("sentence", "Sentence", ids["public sentence"]),
            _node("sentence about a private word", "Sentence", ids["private sentence"], rules={"word": AUTHOR}),
            Instance(
                "quiz standing", "QuizStanding", f'{{ quizLeaderboard(on: "{today}") {{ nodes {{ SELECTION }} }} }}'
            ),
        ]


_COUNTS: Final = ("wins", "losses", "ties", "score", "winRate", "rank", "matchups")


def _node(
    name: str, kind: str, node: str, visible_to: Viewers = EVERYBODY, rules: Mapping[str, Rule] | None = None
) -> Instance:
    query = f'{{ node(id: "{node}") {{ ... on {kind} {{ SELECTION }} }} }}'
    return Instance(name, kind, query, visible_to, rules or {})


def statement(mutation: str, payload: str) -> str:
    """A mutation; `payload` is "<Type> <selection>"."""
    kind, _, selection = payload.partition(" ")
    input_type = f"{mutation[0].upper()}{mutation[1:]}Input"
    selected = f"... on {kind} {{ {selection} }} {REFUSED}"
    return f"mutation ($input: {input_type}!) {{ {mutation}(input: $input) {{ {selected} }} }}"
