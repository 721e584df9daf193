"""Texts that jobs work on: in pieces, because an item holds at most 400 KB, until the job has ended.

| wanted         | read or write                                    | requests     |
|----------------|--------------------------------------------------|--------------|
| store a text   | BatchWriteItem JOB#<id> TEXT#<number>            | 1 for 25     |
| read it        | Query JOB#<id> TEXT#, consistent                 | 1 for a MB   |
| delete it      | BatchWriteItem of its pieces                     | 1 for 25     |

A text is stored before its job begins. That of a job that never began expires.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from datastore.dynamo import Table
from datastore.dynamo.bulk import clear_partition
from datastore.dynamo.entity import Entity, Key

PIECE_BYTES = 300_000


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A part of a text. It may end within a letter."""

    job: str
    number: int
    data: bytes
    expires: datetime


TEXT_PIECE = Entity(TextPiece, Key("JOB#{job}", "TEXT#{number:03d}"), ttl="expires")


async def store_text(table: Table, job: str, text: str, expires: datetime) -> None:
    data = text.encode()
    pieces = [data[start : start + PIECE_BYTES] for start in range(0, len(data), PIECE_BYTES)]
    await table.write_many(
        TEXT_PIECE.put(TextPiece(job, number, piece, expires)) for number, piece in enumerate(pieces)
    )


async def read_text(table: Table, job: str) -> str:
    pieces = [piece.data async for piece in table.iterate(TEXT_PIECE.on(job=job), consistent=True)]
    return b"".join(pieces).decode()


async def delete_text(table: Table, job: str) -> None:
    await clear_partition(table, TEXT_PIECE.on(job=job))
