"""An engine that lags, as a program: python -m tests.lagging HOST PORT FOLDER SECONDS

Its indexes and a third of its plain reads are behind by so many seconds in the mean; nothing is throttled. The suite
uses 0.1 s, or RINGSIDE_TEST_LAG. From a second on all plain reads are behind: a test that does not wait for what it
needs then fails each time.
"""

import asyncio
import signal
import sys
from pathlib import Path

from tests.engines import running_pair
from tests.lagging import Lag, LaggingEngine


def lag_of(seconds: float) -> Lag:
    return Lag(mean=seconds) if seconds < 1 else Lag(mean=seconds, longest=10 * seconds, stale=1.0)


async def main(host: str, port: int, folder: Path, lag: Lag) -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    with running_pair(folder) as engines:
        leader, follower = engines.leader.url, engines.follower.url
        async with LaggingEngine(leader, follower, lag=lag, address=(host, port)):
            await ended.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), lag_of(float(sys.argv[4]))))
