"""Client CPU time of one Query of 20 items: `python -m bench.datapath [--peers FOLDER] [--write]`.

All clients send the same query to the same embedded engine, in one process on uvloop, in turns. A figure is the median
over the turns. A share is the median of the shares within each turn, so a noisy machine affects all clients alike.
aiodynamo is not among this project's packages: `--peers` names a folder that has it (`pip install --target`).
"""

import argparse
import importlib
import importlib.util
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import aioboto3
import aiohttp
import orjson
import uvloop
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials
from yarl import URL

from datastore.dynamo import Table, open_table
from datastore.dynamo.declaration import create
from datastore.dynamo.entity import Entity, Key
from server.engine import run_engine

RESULTS = Path(__file__).parent / "results" / "datapath.md"
KEYS = ReadOnlyCredentials("bench", "bench", None)
NAME, ITEMS = "ringside-bench", 20
PACKAGES = ("aioboto3", "aiodynamo", "aiohttp", "orjson", "httptools", "uvloop")
Client = Callable[[], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Remark:
    """A record as large as a comment, some 400 bytes in the table."""

    product: str
    ulid: str
    author: str
    body: str
    rating: int
    language: str
    written_at: datetime
    version: int
    edited_at: datetime | None = None
    helpful: int = 0


REMARK = Entity(
    Remark,
    Key("PRODUCT#{product}", "COMMENT#{ulid}"),
    gsi1=Key("PRODUCT#{product}#{language}", "{ulid}"),
    gsi2=Key("PRODUCT#{product}#~#{rating}", "{ulid}"),
)
QUERY: dict[str, Any] = {
    "TableName": NAME,
    "KeyConditionExpression": "#pk = :0 AND #sk BETWEEN :1 AND :2",
    "Limit": ITEMS,
    "ScanIndexForward": False,
    "ExpressionAttributeNames": {"#pk": "pk", "#sk": "sk"},
    "ExpressionAttributeValues": {":0": {"S": "PRODUCT#one"}, ":1": {"S": "COMMENT#"}, ":2": {"S": "COMMENT#~"}},
    "ReturnConsumedCapacity": "TOTAL",
}


def remark(number: int) -> Remark:
    return Remark(
        "one", f"{number:026d}", f"member-{number % 7}", "What a fight! " * 14, 1 + number % 5, "en",
        datetime(2026, 11, 20, 20, number % 60, tzinfo=UTC), 1,
    )  # fmt: skip


@asynccontextmanager
async def open_clients(url: str) -> AsyncIterator[dict[str, Client]]:
    """Yield every client by name."""
    async with AsyncExitStack() as stack:
        table = await stack.enter_async_context(open_table(NAME, url=url))
        sdk_table = await stack.enter_async_context(open_table(NAME, url=url, sdk_only=True))
        await create(table)
        await table.write_many(REMARK.put(remark(number)) for number in range(3 * ITEMS))
        session = aioboto3.Session(aws_access_key_id="bench", aws_secret_access_key="bench", region_name="us-east-1")
        documented = await stack.enter_async_context(session.client("dynamodb", endpoint_url=url))
        http = await stack.enter_async_context(aiohttp.ClientSession())
        clients = {
            "aioboto3's client, as documented": lambda: documented.query(**QUERY),
            "`Table.query` through the SDK's client": lambda: records(sdk_table),
            "`Table.query`, to records": lambda: records(table),
            "`DirectClient.query`, to attribute maps": lambda: attribute_maps(table),
            "bare aiohttp, botocore's signature, orjson": lambda: bare(http, url, signed=True),
            "bare aiohttp, unsigned, orjson": lambda: bare(http, url, signed=False),
        }
        if importlib.util.find_spec("aiodynamo"):
            clients["aiodynamo, to Python values"] = await aiodynamo(http, url)
        yield clients


async def records(table: Table) -> int:
    partition = REMARK.on(product="one").between("COMMENT#", "COMMENT#~").newest_first()
    return len((await table.query(partition, limit=ITEMS)).items)


async def attribute_maps(table: Table) -> int:
    return len((await table.client.query(**QUERY))["Items"])


async def bare(http: aiohttp.ClientSession, url: str, *, signed: bool) -> int:
    body = orjson.dumps(QUERY)
    headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "DynamoDB_20120810.Query"}
    if signed:
        request = AWSRequest("POST", url + "/", headers, data=body)
        SigV4Auth(KEYS, "dynamodb", "us-east-1").add_auth(request)
        headers = dict(request.headers.items())
    else:
        headers |= UNSIGNED
    async with http.post(url + "/", data=body, headers=headers) as answer:
        return len(orjson.loads(await answer.read())["Items"])


