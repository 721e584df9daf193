"""Settling: moving a board's tallies to its results within two seconds while votes come in; and the cache of boards.

One process at a time settles for all of them (see `datastore.voting.settling`); the others check that it does. A
process that may have counted votes leaves a dirty mark on the board, so that another one settles them if it is killed.
Nobody settles while nobody votes.

Guarantee: a vote acknowledged two seconds ago is included in what `board`, and every later read, shows, even if the
process that counted it was killed. A reader waits for a settling only if one is overdue, and only for a while.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from functools import partial
from math import inf
from typing import TypeAlias

import structlog

from datastore.dynamo import (
    Again,
    DynamoError,
    Reads,
    SingleFlight,
    Stale,
    read_each,
    repeated,
    shared_context,
)
from datastore.jobs.leases import Held, LeaseLost
from datastore.voting import boards, settling
from datastore.voting import contenders as contender_store
from datastore.voting.boards import BLOCK_SIZE, Board, BoardWithMarks, DirtyMark
from datastore.voting.contenders import (
    BoardResults,
    Contender,
    ContenderKey,
    CountedContender,
    Counts,
    Details,
    ResultsBlock,
)
from datastore.voting.continuing import has_counted_vote
from datastore.voting.editing import ContenderChange
from resolvers.requests.context import Services

# ── board settler ──

BURST_SECONDS = 0.2
"""The delay from the first vote on a quiet board to its settling, so that a burst is settled at once."""

CHECK_SECONDS = 0.25
"""How often a process with unsettled votes checks whether another one settles the board."""

SETTLING_INTERVAL = 1.5
"""Seconds between settlings of all processes together. Others notice one a quarter of a second late."""

STALENESS = 2.0
"""Seconds after which an acknowledged vote is shown."""

DOUBTFUL_SECONDS = 5.0
"""How long the engine may still apply a vote whose writing failed or was cancelled."""

SHUTDOWN_SECONDS = 5.0
"""How long a stopping process waits for its votes to be settled. Their next reader settles the rest."""

_PAUSES = [CHECK_SECONDS / 2.5] * 19
"""Between the attempts at a settling that somebody waits for: some second, beside what each takes."""

_log = structlog.get_logger("ringside.voting")


class BoardSettler:
    """Settles the votes that this process counts on one board. `publish` takes the results of each settling."""

    def __init__(self, slug: str, services: Services, publish: Callable[[Board, Sequence[ResultsBlock]], None]) -> None:
        self._slug = slug
        self._services = services
        self._leases = services.leases
        self._publish = publish
        self._mark: Held[DirtyMark] | None = None
        self._marks = 0
        """How often this process has marked the board."""
        self._marking = asyncio.Lock()
        self._in_flight = 0
        self._doubtful_until = float("-inf")
        self._changed = False
        """Whether votes may have been counted since this process last read the board."""
        self._required_term: int | None = None
        """The first settling that includes all votes counted before that read; None once it has completed."""
        self._settled = -1
        """The latest settling that is known to have completed."""
        self._loop: SingleFlight[str, None] = SingleFlight(shared_context)
        self._settlings: SingleFlight[str, bool] = SingleFlight(shared_context)
        self._marked: SingleFlight[str, None] = SingleFlight(shared_context)

    # ── votes ──

    @asynccontextmanager
    async def voting(self) -> AsyncIterator[None]:
        """Settle the votes cast inside in time, even if this process is killed after it has acknowledged them."""
        self._in_flight += 1
        if not self._is_marked:
            self._marked.begin(self._slug, self._write_mark)  # while the votes are written
        try:
            yield
            if not self._is_marked:
                await self._marked.run(self._slug, self._write_mark)
        except BaseException:
            self._doubtful_until = asyncio.get_running_loop().time() + DOUBTFUL_SECONDS
            raise
        finally:
            self._in_flight -= 1
            self.begin()

    @property
    def _is_marked(self) -> bool:
        return self._mark is not None and self._mark.is_safe

    async def _write_mark(self) -> None:
        async with self._marking:
            if self._mark is not None:
                with suppress(LeaseLost):  # it was taken for dead, and deleted
                    await self._mark.save()
                    return
            self._marks += 1
            mark = DirtyMark(self._slug, self._leases.holder, self._marks, self._services.clock())
            self._mark = await self._leases.begin(mark)

    async def _renew_mark(self) -> None:
        async with self._marking:
            try:
                if self._mark is not None:
                    await self._mark.renew()
            except LeaseLost:
                self._mark = None

    async def _delete_mark(self) -> None:
        """Delete the mark, if the board is still quiet once nothing else is being written."""
        async with self._marking:
            if self._mark is None or not self._is_quiet():
                return
            # Forgotten before it is deleted: the next vote waits for the lock and marks the board again.
            mark, self._mark = self._mark, None
            try:
                await boards.delete_mark(self._services.table, mark.record)
            except DynamoError as error:
                _log.warning("a dirty mark was not deleted; readers settle this board for a while", reason=str(error))

    def begin(self) -> None:
        """Settle the board in the background."""
        self._changed = True
        self._loop.begin(self._slug, self._settle_until_quiet)

    async def _settle_until_quiet(self) -> None:
        await asyncio.sleep(BURST_SECONDS)
        await self._delete_mark()  # a settling that somebody waited for may have included everything
        while not self._is_quiet():
            await self._settlings.run(self._slug, partial(self._attempt, only_if_due=True))
            if self._is_quiet():
                await self._delete_mark()
            else:
                await self._renew_mark()
                await asyncio.sleep(CHECK_SECONDS)

    def _is_quiet(self) -> bool:
        return not (self._changed or self._is_busy() or self._required_term is not None)

    def _is_busy(self) -> bool:
        """Whether the engine may be applying a vote right now."""
        return self._in_flight > 0 or asyncio.get_running_loop().time() < self._doubtful_until

    # ── settling ──

    def is_overdue(self, current: BoardWithMarks) -> bool:
        """Whether a board that was just read may lack a vote that was acknowledged two seconds ago."""
        return current.is_dirty and self._is_older(current.board, STALENESS)

    def _is_older(self, board: Board, seconds: float) -> bool:
        """Whether the latest settling began or completed more than so many seconds ago.

        Where this process cannot know, because it has not read the board for a while, the clock of the last settling
        decides. So a wrong clock makes a settling too early, or late once, but never prevents one.
        """
        age = self._leases.age(board)
        if age.at_most < seconds or age.at_least >= seconds:
            return age.at_most >= seconds
        return board.settled_at is None or board.settled_at < self._services.clock() - timedelta(seconds=seconds)

    async def settle_overdue(self) -> None:
        """Settle the board for a reader, or wait for another process, until a later settling has completed."""
        before = self._settled
        while not await self._settlings.run(self._slug, partial(self._attempt, only_if_due=True)):
            if self._settled != before:
                return
            await asyncio.sleep(CHECK_SECONDS / 2)

    async def settle_anew(self) -> None:
        """Settle what was just written.

        After a second or so in which another process settles, or the table fails, it is left to the settling in the
        background.
        """
        if self._slug in self._settlings:  # it may have begun before what was just written
            await self._settlings.run(self._slug, partial(self._attempt, only_if_due=False))

        async def attempt() -> None:
            if not await self._settlings.run(self._slug, partial(self._attempt, only_if_due=False)):
                raise Again(Stale())

        with suppress(Again):
            await repeated(attempt, _PAUSES, lambda: inf)

    async def _attempt(self, *, only_if_due: bool) -> bool:
        """Read the board, and settle it. Return whether all votes counted before are settled now."""
        try:
            current = await self._read_current()
            if current is None:
                return True
            if only_if_due and self._required_term is None and not current.is_dirty:
                return True
            if only_if_due and not self._is_due(current.board):
                return False
            return await self._settle(current)
        except (DynamoError, LeaseLost) as error:
            _log.warning("a board could not be settled; trying again", board=self._slug, reason=str(error))
        except Exception:  # noqa: BLE001 - a fault must not end the settling of later votes
            _log.exception("a board could not be settled; trying again", board=self._slug)
        return False

    def _is_due(self, board: Board) -> bool:
        """Whether the next settling may begin. One that has been under way for as long as that is not waited for."""
        if board.holder == self._leases.holder:
            return True  # this process's own has failed
        if board.holder is not None:
            return self._leases.age(board).at_least >= SETTLING_INTERVAL
        return self._is_older(board, SETTLING_INTERVAL)

    async def _read_current(self) -> BoardWithMarks | None:
        """The current board, and the settling that includes the votes counted before this read."""
        busy, changed = self._is_busy(), self._changed
        self._changed = busy
        try:
            current = await boards.read_board_with_marks(self._services.table, self._slug)
        except BaseException:
            self._changed = self._changed or changed
            raise
        if current is None:
            self._required_term = None
            return None
        if changed or busy:
            self._required_term = current.board.term + 1
        self._note_settled(current.board.settled)
        return current

    def _note_settled(self, settled: int) -> None:
        self._settled = max(self._settled, settled)
        if self._required_term is not None and settled >= self._required_term:
            self._required_term = None

    async def _settle(self, current: BoardWithMarks) -> bool:
        dead_marks = [mark for mark in current.marks if self._leases.is_free(mark)]
        lease = await self._leases.acquire(current.board)
        if lease is None:
            return False
        results = await settling.settle(self._services.table, lease, self._services.clock())
        self._publish(lease.record, results)
        self._note_settled(lease.record.settled)
        for mark in dead_marks:  # of processes that have gone: their votes are settled now
            await boards.delete_mark(self._services.table, mark)
        return True

    async def close(self) -> None:
        if self._slug in self._loop:
            await self._loop.close()
            try:
                async with asyncio.timeout(SHUTDOWN_SECONDS):
                    await self.settle_anew()
                    await self._delete_mark()
            except TimeoutError:
                _log.warning("a board was left unsettled; its next reader settles it", board=self._slug)
        await self._settlings.close()
        await self._loop.close()  # which a settling that was cut off has begun again
        await self._marked.close()


# ── board cache ──
# The boards of one process: their state and results, cached for moments, and the settling of their votes.

PATIENCE = 2.0
"""How long a reader waits for an overdue settling. It takes milliseconds, unless its process is killed in between."""

KNOWN_SECONDS = 5.0
"""The age at which votes are no longer judged by the last state of a board, so that all know a change of its hours."""

VOTED_SECONDS = 10.0
"""For how long a voter still sees results that are shown after voting once another process has voided their votes."""

_MOST_BOARDS = 1000

VersionKey: TypeAlias = tuple[str, int, int]
"""A contender's board, ordinal and version: what was read of an earlier version is not shown with a later one, whose
revision an editor would name who has not seen what it changed."""
CountsKey: TypeAlias = tuple[str, int, int]
"""A board's slug, the term of a settling, and a block."""
NamesKey: TypeAlias = tuple[str, int, int]
"""A board's slug, the number of changes to its contenders, and how many blocks it has."""
ResultsKey: TypeAlias = tuple[str, tuple[int, int]]


