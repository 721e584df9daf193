"""Fills an embedded engine's table before it starts, through the engine's import: a million items in minutes."""

import base64
import gzip
import subprocess
import tempfile
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import orjson

from datastore.dynamo.declaration import definition
from datastore.dynamo.writes import Put
from datastore.whole.layout import CURRENT_LAYOUT, LAYOUT, Layout
from server.engine import table_file
from server.engine.process import find_binary


def load(data: Path, table: str, puts: Iterable[Put]) -> None:
    """Create the table of an empty data folder, with these items."""
    binary = find_binary(data)
    assert binary is not None, "dynoxide was not found; run make engine"
    with tempfile.TemporaryDirectory() as name:
        source = Path(name)
        (source / table / "data").mkdir(parents=True)
        described = {"Table": {**definition(table), "TableStatus": "ACTIVE"}}
        (source / "schema.json").write_bytes(orjson.dumps(described))
        with gzip.open(source / table / "data" / "0.json.gz", "wb", compresslevel=1) as out:
            for put in chain([LAYOUT.put(Layout(CURRENT_LAYOUT))], puts):
                out.write(orjson.dumps({"Item": put.item}, default=_base64) + b"\n")
        file = table_file(data)
        file.parent.mkdir(parents=True, exist_ok=True)
        command = [binary, "import", "--source", source, "--schema", source / "schema.json", "--output", file]
        subprocess.run(
            [*map(str, command), "--force"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )


def _base64(value: bytes) -> str:
    """As JSON has bytes."""
    return base64.b64encode(value).decode()
