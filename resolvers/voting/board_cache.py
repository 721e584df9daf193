"""The boards of one process: their state and results, cached for moments, and the settling of their votes.

Guarantee: a vote acknowledged two seconds ago is included in what `board`, and every later read, shows, even if the
process that counted it was killed. The leaderboard's index may be behind by its own delay. A reader waits for a
settling only if one is overdue, and only for a while.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, TypeAlias

from datastore import voting as voting_store
from datastore.dynamo import DynamoError, read_each
from datastore.voting import Board, BoardResults, BoardWithMarks, Contender, ContenderChange, Details
from resolvers.voting.board_settler import BoardSettler

if TYPE_CHECKING:
    from datastore.dynamo import Slice
    from resolvers.requests.context import Services

PATIENCE = 2.0
"""How long a reader waits for an overdue settling. It takes milliseconds, unless its process is killed in between."""

KNOWN_SECONDS = 5.0
"""The age at which votes are no longer judged by the last state of a board, so that all know a change of its hours."""

_MOST_BOARDS = 1000

ContenderKey: TypeAlias = tuple[str, int]
SliceKey: TypeAlias = tuple[str, tuple[int, int], int, str | None, int]
ResultsKey: TypeAlias = tuple[str, tuple[int, int]]


class BoardCache:
    """The boards as this process last read them."""

    def __init__(self, services: Services) -> None:
        self._services = services
        cache = services.cache
        self.boards = cache.batches("boards", self._read_boards, age=0.25, kept=inf, most=_MOST_BOARDS)
        self.contenders = cache.batches("contenders", self._read_contenders, age=0.5)
        self.details = cache.batches("contender_details", self._read_details, age=5.0)
        self.pictures = cache.batches("pictures", self._read_pictures, age=5.0, most=1000)
        self._slices = cache.each("leaderboard_slices", self._read_slice, age=0.25, most=200)
        self._results = cache.each("board_results", self._read_board_results, age=60.0, most=16)
        self._settlers: dict[str, BoardSettler] = {}

    # ── batch reads ──

    async def _read_boards(self, slugs: Sequence[str]) -> Mapping[str, BoardWithMarks | Exception]:
        table = self._services.table
        new = [slug for slug in slugs if self.boards.known(slug, inf) is None]
        if len(new) > 1:  # they may be invented: a Query each is for those that exist
            existing = await voting_store.existing_boards(table, new)
            slugs = [slug for slug in slugs if slug not in new or slug in existing]
        return await read_each(slugs, lambda slug: voting_store.read_board_with_marks(table, slug))

    async def _read_contenders(self, keys: Sequence[ContenderKey]) -> Mapping[ContenderKey, Contender]:
        return await voting_store.read_contenders(self._services.table, keys)

    async def _read_details(self, keys: Sequence[ContenderKey]) -> Mapping[ContenderKey, Details]:
        """Map a contender without details to empty ones, since absence is not kept."""
        empty = {key: Details(*key) for key in keys}
        return {**empty, **await voting_store.read_details(self._services.table, keys)}

    async def _read_pictures(self, keys: Sequence[ContenderKey]) -> Mapping[ContenderKey, str]:
        """Map a contender without a picture to an empty text, since absence is not kept."""
        return {**dict.fromkeys(keys, ""), **await voting_store.read_pictures(self._services.table, keys)}

    async def _read_slice(self, wanted: SliceKey) -> Slice[Contender]:
        slug, _, blocks, position, limit = wanted
        return await voting_store.read_leaderboard_slice(self._services.table, slug, blocks, position, limit)

    async def _read_board_results(self, wanted: ResultsKey) -> BoardResults | None:
        cached = await self.boards.load(wanted[0])
        return await voting_store.read_board_results(self._services.table, cached.board) if cached else None

    # ── reads ──

    async def board(self, slug: str) -> Board | None:
        """A board whose results are at most two seconds older than its votes."""
        cached = await self.boards.load(slug)
        if cached is None:
            return None
        if cached.is_dirty and self.settler(slug).is_overdue(cached):
            await self._wait_for_settling(self.settler(slug))
            cached = await self.boards.load(slug)
        return cached.board if cached else None

    def known(self, slug: str) -> Board | None:
        """A board as this process last read it, at most some seconds ago."""
        known = self.boards.known(slug, KNOWN_SECONDS)
        return known.board if known else None

    def refresh(self, slug: str) -> Awaitable[Board | None]:
        """Begin to read a board that a request shows later; None if it could not be read."""
        return asyncio.ensure_future(self._refreshed(slug))

    async def _refreshed(self, slug: str) -> Board | None:
        with suppress(DynamoError):
            cached = await self.boards.load(slug)
            return cached.board if cached else None
        return None

    async def _wait_for_settling(self, settler: BoardSettler) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await settler.settle_overdue()

    async def contender(self, board: str, ordinal: int) -> Contender | None:
        """A contender from the results that this process has settled, unless somebody has since, or from a read."""
        cached = self.boards.known(board)
        settled = self._results.known((board, cached.board.stamp)) if cached else None
        known = settled.results.get(ordinal) if settled else None
        return known or await self.contenders.load((board, ordinal))

    async def leaders(self, board: Board, position: str | None, limit: int) -> Slice[Contender]:
        leaders = await self._slices.load((board.slug, board.stamp, board.blocks, position, limit))
        assert leaders is not None  # noqa: S101 - a slice may be empty, but is always there
        return leaders

    async def rank(self, board: Board, score: int) -> int:
        """One more than the number of contenders with a higher score."""
        results = await self._results.load((board.slug, board.stamp))
        scores = results.scores if results else ()
        return 1 + len(scores) - bisect_right(scores, score)

    # ── changes ──

    def changed(self, board: str, contender: Contender | None = None, change: ContenderChange | None = None) -> None:
        """Take over this process's own change of a board or a contender."""
        self.boards.forget(board)
        if contender is not None:
            self.contenders.put((board, contender.ordinal), contender)
            self.details.forget((board, contender.ordinal))
            if change is not None and change.replaces_picture:
                self.pictures.put((board, contender.ordinal), change.svg or "")

    def settler(self, slug: str) -> BoardSettler:
        settler = self._settlers.get(slug)
        if settler is None:
            settler = self._settlers[slug] = BoardSettler(slug, self._services, self._publish)
        return settler

    def _publish(self, results: BoardResults, before: BoardResults | None) -> None:
        """Take over the outcome of a settling, so that this process shows it at once."""
        board = results.board
        self.boards.outdate(board.slug)  # the hours by which votes are judged are the same
        self._results.put((board.slug, board.stamp), results)
        for ordinal, result in results.results.items():
            if before is None or before.results.get(ordinal) is not result:
                cached = self.contenders.known((board.slug, ordinal))
                # An editor may have changed the contender since the settling read it.
                if cached is None or cached.version <= result.version:
                    self.contenders.put((board.slug, ordinal), result)

    async def close(self) -> None:
        """Settle the votes that this process has counted."""
        await asyncio.gather(*(settler.close() for settler in self._settlers.values()))
