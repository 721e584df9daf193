"""Settling: the sums over a board's shards become its results (see `contenders`).

The process that has the board's lease settles for all of them. Settling takes milliseconds, so a lease that is not
released is acquired by another process soon, whether its holder is dead or only slow; and each settling is a new term.

Guarantee: settlings have their effects one after the other, in the order of their terms. A settling has one effect, a
transaction: it writes the results, and on the condition that no later settling has begun, it releases the lease. The
sums are read after the settling has begun. So every settling includes all votes that were acknowledged before, and none
brings back a vote that was voided. `Board.settled` is the term of the latest one.

A process that counts votes marks the board as dirty, and deletes its mark once its votes are settled. The mark of a
killed process stays. Processes that read the board then settle it.
"""

import asyncio
from datetime import datetime

from datastore.dynamo import Table
from datastore.jobs.leases import Held
from datastore.voting.boards import Board
from datastore.voting.contenders import RESULTS, ResultsBlock, read_results_blocks
from datastore.voting.votes import read_contender_sums


async def settle(table: Table, lease: Held[Board], now: datetime) -> list[ResultsBlock]:
    """Carry out the settling that acquiring the board's lease has begun, and return the board's results.

    LeaseLost if another one has begun since.
    """
    board = lease.record
    keys = [(board.slug, block) for block in range(board.blocks)]
    sums, before = await asyncio.gather(read_contender_sums(table, board), read_results_blocks(table, keys))
    after = [ResultsBlock.of(*key, sums) for key in keys]
    changed = [RESULTS.put(block) for block in after if block not in before.values()]
    votes = sum(each.wins for each in sums.values()) + sum(each.ties for each in sums.values()) // 2
    await lease.release(*changed, votes=votes, settled=board.term, settled_at=now)
    return after
