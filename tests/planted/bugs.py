"""The planted bugs: drawn with a seed, written to `bugs.json`, made in a copy of the tree."""

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from tests.planted.changes import KINDS, Source, changes, functions
from tests.planted.records import LAYERS, Record

FILE: Final = Path(__file__).with_name("bugs.json")
SEED: Final = 37
OF_EACH_KIND: Final = 2


class Gone(Exception):
    """The code that the bug changes is not there any more."""


@dataclass(frozen=True)
class Bug:
    """Lines of a function, found by its name and their text, and what they become."""

    name: str
    kind: str
    path: str
    function: str
    original: str
    changed: str

    def lines(self, root: Path) -> range:
        """Return the numbers of the lines in this tree."""
        text = (root / self.path).read_text(encoding="utf-8")
        first = text[: self._position(text)].count("\n") + 1
        return range(first, first + self.original.count("\n") + 1)

    @contextmanager
    def planted(self, root: Path) -> Iterator[None]:
        """Make the change in this tree until the block ends."""
        file = root / self.path
        text = file.read_text(encoding="utf-8")
        position = self._position(text)
        file.write_text(text[:position] + self.changed + text[position + len(self.original) :], encoding="utf-8")
        try:
            yield
        finally:
            file.write_text(text, encoding="utf-8")

    def _position(self, text: str) -> int:
        source = Source(text)
        for name, function in functions(source.tree):
            if name == self.function:
                start = source.starts[function.lineno - 1]
                whole = source.text(start, source.end(function))
                if whole.count(self.original) == 1:
                    return len(source.text(0, start)) + whole.index(self.original)
        raise Gone(f"{self.path}: {self.function} has no such lines, or has them twice")


def read_bugs() -> list[Bug]:
    return [Bug(**bug) for bug in json.loads(FILE.read_text(encoding="utf-8"))]


def write_bugs(bugs: list[Bug]) -> None:
    FILE.write_text(json.dumps([asdict(bug) for bug in bugs], indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def draw(root: Path, record: Record) -> list[Bug]:
    """Draw two changes of each kind in each layer; a kind that a layer has too little of is made up for by others."""
    drawn: list[Bug] = []
    for layer in LAYERS:
        found = [(path, change) for path in _files(root, layer) for change in changes((root / path).read_text("utf-8"))]
        executed = [(path, change) for path, change in found if record.tests_of(path, change.lines)]
        chance = random.Random(f"{SEED} {layer}")
        chance.shuffle(executed)
        chosen = []
        for kind in KINDS:
            chosen += [one for one in executed if one[1].kind == kind][:OF_EACH_KIND]
        rest = [one for one in executed if one not in chosen]
        chosen += rest[: OF_EACH_KIND * len(KINDS) - len(chosen)]
        for number, (path, change) in enumerate(chosen, 1):
            bug = Bug(f"{layer}-{number}", change.kind, path, change.function, change.original, change.changed)
            drawn.append(bug)
    return drawn


def _files(root: Path, layer: str) -> list[str]:
    return sorted(
        str(path.relative_to(root)) for path in (root / layer).rglob("*.py") if "node_modules" not in str(path)
    )
