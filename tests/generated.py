"""What the repository keeps of what the code says: `make generated` writes it, a test compares."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from typer.main import get_command

from datastore.dynamo import declaration
from schema import schema
from server.__main__ import app
from server.settings import settings_table

ROOT: Final = Path(__file__).resolve().parents[1]


def sdl() -> str:
    return schema.as_str() + "\n"


def readme() -> str:
    """README with the commands and the settings of today between their marks."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name, table in (("commands", commands_table()), ("settings", settings_table())):
        marks = re.compile(rf"(<!-- {name}: .*? -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        text, found = marks.subn(lambda mark, table=table: f"{mark[1]}{table}\n{mark[2]}", text)
        assert found == 1, f"README.md has lost the marks around its {name}"
    return text


def commands_table() -> str:
    """The command line, as its own help describes it."""
    rows = (f"| `ringside {name}` | {_in_a_cell(command.help or '')} |" for name, command in _commands())
    return "\n".join(["| command | |", "|---|---|", *rows])


def _in_a_cell(text: str) -> str:
    return " ".join(text.split()).replace("<", "&lt;")


def _commands() -> Iterator[tuple[str, Any]]:
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", {})
        yield from ((f"{name} {each}", below) for each, below in inner.items())
        if not inner:
            yield name, command


FILES: Final[dict[str, Callable[[], str]]] = {
    "schema/schema.graphql": sdl,
    "deploy/table.cloudformation.yaml": declaration.cloudformation,
    "deploy/table.tf": declaration.terraform,
    "README.md": readme,
}

if __name__ == "__main__":
    for name, text in FILES.items():
        (ROOT / name).write_text(text(), encoding="utf-8")
