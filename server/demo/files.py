"""The demo's texts and pictures, as they lie in `data/`."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import orjson

_FOLDER: Final = Path(__file__).with_name("data")


def read_json(name: str) -> Any:
    return orjson.loads((_FOLDER / name).read_bytes())


def read_rows(name: str) -> list[Mapping[str, str]]:
    """The rows of a tab-separated file whose first line names the columns."""
    with (_FOLDER / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def read_texts(folder: str) -> list[str]:
    """The files of a folder, in the order of their names."""
    return [file.read_text(encoding="utf-8").strip() for file in sorted((_FOLDER / folder).iterdir())]
