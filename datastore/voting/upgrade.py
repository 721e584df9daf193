"""The upgrade of boards from layout 1: results in blocks of their own, and more shards for the tallies.

Old items stay as they are: an editor's contender keeps its counts and its entry in `LEADERBOARD#<slug>`, which only
processes of the first release read and settle. So they may run beside this release: both read the same tallies, and
this release settles again whenever an old process has settled or changed a contender.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from datastore.dynamo import ConditionFailed
from datastore.dynamo.conditions import absent, present, where
from datastore.voting.boards import BOARD, Board, all_boards, read_board_with_marks
from datastore.voting.contenders import RESULT, Contender, all_contenders
from datastore.voting.resharding import ensure_shards_are_read
from datastore.voting.settling import claim_settling, settle

if TYPE_CHECKING:
    from datastore.dynamo import Table

_AT_ONCE = 16


async def upgrade(table: Table, advance: Callable[[int], None]) -> None:
    """Move this part's items of layout 1 to layout 2: resumable, idempotent, safe beside running processes."""
    async for board in all_boards(table):
        await ensure_shards_are_read(table, board)
        current = await read_board_with_marks(table, board.slug)
        if current is not None and not current.board.is_covered:
            await _cover(table, current.board)
        advance(board.size)


async def _cover(table: Table, board: Board) -> None:
    if board.claims:  # a process of this release has settled it: so do we
        claimed = await claim_settling(table, board, datetime.now(UTC))
        if claimed is not None:
            await settle(table, claimed)
        return
    await _copy(table, [contender async for contender in all_contenders(table, board.slug)])
    covered = {"covered_revision": board.revision, "covered_settled": board.settled}
    with suppress(ConditionFailed):
        unclaimed = absent("claims") | where(claims=0)
        await table.write(BOARD.change(BOARD.item_key(board), values=covered, when=present() & unclaimed))


async def _copy(table: Table, contenders: list[Contender]) -> None:
    """The contenders with the counts that the first release has settled. What it left unsettled is marked as dirty."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def copy(contender: Contender) -> None:
        copied = RESULT.put(replace(contender, version=0), when=absent() | where(version=0))
        async with slots:
            with suppress(ConditionFailed):  # this release has changed it since
                await table.write(copied)

    await asyncio.gather(*map(copy, contenders))
