"""What one process keeps of the boards: their state, their rows for some moments, and the settling of their votes.

Law: a vote that was acknowledged two seconds ago is in the rows that `board`, and what is read after it, shows: also
when the process that counted it was killed. A board is settled at most every two seconds by one process, one settling
at a time, and not at all while nobody votes.
"""

from __future__ import annotations

import asyncio
import secrets
from bisect import bisect_right
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import structlog

from datastore import voting as voting_store
from datastore.dynamo import DynamoError, SingleFlight, remaining, shared_context
from datastore.voting import Board, BoardRows, BoardWithMarks, Contender
from resolvers.loading.loader import Loader, read_each

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
RosterOf: TypeAlias = tuple[str, tuple[int, int]]


class BoardCache:
    """The boards as this process knows them."""

    def __init__(self, services: Services) -> None:
        self._house = services
        boards: Loader[str, BoardWithMarks] = Loader(self._read_boards, ttl=0.25)
        contenders: Loader[Place, Contender] = Loader(self._read_contenders, ttl=0.25)
        pictures: Loader[Place, str] = Loader(self._read_pictures, ttl=5.0, size=1000)
        slices: Loader[SliceOf, Slice[Contender]] = Loader(self._read_slices, ttl=0.25, size=200)
        rosters: Loader[RosterOf, BoardRows] = Loader(self._read_rosters, ttl=60.0, size=16)
        self.boards = services.loaders.add("boards", boards)
        self.contenders = services.loaders.add("contenders", contenders)
        self.pictures = services.loaders.add("pictures", pictures)
        self._slices = services.loaders.add("leaderboard_slices", slices)
        self._rosters = services.loaders.add("rosters", rosters)
        self._tides: dict[str, BoardSettler] = {}

    # ── what is read, together and never twice at a time ──

    async def _read_boards(self, slugs: Sequence[str]) -> Mapping[str, BoardWithMarks | Exception]:
        return await read_each(slugs, partial(voting_store.read_board_with_marks, self._house.table, consistent=True))

    async def _read_contenders(self, places: Sequence[Place]) -> Mapping[Place, Contender]:
        return await voting_store.read_contenders(self._house.table, places)

    async def _read_pictures(self, places: Sequence[Place]) -> Mapping[Place, str]:
        """Also that a contender has none, as an empty text: boards without pictures would be read again and again."""
        return {**dict.fromkeys(places, ""), **await voting_store.read_pictures(self._house.table, places)}

    async def _read_slices(self, wanted: Sequence[SliceOf]) -> Mapping[SliceOf, Slice[Contender] | Exception]:
        return await read_each(wanted, self._read_slice)

    async def _read_slice(self, wanted: SliceOf) -> Slice[Contender]:
        slug, _, position, limit = wanted
        return await voting_store.read_leaderboard_slice(self._house.table, slug, position, limit)

    async def _read_rosters(self, wanted: Sequence[RosterOf]) -> Mapping[RosterOf, BoardRows | Exception]:
        return await read_each(wanted, self._read_roster)

    async def _read_roster(self, wanted: RosterOf) -> BoardRows | None:
        now = await self.boards.load(wanted[0])
        return await voting_store.read_board_rows(self._house.table, now.board) if now is not None else None

    # ── what others ask for ──

    async def board(self, slug: str) -> Board | None:
        """A board whose rows are no more than two seconds behind its votes."""
        now = await self.boards.load(slug)
        if now is None:
            return None
        tide = self._tides.get(slug)
        under_way = tide is not None and tide.is_settling
        left = now.unsettled_by_others(tide.name if tide else "") and self._overdue(now.board)
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

    def settled(self, roster: BoardRows, before: BoardRows | None) -> None:
        """Takes over what a settling found, so that this process shows it at once."""
        board = roster.board
        self.boards.forget(board.slug)
        self._rosters.put((board.slug, board.stamp), roster)
        for ordinal, row in roster.rows.items():
            if before is None or before.rows.get(ordinal) is not row:
                cached = self.contenders.cached((board.slug, ordinal))
                # An editor may have changed it since the settling read it.
                if cached is None or cached.version <= row.version:
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
        self._roster: BoardRows | None = None
        self._upkeep: SingleFlight[str, None] = SingleFlight(shared_context)
        self._settlings: SingleFlight[str, bool] = SingleFlight(shared_context)

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
            self._upkeep.begin(self._slug, self._keep_up)

    async def _mark(self) -> None:
        """A mark that outlasts this request and all its attempts."""
        needed = self._house.clock() + timedelta(seconds=remaining()) + _SKEW
        if self._marked_until is not None and self._marked_until >= needed:
            return
        async with self._marking:
            if self._marked_until is None or self._marked_until < needed:
                until = needed + _MARKED_AHEAD
                await voting_store.mark_dirty(self._house.table, self._slug, self.name, until)
                self._marked_until = until

    async def _keep_up(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._changed or self._in_flight:
                await asyncio.sleep(max(SOON, self._began + EVERY - loop.time()))
                if await self.settle() and not (self._changed or self._in_flight):
                    await self._unmark()
        finally:
            self._roster = None  # read again when somebody votes; most boards are quiet most of the time

    async def _unmark(self) -> None:
        async with self._marking:
            if self._changed or self._in_flight or self._marked_until is None:
                return
            # Taken back here first: whoever votes from now on waits for the lock and marks anew.
            self._marked_until = None
            try:
                await voting_store.clear_dirty(self._house.table, self._slug, self.name)
            except DynamoError as error:
                _log.warning("a mark was left; others will settle this board for a while", reason=str(error))

    async def settle(self) -> bool:
        """Settles now, or waits for the settling under way; whether everything counted before is settled."""
        return await self._settlings.run(self._slug, self._settle)

    @property
    def is_settling(self) -> bool:
        return self._slug in self._settlings

    async def settle_anew(self) -> None:
        """A settling that begins now, for who wants to see what has just been changed."""
        if self.is_settling:
            await self.settle()
        await self.settle()

    async def _settle(self) -> bool:
        self._began = asyncio.get_running_loop().time()
        self._changed = False
        try:
            roster = await voting_store.settle(self._house.table, self._slug, self._house.clock(), self._roster)
        except DynamoError as error:
            _log.warning("a board could not be settled; trying again", board=self._slug, reason=str(error))
            self._changed = True
            return False
        except Exception:  # noqa: BLE001 - a fault must not end the settling of later votes
            _log.exception("a board could not be settled; trying again", board=self._slug)
            self._changed = True
            return False
        if roster is None:
            return True
        self._standings.settled(roster, self._roster)
        self._roster = roster
        if not roster.complete:
            self._changed = True
            self._upkeep.begin(self._slug, self._keep_up)
        return roster.complete

    async def close(self) -> None:
        if self._slug not in self._upkeep:
            return
        await self._upkeep.close()
        try:
            async with asyncio.timeout(AT_THE_END):
                await self.settle_anew()
                if not self._changed:
                    await self._unmark()
        except TimeoutError:
            _log.warning("a board was left unsettled; its next reader settles it", board=self._slug)
        await self._settlings.close()
