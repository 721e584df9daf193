"""Giving every prediction of a locked event its share.

An erased member's prediction moves to another name in its shard, so a pass over the shard may see it twice, not at all,
or where it no longer is when it is credited. It keeps its token, which no other has, and the gates count predictions
exactly. So a pass has credited all of them if it found as many tokens as there are predictions and none was gone;
otherwise it is made again, up to `_MOST_PASSES` times.
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

_MOST_PASSES = 5
"""Another one helps only if members were erased beside the one before. Five bound the work if a gate counts wrongly."""


@dataclass(slots=True)
class Progress:
    """How many predictions have their share. The pass updates it while others read it."""

    done: int = 0
    total: int = 0


async def credit_every_prediction(
    table: Table, event: Event, share_of: Callable[[Prediction], Share], progress: Progress
) -> Histogram:
    """Credit all predictions; how many of them have how many points."""
    for _ in range(_MOST_PASSES):
        progress.total = (await pickem_store.read_pick_counts(table, event.id)).predictions
        counts, gone = await _credit_once(table, event, share_of, progress)
        if not gone and counts.total() == progress.total:
            break
    return Histogram.of(counts)


async def _credit_once(
    table: Table, event: Event, share_of: Callable[[Prediction], Share], progress: Progress
) -> tuple[Counter[int], int]:
    """The points of all predictions that were seen, and how many of those were gone when they were credited."""
    counts, seen = Counter[int](), set[str]()
    progress.done = gone = 0
    async for predictions in pickem_store.predictions_to_score(table, event.id, PREDICTIONS_AT_ONCE):
        credits_ = [Credit(prediction, share_of(prediction), event.starts_at) for prediction in predictions]
        gone += await pickem_store.credit(table, event.season, credits_)
        # If another scorer gave points of a later generation, these counts are not used.
        for one in credits_:
            if one.prediction.token not in seen:
                seen.add(one.prediction.token)
                counts[one.share.points] += 1
        progress.done += len(predictions)
    return counts, gone
