"""Drawing and voting: who may vote on what, once.

A draw answers a ballot: a sealed token for one pair. Nothing is stored until a vote is cast with it, and then its
number makes sure that it counts once. Where a vote came from is remembered for a week (`Origins`).
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from hashlib import blake2b
from math import inf
from typing import NamedTuple

from datastore.dynamo import OFF, BoundedDict, DynamoError, check_before_each_attempt
from datastore.refusals import NotSignedIn, Refusal, Unavailable
from datastore.voting import boards, voiding, votes
from datastore.voting.boards import MAIN, Board
from datastore.voting.pair_walk import DrawnPair, EligibleContenders, PairWalk
from datastore.voting.votes import Ballot, PairTally, TokenExpired, TokenSpent, TokenUnknown, Verdict, Vote
from resolvers.requests.address_limits import AddressLimits, address_hash
from resolvers.requests.context import AnyId, Context, Services
from resolvers.values.network_addresses import network
from resolvers.voting.rules import LEAD, MayNotVote, joined_at, require_may_vote
from resolvers.voting.settling import KNOWN_SECONDS
from resolvers.voting.visibility import Matchup, Results, ShownBoard, ShownContender, board_cache, results, results_of

# ── origins ──

_MOST = 50_000
"""Voters whose tags are cached, some 15 MB; one more write is the price of forgetting one."""


class _Origin(NamedTuple):
    voter: str
    board: str
    address: str
    day: date


class Origins:
    """The tags that this process gave, by voter, board, address and day."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._tags = services.cache.each("origins", self._remember, age=inf, most=_MOST)

    async def tag(self, ctx: Context, board: str) -> str | None:
        """The tag for the viewer's votes on a board from their address; None if their address is not known."""
        if not ctx.address:
            return None
        address = address_hash(self._services.seal, ctx.address)
        return await self._tags.load(_Origin(ctx.viewer.id, board, address, ctx.now().date()))

    async def _remember(self, origin: _Origin) -> str:
        return await voiding.remember_origin(self._services.table, *origin)


# ── walk counts ──
# Counting again how many pairs a voter has seen, after contenders have retired or were restored.
#
# A walk through 30,000 pairs takes up to 200 ms to count. So the event loop counts one slice of 1.5 ms at a time for
# all requests together, and keeps each result for the requests that follow: drawing and reading progress store nothing.
#
# After a restoration the votes of the voter's cycle are read first, once for each walk, up to `_MOST_VOTES` of them.

_CHEAP = 50
"""Pairs that are counted at once, in 0.3 ms."""

_MOST_WALKS = 1000
"""Walks kept, each of at most 4 KB."""

_MOST_VOTES = 4000
"""About 1 MB. Voters with more votes in a cycle meet a restored contender's passed pairs in the next cycle."""


class _Count(NamedTuple):
    vote: Vote
    eligible: EligibleContenders


def voter_seed(voter: str, board: str) -> bytes:
    """The seed of a voter's order of pairs on a board."""
    return blake2b(f"{board}#{voter}".encode(), digest_size=32).digest()


def seed_after(vote: Vote) -> bytes:
    """The seed of the order that a voter goes on in after a vote: their own, or that of the visitor they were."""
    return voter_seed(vote.order or vote.voter, vote.board)


class WalkCounts:
    """The walks that this process has counted again."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._turn = asyncio.Lock()
        self._counts = services.cache.each("walk_counts", self._count, age=inf, most=_MOST_WALKS)

    async def counted(self, vote: Vote, eligible: EligibleContenders) -> PairWalk:
        """The voter's walk after a vote, as `PairWalk.recounted` returns it."""
        walk = vote.pair_walk()
        if walk.recount_cost(eligible) <= _CHEAP and not walk.needs_seen(eligible):
            return walk.recounted(seed_after(vote), eligible)
        counted = await self._counts.load(_Count(vote, eligible))
        assert counted is not None  # noqa: S101 - counting always has a result
        return counted

    async def _count(self, wanted: _Count) -> PairWalk:
        walk, eligible = wanted.vote.pair_walk(), wanted.eligible
        seen = await self._read_seen(wanted.vote, walk) if walk.needs_seen(eligible) else None
        counting = walk.recounting(seed_after(wanted.vote), eligible, seen)
        while True:
            async with self._turn:  # one slice in each turn of the event loop
                try:
                    next(counting)
                except StopIteration as counted:
                    result: PairWalk = counted.value
                    return result
                await asyncio.sleep(0)

    async def _read_seen(self, vote: Vote, walk: PairWalk) -> frozenset[tuple[int, int]] | None:
        if walk.seen > _MOST_VOTES:
            return None
        return await votes.read_seen_pairs(self._services.table, vote.voter, vote.board, walk.cycle)


