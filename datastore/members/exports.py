"""Exported files: they lie in the table in pieces until they are fetched, or for an hour.

| wanted        | read or write                                              | requests      |
|---------------|------------------------------------------------------------|---------------|
| write a file  | PutItem EXPORT#<job> PIECE#<attempt>#<number>              | 1 for 300 KB  |
| publish it    | PutItem EXPORT#<job> EXPORT                                | 1             |
| read it       | GetItem EXPORT#<job> EXPORT; each piece; consistent        | 1, and pieces |
| end its link  | DeleteItem EXPORT#<job> EXPORT, BatchWriteItem of pieces   | 1, and 1 a 25 |

Each attempt at a job writes pieces of its own, so a file is never made of two attempts. Pieces that nobody published
expire as the others do.
"""

from dataclasses import dataclass
from datetime import datetime

from datastore.dynamo import Table
from datastore.dynamo.entity import Entity, Key


@dataclass(frozen=True, slots=True)
class Export:
    """A complete file. It can be fetched until it expires."""

    job: str
    attempt: str
    pieces: int
    expires: datetime


@dataclass(frozen=True, slots=True)
class ExportPiece:
    """A part of a file."""

    job: str
    attempt: str
    number: int
    data: bytes
    expires: datetime


EXPORT = Entity(Export, Key("EXPORT#{job}", "EXPORT"), ttl="expires")
EXPORT_PIECE = Entity(ExportPiece, Key("EXPORT#{job}", "PIECE#{attempt}#{number:06d}"), ttl="expires")


async def write_piece(table: Table, piece: ExportPiece) -> None:
    await table.write(EXPORT_PIECE.put(piece))


async def publish(table: Table, export: Export) -> None:
    await table.write(EXPORT.put(export))


async def read_export(table: Table, job: str) -> Export | None:
    return await table.get(EXPORT.at(job=job), consistent=True)


async def read_piece(table: Table, export: Export, number: int) -> bytes:
    key = EXPORT_PIECE.at(job=export.job, attempt=export.attempt, number=number)
    piece = await table.get(key, consistent=True)
    if piece is None:
        raise LookupError("a piece of an exported file has expired")
    return piece.data


async def end_link(table: Table, export: Export) -> None:
    """The file cannot be fetched again, and is removed."""
    await table.write(EXPORT.delete(EXPORT.at(job=export.job)))
    keys = (EXPORT_PIECE.at(job=export.job, attempt=export.attempt, number=number) for number in range(export.pieces))
    await table.write_many(EXPORT_PIECE.delete(key) for key in keys)
