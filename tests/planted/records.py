"""What `recorder` has written: the tests that execute a line, how long they take, and what each layer has covered."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import coverage

LAYERS = ("server", "schema", "resolvers", "datastore")


class Covered(NamedTuple):
    """How many of a layer's lines and branches the tests execute."""

    lines: int
    all_lines: int
    branches: int
    all_branches: int


class Record:
    """A folder that a run of the tests has written, in a tree at `root`."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.root = root
        self.folder = folder
        self.files = sorted(file for file in folder.glob("lines-*") if file.name != "lines-main" or _alone(folder))

    @cached_property
    def seconds(self) -> Mapping[str, float]:
        seconds: dict[str, float] = {}
        for file in self.folder.glob("seconds-*.json"):
            seconds |= json.loads(file.read_text(encoding="utf-8"))
        return seconds

    @cached_property
    def _tests(self) -> Mapping[str, Mapping[int, set[str]]]:
        """For each file and line, the tests that execute it; not what an import executes."""
        tests: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for file in self.files:
            with sqlite3.connect(file) as data:
                for path, context, start, end in data.execute(
                    "select path, context, fromno, tono from arc join file on file.id = file_id "
                    "join context on context.id = context_id where context <> ''"
                ):
                    lines = tests[str(Path(path).relative_to(self.root))]
                    for number in (start, end):
                        if number > 0:
                            lines[number].add(context)
            data.close()
        return tests

    def tests_of(self, path: str, lines: Iterable[int]) -> set[str]:
        executed = self._tests.get(path, {})
        return {test for line in lines for test in executed.get(line, ())}

    def covered(self) -> Mapping[str, Covered]:
        """Return what the tests of all processes cover together, by layer, with what importing executes."""
        total = coverage.CoverageData(no_disk=True)
        for file in self.files:
            data = coverage.CoverageData(str(file))
            data.read()
            total.add_arcs({path: data.arcs(path) or [] for path in data.measured_files()})
        measure = coverage.Coverage(
            data_file=None, branch=True, source=[str(self.root / layer) for layer in LAYERS], config_file=False
        )
        measure.get_data().update(total)
        return {layer: self._covered(measure, layer) for layer in LAYERS}

    def _covered(self, measure: coverage.Coverage, layer: str) -> Covered:
        report = self.folder / f"{layer}.json"
        measure.json_report(outfile=str(report), include=[f"{self.root / layer}/*"])
        totals = json.loads(report.read_text(encoding="utf-8"))["totals"]
        return Covered(
            totals["covered_lines"], totals["num_statements"], totals["covered_branches"], totals["num_branches"]
        )


def _alone(folder: Path) -> bool:
    """Whether the run had one process, so that it ran the tests itself."""
    return not any(folder.glob("lines-gw*"))
