"""Waves of the dearest documents from one network address, and connections that pipeline introspections beside them.

    nice python -m bench.services.dearest PORT WAVES AT_ONCE PIPELINES IDS

IDS is JSON: node ids that exist, by type. Each wave sends AT_ONCE documents at the same moment, as large as they are
accepted, with new names and new invented ids, and ends when all are answered. PIPELINES connections from another
address send ten introspections each at the beginning of a wave, and read nothing. What came of them is printed as one
line of JSON.
"""

import asyncio
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import uvloop

from bench.services.attackers import Connection, http
from resolvers.whole.node import LOADERS
from schema import schema
from tests.dearest.documents import Document, Schema, Template, templates
from tests.dearest.growing import ORDERS, Growing
from tests.dearest.values import Ids

DEAREST = (
    ("Query.nodes (invented League)", 0),
    ("Query.commentStatisticsOf (invented)", 0),
    ("Query.nodes (existing User)", 2),
    ("standings.nodes.Standing.user (existing)", 2),
    ("Query.nodes (invented Board)", 0),
    ("comments.nodes.Comment.author (existing)", 3),
    ("Query.wordLists (existing)", 2),
    ("Query.nodes (mixed)", 0),
    ("nodes.User.sentences (existing)", 1),
    ("events.nodes.Event.predictions (existing)", 0),
)
"""Those that `tests/attack/test_dearest_documents.py` found dearest, and the order in which they grow."""
INTROSPECTION = "{__schema{types{name fields{name description}}}}"
PIPELINED = 10
ATTACKER, PIPELINER = "127.0.1.1", "127.0.1.2"
CODES = re.compile(rb'"code":"([A-Z_]+)"')


def documents(ids: Ids) -> Iterator[Document]:
    """New ones each time, the dearest kinds in turn."""
    searched = Schema(schema._schema)  # noqa: SLF001 - Strawberry keeps graphql-core's schema there
    by_name: dict[str, Template] = {each.name: each for each in templates(searched, ids, tuple(LOADERS))}
    for name, _ in DEAREST:
        for step in (*by_name[name].path, by_name[name].target):
            if searched.takes_list(step):
                searched.largest_lists[step._replace(on=None)] = 100
    growing = Growing(searched.graphql)
    grown = [(by_name[name], growing.grown(by_name[name], ORDERS[order])) for name, order in DEAREST]
    for template, sizes in cycle(grown):
        yield template.document(sizes)


async def ask(port: int, document: Document, ended: list[tuple[str, float]]) -> None:
    """Send a document, and note its status with the codes of its errors, and the seconds that it took."""
    connection, began = Connection(port, ATTACKER), time.perf_counter()
    try:
        status, _, body = await connection.ask(http(document.text, **document.variables))
    except OSError:
        status, body = 0, b""
    finally:
        connection.close()
    codes = sorted({code.decode() for code in CODES.findall(body)})
    ended.append(
        (" ".join([{0: "closed", -1: "no answer"}.get(status, str(status)), *codes]), time.perf_counter() - began)
    )


async def pipeline(port: int) -> asyncio.StreamWriter | None:
    """A connection that sends all its requests at once, and reads nothing."""
    try:
        _, writer = await Connection(port, PIPELINER).open()
    except OSError:
        return None
    writer.write(http(INTROSPECTION) * PIPELINED)
    return writer


async def run(port: int, waves: int, at_once: int, pipelines: int, existing: dict[str, list[str]]) -> dict[str, Any]:
    ids = Ids(time.time_ns())
    ids.note(existing)
    dearest = documents(ids)
    answers: Counter[str] = Counter()
    slowest: list[float] = []
    ends: list[float] = []
    for _ in range(waves):
        wave = [next(dearest) for _ in range(at_once)]
        piped = await asyncio.gather(*(pipeline(port) for _ in range(pipelines)))
        ended: list[tuple[str, float]] = []
        await asyncio.gather(*(ask(port, document, ended) for document in wave))
        for writer in piped:
            if writer is not None:
                writer.transport.abort()
        answers.update(what for what, _ in ended)
        slowest.append(max(seconds for _, seconds in ended))
        ends.append(time.time())
    return {"answers": dict(answers), "slowest": slowest, "ends": ends}


def main() -> None:
    port, waves, at_once, pipelines = map(int, sys.argv[1:5])
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(run(port, waves, at_once, pipelines, json.loads(sys.argv[5])))))


if __name__ == "__main__":
    main()
