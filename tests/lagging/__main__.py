"""An engine that lags, as a program: python -m tests.lagging HOST PORT FOLDER

Its indexes and a third of its plain reads are behind by 0.1 s in the mean; nothing is throttled. With
RINGSIDE_TEST_LAG=30 they are behind by so many seconds, and all plain reads too: a test that does not wait for what it
needs then fails each time.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Final

from tests.engines import running_pair
from tests.lagging import Lag, LaggingEngine

SECONDS: Final = float(os.environ.get("RINGSIDE_TEST_LAG", "0.1"))
LAG: Final = Lag(mean=SECONDS) if SECONDS < 1 else Lag(mean=SECONDS, longest=10 * SECONDS, stale=1.0)


async def main(host: str, port: int, folder: Path) -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    with running_pair(folder) as engines:
        leader, follower = engines.leader.url, engines.follower.url
        async with LaggingEngine(leader, follower, lag=LAG, address=(host, port)):
            await ended.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])))
