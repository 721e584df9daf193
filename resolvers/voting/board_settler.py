"""Settling: moving a board's tallies to its contenders' results within two seconds while votes come in.

One process at a time settles for all of them (see `datastore.voting.settling`); the others look whether it does. A
process that may have counted votes leaves a dirty mark on the board, so that another one settles them if it is killed.
Nobody settles while nobody votes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from datastore import voting as voting_store
from datastore.dynamo import DynamoError, SingleFlight, shared_context
from datastore.jobs.leases import LeaseLost
from datastore.voting import BoardWithMarks, DirtyMark, ResultsBlock

if TYPE_CHECKING:
    from datastore.jobs.leases import Held
    from datastore.voting import Board
    from resolvers.requests.context import Services

BURST_SECONDS = 0.2
"""The delay from the first vote on a quiet board to its settling, so that a burst is settled at once."""

LOOK_SECONDS = 0.25
"""How often a process with unsettled votes looks whether another one settles the board."""

SETTLING_INTERVAL = 1.5
"""Seconds from one settling to the next, of all processes together. Others notice one a quarter of a second late."""

STALENESS = 2.0
"""Seconds after which an acknowledged vote is shown."""

DOUBTFUL_SECONDS = 5.0
"""How long the engine may still apply a vote whose writing failed or was cancelled."""

SHUTDOWN_SECONDS = 5.0
"""How long a stopping process waits for its votes to be settled. Their next reader settles the rest."""

_MOST_ATTEMPTS = 20
_log = structlog.get_logger("ringside.standings")


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
            mark = DirtyMark(self._slug, self._leases.holder, self._marks)
            self._mark = await voting_store.put_mark(self._leases, mark)

    async def _renew_mark(self) -> None:
        async with self._marking:
            try:
                if self._mark is not None:
                    await self._mark.renew()
            except LeaseLost:
                self._mark = None

    async def _delete_mark(self) -> None:
        """Delete the mark, if the board still is quiet when nothing else is being written."""
        async with self._marking:
            if self._mark is None or not self._is_quiet():
                return
            # Forgotten before it is deleted: the next vote waits for the lock and marks the board again.
            mark, self._mark = self._mark, None
            try:
                await voting_store.delete_mark(self._services.table, mark.record)
            except DynamoError as error:
                _log.warning("a dirty mark was not deleted; readers settle this board for a while", reason=str(error))

    def begin(self) -> None:
        """Settle the board beside the request."""
        self._changed = True
        self._loop.begin(self._slug, self._settle_until_quiet)

    async def _settle_until_quiet(self) -> None:
        await asyncio.sleep(BURST_SECONDS)
        await self._delete_mark()  # a settling that somebody waited for may have included everything
        while not self._is_quiet():
            await self._settlings.run(self._slug, self._settle_if_due)
            if self._is_quiet():
                await self._delete_mark()
            else:
                await self._renew_mark()
                await asyncio.sleep(LOOK_SECONDS)

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

        Where this process cannot know, because it has not looked for a while, the clock of the last settling decides.
        So a wrong clock makes a settling too early, or late once, but never prevents one.
        """
        age = voting_store.settling_age(self._leases, board)
        if age.at_most < seconds or age.at_least >= seconds:
            return age.at_most >= seconds
        return board.settled_at is None or board.settled_at < self._services.clock() - timedelta(seconds=seconds)

    async def settle_overdue(self) -> None:
        """Settle the board for a reader, or wait for another process, until a later settling has completed."""
        before = self._settled
        while not await self._settlings.run(self._slug, self._settle_if_due):
            if self._settled != before:
                return
            await asyncio.sleep(LOOK_SECONDS / 2)

    async def settle_anew(self) -> None:
        """A settling that starts after this call, so that it includes what was just written."""
        if self.is_settling:
            await self._settlings.run(self._slug, self._settle_now)
        for _ in range(_MOST_ATTEMPTS):
            if await self._settlings.run(self._slug, self._settle_now):
                return
            await asyncio.sleep(LOOK_SECONDS / 5)

    @property
    def is_settling(self) -> bool:
        return self._slug in self._settlings

    async def _settle_if_due(self) -> bool:
        return await self._attempt(only_if_due=True)

    async def _settle_now(self) -> bool:
        return await self._attempt(only_if_due=False)

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
        """Whether the next settling may begin. One that is under way for so long is not waited for."""
        if board.holder == self._leases.holder:
            return True  # this process's own has failed
        if board.holder is not None:
            return voting_store.settling_age(self._leases, board).at_least >= SETTLING_INTERVAL
        return self._is_older(board, SETTLING_INTERVAL)

    async def _read_current(self) -> BoardWithMarks | None:
        """The board as it is, and which settling includes the votes counted before this read."""
        busy, changed = self._is_busy(), self._changed
        self._changed = busy
        try:
            current = await voting_store.read_board_with_marks(self._services.table, self._slug)
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
        dead_marks = [mark for mark in current.marks if voting_store.is_dead(self._leases, mark)]
        lease = await voting_store.begin_settling(self._leases, current.board)
        if lease is None:
            return False
        results = await voting_store.settle(self._services.table, lease, self._services.clock())
        self._publish(lease.record, results)
        self._note_settled(lease.record.settled)
        for mark in dead_marks:  # of processes that have gone: their votes are settled now
            await voting_store.delete_mark(self._services.table, mark)
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
