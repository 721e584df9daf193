"""Giving every prediction of a locked event its share.

An erased member's prediction moves to another name in its shard, so a pass over the shard may see it twice, not at all,
or where it no longer is when it is credited. It keeps its token, which no other has, and the gates count predictions
exactly. So a pass has credited all of them if it saw as many as there are, all with different tokens, and none was
gone; otherwise it is made again, up to `_MOST_PASSES` times.
"""

from __future__ import annotations

import asyncio
from array import array
from collections import Counter
from collections.abc import Callable

from datastore import pickem as pickem_store
from datastore.dynamo import Table
from datastore.pickem import Credit, Event, Histogram, Prediction, Share
from resolvers.jobs.running import JobRun

PREDICTIONS_AT_ONCE = 100
"""Enough to keep an engine busy, few enough to use little memory."""

_MOST_PASSES = 5
"""A further pass helps only if members were erased during the last one. Five are enough, whatever a gate counts."""


class _Tokens:
    """Counts different tokens. It keeps eight bytes of each, since an event may have a million predictions."""

    def __init__(self) -> None:
        self._hashes = [array("q") for _ in range(64)]

    def add(self, token: str) -> None:
        number = hash(token)
        self._hashes[number % 64].append(number)

    async def count(self) -> int:
        """In pieces, between which other requests run."""
        different = 0
        for hashes in self._hashes:
            different += len(set(hashes))
            await asyncio.sleep(0)
        return different


async def credit_every_prediction(
    table: Table, event: Event, share_of: Callable[[Prediction], Share], run: JobRun
) -> Histogram:
    """Credit all predictions, which the job counts; how many of them have how many points."""
    for _ in range(_MOST_PASSES):
        run.total = (await pickem_store.read_pick_counts(table, event.id)).predictions
        counts, is_complete = await _credit_once(table, event, share_of, run)
        if is_complete:
            break
    return Histogram.of(counts)


async def _credit_once(
    table: Table, event: Event, share_of: Callable[[Prediction], Share], run: JobRun
) -> tuple[Counter[int], bool]:
    """The points of the predictions that were seen, and whether these were all of them."""
    counts, tokens = Counter[int](), _Tokens()
    run.done = gone = 0
    async for predictions in pickem_store.predictions_to_score(table, event.id, PREDICTIONS_AT_ONCE):
        credits_ = [Credit(prediction, share_of(prediction), event.starts_at) for prediction in predictions]
        gone += await pickem_store.credit(table, event.season, credits_)
        # If another scorer gave points of a later generation, these counts are not used.
        counts.update(credit.share.points for credit in credits_)
        for prediction in predictions:
            tokens.add(prediction.token)
        run.done += len(predictions)
    return counts, not gone and run.done == run.total == await tokens.count()