# ── ballots ──

_SHOWN_SECONDS = 0.05
"""How long a vote waits for what its answer shows, which is read while the vote is prepared. Then it is cast anyway."""

_SIGN_IN = "Sign in to go on."
"""To a visitor whose walk a member has continued."""


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
    results: Results
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
    record: PairTally | None = None
    """The pair's record with this vote, unless it has to be read again."""


class FirstDrawSizes:
    """The size of a board at the first draw of each voter's cycle, until the first vote of that cycle.

    After that vote the walk is stored with it. Until then, only this keeps the drawn pair from changing when a
    contender joins. After a restart the pair may change once, which affects no vote.
    """

    MOST = 50_000

    def __init__(self, _: Services) -> None:
        self._sizes: BoundedDict[tuple[str, str, int], int] = BoundedDict(self.MOST)

    def size(self, vote_key: tuple[str, str, int], current: int) -> int:
        return self._sizes.setdefault(vote_key, current)


async def draw_matchup(ctx: Context, /, *, board: str = MAIN) -> DrawnBallot:
    """The viewer's next pair. Nothing is written: the same pair is drawn again until the viewer votes on it."""
    _limit_draws(ctx)
    if not boards.is_slug(board):
        raise boards.board_not_found(board)
    voter = ctx.viewer.id
    cached, latest = await asyncio.gather(
        board_cache(ctx).boards.load(board), votes.read_latest_vote(ctx.table, voter, board)
    )
    number = latest.number + 1 if latest else 1
    current, found = cached.board if cached else None, None
    if current is not None:
        found = await _draw(ctx, latest, await _electors_contenders(ctx, current, latest), (voter, board, number))
    if current is None or found is None:
        current = await _load_board_now(ctx, board)
        contenders = await _electors_contenders(ctx, current, latest)
        found = await _draw(ctx, latest, contenders, (voter, board, number), is_current=True)
    if found is None:
        raise Exhausted
    drawn, eligible = found
    if latest is None:
        await ctx.services.get(AddressLimits).admit_visitor(ctx)
    expires_at = ctx.now() + timedelta(seconds=ctx.services.policy.ballot_seconds)
    ballot = Ballot(
        voter,
        board,
        number,
        drawn.left,
        drawn.right,
        expires_at=expires_at,
        walk=drawn.after.packed(),
        order=latest.order if latest else None,
    )
    # Contenders that joined after a remembered first draw are still to come.
    remaining = drawn.remaining + current.eligible.pairs(eligible.size, current.size)
    return DrawnBallot(
        token=ballot.sealed(ctx.services.seal),
        results=await results(ctx, current),
        left_ordinal=ballot.left,
        right_ordinal=ballot.right,
        voter=voter,
        expires_at=ballot.expires_at,
        progress=Progress(drawn.seen, remaining),
    )


async def _electors_contenders(ctx: Context, board: Board, latest: Vote | None) -> EligibleContenders:
    """What can be drawn by a viewer who may vote, and whose walk no member has continued."""
    require_may_vote(board, ctx.now(), await joined_at(ctx, board), ("input", "board"))
    if latest is not None and latest.continued_by is not None:
        raise NotSignedIn(_SIGN_IN)
    return board.eligible


async def _load_board_now(ctx: Context, slug: str) -> Board:
    current = await board_cache(ctx).boards.load(slug, 0)
    if current is None:
        raise boards.board_not_found(slug)
    return current.board


async def _draw(
    ctx: Context,
    latest: Vote | None,
    eligible: EligibleContenders,
    vote_key: tuple[str, str, int],
    *,
    is_current: bool = False,
) -> tuple[DrawnPair, EligibleContenders] | None:
    """The next pair, and the contenders it was drawn from; None with fewer than two contenders.

    None also if the contenders are not `is_current` and may lack some: the vote was cast on a newer state of the board,
    or its cycle would end without a newcomer.
    """
    voter, board, _ = vote_key
    if latest is not None and not is_current and _is_older(eligible, latest.pair_walk()):
        return None
    walk = await ctx.services.get(WalkCounts).counted(latest, eligible) if latest else PairWalk()
    seed = seed_after(latest) if latest else voter_seed(voter, board)
    drawn = walk.draw(seed, eligible)
    if drawn is None or (drawn.cycle != walk.cycle and not is_current):
        return None
    if walk.covered == 0 or drawn.cycle != walk.cycle:
        size = ctx.services.get(FirstDrawSizes).size(vote_key, eligible.size)
        at_first_draw = replace(eligible, size=size, retired=eligible.retired & ((1 << size) - 1))
        first = PairWalk(cycle=drawn.cycle).draw(seed, at_first_draw) if size < eligible.size else None
        if first is not None:
            return first, at_first_draw
    return drawn, eligible