UNSIGNED = {
    "X-Amz-Date": "20261120T200000Z",
    "Authorization": "AWS4-HMAC-SHA256 Credential=bench/20261120/us-east-1/dynamodb/aws4_request, "
    "SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature=0",
}


async def aiodynamo(http: aiohttp.ClientSession, url: str) -> Client:
    clients, credentials, expressions, sending = (
        importlib.import_module(f"aiodynamo.{name}")
        for name in ("client", "credentials", "expressions", "http.aiohttp")
    )
    keys = credentials.StaticCredentials(credentials.Key("bench", "bench"))
    client = clients.Client(sending.AIOHTTP(http), keys, "us-east-1", URL(url))
    sort = expressions.RangeKey("sk").between("COMMENT#", "COMMENT#~")
    condition = expressions.HashKey("pk", "PRODUCT#one") & sort

    async def ask() -> int:
        page = await client.table(NAME).query_single_page(condition, scan_forward=False, limit=ITEMS)
        return len(page.items)

    return ask


async def measure(url: str, turns: int, calls: int) -> dict[str, list[float]]:
    """Return the microseconds of CPU per call, by client, one figure for each turn."""
    figures_by_client: dict[str, list[float]] = {}
    async with open_clients(url) as clients:
        for turn in range(-1, turns):  # the first turn warms up
            for name, ask in clients.items():
                began = time.process_time()
                for _ in range(calls):
                    await ask()
                if turn >= 0:
                    figures_by_client.setdefault(name, []).append((time.process_time() - began) / calls * 1e6)
    return figures_by_client


def read_cost() -> float:
    """Return the microseconds to read one item as a record."""
    item = REMARK.item(remark(3))
    rounds = []
    for _ in range(9):
        began = time.process_time()
        for _ in range(2000):
            REMARK.read(item)
        rounds.append((time.process_time() - began) / 2000 * 1e6)
    return statistics.median(rounds)


def report(figures_by_client: dict[str, list[float]]) -> str:
    base = next(iter(figures_by_client.values()))
    rows = []
    for name, figures in sorted(figures_by_client.items(), key=lambda row: -statistics.median(row[1])):
        shares = [figure / base_figure for figure, base_figure in zip(figures, base, strict=True)]
        rows.append(f"| {name} | {statistics.median(figures):.0f} | {statistics.median(shares):.2f} |")
    return "\n".join([
        f"# One Query of {ITEMS} items: CPU of the client",
        "",
        "    python -m bench.datapath --peers FOLDER --write",
        "",
        "| client | µs per call | share |",
        "|---|---|---|",
        *rows,
        "",
        f"Reading one item as a record: {read_cost():.1f} µs.",
        "Medians over interleaved turns, in one process on uvloop, with the embedded engine.",
        "Only the shares carry over to other machines.",
        "With " + ", ".join(f"{name} {version(name)}" for name in PACKAGES if importlib.util.find_spec(name)) + ".",
        "",
    ])  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", help="a folder that contains aiodynamo")
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--calls", type=int, default=60)
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args()
    if options.peers:
        sys.path.append(options.peers)
    with tempfile.TemporaryDirectory() as folder, run_engine(Path(folder)) as engine:
        text = report(uvloop.run(measure(engine.url, options.turns, options.calls)))
    print(text)
    if options.write:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(text)


if __name__ == "__main__":
    main()
