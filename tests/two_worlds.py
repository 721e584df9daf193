"""Two sites on which the same things happen, one of them without a certain member: the oracle for taking back."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from datastore.comments.counts import settle_product
from datastore.pickem.standings import all_standings
from resolvers.requests.context import Role
from resolvers.values.node_ids import node_id
from tests.client import Client
from tests.comments import post
from tests.leagues import create, join
from tests.queries import (
    ADD_WORDS,
    CAST_VOTE,
    CREATE_LIST,
    DRAW_MATCHUP,
    MARK_HELPFUL,
    RECORD_QUIZ,
    RECORD_TIE_BREAK,
    TOP_PRODUCTS,
    WRITE_SENTENCE,
)
from tests.season import EventEditor, submit
from tests.voting import add_contenders, settle_votes

PRODUCTS = ("belt", "mug", "tee")

MEMBERS = ("ada", "bob", "cleo", "eve")
"""Who is in the league: a member of it who contributes nothing is one all the same."""

COUNTS = """query ($scored: ID!, $open: ID!, $review: ID!, $on: Date!) {
  leaderboard(first: 3) { nodes { rank contender { name wins losses ties score rank matchups { nodes {
    left { name } right { name } leftWins rightWins ties votes } } } } }
  board { votes }
  standings(season: "2026", first: 100) { totalCount nodes { rank points correct eventsPlayed user { id } } }
  scored: event(id: $scored) { state matches { pickCounts }
    predictions(first: 100) { nodes { rank points correct user { id } } } }
  open: event(id: $open) { state predictions(first: 100) { nodes { user { id } } } }
  quizLeaderboard(on: $on, first: 50) { nodes { rank correct total quizzes sentences user { id } } }
  belt: commentStatistics(product: "belt") { total average histogram { rating count } languages { language count } }
  mug: commentStatistics(product: "mug") { total average histogram { rating count } languages { language count } }
  pageOfBelt: comments(product: "belt", first: 100) { totalCount nodes { body rating author { id } } }
  review: comment(id: $review) { helpful }
  pageOfMug: comments(product: "mug", ratings: [5], first: 100) { totalCount nodes { body author { id } } }
}"""
COUNTS_OF_LEAGUE = """query ($scored: ID!, $open: ID!, $league: ID!) {
  league(id: $league) { memberCount standings(first: 100) { totalCount nodes { rank points correct user { id } } }
    scored: event(event: $scored) { submitted missing predictions(first: 100) { nodes { rank guess user { id } } } }
    open: event(event: $open) { submitted missing } }
}"""


@dataclass
class Site:
    """A site with a board, two events, one of them with a tie-break, a league, a word list and products."""

    client: Client
    scored: str = ""
    open: str = ""
    matches: dict[str, list[str]] = field(default_factory=dict)
    list: str = ""
    league: str = ""
    review: str = ""
    """A comment that every member finds helpful."""

    @property
    def events(self) -> EventEditor:
        return EventEditor(self.client)

    async def prepare(self) -> None:
        await add_contenders(self.client, "Ann", "Bea", "Cid")
        for name in ("scored", "open"):
            tie_break = {"question": "How many minutes?"} if name == "scored" else None
            event, matches = await self.events.card(10, 5, name=name, tieBreak=tie_break)
            setattr(self, name, event)
            self.matches[event] = matches
        self.league = (await create(self.client.member(MEMBERS[0])))["id"]
        for name in MEMBERS[1:]:
            await join(self.client.member(name), league=self.league)
        editor = self.client.member("editor", Role.EDITOR)
        made = await editor.ask(CREATE_LIST, input={"name": "HSK 1", "public": True})
        self.list = made["list"]["id"]
        self.review = (await post(editor, "cap"))["id"]
        await editor.ask(ADD_WORDS, input={"list": self.list, "words": [{"simplified": "人", "definition": "person"}]})

    async def contribute(self, user: str, taste: int) -> None:
        """What a member does; `taste` decides how they vote and pick."""
        member = self.client.member(user)
        for _ in range(3):
            ballot = await member.ask(DRAW_MATCHUP)
            first_is_left = ballot["left"]["name"] < ballot["right"]["name"]
            verdict = "TIE" if taste % 3 == 0 else "LEFT" if first_is_left == bool(taste % 2) else "RIGHT"
            await member.ask(CAST_VOTE, token=ballot["token"], verdict=verdict)
        for event in (self.scored, self.open):
            picks = [(match, (taste + place) % 2) for place, match in enumerate(self.matches[event])]
            # Not everybody guesses; nobody is as far off as those of a great taste.
            guess = 10.0 * taste if event == self.scored and taste != 1 else None
            await submit(member, event, picks, guess=guess)
        for number, product in enumerate(PRODUCTS):
            rating = 1 + (taste + number) % 5
            await post(member, product, rating, language=("en", "de")[number % 2], body=f"{user} on {product}")
        await post(member, "belt", 5, body=f"{user} again")
        await member.ask(MARK_HELPFUL, input={"comment": self.review, "helpful": True})
        for correct in (taste % 5, 4):
            await member.ask(RECORD_QUIZ, input={"list": self.list, "correct": correct, "total": 5})
        await member.ask(WRITE_SENTENCE, input={"text": f"{user} writes."})

    async def score(self) -> None:
        """Locks the event, records its results and scores it."""
        await self.events.lock(self.scored)
        for place, match in enumerate(self.matches[self.scored]):
            await self.events.result(match, place % 2)
        await self.events.client.ask(RECORD_TIE_BREAK, input={"event": self.scored, "answer": 1.0})
        await self.events.score(self.scored)

    async def counts(self, on: str) -> dict[str, Any]:
        """Every total, rank, order and statistic, without ids and times that differ."""
        await settle_votes(self.client)
        for product in PRODUCTS:
            await settle_product(self.client.services.table, product)
        await self.client.caught_up("every index shows what was written")
        events = {"scored": self.scored, "open": self.open}
        counts: dict[str, Any] = await self.client.ask(COUNTS, on=on, review=self.review, **events)
        counts["league"] = await self.client.ask(COUNTS_OF_LEAGUE, league=self.league, **events)
        standings = all_standings(self.client.services.table)
        counts["closeness"] = {node_id("User", one.user): one.closeness async for one in standings}
        counts["topProducts"] = (await self.client.ask(TOP_PRODUCTS))["nodes"]
        return counts

    async def ranks(self, users: Sequence[str]) -> dict[str, Any]:
        """Each member's own page: their standing with its rank, their streak and how much they contributed."""
        query = """query ($id: ID!) { user(id: $id) { standing(season: "2026") { rank points correct eventsPlayed }
          streak { current longest lastActiveOn } comments { totalCount } predictions { nodes { points rank } }
          quizResults { nodes { correct } } sentences { nodes { text } } } }"""
        return {user: await self.client.ask(query, id=node_id("User", user)) for user in users}
