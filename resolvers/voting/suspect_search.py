"""The process that looks for a board's suspects: it reads the votes itself, so the serving one goes on as before.

It is started by `resolvers.voting.suspects` with one line of JSON, and answers with lines: totals, then a suspect each.
It ends when its standard input does, so it never outlives the process that wants its answer.

All items of a voter lie side by side in the table, first the origins and then the votes. So one voter's votes are in
memory at a time.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from threading import Thread
from typing import Any, Final

import orjson

from datastore.dynamo import DynamoError, Table, TableAddress, open_table
from datastore.voting.boards import read_board_with_marks
from datastore.voting.contenders import NO_VOTES
from datastore.voting.voiding import votes_and_origins
from datastore.voting.votes import PairVerdict, Vote, read_contender_sums
from resolvers.requests.context import utc_now
from resolvers.voting.ballots import seed_after
from resolvers.voting.bradley_terry import fit, read_meetings
from resolvers.voting.kept_votes import SKIP, TIE, SeenVote
from resolvers.voting.suspicion import Detector, Suspicion, pushed_ranks, rank_changes

_WON: Final[Mapping[PairVerdict, float]] = {
    PairVerdict.LOW_WINS: 1.0,
    PairVerdict.HIGH_WINS: 0.0,
    PairVerdict.TIE: TIE,
    PairVerdict.SKIP: SKIP,
}
MOST_SUSPECTS = 20_000
_NICE = 10
NO_ENGINE = 75
"""The exit code if the table cannot be read, which may be tried again."""


def seen_vote(vote: Vote, seed: bytes, networks: Mapping[str, str]) -> SeenVote:
    """A stored vote as the detector sees it. The service drew its sides, so it can draw them again."""
    left, network = vote.pair_walk().low_was_left(seed), networks.get(vote.origin or "")
    return SeenVote(vote.low, vote.high, left, _WON[vote.verdict], vote.at.timestamp(), network)


async def search(table: Table, slug: str) -> tuple[Detector, list[Suspicion], Mapping[int, int]]:
    """What a detector found, and the scores of the contenders that are ranked."""
    found = await read_board_with_marks(table, slug)
    assert found is not None  # noqa: S101 - the mutation has read it, and boards are not deleted
    board = found.board
    sums = await read_contender_sums(table, board)
    scores = {
        ordinal: counts.wins - counts.losses
        for ordinal in range(board.size)
        if board.eligible.has(ordinal)
        for counts in [sums.get(ordinal, NO_VOTES)]
    }
    strengths = {ordinal: strength.value for ordinal, strength in fit(await read_meetings(table, board)).items()}
    detector = Detector(strengths, board.size)
    async for votes, networks in by_voter(table, slug, utc_now()):
        seed = seed_after(votes[-1])
        standing = [vote for vote in votes if vote.is_verdict and not vote.void]
        seen = [seen_vote(vote, seed, networks) for vote in standing]
        detector.see(votes[0].voter, seen, votes[-1].number)
    detector.look()
    return detector, detector.suspects()[:MOST_SUSPECTS], scores


async def by_voter(table: Table, board: str, now: datetime) -> AsyncIterator[tuple[Sequence[Vote], Mapping[str, str]]]:
    """The votes of each voter in their order, and the address that each tag of theirs stands for still."""
    voter, votes, networks = "", list[Vote](), dict[str, str]()
    async for record in votes_and_origins(table):
        if record.board != board:
            continue
        if record.voter != voter:
            if votes:
                yield votes, networks
            voter, votes, networks = record.voter, [], {}
        if isinstance(record, Vote):
            votes.append(record)
        elif record.expires > now:  # the engine removes expired items late
            networks[record.tag] = record.address
    if votes:
        yield votes, networks


# ── the process ──


def _line(suspicion: Suspicion, scores: Mapping[int, int]) -> bytes:
    return orjson.dumps(
        {
            "voter": suspicion.voter,
            "last_vote": suspicion.last_vote,
            "votes": suspicion.votes,
            "probability": suspicion.probability,
            "reasons": suspicion.reasons,
            "changes": rank_changes(scores, suspicion.scores),
        },
        option=orjson.OPT_APPEND_NEWLINE,
    )


async def _answer(board: str, at: TableAddress) -> None:
    async with open_table(at.name, url=at.url, region=at.region, sdk_only=at.sdk_only) as table:
        detector, suspects, scores = await search(table, board)
    pushed = pushed_ranks(scores, detector.pushed_scores(), detector.pushes)
    totals = {"votes": detector.votes, "voters": detector.voters, "pushed": [tuple(each) for each in pushed]}
    sys.stdout.buffer.write(orjson.dumps(totals, option=orjson.OPT_APPEND_NEWLINE))
    for suspicion in suspects:
        sys.stdout.buffer.write(_line(suspicion, scores))
    sys.stdout.buffer.flush()


def _end_with_input() -> None:
    while os.read(0, 1):  # not through the buffer, whose lock the interpreter needs when it ends
        pass
    os._exit(1)


def main() -> None:
    wanted: dict[str, Any] = orjson.loads(sys.stdin.buffer.readline())
    Thread(target=_end_with_input, daemon=True).start()
    os.nice(_NICE)
    try:
        asyncio.run(_answer(wanted["board"], TableAddress(**wanted["address"])))
    except DynamoError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(NO_ENGINE)


if __name__ == "__main__":
    main()
