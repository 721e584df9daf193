"""What one process keeps of the boards: their state, their rows for some moments, and the settling of their votes.

Law: a vote that was acknowledged two seconds ago is in the rows that `board`, and what is read after it, shows: also
when the process that counted it was killed. A board is settled at most every two seconds by one process, one settling
at a time, and not at all while nobody votes.
"""

from __future__ import annotations

import asyncio
import contextvars
import secrets
from bisect import bisect_right
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias

import structlog

from datastore import voting
from datastore.dynamo import DynamoError, remaining
from datastore.voting import Board, BoardNow, Contender, Roster
from resolvers.loading.loader import Kept

if TYPE_CHECKING:
    from datetime import datetime

    from datastore.dynamo import Slice
    from resolvers.context import Services

EVERY = 2.0
SOON = 0.2
"""From the first vote on a quiet board to its settling, so that a burst is settled together."""

PATIENCE = 0.5
"""How long a reader waits for a settling under way; a small board's is done in a few milliseconds."""

LONG_PATIENCE = 1.5
"""The same for votes that another process left, which may be older."""

AT_THE_END = 5.0
"""How long a process that is to end waits for its votes to be settled; whoever reads them next settles the rest."""

_SKEW = timedelta(seconds=2)
"""What the clocks of two servers may differ."""

_MARKED_AHEAD = timedelta(seconds=3)
_log = structlog.get_logger("ringside.standings")

Place: TypeAlias = tuple[str, int]
SliceOf: TypeAlias = tuple[str, tuple[int, int], str | None, int]


class BoardCache:
    """The boards as this process knows them."""

    def __init__(self, services: Services) -> None:
        self._house = services
        self.boards: Kept[str, BoardNow] = Kept(self._read_boards, seconds=0.25)
        self.contenders: Kept[Place, Contender] = Kept(self._read_contenders, seconds=0.25)
        self.pictures: Kept[Place, str] = Kept(self._read_pictures, seconds=5.0, most=1000)
        self._slices: Kept[SliceOf, Slice[Contender]] = Kept(self._read_slices, seconds=0.25, most=200)
        self._rosters: Kept[tuple[str, tuple[int, int]], Roster] = Kept(self._read_rosters, seconds=60.0, most=16)
        self._tides: dict[str, BoardSettler] = {}

    # ── what is read, together and never twice at a time ──

    async def _read_boards(self, slugs: Sequence[str]) -> Mapping[str, BoardNow]:
        found = await asyncio.gather(*(voting.board_now(self._house.table, slug, consistent=True) for slug in slugs))
        return {slug: now for slug, now in zip(slugs, found, strict=True) if now is not None}

    async def _read_contenders(self, places: Sequence[Place]) -> Mapping[Place, Contender]:
        return await voting.contenders_at(self._house.table, places)

    async def _read_pictures(self, places: Sequence[Place]) -> Mapping[Place, str]:
        return await voting.pictures(self._house.table, places)

    async def _read_slices(self, wanted: Sequence[SliceOf]) -> Mapping[SliceOf, Slice[Contender]]:
        found = await asyncio.gather(
            *(voting.leaderboard_slice(self._house.table, slug, position, limit) for slug, _, position, limit in wanted)
        )
        return dict(zip(wanted, found, strict=True))

    async def _read_rosters(
        self, wanted: Sequence[tuple[str, tuple[int, int]]]
    ) -> Mapping[tuple[str, tuple[int, int]], Roster]:
        rosters = {}
        for slug, stamp in wanted:
            now = await self.boards.load(slug)
            if now is not None:
                rosters[slug, stamp] = await voting.read_roster(self._house.table, now.board)
        return rosters

    # ── what others ask for ──

    async def board(self, slug: str) -> Board | None:
        """A board whose rows are no more than two seconds behind its votes."""
        now = await self.boards.load(slug)
        if now is None:
            return None
        tide = self._tides.get(slug)
        under_way = tide is not None and tide.settling is not None
        left = now.unsettled_by(tide.name if tide else "") and self._overdue(now.board)
        if under_way or left:
            await self._awaited(self.tide(slug), LONG_PATIENCE if left else PATIENCE)
            now = await self.boards.load(slug)
        return now.board if now else None

    def _overdue(self, board: Board) -> bool:
        return board.settled_at is None or board.settled_at < self._house.clock() - timedelta(seconds=EVERY)

    async def _awaited(self, tide: BoardSettler, patience: float) -> None:
        try:
            async with asyncio.timeout(patience):
                await tide.settle()
        except TimeoutError:
            return

    async def leaders(self, board: Board, position: str | None, limit: int) -> Slice[Contender]:
        found = await self._slices.load((board.slug, board.stamp, position, limit))
        assert found is not None  # noqa: S101 - every slice asked for is answered, be it empty
        return found

    async def rank(self, board: Board, score: int) -> int:
        """One more than there are contenders with a higher score."""
        roster = await self._rosters.load((board.slug, board.stamp))
        scores = roster.scores if roster else ()
        return 1 + len(scores) - bisect_right(scores, score)

    def changed(self, board: str, contender: Contender | None = None) -> None:
        """This process has changed a board, or one of its contenders."""
        self.boards.forget(board)
        if contender is not None:
            self.contenders.put((board, contender.ordinal), contender)
            self.pictures.forget((board, contender.ordinal))

    def tide(self, slug: str) -> BoardSettler:
        return self._tides.setdefault(slug, BoardSettler(slug, self, self._house))

    def settled(self, roster: Roster, before: Roster | None) -> None:
        """Takes over what a settling found, so that this process shows it at once."""
        board = roster.board
        self.boards.forget(board.slug)
        self._rosters.put((board.slug, board.stamp), roster)
        for ordinal, row in roster.rows.items():
            if before is None or before.rows.get(ordinal) is not row:
                known = self.contenders.at_hand((board.slug, ordinal))
                # An editor may have changed it since the settling read it.
                if known is None or known[0] is None or known[0].version <= row.version:
                    self.contenders.put((board.slug, ordinal), row)

    async def close(self) -> None:
        """Settles what this process has counted."""
        await asyncio.gather(*(tide.close() for tide in self._tides.values()))


