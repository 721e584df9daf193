"""The board `main`: two dozen wrestlers' masks, and the votes of forty members."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from math import exp
from random import Random

from datastore.voting import boards
from datastore.voting.boards import MAIN, Board
from datastore.voting.contenders import Contender
from datastore.voting.editing import Shown, seed_board
from datastore.voting.pair_walk import EligibleContenders, PairWalk
from datastore.voting.votes import PairVerdict, Vote
from resolvers.requests.context import Services
from resolvers.voting.ballots import voter_seed
from server.demo.people import MEMBERS, read_rows, read_texts

VOTERS = 40
VOTES_EACH = 18
_SKIPPED = 0.06
_SKIPPED_OR_TIED = 0.14


async def seed(services: Services) -> str:
    """Leave a board `main` alone that has contenders already."""
    current = await boards.read_board_with_marks(services.table, MAIN)
    if current is not None and current.board.size:
        return "no masks: the board main is in use"
    now = services.clock()
    masks = read_texts("masks")
    votes = list(_votes(len(masks), now))
    board = Board(MAIN, "Which mask wins?", now - timedelta(days=30))
    if not await seed_board(services.table, board, dict(_contenders(masks, now)), votes, now):
        return "no masks: the board main got contenders meanwhile"
    return f"{len(masks)} masks and {len(votes)} verdicts on them"


def _contenders(masks: Sequence[str], now: datetime) -> Iterator[tuple[Contender, Shown]]:
    """A contender for each mask, named as the title of its SVG."""
    descriptions = {row["name"]: row["description"] for row in read_rows("masks.tsv")}
    for ordinal, svg in enumerate(masks):
        name = re.findall(r"<title>(.*)</title>", svg)[0]
        yield Contender(MAIN, ordinal, name, now - timedelta(days=30 - ordinal)), Shown(svg, descriptions[name])


def _votes(masks: int, now: datetime) -> Iterator[Vote]:
    """Each member's taste varies around a common one."""
    random = Random("masks")
    common = [random.gauss(0, 0.9) for _ in range(masks)]
    contenders = EligibleContenders(masks)
    for voter, _ in MEMBERS[:VOTERS]:
        taste = [liking + random.gauss(0, 0.5) for liking in common]
        walk = PairWalk()
        for number in range(1, VOTES_EACH + 1):
            step = walk.draw(voter_seed(voter, MAIN), contenders)
            if step is None:
                return
            outcome = _outcome(random, taste[step.low] - taste[step.high])
            at = now - timedelta(days=20, minutes=-37 * number)
            yield Vote(voter, MAIN, number, step.low, step.high, outcome, at, step.after.packed())
            walk = step.after


def _outcome(random: Random, lead: float) -> PairVerdict:
    chance = random.random()
    if chance < _SKIPPED:
        return PairVerdict.SKIP
    if chance < _SKIPPED_OR_TIED:
        return PairVerdict.TIE
    return PairVerdict.LOW_WINS if random.random() < 1 / (1 + exp(-lead)) else PairVerdict.HIGH_WINS
