"""`make bench BENCH=sign_in`: whether the time of an answer to `requestSignIn` says who is a member.

One process answers 1,000 requests, half of them for addresses of members, in an order drawn by a seed. The area under
the curve of both latencies is the chance that a member's request took longer than a stranger's: 0.5 says nothing, and
0.45 to 0.55 is promised.
"""

import argparse
import asyncio
import random
import tempfile
import time
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from bench.services.measurement import repository_root
from datastore.people.identities import of_address
from resolvers.members.sign_in_codes import SignInCodes
from resolvers.people.identities import Members
from tests.confirmations import mailing
from tests.conftest import create_table, settings_for
from tests.engines import running_engine
from tests.sign_in import REQUEST_SIGN_IN

RESULTS = repository_root() / "bench" / "results" / "sign_in.md"
REQUESTS = 1_000
WARM_UP = 50
PROMISED = 0.45, 0.55


def area_under_curve(known: Sequence[float], other: Sequence[float]) -> float:
    """The chance that one of the first took longer than one of the second; ties count half."""
    ordered = sorted(other)
    below = sum(bisect_left(ordered, one) + bisect_right(ordered, one) for one in known)
    return below / 2 / len(known) / len(other)


async def measure(folder: Path, seed: int) -> tuple[list[float], list[float]]:
    """Seconds until the answers for members' addresses, and for others."""
    order = [number % 2 == 0 for number in range(REQUESTS)]
    random.Random(seed).shuffle(order)
    seconds: dict[bool, list[float]] = {True: [], False: []}
    with running_engine("dynoxide", folder / "engine") as engine:
        async with create_table("sign-in", engine.url) as table:
            settings = settings_for(engine, table.name, emails_per_address="0")
            async with mailing(settings, folder) as mail:
                members, codes = mail.client.services.get(Members), mail.client.services.get(SignInCodes)
                visitor = mail.client.visitor()
                for number in range(-WARM_UP, REQUESTS):
                    is_known, address = order[number], f"somebody{number + WARM_UP:04}@example.org"
                    if is_known:
                        await members.make(of_address(address))
                    await codes.all_sent()
                    began = time.perf_counter()
                    await visitor.ask(REQUEST_SIGN_IN, input={"email": address})
                    if number >= 0:
                        seconds[is_known].append(time.perf_counter() - began)
    return seconds[True], seconds[False]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        known, other = asyncio.run(measure(Path(folder), options.seed))
    area = area_under_curve(known, other)
    lines = [
        f"{REQUESTS:,} requests for a code: {median(known) * 1000:.2f} ms in the middle for members' addresses.",
        f"For others: {median(other) * 1000:.2f} ms.",
        f"Area under the curve: {area:.3f} ({PROMISED[0]} to {PROMISED[1]} is promised).",
    ]
    print("\n".join(lines))
    if options.write:
        command = f"    python -m bench.sign_in --seed {options.seed} --write"
        RESULTS.write_text("\n\n".join(["# What the time of a sign-in says", command, *lines]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