class BoardSettler:
    """The votes of this process on one board that come in, and are settled every two seconds while they do."""

    def __init__(self, slug: str, standings: BoardCache, services: Services) -> None:
        self.name = secrets.token_hex(6)
        """Of this process's marks on the board."""
        self._slug = slug
        self._standings = standings
        self._house = services
        self._in_flight = 0
        self._changed = False
        self._marked_until: datetime | None = None
        self._marking = asyncio.Lock()
        self._began = float("-inf")
        self._roster: Roster | None = None
        self._running: asyncio.Task[None] | None = None
        self.settling: asyncio.Task[bool] | None = None

    @asynccontextmanager
    async def voting(self) -> AsyncIterator[None]:
        """Votes within are settled in time, even if this process does not live to do it."""
        self._in_flight += 1
        try:
            await self._mark()
            yield
        except BaseException:
            # What got no answer may still be carried out. The mark stays, as if of a process that is gone: whoever
            # reads the board settles it until then.
            self.name = secrets.token_hex(6)
            self._marked_until = None
            raise
        finally:
            self._in_flight -= 1
            self._changed = True
            self._keep_up()

    def _keep_up(self) -> None:
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._run(), context=contextvars.Context())

    async def _mark(self) -> None:
        """A mark that outlasts this request and all its attempts."""
        needed = self._house.clock() + timedelta(seconds=remaining()) + _SKEW
        if self._marked_until is not None and self._marked_until >= needed:
            return
        async with self._marking:
            if self._marked_until is None or self._marked_until < needed:
                until = needed + _MARKED_AHEAD
                await voting.mark_dirty(self._house.table, self._slug, self.name, until)
                self._marked_until = until

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._changed or self._in_flight:
                await asyncio.sleep(max(SOON, self._began + EVERY - loop.time()))
                if await self.settle() and not (self._changed or self._in_flight):
                    await self._unmark()
        finally:
            self._running = None
            self._roster = None  # read again when somebody votes; most boards are quiet most of the time

    async def _unmark(self) -> None:
        async with self._marking:
            if self._changed or self._in_flight or self._marked_until is None:
                return
            # Taken back here first: whoever votes from now on waits for the lock and marks anew.
            self._marked_until = None
            try:
                await voting.clear_dirty(self._house.table, self._slug, self.name)
            except DynamoError as error:
                _log.warning("a mark was left; others will settle this board for a while", reason=str(error))

    async def settle(self) -> bool:
        """Settles now, or waits for the settling under way; whether everything counted before is settled."""
        if self.settling is None:
            task = asyncio.get_running_loop().create_task(self._settle(), context=contextvars.Context())
            self.settling = task
        return await asyncio.shield(self.settling)

    async def settle_anew(self) -> None:
        """A settling that begins now, for who wants to see what has just been changed."""
        if self.settling is not None:
            await self.settle()
        await self.settle()

    async def _settle(self) -> bool:
        self._began = asyncio.get_running_loop().time()
        self._changed = False
        try:
            roster = await voting.settle(self._house.table, self._slug, self._house.clock(), self._roster)
        except DynamoError as error:
            _log.warning("a board could not be settled; trying again", board=self._slug, reason=str(error))
            self._changed = True
            return False
        finally:
            self.settling = None
        if roster is None:
            return True
        self._standings.settled(roster, self._roster)
        self._roster = roster
        if not roster.complete:
            self._changed = True
            self._keep_up()
        return roster.complete

    async def close(self) -> None:
        running = self._running
        if running is None:
            return
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        try:
            async with asyncio.timeout(AT_THE_END):
                await self.settle_anew()
                if not self._changed:
                    await self._unmark()
        except TimeoutError:
            _log.warning("a board was left unsettled; its next reader settles it", board=self._slug)
        if self.settling is not None:
            self.settling.cancel()
