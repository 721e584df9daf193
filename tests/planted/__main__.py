"""The commands of `python -m tests.planted`."""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tests.planted.bugs import draw as drawn_from
from tests.planted.bugs import read_bugs, write_bugs
from tests.planted.finding import ROOT, copy_tree
from tests.planted.finding import find as find_one
from tests.planted.records import Record

app = typer.Typer(add_completion=False, help=sys.modules["tests.planted"].__doc__)
Folder = Annotated[Path, typer.Argument(help="The record's folder.")]
Recorded = Annotated[Path, typer.Option(help="The tree in which the record was made.")]


@app.command()
def record(folder: Folder, arguments: Annotated[list[str] | None, typer.Argument(help="For pytest.")] = None) -> None:
    """Run the tests and record the lines that each executes."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.planted.recorder", *(arguments or [])]
    environment = {**os.environ, "RINGSIDE_RECORD": str(folder.resolve())}
    raise typer.Exit(subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode)


@app.command()
def coverage(folder: Folder, root: Recorded = ROOT) -> None:
    """Print how many lines and branches of each layer the recorded tests execute."""
    for layer, covered in Record(folder, root).covered().items():
        print(
            f"{layer:10} lines {covered.lines}/{covered.all_lines} branches {covered.branches}/{covered.all_branches}"
        )


@app.command()
def draw(folder: Folder, root: Recorded = ROOT) -> None:
    """Draw forty bugs from the lines that the recorded tests execute."""
    write_bugs(drawn_from(root, Record(folder, root)))


@app.command()
def find(
    folder: Folder,
    results: Annotated[Path, typer.Argument(help="A file of JSON Lines; bugs that it names are done.")],
    root: Recorded = ROOT,
    minutes: Annotated[float, typer.Option(help="At most so long for a bug.")] = 10.0,
) -> None:
    """Plant each bug in a copy of the tree, and run the tests that execute its lines."""
    recorded = Record(folder, root)
    done = {json.loads(line)["bug"] for line in results.read_text("utf-8").splitlines()} if results.exists() else set()
    with tempfile.TemporaryDirectory() as copy:
        tree = Path(copy)
        copy_tree(tree)
        for bug in read_bugs():
            if bug.name not in done:
                result = find_one(bug, recorded, tree, minutes)
                with results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(result)) + "\n")
                print(result, flush=True)


app()
