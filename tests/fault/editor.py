"""An editor who works while the members do: runs events and lists, moderates, suspends, takes back and erases."""

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any, Final

from datastore.changes.occurrences import Kind
from resolvers.values.node_ids import node_id
from resolvers.whole.erasing import CONTRIBUTIONS
from tests import season
from tests.erasing import ERASE
from tests.fault.ledger import SEASON, ExpectedEvent
from tests.fault.members import SUSPENDED, Member, Spammer, definition_of
from tests.fault.recording import CONTENDERS, LEAVERS, RecordingClient, SharedState
from tests.jobs import JOB_QUERY
from tests.queries import (
    ADD_CONTENDER,
    ADD_MATCH,
    ADD_WORDS,
    CREATE_EVENT,
    CREATE_LIST,
    LOCK_EVENT,
    MODERATE_COMMENT,
    RECORD_RESULT,
    RECORD_TIE_BREAK,
    REINSTATE,
    SCORE_EVENT,
    SUSPEND,
    TAKE_BACK,
    UNSCORE_EVENT,
    VOID_VOTER,
)

UNSCORED: Final = 0.3
"""The share of scorings that are taken back and done again."""
TIE_BREAK: Final = {"question": "Minutes of the main event", "unit": "minutes"}


class Editor(RecordingClient):
    """Takes random decisions in turn; what concerns single members goes on meanwhile."""

    def __init__(self, name: str, token: str, urls: Sequence[str], random: Random, shared: SharedState) -> None:
        super().__init__(name, token, urls, random, shared)
        self.number = 0

    async def prepare(self) -> None:
        """Creates what the members need."""
        for name in CONTENDERS:
            await self.must(ADD_CONTENDER, name=name)
        for name in ("first", "second"):
            list_id = (await self.must(CREATE_LIST, name=name, public=True))["list"]["id"]
            self.ledger.lists[list_id] = name
            self.shared.lists.append(list_id)

    async def run(self) -> None:
        while not self.shared.stopped:
            await self.event()
            await self.words()
            await self.moderation()

    async def event(self) -> None:
        """Takes an event from its creation to its points; sometimes the results are corrected."""
        self.number += 1
        starts_at = season.in_hours(24)
        fields = {"name": f"Show {self.number}", "season": SEASON, "startsAt": starts_at, "tieBreak": TIE_BREAK}
        created = await self.must(CREATE_EVENT, **fields)
        event_id, points = created["event"]["id"], {}
        for worth in (10, 25):
            teams = season.teams("A", "B")
            added = await self.must(ADD_MATCH, event=event_id, name="Singles", points=worth, teams=teams)
            points[added["match"]["id"]] = worth
        event = self.ledger.events[event_id] = ExpectedEvent(points)
        self.shared.open_event = event_id, list(points)
        await asyncio.sleep(self.random.uniform(0.5, 1.5))
        await self.must(LOCK_EVENT, event=event_id)
        event.state = "LOCKED"
        for _ in range(self.random.choice((1, 2))):
            for match in points:
                winner = 1 - event.winners[match] if match in event.winners else self.random.randrange(2)
                await self.must(RECORD_RESULT, match=match, outcome="WON", winner=winner)
                event.winners[match] = winner
            event.answer = self.random.choice([number for number in range(30) if number != event.answer])
            await self.must(RECORD_TIE_BREAK, event=event_id, answer=event.answer)
            await self.score(event_id)
            if self.random.random() < UNSCORED:
                if unscored := await self.mutate(UNSCORE_EVENT, "CONFLICT", event=event_id):
                    await self.done(unscored["job"])
                await self.score(event_id)
            event.state = "SCORED"

    async def score(self, event_id: str) -> None:
        while not (scored := await self.mutate(SCORE_EVENT, "CONFLICT", event=event_id)):
            pass
        await self.done(scored["job"])

    async def done(self, job: dict[str, Any] | None) -> None:
        """Once a job is done, if there is one."""
        while job is not None and (job := await self.ask(JOB_QUERY, id=job["id"]))["state"] == "RUNNING":
            await asyncio.sleep(0.1)
        assert job is None or job["state"] == "DONE", job

    async def words(self) -> None:
        """Adds a few words, or more than fit into one transaction."""
        self.number += 1
        list_id, count = self.random.choice(self.shared.lists), self.random.choice((3, 120))
        texts = [f"{self.number}-{index}" for index in range(count)]
        words = [{"simplified": text, "definition": definition_of(text)} for text in texts]
        if await self.mutate(ADD_WORDS, "CONFLICT", list=list_id, words=words):
            self.ledger.words += [(list_id, text) for text in texts]

    async def moderation(self) -> None:
        refusals = ("CONFLICT", "NOT_FOUND", "NOT_ALLOWED")  # the last two once its author is erased
        for key in self.shared.moderated[-3:]:
            status = self.random.choice(("PUBLISHED", "REJECTED"))
            if await self.mutate(MODERATE_COMMENT, *refusals, comment=key, status=status):
                self.ledger.moderate(key, status)

    async def void(self, voter: str) -> None:
        """Takes back all votes of one voter."""
        answer = await super(RecordingClient, self).mutate(VOID_VOTER, voter=node_id("User", voter))
        assert answer is not None
        self.ledger.occurred(Kind.VOTE_VOIDED, self.name, self.ledger.void(voter))

    async def erase(self, member: Member) -> None:
        """Once the member has stopped: nobody writes in their name any more."""
        await member.has_left.wait()
        contributions = LEAVERS[member.name]
        await self.must(ERASE, user=node_id("User", member.name), contributions=contributions)
        self.ledger.erase(member.name, is_removed=contributions == "REMOVE")

    async def moderate(self, member: Spammer) -> None:
        """Suspends a member until they are refused, and later takes back all that they contributed until then."""
        user = node_id("User", member.name)
        while not await self.mutate(SUSPEND, "NOT_FOUND", user=user, reason=SUSPENDED):
            await asyncio.sleep(0.1)  # until the member has a profile
        await member.was_refused.wait()
        await self.must(REINSTATE, user=user)
        await member.waits.wait()
        await self.done((await self.must(TAKE_BACK, user=user, parts=CONTRIBUTIONS))["job"])
        self.ledger.take_back(member.name, self.name)
        member.forget()
        member.may_go_on.set()