def _is_older(eligible: EligibleContenders, walk: PairWalk) -> bool:
    """Whether the contenders were read before those that the walk was made for."""
    return walk.covered > eligible.size or walk.version > eligible.version


async def cast_vote(ctx: Context, /, *, token: AnyId, verdict: Verdict) -> VoteCast:
    """Count a verdict once, however often the request arrives."""
    ctx.services.rates.hit(ctx.services.policy.votes_per_visitor, "vote", "visitor", ctx.viewer.id)
    ballot = _own_ballot(ctx, token)
    if ballot is None or ballot.expires_at <= ctx.now():
        await ctx.services.get(AddressLimits).admit_vote(ctx)
        return await _cast_before(ctx, ballot, verdict)
    refreshing = board_cache(ctx).refresh(ballot.board)
    reading = asyncio.ensure_future(_read_what_is_shown(ctx, ballot))
    try:
        origin, board = await asyncio.gather(_admitted(ctx, ballot, verdict), _board_to_vote_on(ctx, ballot))
        await asyncio.wait({reading}, timeout=_SHOWN_SECONDS)
        before = reading.result() if reading.done() else None
    finally:
        reading.cancel()
    vote = votes.vote_on(ballot, board, verdict, ctx.now(), origin)
    if verdict is Verdict.SKIP:
        counted = await _count(ctx, vote, board)
    else:
        async with board_cache(ctx).settler(board.slug).voting():
            counted = await _count(ctx, vote, board)
    board = await refreshing or board
    _require_same(counted, vote)
    if counted.counts:
        board_cache(ctx).vote_counted(vote.voter, vote.board)
        ctx.services.activity["votes"] += counted is vote
    # Not if an earlier attempt may have counted it, or if there are other shards.
    is_new = before is not None and counted is vote and before.shards == board.read_shards
    record = votes.with_vote(before.record, vote) if before is not None and is_new else None
    return VoteCast(ballot, verdict, await _progress(ctx, counted, board.eligible), record)


class _Before(NamedTuple):
    """A pair's record before a vote, and how many shards were summed for it."""

    record: PairTally
    shards: int


async def _read_what_is_shown(ctx: Context, ballot: Ballot) -> _Before | None:
    """Read what the answer shows of the winner and the pair, as far as it is asked for, while the vote is prepared.

    So the answer need not wait for it after the vote. None if the board's shards are not known yet.
    """
    cache, selected, (low, high) = board_cache(ctx), ctx.selected(), sorted((ballot.left, ballot.right))
    board = cache.known(ballot.board, inf)
    if board is None or selected.isdisjoint(("winner", "matchup")):
        return None
    cache.prefetch(board, low, high)
    if "matchup" not in selected:
        return None
    with suppress(DynamoError):
        return _Before(await votes.read_pair_record(ctx.table, board, low, high), board.read_shards)
    return None


async def _admitted(ctx: Context, ballot: Ballot, verdict: Verdict) -> str | None:
    """The tag of the vote's origin, once the limit of its address has admitted it."""
    await ctx.services.get(AddressLimits).admit_vote(ctx)
    return None if verdict is Verdict.SKIP else await ctx.services.get(Origins).tag(ctx, ballot.board)


def _own_ballot(ctx: Context, token: str) -> Ballot | None:
    """The ballot in a token, if it is one of the viewer's."""
    with suppress(TokenUnknown):
        ballot = Ballot.opened(ctx.services.seal, token)
        return ballot if ballot.voter == ctx.viewer.id else None
    return None


async def _cast_before(ctx: Context, ballot: Ballot | None, verdict: Verdict) -> VoteCast:
    """The answer to a repeated vote that was counted before its ballot expired."""
    if ballot is None:
        raise TokenUnknown(path=("input", "token"))
    counted = await votes.read_vote(ctx.table, ballot.voter, ballot.board, ballot.number)
    if counted is None:
        raise TokenExpired(path=("input", "token"))
    board = await _load_board_now(ctx, ballot.board)
    _require_same(counted, votes.vote_on(ballot, board, verdict, ctx.now()))
    return VoteCast(ballot, verdict, await _progress(ctx, counted, board.eligible))


