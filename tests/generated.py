"""What the repository keeps of what the code says: `make generated` writes it, a test compares."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from datastore.dynamo import declaration
from schema import schema
from server.settings import settings_table

ROOT: Final = Path(__file__).resolve().parents[1]
SETTINGS: Final = re.compile(r"(<!-- settings: .*? -->\n).*?(<!-- /settings -->)", re.DOTALL)


def sdl() -> str:
    return schema.as_str() + "\n"


def readme() -> str:
    """README with the settings of today between its marks."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    written, marks = SETTINGS.subn(lambda found: f"{found[1]}{settings_table()}\n{found[2]}", text)
    assert marks == 1, "README.md has lost the marks around its settings"
    return written


FILES: Final[dict[str, Callable[[], str]]] = {
    "schema/schema.graphql": sdl,
    "deploy/table.cloudformation.yaml": declaration.cloudformation,
    "deploy/table.tf": declaration.terraform,
    "README.md": readme,
}

if __name__ == "__main__":
    for name, text in FILES.items():
        (ROOT / name).write_text(text(), encoding="utf-8")
