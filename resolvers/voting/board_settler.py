"""Settling: moving a board's tallies to its contenders' results within two seconds while votes come in.

One process at a time settles for all of them (see `datastore.voting.settling`); the others look whether it does. A
process that may have counted votes leaves a dirty mark on the board, so that another one settles them if it is killed.
Nobody settles while nobody votes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import structlog

from datastore import voting as voting_store
from datastore.dynamo import DynamoError, SingleFlight, shared_context
from datastore.voting import BoardResults
from resolvers.voting.process_mark import ProcessMark
from resolvers.voting.settling_pace import SettlingPace

if TYPE_CHECKING:
    from datastore.voting import Board, BoardWithMarks, DirtyMark
    from resolvers.context import Services

BURST_SECONDS = 0.2
"""The delay from the first vote on a quiet board to its settling, so that a burst is settled at once."""

LOOK_SECONDS = 0.25
"""How often a process with unsettled votes looks whether another one settles the board."""

DOUBTFUL_SECONDS = 5.0
"""How long the engine may still apply a vote, or a result, whose writing failed or was cancelled."""

SHUTDOWN_SECONDS = 5.0
"""How long a stopping process waits for its votes to be settled. Their next reader settles the rest."""

_MOST_ATTEMPTS = 20
_log = structlog.get_logger("ringside.standings")


class BoardSettler:
    """Settles the votes that this process counts on one board. `publish` takes the new results and those before."""

    def __init__(
        self, slug: str, services: Services, publish: Callable[[BoardResults, BoardResults | None], None]
    ) -> None:
        self._slug = slug
        self._services = services
        self._publish = publish
        self.mark = ProcessMark(slug, services)
        self.pace = SettlingPace(self.mark.process)
        self._in_flight = 0
        self._doubtful_until = float("-inf")
        self._changed = False
        """Whether votes may have been counted since this process last looked."""
        self._needed: int | None = None
        """The number of the first settling that includes all votes counted before that look; None once it completed."""
        self._was_incomplete = False
        """Whether the latest settling was not complete, or is not yet."""
        self._results: BoardResults | None = None
        self._loop: SingleFlight[str, None] = SingleFlight(shared_context)
        self._settlings: SingleFlight[str, bool] = SingleFlight(shared_context)

    @asynccontextmanager
    async def voting(self) -> AsyncIterator[None]:
        """Settle the votes cast inside in time, even if this process is killed after it has acknowledged them."""
        self._in_flight += 1
        marking = self.mark.cover()
        try:
            yield
            if marking is not None:
                await asyncio.shield(marking)
        except BaseException:
            self._doubtful_until = asyncio.get_running_loop().time() + DOUBTFUL_SECONDS
            raise
        finally:
            self._in_flight -= 1
            self.begin()

    def begin(self) -> None:
        """Settle the board beside the request."""
        self._changed = True
        self._loop.begin(self._slug, self._settle_until_quiet)

    async def _settle_until_quiet(self) -> None:
        await asyncio.sleep(BURST_SECONDS)
        try:
            await self.mark.remove(self._is_quiet)  # a settling that somebody waited for may have included everything
            while not self._is_quiet():
                await self._settlings.run(self._slug, self._settle_if_due)
                if self._is_quiet():
                    await self.mark.remove(self._is_quiet)
                else:
                    await self._show_life()
                    await asyncio.sleep(LOOK_SECONDS)
        finally:
            self._results = None  # most boards are quiet most of the time

    def _is_quiet(self) -> bool:
        return not (self._changed or self._is_busy() or self._is_owed)

    @property
    def _is_owed(self) -> bool:
        """Whether a settling is still to come: for votes counted before the last look, or after an incomplete one."""
        return self._needed is not None or self._was_incomplete

    def _is_busy(self) -> bool:
        """Whether the engine may be applying a vote, or a result of a settling that failed, right now."""
        return self._in_flight > 0 or asyncio.get_running_loop().time() < self._doubtful_until

    async def _show_life(self) -> None:
        try:
            await self.mark.renew()
        except DynamoError as error:
            _log.warning("a dirty mark was not renewed", board=self._slug, reason=str(error))

    # ── settling ──

    async def settle_overdue(self, completed: int) -> None:
        """Settle the board for a reader, or wait for another process, until a later settling has completed."""
        while not await self._settlings.run(self._slug, self._settle_if_due):
            if self.pace.completed != completed:
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
        """Look, and settle. Return whether all votes counted before are settled now."""
        try:
            current = await self._look()
            if current is None:
                return True
            if only_if_due and not self._is_owed and not current.is_dirty:
                return True
            if only_if_due and not self._is_due(current):
                return False
            return await self._settle(current)
        except DynamoError as error:
            _log.warning("a board could not be settled; trying again", board=self._slug, reason=str(error))
        except Exception:  # noqa: BLE001 - a fault must not end the settling of later votes
            _log.exception("a board could not be settled; trying again", board=self._slug)
        return False

    def _is_due(self, current: BoardWithMarks) -> bool:
        return self._was_incomplete or self.pace.is_due(current, self._services.clock())

    async def _look(self) -> BoardWithMarks | None:
        """The board as it is, and which settling includes the votes counted before this look."""
        began = asyncio.get_running_loop().time()
        busy, changed = self._is_busy(), self._changed
        self._changed = busy
        try:
            current = await voting_store.read_board_with_marks(self._services.table, self._slug)
        except BaseException:
            self._changed = self._changed or changed
            raise
        if current is None:
            self._needed, self._was_incomplete = None, False
            return None
        self.pace.observe(current, began)
        if changed or busy:
            self._needed = current.board.claims + 1
        self._note_completed(current.board.completed)
        return current

    def _note_completed(self, completed: int) -> None:
        if self._needed is not None and completed >= self._needed:
            self._needed = None

    async def _settle(self, current: BoardWithMarks) -> bool:
        began = asyncio.get_running_loop().time()
        claimed = await voting_store.claim_settling(self._services.table, current.board, self._services.clock())
        if claimed is None:
            return False
        self.pace.observe_claim(claimed.claims, began)
        dead_marks = list(self.pace.dead_marks(current))
        # A killed process may have written results that the cached ones lack.
        results = await self._carry_out(claimed, None if dead_marks else self._results)
        self._publish(results, self._results)
        self._results = results
        if not results.complete:
            self._loop.begin(self._slug, self._settle_until_quiet)  # it may have been for a reader
            return False
        self._was_incomplete = False
        self.pace.observe_completion(claimed.claims, began)
        self._note_completed(claimed.claims)
        await self._delete_marks(dead_marks)
        return True

    async def _carry_out(self, claimed: Board, cached: BoardResults | None) -> BoardResults:
        self._was_incomplete = True
        try:
            return await voting_store.settle(self._services.table, claimed, cached)
        except BaseException:
            self._doubtful_until = asyncio.get_running_loop().time() + DOUBTFUL_SECONDS
            self.begin()
            raise

    async def _delete_marks(self, dead_marks: Iterable[DirtyMark]) -> None:
        """Delete the marks of processes that have gone, now that their votes are settled."""
        for mark in dead_marks:
            await voting_store.delete_mark(self._services.table, mark)

    async def close(self) -> None:
        if self._slug in self._loop:
            await self._loop.close()
            try:
                async with asyncio.timeout(SHUTDOWN_SECONDS):
                    await self.settle_anew()
                    await self.mark.remove(self._is_quiet)
            except TimeoutError:
                _log.warning("a board was left unsettled; its next reader settles it", board=self._slug)
        await self._settlings.close()
        await self._loop.close()  # which a settling that was cut off has begun again
        await self.mark.close()
