"""Deliveries through kills: processes that are killed and replaced, and a receiver that fails a third of the time.

    python -m bench.webhooks [--deliveries 100000] [--processes 3] [--kill-every 20] [--write]

Every occurrence must arrive. A process is killed (SIGKILL) every few seconds and another one is started; the webhook
that it sent to waits until its lease has lapsed. Pauses begin at 0.2 s instead of 2. Seconds and rates are of this
machine, where the engine, the processes and the receiver share the cores.
"""

import argparse
import asyncio
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Final

from datastore.changes.occurrences import (
    DELIVERY,
    DELIVERY_SHARDS,
    WEBHOOK,
    DeliveryState,
    Occurrence,
    Webhook,
    new_delivery,
)
from datastore.dynamo import Table, open_table
from datastore.journal import webhooks
from datastore.values.ids import Ids
from datastore.values.seal import Seal
from resolvers.requests.context import Services, utc_now
from resolvers.requests.policy import Policy
from server import webhooks as server_webhooks
from server.webhooks import Deliverer, open_sender
from tests.conftest import create_table
from tests.engines import running_engine
from tests.receiver import Message, Receiver, receiving

RESULTS: Final = Path(__file__).parent / "results" / "webhooks.md"
TABLE: Final = "ringside-webhooks"
SECRET: Final = "a secret that is long enough for a benchmark"
FAILING: Final = 1 / 3
FIRST_PAUSE: Final = 0.2
NETWORKS: Final = ("127.0.0.0/8",)


async def deliver(url: str) -> None:
    """One process: delivers until it is killed."""
    server_webhooks.PACE.first_pause = FIRST_PAUSE  # else the unluckiest occurrence takes an hour
    async with open_table(TABLE, url=url) as table, open_sender(NETWORKS) as sender:
        services = Services(table, Seal([SECRET]), Policy(webhook_networks=NETWORKS))
        Deliverer(services, sender).start()
        await asyncio.Event().wait()


def start(url: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "bench.webhooks", "--deliver", url], stderr=subprocess.DEVNULL)


async def seed(table: Table, webhook: Webhook, deliveries: int) -> None:
    """What has occurred."""
    ids, began = Ids(), utc_now() - timedelta(hours=1)
    occurrences = (
        Occurrence(
            ids.next(began + timedelta(milliseconds=number)), "comment.edited", "User:ada", f"Comment:42#{number}"
        )
        for number in range(deliveries)
    )
    await table.write_many(DELIVERY.put(new_delivery(webhook.id, occurrence)) for occurrence in occurrences)


async def kill_repeatedly(url: str, processes: list[subprocess.Popen[bytes]], every: float, kills: list[int]) -> None:
    while True:
        await asyncio.sleep(random.uniform(0.5, 1.5) * every)
        victim = random.randrange(len(processes))
        processes[victim].send_signal(signal.SIGKILL)
        processes[victim].wait()
        kills[0] += 1
        processes[victim] = start(url)


async def until_all_arrived(receiver: Receiver, deliveries: int) -> None:
    arrived, read, told = set[str](), 0, time.monotonic()
    while len(arrived) < deliveries:
        await asyncio.sleep(0.5)
        arrived.update(message.id for message in receiver.accepted[read:])
        read = len(receiver.accepted)
        if time.monotonic() - told > 10:
            told = time.monotonic()
            print(f"{len(arrived):,} of {deliveries:,} arrived", flush=True)


async def run(url: str, options: argparse.Namespace) -> list[str]:
    chance = random.Random(1)

    def answer(_: Message) -> int:
        return 500 if chance.random() < FAILING else 204

    async with create_table(TABLE, url) as table, receiving(answer) as receiver:
        webhook = Webhook("01M80000000000000000000000", receiver.url, (), utc_now(), "whsec_" + "A" * 44)
        await seed(table, webhook, options.deliveries)
        await table.write(WEBHOOK.put(webhook))
        processes, kills, began = [start(url) for _ in range(options.processes)], [0], time.monotonic()
        killing = asyncio.create_task(kill_repeatedly(url, processes, options.kill_every, kills))
        try:
            await until_all_arrived(receiver, options.deliveries)
        finally:
            killing.cancel()
            with suppress(asyncio.CancelledError):
                await killing
            for process in processes:
                process.kill()
                process.wait()
        seconds = time.monotonic() - began
        waiting = [await webhooks.read_waiting(table, webhook.id, shard, 1000) for shard in range(DELIVERY_SHARDS)]
        dead = [one async for one in table.scan(DELIVERY) if one.state is DeliveryState.DEAD]
        return rows(receiver, options, kills[0], seconds, sum(map(len, waiting)), len(dead))


def rows(
    receiver: Receiver, options: argparse.Namespace, kills: int, seconds: float, waiting: int, dead: int
) -> list[str]:
    arrived = {message.id for message in receiver.accepted}
    return [
        f"| occurrences | {options.deliveries:,} |",
        f"| arrived | {len(arrived):,} |",
        f"| requests, of which a third failed | {len(receiver.received):,} |",
        f"| accepted more than once | {len(receiver.accepted) - len(arrived):,} |",
        f"| given up | {dead:,} |",
        f"| accepted, but still waiting when all processes were killed at the end | {waiting:,} |",
        f"| processes at a time · kills | {options.processes} · {kills} |",
        f"| seconds · arrivals per second | {seconds:.0f} · {len(arrived) / seconds:.0f} |",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deliveries", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--kill-every", type=float, default=20.0)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--deliver", metavar="URL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.deliver:
        asyncio.run(deliver(options.deliver))
        return
    with tempfile.TemporaryDirectory() as folder, running_engine("dynoxide", Path(folder)) as engine:
        measured = asyncio.run(run(engine.url, options))
    print("\n".join(measured))
    if options.write:
        command = f"python -m bench.webhooks --deliveries {options.deliveries} --write"
        kills = f"A process is killed every {options.kill_every:.0f} s or so"
        said = f"{kills}; the receiver answers 500 to a third. Pauses begin at 0.2 s instead of 2."
        head = f"# Deliveries through kills\n\n    {command}\n\n{said}\n\n| | |\n|---|---|\n"
        RESULTS.write_text(head + "\n".join(measured) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
