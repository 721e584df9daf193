"""The boards of one process: their state and results, cached for moments, and the settling of their votes.

Guarantee: a vote acknowledged two seconds ago is included in what `board`, and every later read, shows, even if the
process that counted it was killed. A reader waits for a
settling only if one is overdue, and only for a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, TypeAlias

from datastore import voting as voting_store
from datastore.dynamo import DynamoError, read_each
from datastore.voting import (
    Board,
    BoardResults,
    BoardWithMarks,
    Contender,
    ContenderChange,
    CountedContender,
    Counts,
    Details,
    ResultsBlock,
)
from datastore.voting.boards import BLOCK_SIZE
from resolvers.voting.board_settler import BoardSettler

if TYPE_CHECKING:
    from resolvers.requests.context import Services

PATIENCE = 2.0
"""How long a reader waits for an overdue settling. It takes milliseconds, unless its process is killed in between."""

KNOWN_SECONDS = 5.0
"""The age at which votes are no longer judged by the last state of a board, so that all know a change of its hours."""

_MOST_BOARDS = 1000

ContenderKey: TypeAlias = tuple[str, int]
CountsKey: TypeAlias = tuple[str, int, int]
"""A board's slug, the term of a settling, and a block."""
NamesKey: TypeAlias = tuple[str, int, int]
"""A board's slug, its revision, and how many blocks it has."""
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
        self._counts = cache.batches("contender_counts", self._read_counts, age=60.0, most=200)
        self._by_name = cache.each("contenders_by_name", self._read_by_name, age=60.0, most=16)
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

    async def _read_counts(self, keys: Sequence[CountsKey]) -> Mapping[CountsKey, Sequence[Counts]]:
        blocks = await voting_store.read_results_blocks(
            self._services.table, list({(slug, block) for slug, _, block in keys})
        )
        return {(slug, term, block): blocks[slug, block].counts for slug, term, block in keys}

    async def _read_by_name(self, wanted: NamesKey) -> Sequence[Contender]:
        slug, _, blocks = wanted
        contenders = await voting_store.all_contenders(self._services.table, slug, blocks)
        return sorted(contenders.values(), key=lambda each: each.place_by_name)

    async def _read_board_results(self, wanted: ResultsKey) -> BoardResults | None:
        cached = await self.boards.load(wanted[0])
        if cached is None:
            return None
        board = cached.board
        keys = [(board.slug, board.settled, block) for block in range(board.blocks)]
        by_name, counts = await asyncio.gather(
            self._by_name.load((board.slug, board.revision, board.blocks)), self._counts.load_many(keys)
        )
        return BoardResults(by_name or (), [block or () for block in counts])

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

    def last_known(self, slug: str) -> Board | None:
        """A board as this process last read it, however long ago."""
        known = self.boards.known(slug, inf)
        return known.board if known else None

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

    async def contender(self, board: Board, ordinal: int) -> CountedContender | None:
        """A contender with its counts in the board's state. One that has just joined elsewhere is read consistently."""
        key = (board.slug, ordinal)
        found, (block,) = await asyncio.gather(
            self.contenders.load(key), self._counts.load_many([(board.slug, board.settled, ordinal // BLOCK_SIZE)])
        )
        found = found or await voting_store.read_contender(self._services.table, *key)
        return voting_store.counted(found, block or ()) if found else None

    def prefetch(self, board: Board, *ordinals: int) -> None:
        """Begin to read contenders that a request shows later."""
        for ordinal in ordinals:
            self.contenders.prefetch((board.slug, ordinal))
            self._counts.prefetch((board.slug, board.settled, ordinal // BLOCK_SIZE))

    async def counted(self, board: Board, contenders: Sequence[Contender]) -> list[CountedContender]:
        """Contenders of a board with their counts in its state."""
        blocks = {each.block: (board.slug, board.settled, each.block) for each in contenders}
        counts = dict(zip(blocks, await self._counts.load_many(list(blocks.values())), strict=True))
        return [voting_store.counted(each, counts[each.block] or ()) for each in contenders]

    async def results(self, board: Board) -> BoardResults:
        results = await self._results.load((board.slug, board.stamp))
        return results or BoardResults((), ())

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

    def _publish(self, board: Board, results: Sequence[ResultsBlock]) -> None:
        """Take over the outcome of a settling, so that this process shows it at once."""
        self.boards.outdate(board.slug)  # the hours by which votes are judged are the same
        for block in results:
            self._counts.put((board.slug, board.settled, block.block), block.counts)

    async def close(self) -> None:
        """Settle the votes that this process has counted."""
        await asyncio.gather(*(settler.close() for settler in self._settlers.values()))
