"""Drawing and voting: who may vote on what, once."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b

from datastore import voting as voting_store
from datastore.dynamo import BadKey, key_text
from datastore.refusals import InvalidInput, NotFound, Refusal
from datastore.voting import MAIN, Ballot, Board, Contender, TokenExpired, TokenSpent, TokenUnknown, Verdict, Vote
from datastore.voting.pair_walk import DrawnPair, EligibleContenders, PairWalk
from resolvers.context import AnyId, Context, Services
from resolvers.node_ids import parse_node_id
from resolvers.viewer import Role
from resolvers.voting.boards import Matchup, board_cache, contender_at, load_matchup


class Exhausted(Refusal):
    code = "EXHAUSTED"
    explanation = "This board has fewer than two contenders. Come back when there are more."


@dataclass(frozen=True, slots=True)
class Progress:
    seen: int
    remaining: int


@dataclass(frozen=True, slots=True)
class DrawnBallot:
    """A ballot as its voter sees it."""

    token: str
    board: str
    left_ordinal: int
    right_ordinal: int
    voter: str
    expires_at: datetime
    progress: Progress


@dataclass(frozen=True, slots=True)
class VoteCast:
    """A counted verdict on a ballot, and the voter's progress after it."""

    ballot: Ballot
    verdict: Verdict
    progress: Progress


class FirstDrawSizes:
    """The size of a board at the first draw of each voter's cycle, until the first vote of that cycle.

    After that vote the walk is stored with it. Until then, only this keeps the drawn pair from changing when a
    contender joins. After a restart the pair may change once, which affects no vote.
    """

    MOST = 50_000

    def __init__(self, _: Services) -> None:
        self._sizes: OrderedDict[tuple[str, str, int], int] = OrderedDict()

    def size(self, voter: str, board: str, number: int, current: int) -> int:
        size = self._sizes.setdefault((voter, board, number), current)
        if len(self._sizes) > self.MOST:
            self._sizes.popitem(last=False)
        return size


def voter_seed(voter: str, board: str) -> bytes:
    """The seed of a voter's order of pairs on a board."""
    return blake2b(f"{board}#{voter}".encode(), digest_size=32).digest()


async def draw_matchup(ctx: Context, /, *, board: str = MAIN) -> DrawnBallot:
    """The viewer's next pair. Nothing is written: the same pair is drawn again until the viewer votes on it."""
    await _limit_rate(ctx, "draw")
    if not voting_store.is_slug(board):
        raise _board_not_found(board)
    voter = ctx.viewer.id
    current, latest = await asyncio.gather(
        voting_store.read_board_with_marks(ctx.table, board, consistent=True),
        voting_store.read_latest_vote(ctx.table, voter, board),
    )
    if current is None:
        raise _board_not_found(board)
    number = latest.number + 1 if latest else 1
    walk = latest.pair_walk() if latest else PairWalk()
    drawn_pair, eligible = _draw(ctx, walk, current.board.eligible, (voter, board, number))
    expires_at = ctx.now() + timedelta(seconds=ctx.services.policy.ballot_seconds)
    ballot = Ballot(
        voter, board, number, drawn_pair.left, drawn_pair.right, expires_at=expires_at, walk=drawn_pair.after.packed()
    )
    # Contenders that joined after a remembered first draw are still to come.
    remaining = drawn_pair.remaining + current.board.eligible.pairs(eligible.size, current.board.size)
    return DrawnBallot(
        token=ballot.sealed(ctx.services.seal),
        board=board,
        left_ordinal=ballot.left,
        right_ordinal=ballot.right,
        voter=voter,
        expires_at=ballot.expires_at,
        progress=Progress(drawn_pair.seen, remaining),
    )


def _draw(
    ctx: Context, walk: PairWalk, eligible: EligibleContenders, vote_key: tuple[str, str, int]
) -> tuple[DrawnPair, EligibleContenders]:
    """The next pair, and the contenders it was drawn from."""
    voter, board, number = vote_key
    seed = voter_seed(voter, board)
    drawn_pair = walk.draw(seed, eligible)
    if drawn_pair is None:
        raise Exhausted
    if walk.covered == 0 or drawn_pair.cycle != walk.cycle:
        size = ctx.services.get(FirstDrawSizes).size(voter, board, number, eligible.size)
        at_first_draw = EligibleContenders(size, eligible.retired & ((1 << size) - 1))
        first_pair = walk.draw(seed, at_first_draw) if size < eligible.size else None
        if first_pair is not None:
            return first_pair, at_first_draw
    return drawn_pair, eligible