def version_key(contender: Contender) -> VersionKey:
    return contender.board, contender.ordinal, contender.version


class BoardCache:
    """The boards as this process last read them."""

    def __init__(self, services: Services) -> None:
        self._services = services
        cache = services.cache
        self.boards = cache.batches("boards", self._read_boards, age=0.25, kept=inf, most=_MOST_BOARDS)
        self.contenders: Reads[ContenderKey, Contender] = cache.batches(
            "contenders", partial(contender_store.read_contenders, services.table), age=0.5
        )
        self.details = cache.batches("contender_details", self._read_details, age=5.0)
        self.pictures = cache.batches("pictures", self._read_pictures, age=5.0, most=1000)
        self._counts = cache.batches("contender_counts", self._read_counts, age=60.0, most=200)
        self._by_name = cache.each("contenders_by_name", self._read_by_name, age=60.0, most=16)
        self._results = cache.each("board_results", self._read_board_results, age=60.0, most=16)
        self._voted = cache.each("voted", self._read_voted, age=1.0, kept=VOTED_SECONDS)
        self._settlers: dict[str, BoardSettler] = {}

    # ── batch reads ──

    async def _read_boards(self, slugs: Sequence[str]) -> Mapping[str, BoardWithMarks | Exception]:
        table = self._services.table
        new = [slug for slug in slugs if self.boards.known(slug, inf) is None]
        if len(new) > 1:  # they may be invented: a Query each is for those that exist
            existing = await boards.existing_boards(table, new)
            slugs = [slug for slug in slugs if slug not in new or slug in existing]
        return await read_each(slugs, lambda slug: boards.read_board_with_marks(table, slug))

    async def _read_details(self, keys: Sequence[VersionKey]) -> Mapping[VersionKey, Details]:
        """Map a contender without details to empty ones, since absence is not kept."""
        found = await contender_store.read_details(self._services.table, [key[:2] for key in keys])
        return {key: found.get(key[:2]) or Details(*key[:2]) for key in keys}

    async def _read_pictures(self, keys: Sequence[VersionKey]) -> Mapping[VersionKey, str]:
        """Map a contender without a picture to an empty text, since absence is not kept."""
        found = await contender_store.read_pictures(self._services.table, [key[:2] for key in keys])
        return {key: found.get(key[:2], "") for key in keys}

    async def _read_counts(self, keys: Sequence[CountsKey]) -> Mapping[CountsKey, Sequence[Counts]]:
        blocks = await contender_store.read_results_blocks(
            self._services.table, list({(slug, block) for slug, _, block in keys})
        )
        return {(slug, term, block): blocks[slug, block].counts for slug, term, block in keys}

    async def _read_by_name(self, wanted: NamesKey) -> Sequence[Contender]:
        slug, _, blocks = wanted
        contenders = await contender_store.all_contenders(self._services.table, slug, blocks)
        return sorted(contenders.values(), key=lambda each: each.place_by_name)

    async def _read_board_results(self, wanted: ResultsKey) -> BoardResults | None:
        cached = await self.boards.load(wanted[0])
        if cached is None:
            return None
        board = cached.board
        keys = [(board.slug, board.settled, block) for block in range(board.blocks)]
        by_name, counts = await asyncio.gather(
            self._by_name.load((board.slug, board.contender_changes, board.blocks)), self._counts.load_many(keys)
        )
        return BoardResults(by_name or (), [block or () for block in counts])

    # ── reads ──

    async def board(self, slug: str) -> Board | None:
        """A board whose results are at most two seconds older than its votes."""
        cached = await self.boards.load(slug)
        if cached is None:
            return None
        if cached.is_dirty and self.settler(slug).is_overdue(cached):
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    await self.settler(slug).settle_overdue()
            cached = await self.boards.load(slug)
        return cached.board if cached else None

    def known(self, slug: str, age: float = KNOWN_SECONDS) -> Board | None:
        """A board as this process last read it, at most so many seconds ago."""
        known = self.boards.known(slug, age)
        return known.board if known else None

    def refresh(self, slug: str) -> Awaitable[Board | None]:
        """Begin to read a board that the request shows later; None if it cannot be read."""
        return asyncio.ensure_future(self._refreshed(slug))

    async def _refreshed(self, slug: str) -> Board | None:
        with suppress(DynamoError):
            cached = await self.boards.load(slug)
            return cached.board if cached else None
        return None

    async def contenders_of(self, board: Board, ordinals: Sequence[int]) -> list[Contender | None]:
        """Contenders without counts. Those that have just joined elsewhere are read anew."""
        keys = [(board.slug, ordinal) for ordinal in ordinals]
        found = await self.contenders.load_many(keys)
        for place, key in enumerate(keys):
            found[place] = found[place] or await contender_store.read_contender(self._services.table, *key)
        return found

    async def contenders_at(self, board: Board, ordinals: Sequence[int]) -> list[CountedContender | None]:
        """Contenders with their counts in the board's state."""
        blocks = list(dict.fromkeys(ordinal // BLOCK_SIZE for ordinal in ordinals))
        found, counts = await asyncio.gather(
            self.contenders_of(board, ordinals),
            self._counts.load_many([(board.slug, board.settled, block) for block in blocks]),
        )
        of_block = dict(zip(blocks, counts, strict=True))
        return [None if one is None else contender_store.counted(one, of_block[one.block] or ()) for one in found]

    def prefetch(self, board: Board, *ordinals: int) -> None:
        """Begin to read contenders that a request shows later."""
        for ordinal in ordinals:
            self.contenders.prefetch((board.slug, ordinal))
            self._counts.prefetch((board.slug, board.settled, ordinal // BLOCK_SIZE))

    async def counted(self, board: Board, contenders: Sequence[Contender]) -> list[CountedContender]:
        """Contenders of a board with their counts in its state."""
        blocks = {each.block: (board.slug, board.settled, each.block) for each in contenders}
        counts = dict(zip(blocks, await self._counts.load_many(list(blocks.values())), strict=True))
        return [contender_store.counted(each, counts[each.block] or ()) for each in contenders]

    async def results(self, board: Board) -> BoardResults:
        results = await self._results.load((board.slug, board.stamp))
        return results or BoardResults((), ())

    # ── who has voted ──

    async def _read_voted(self, key: tuple[str, str]) -> bool:
        return await has_counted_vote(self._services.table, *key)

    async def has_voted(self, voter: str, board: str) -> bool:
        """Whether a vote of theirs counts."""
        return self._voted.known((voter, board), VOTED_SECONDS) or bool(await self._voted.load((voter, board)))

    def vote_counted(self, voter: str, board: str) -> None:
        self._voted.put((voter, board), value=True)

    def may_have_voted(self, voter: str, board: str) -> None:
        """Look again whether a vote of theirs counts, unless one did."""
        if self._voted.known((voter, board)) is False:
            self._voted.forget((voter, board))

    def votes_voided(self, voter: str, board: str) -> None:
        self._voted.forget((voter, board))

    # ── changes ──

    def changed(self, board: str, contender: Contender | None = None, change: ContenderChange | None = None) -> None:
        """Take over this process's own change of a board or a contender."""
        self.boards.forget(board)
        if contender is not None:
            self.contenders.put((board, contender.ordinal), contender)
        if contender is not None and change is not None:
            before = (board, contender.ordinal, contender.version - 1)
            picture = (change.svg or "") if change.replaces_picture else self.pictures.known(before)
            if picture is not None:  # a plain read may be behind
                self.pictures.put(version_key(contender), picture)

    def settler(self, slug: str) -> BoardSettler:
        settler = self._settlers.get(slug)
        if settler is None:
            settler = self._settlers[slug] = BoardSettler(slug, self._services, self._publish)
        return settler

    def _publish(self, board: Board, results: Sequence[ResultsBlock]) -> None:
        """Take over the outcome of a settling, so that this process shows it at once."""
        self.boards.outdate(board.slug)  # the hours by which votes are judged are the same
        for block in results:
            self._counts.put((board.slug, board.settled, block.block), block.counts)

    async def close(self) -> None:
        """Settle the votes that this process has counted."""
        await asyncio.gather(*(settler.close() for settler in self._settlers.values()))
