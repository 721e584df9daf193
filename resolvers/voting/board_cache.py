"""The boards of one process: their state and rows, cached for moments, and the settling of their votes.

Law: a vote acknowledged two seconds ago is included in what `board`, and every later read, shows, even if the process
that counted it was killed.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from datastore import voting as voting_store
from datastore.voting import Board, BoardRows, BoardWithMarks, Contender
from resolvers.loading.loader import Loader, read_each
from resolvers.voting.board_settler import SETTLING_INTERVAL, BoardSettler

if TYPE_CHECKING:
    from datastore.dynamo import Slice
    from resolvers.context import Services

OWN_PATIENCE = 0.5
"""How long a reader waits for this process's settling; a small board's takes a few milliseconds."""

OTHERS_PATIENCE = 1.5
"""The same for votes that another process left unsettled, which may be older."""

ContenderKey: TypeAlias = tuple[str, int]
SliceKey: TypeAlias = tuple[str, tuple[int, int], str | None, int]
RowsKey: TypeAlias = tuple[str, tuple[int, int]]


class BoardCache:
    """The boards as this process last read them."""

    def __init__(self, services: Services) -> None:
        self._services = services
        boards: Loader[str, BoardWithMarks] = Loader(self._read_boards, ttl=0.25)
        contenders: Loader[ContenderKey, Contender] = Loader(self._read_contenders, ttl=0.25)
        pictures: Loader[ContenderKey, str] = Loader(self._read_pictures, ttl=5.0, size=1000)
        slices: Loader[SliceKey, Slice[Contender]] = Loader(self._read_slices, ttl=0.25, size=200)
        board_rows: Loader[RowsKey, BoardRows] = Loader(self._read_rows, ttl=60.0, size=16)
        self.boards = services.loaders.add("boards", boards)
        self.contenders = services.loaders.add("contenders", contenders)
        self.pictures = services.loaders.add("pictures", pictures)
        self._slices = services.loaders.add("leaderboard_slices", slices)
        self._rows = services.loaders.add("board_rows", board_rows)
        self._settlers: dict[str, BoardSettler] = {}

    # ── batch reads ──

    async def _read_boards(self, slugs: Sequence[str]) -> Mapping[str, BoardWithMarks | Exception]:
        return await read_each(
            slugs, partial(voting_store.read_board_with_marks, self._services.table, consistent=True)
        )

    async def _read_contenders(self, keys: Sequence[ContenderKey]) -> Mapping[ContenderKey, Contender]:
        return await voting_store.read_contenders(self._services.table, keys)

    async def _read_pictures(self, keys: Sequence[ContenderKey]) -> Mapping[ContenderKey, str]:
        """Maps a contender without a picture to an empty text, since absence is not cached."""
        return {**dict.fromkeys(keys, ""), **await voting_store.read_pictures(self._services.table, keys)}

    async def _read_slices(self, wanted: Sequence[SliceKey]) -> Mapping[SliceKey, Slice[Contender] | Exception]:
        return await read_each(wanted, self._read_slice)

    async def _read_slice(self, wanted: SliceKey) -> Slice[Contender]:
        slug, _, position, limit = wanted
        return await voting_store.read_leaderboard_slice(self._services.table, slug, position, limit)

    async def _read_rows(self, wanted: Sequence[RowsKey]) -> Mapping[RowsKey, BoardRows | Exception]:
        return await read_each(wanted, self._read_board_rows)

    async def _read_board_rows(self, wanted: RowsKey) -> BoardRows | None:
        cached = await self.boards.load(wanted[0])
        return await voting_store.read_board_rows(self._services.table, cached.board) if cached else None

    # ── reads ──

    async def board(self, slug: str) -> Board | None:
        """A board whose rows are at most two seconds older than its votes."""
        cached = await self.boards.load(slug)
        if cached is None:
            return None
        settler = self._settlers.get(slug)
        others_are_late = cached.unsettled_by_others(settler.name if settler else "") and self._overdue(cached.board)
        if others_are_late or (settler is not None and settler.is_settling):
            await self._wait_for_settling(self.settler(slug), OTHERS_PATIENCE if others_are_late else OWN_PATIENCE)
            cached = await self.boards.load(slug)
        return cached.board if cached else None

    def _overdue(self, board: Board) -> bool:
        latest = self._services.clock() - timedelta(seconds=SETTLING_INTERVAL)
        return board.settled_at is None or board.settled_at < latest

    async def _wait_for_settling(self, settler: BoardSettler, patience: float) -> None:
        try:
            async with asyncio.timeout(patience):
                await settler.settle()
        except TimeoutError:
            return

    async def leaders(self, board: Board, position: str | None, limit: int) -> Slice[Contender]:
        leaders = await self._slices.load((board.slug, board.stamp, position, limit))
        assert leaders is not None  # noqa: S101 - a slice may be empty, but is always there
        return leaders

    async def rank(self, board: Board, score: int) -> int:
        """One more than the number of contenders with a higher score."""
        rows = await self._rows.load((board.slug, board.stamp))
        scores = rows.scores if rows else ()
        return 1 + len(scores) - bisect_right(scores, score)

    # ── changes ──

    def changed(self, board: str, contender: Contender | None = None) -> None:
        """Takes over this process's own change of a board or a contender."""
        self.boards.forget(board)
        if contender is not None:
            self.contenders.put((board, contender.ordinal), contender)
            self.pictures.forget((board, contender.ordinal))

    def settler(self, slug: str) -> BoardSettler:
        return self._settlers.setdefault(slug, BoardSettler(slug, self._services, self._publish))

    def _publish(self, rows: BoardRows, before: BoardRows | None) -> None:
        """Takes over the result of a settling, so that this process shows it at once."""
        board = rows.board
        self.boards.forget(board.slug)
        self._rows.put((board.slug, board.stamp), rows)
        for ordinal, row in rows.rows.items():
            if before is None or before.rows.get(ordinal) is not row:
                cached = self.contenders.cached((board.slug, ordinal))
                # An editor may have changed the contender since the settling read it.
                if cached is None or cached.version <= row.version:
                    self.contenders.put((board.slug, ordinal), row)

    async def close(self) -> None:
        """Settles the votes that this process has counted."""
        await asyncio.gather(*(settler.close() for settler in self._settlers.values()))
