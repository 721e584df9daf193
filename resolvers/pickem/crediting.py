"""Giving every prediction of a locked event its share.

An erased member's prediction moves to another name in its shard, so a pass over the shard may see it twice, not at all,
or where it no longer is when it is credited. The gates count the predictions exactly: a pass that has seen another
number, or missed one that it had seen, is made once more. Two members whose moves cancel out in the number are left to
`resolvers.members.erasing`, which has an event counted again if its scoring began meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from datastore import pickem as pickem_store
from datastore.dynamo import Table
from datastore.pickem import Credit, Event, Histogram, Prediction, Share

PREDICTIONS_AT_ONCE = 100
"""Enough to keep an engine busy, few enough to use little memory."""


@dataclass(slots=True)
class Progress:
    """How many predictions have their share. The pass updates it while others read it."""

    done: int = 0
    total: int = 0


async def credit_every_prediction(
    table: Table, event: Event, share_of: Callable[[Prediction], Share], progress: Progress
) -> Histogram:
    """Credit all predictions; how many of them have how many points."""
    progress.total = (await pickem_store.read_pick_counts(table, event.id)).predictions
    counts, gone = await _credit_once(table, event, share_of, progress)
    if gone or counts.total() != progress.total:
        counts, _ = await _credit_once(table, event, share_of, progress)
    return Histogram.of(counts)


async def _credit_once(
    table: Table, event: Event, share_of: Callable[[Prediction], Share], progress: Progress
) -> tuple[Counter[int], int]:
    """The points of all predictions that were seen, and how many of those were gone when they were credited."""
    counts: Counter[int] = Counter()
    progress.done = gone = 0
    async for predictions in pickem_store.predictions_to_score(table, event.id, PREDICTIONS_AT_ONCE):
        credits_ = [Credit(prediction, share_of(prediction), event.starts_at) for prediction in predictions]
        gone += await pickem_store.credit(table, event.season, credits_)
        # If another scorer gave points of a later generation, these counts are not used.
        counts.update(credit.share.points for credit in credits_)
        progress.done += len(predictions)
    return counts, gone