def _require_same(counted: Vote, vote: Vote) -> None:
    """Refuse a vote whose number another one has, or an item of a walk that a member continues."""
    if counted.continued_by is not None:
        raise NotSignedIn(_SIGN_IN)
    if not counted.is_verdict:
        raise TokenExpired("You go on where you were before you signed in. Draw again.", path=("input", "token"))
    if (counted.low, counted.high, counted.verdict) != (vote.low, vote.high, vote.verdict):
        raise TokenSpent(path=("input", "token"))


async def _count(ctx: Context, vote: Vote, board: Board) -> Vote:
    """The stored vote of this number. MayNotVote if there is none and the board takes no votes of the viewer now.

    `board` was read at most `KNOWN_SECONDS` ago. An attempt that begins later needs a newer state.
    """
    time, joined = asyncio.get_running_loop().time, await joined_at(ctx, board)
    usable_until = time() + LEAD.total_seconds() - KNOWN_SECONDS

    def check() -> None:
        current = board_cache(ctx).known(vote.board) or board
        if current is board and time() > usable_until:
            raise Unavailable(retry_after=1.0)
        require_may_vote(current, ctx.now(), joined, ("input", "token"))

    try:
        with check_before_each_attempt(check):
            return await votes.cast(ctx.table, vote, ctx.unit)
    except MayNotVote:
        # A vote that was counted in time is answered as before, however late it is repeated.
        stored = await votes.read_vote(ctx.table, vote.voter, vote.board, vote.number)
        if stored is None:
            raise
        return stored


async def _board_to_vote_on(ctx: Context, ballot: Ballot) -> Board:
    """The ballot's board in a recent state whose shards are read. That is enough, since shards only grow."""
    cache = board_cache(ctx)
    known = cache.known(ballot.board)
    if known is not None and known.write_shards <= known.read_shards:
        return known
    # Another process may have created it a moment ago, while a read was under way.
    current = await cache.boards.load(ballot.board) or await cache.boards.load(ballot.board, 0)
    if current is None:
        raise TokenUnknown(path=("input", "token"))
    if await boards.ensure_shards_are_read(ctx.table, current.board):
        cache.changed(ballot.board)
    return current.board


def _limit_draws(ctx: Context) -> None:
    """In this order: what a visitor is refused does not count for the address, which others have too."""
    policy, rates = ctx.services.policy, ctx.services.rates
    rates.hit(policy.votes_per_visitor, "draw", "visitor", ctx.viewer.id)
    if ctx.address and policy.votes_per_address != OFF:
        rates.hit(policy.votes_per_address, "draw", "address", network(ctx.address))


# ── fields ──


async def ballot_left(_: Context, drawn: DrawnBallot, /) -> ShownContender:
    return await drawn.results.contender_at(drawn.left_ordinal)


async def ballot_right(_: Context, drawn: DrawnBallot, /) -> ShownContender:
    return await drawn.results.contender_at(drawn.right_ordinal)


async def winner(ctx: Context, cast: VoteCast, /) -> ShownContender | None:
    """Null for a tie and a skip."""
    ordinal = {Verdict.LEFT: cast.ballot.left, Verdict.RIGHT: cast.ballot.right}.get(cast.verdict)
    return None if ordinal is None else await (await results_of(ctx, cast.ballot.board)).contender_at(ordinal)


async def cast_matchup(ctx: Context, cast: VoteCast, /) -> Matchup | None:
    """Null while the viewer may not see results."""
    of_board, ballot = await results_of(ctx, cast.ballot.board), cast.ballot
    return await of_board.cast_matchup(ballot.left, ballot.right, cast.record)


async def progress(ctx: Context, board: ShownBoard, /) -> Progress:
    """The viewer's progress through this board's pairs."""
    latest = await votes.read_latest_vote(ctx.table, ctx.viewer.id, board.slug)
    return await _progress(ctx, latest, board.eligible) if latest else Progress(0, board.pair_count)


async def _progress(ctx: Context, vote: Vote, eligible: EligibleContenders) -> Progress:
    # The walk may include a contender that has just joined, which the cached board does not have yet.
    eligible = replace(eligible, size=max(eligible.size, vote.pair_walk().covered))
    walk = await ctx.services.get(WalkCounts).counted(vote, eligible)
    return Progress(walk.seen, walk.remaining(eligible))
