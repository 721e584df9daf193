"""What a month on DynamoDB costs, from the units that bench/cost.py measured.

    python3 deploy/cost/calculator.py --processes 2 --draws 1e6 --votes 900e3 --pages 5e6 --comments 20e3 --storage 3

Prices are those of on-demand capacity in us-east-1 (November 2024). Give others with --write-price, --read-price and
--storage-price: https://aws.amazon.com/dynamodb/pricing/on-demand/. The containers, the load balancer, traffic and
backups are not included.
"""

import argparse
import json
from pathlib import Path

UNITS = json.loads(Path(__file__).with_name("units.json").read_text(encoding="utf-8"))
MONTH_SECONDS = 365 * 24 * 3600 / 12
OPTIONS = {
    "draws": "draw",
    "votes": "vote",
    "leaderboards": "leaderboard",
    "comments": "comment",
    "pages": "page of comments",
    "predictions": "prediction",
    "screens": "screen of an event",
    "emails": "email with daily words",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option, operation in OPTIONS.items():
        parser.add_argument(f"--{option}", type=float, default=0, metavar="N", help=f"a month: {operation}")
    parser.add_argument("--processes", type=float, default=0, metavar="N", help="processes that serve all month")
    parser.add_argument("--storage", type=float, default=0, metavar="GB", help="size of the table, indexes included")
    parser.add_argument("--write-price", type=float, default=0.625, help="dollars for a million write units")
    parser.add_argument("--read-price", type=float, default=0.125, help="dollars for a million read units")
    parser.add_argument("--storage-price", type=float, default=0.25, help="dollars for a gigabyte and month")
    given = parser.parse_args()
    total = 0.0
    for option, operation in OPTIONS.items():
        if number := getattr(given, option):
            units = UNITS["operations"][operation]
            dollars = number * (units["reads"] * given.read_price + units["writes"] * given.write_price) / 1e6
            total += dollars
            print(f"{operation:<24} {number:>14,.0f} {dollars:>12,.2f} $")
    looks = [of for name, of in UNITS["idle"].items() if name.startswith("looking")]
    reads, writes = (sum(of[kind] for of in looks) * MONTH_SECONDS for kind in ("reads", "writes"))
    idle = given.processes * (reads * given.read_price + writes * given.write_price) / 1e6
    total += idle
    print(f"{'processes, with nothing to do':<31} {given.processes:>7,.0f} {idle:>12,.2f} $")
    storage = given.storage * given.storage_price
    print(f"{'storage':<24} {given.storage:>11,.1f} GB {storage:>12,.2f} $")
    print(f"{'a month':<39} {total + storage:>12,.2f} $")


if __name__ == "__main__":
    main()