async def cast_vote(ctx: Context, /, *, token: AnyId, verdict: Verdict) -> VoteCast:
    """Counts a verdict once, however often the request arrives."""
    await _limit_rate(ctx, "vote")
    ballot = Ballot.opened(ctx.services.seal, token)
    if ballot.voter != ctx.viewer.id:
        raise TokenUnknown(path=("input", "token"))
    if ballot.expires_at <= ctx.now():
        raise TokenExpired(path=("input", "token"))
    board = await _load_board_to_vote_on(ctx, ballot)
    vote = voting_store.vote_on(ballot, board, verdict, ctx.now())
    if verdict is Verdict.SKIP:
        counted = await voting_store.cast(ctx.table, vote)
    else:
        async with board_cache(ctx).settler(board.slug).voting():
            counted = await voting_store.cast(ctx.table, vote)
    if (counted.low, counted.high, counted.verdict) != (vote.low, vote.high, vote.verdict):
        raise TokenSpent(path=("input", "token"))
    return VoteCast(ballot, verdict, _progress(counted, board.eligible))


async def _load_board_to_vote_on(ctx: Context, ballot: Ballot) -> Board:
    """The ballot's board, after making sure that its readers sum the shard of this vote."""
    cache = board_cache(ctx)
    current = await cache.boards.load(ballot.board)
    if current is None:  # another process may have created it a moment ago
        current = await voting_store.read_board_with_marks(ctx.table, ballot.board, consistent=True)
    if current is None:
        raise TokenUnknown(path=("input", "token"))
    if await voting_store.ensure_shards_are_read(ctx.table, current.board):
        cache.changed(ballot.board)
    return current.board


async def _limit_rate(ctx: Context, what: str) -> None:
    policy, rates = ctx.services.policy, ctx.services.rates
    if ctx.address:
        await rates.hit(policy.votes_per_address, what, "address", ctx.address)
    await rates.hit(policy.votes_per_visitor, what, "visitor", ctx.viewer.id)


def _board_not_found(slug: str) -> NotFound:
    return NotFound(f"There is no board called {slug[:64]}. Look at `boards`.", path=("input", "board"))


# ── fields ──


async def ballot_left(ctx: Context, drawn: DrawnBallot, /) -> Contender:
    return await contender_at(ctx, drawn.board, drawn.left_ordinal)


async def ballot_right(ctx: Context, drawn: DrawnBallot, /) -> Contender:
    return await contender_at(ctx, drawn.board, drawn.right_ordinal)


async def winner(ctx: Context, cast: VoteCast, /) -> Contender | None:
    """Null for a tie and a skip."""
    ordinal = {Verdict.LEFT: cast.ballot.left, Verdict.RIGHT: cast.ballot.right}.get(cast.verdict)
    return None if ordinal is None else await contender_at(ctx, cast.ballot.board, ordinal)


async def cast_matchup(ctx: Context, cast: VoteCast, /) -> Matchup:
    return await load_matchup(ctx, cast.ballot.board, cast.ballot.left, cast.ballot.right)


async def progress(ctx: Context, board: Board, /) -> Progress:
    """The viewer's progress through this board's pairs."""
    latest = await voting_store.read_latest_vote(ctx.table, ctx.viewer.id, board.slug)
    return _progress(latest, board.eligible) if latest else Progress(0, board.pair_count)


def _progress(vote: Vote, eligible: EligibleContenders) -> Progress:
    walk = vote.pair_walk()
    # The walk may include a contender that has just joined, which the cached board does not have yet.
    eligible = EligibleContenders(max(eligible.size, walk.covered), eligible.retired)
    walk = walk.recounted(voter_seed(vote.voter, vote.board), eligible)
    return Progress(walk.seen, walk.remaining(eligible))


# ── editors ──


async def void_voter(ctx: Context, /, *, board: str = MAIN, voter: AnyId) -> int:
    """Voids all votes of one voter on one board and settles it. A repeat finds nothing to void."""
    ctx.with_role(Role.EDITOR)
    if not voting_store.is_slug(board) or await board_cache(ctx).boards.load(board) is None:
        raise _board_not_found(board)
    settler = board_cache(ctx).settler(board)
    async with settler.voting():
        removed = await voting_store.void_votes(ctx.table, _parse_voter(voter), board)
    await settler.settle_anew()
    if ctx.once.key is not None:
        await ctx.once.transact(ctx.table, removed)
    return removed


def _parse_voter(text: str) -> str:
    """A voter's own id, or the id of the member who voted."""
    try:
        kind, key = parse_node_id(text)
    except InvalidInput:
        kind, key = "User", text
    try:
        if kind == "User":
            return key_text(key)
    except BadKey:
        pass
    raise InvalidInput(
        "A voter is identified by a User's id, or by the `voter` of a ballot or of an exported vote.",
        path=("input", "voter"),
    )
