"""What the fan club did on each of the last days, for the plots of the admin pages: made up, more at weekends."""

from __future__ import annotations

import asyncio
import random
from datetime import date, timedelta
from typing import Any

from datastore.journal.usage import Activity, report_activity
from resolvers.requests.context import Services

DAYS = 29
PER_DAY = {"votes": 90, "comments": 12, "predictions": 8, "quizzes": 20, "new_members": 3}


async def seed(services: Services) -> str:
    today = services.clock().date()
    days = [today - timedelta(days=before) for before in range(1, DAYS + 1)]
    await asyncio.gather(*(report_activity(services.table, _activity(day)) for day in days))
    return f"Added what was done on {DAYS} days."


def _activity(day: date) -> Activity:
    drawn = random.Random(day.toordinal())
    most = 1.6 if day.weekday() >= 5 else 1.0  # noqa: PLR2004 - Saturday
    counted: dict[str, Any] = {what: round(number * drawn.uniform(0.4, most)) for what, number in PER_DAY.items()}
    return Activity(day, "demo", **counted)
