"""The shape of the code: short functions, no import cycles, tables that name what there is, prose in one style."""

import ast
import re
import subprocess
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from math import ceil
from pathlib import Path

import pytest

from resolvers.whole.jobs import JOB_KINDS
from tests.generated import ROOT
from tests.planted.bugs import Bug, read_bugs

LAYERS = ("server", "schema", "resolvers", "datastore")
LONGEST_FUNCTION = 50
NINETIETH_PERCENTILE = 16
LARGE_MODULE = 600
RECURSIVE_TYPES = frozenset(
    {
        "schema.comments",
        "schema.pickem",
        "schema.vocabulary",
        "schema.members",
        "schema.people",
        "schema.framework.lazy",
    }
)
"""GraphQL's mutually recursive types import each other's names, lazily."""

NO_VERBS = frozenset(["As", "Comments", "Its", "Records", "Reports"])
"""First words of docstrings that look like verbs in the third person."""


@cache
def modules() -> Mapping[str, Path]:
    listed = subprocess.run(["git", "ls-files", *LAYERS], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [Path(line) for line in listed.splitlines() if line.endswith(".py")]
    return {".".join(path.with_suffix("").parts).removesuffix(".__init__"): ROOT / path for path in paths}


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def functions() -> Iterator[tuple[str, int]]:
    for name, path in modules().items():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                yield f"{name}.{node.name}", node.end_lineno - node.lineno + 1


def test_functions_are_short() -> None:
    """Nine of ten functions have at most 16 lines, and none has more than 50."""
    lengths = sorted(length for _, length in functions())
    assert [f"{name}: {length}" for name, length in functions() if length > LONGEST_FUNCTION] == []
    assert lengths[ceil(len(lengths) * 0.9) - 1] <= NINETIETH_PERCENTILE


@pytest.mark.filterwarnings("default")
def test_large_modules_are_pointed_out() -> None:
    """One idea is one module, however long. More than 600 lines may be two: that is a warning, and no fault."""
    for name, path in modules().items():
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > LARGE_MODULE:
            warnings.warn(f"{name} has {lines} lines", stacklevel=1)


def test_a_package_s_table_names_all_of_its_modules() -> None:
    """And no others: a reader looks there first."""
    tables = {package: ast.get_docstring(tree(path)) or "" for package, path in modules().items()}
    tables = {package: text for package, text in tables.items() if "\n| module " in text}
    assert {"datastore.pickem", "resolvers.pickem"} <= tables.keys()
    for package, text in tables.items():
        named = re.findall(r"^\| `?(\w+)`? +\|", text[text.index("\n| module ") :], re.MULTILINE)[1:]
        assert sorted(named) == sorted(name.rpartition(".")[2] for name in modules() if _parent(name) == package)


def _parent(module: str) -> str:
    return module.rpartition(".")[0]


def test_docstrings_of_functions_command() -> None:
    """If they begin with a verb: "Count a vote", not "Counts a vote". A noun phrase such as "A page" is as good."""
    first_words = {name: text.split()[0].strip(".,;:") for name, text in _docstrings()}
    verbs = {word for word in first_words.values() if not word.endswith("s")}
    third_person = {
        name: word
        for name, word in first_words.items()
        if word not in NO_VERBS and not verbs.isdisjoint({word.removesuffix(end) for end in ("s", "es")} - {word})
    }
    assert third_person == {}


def _docstrings() -> Iterator[tuple[str, str]]:
    """Those of functions, except for commands, whose docstring is their text of help."""
    for name, path in modules().items():
        if not name.startswith("server.commands."):
            for node in ast.walk(tree(path)):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (text := ast.get_docstring(node)):
                    yield f"{name}.{node.name}:{node.lineno}", text


def test_modules_import_each_other_without_cycles() -> None:
    """Imports for type checkers count too; only GraphQL's recursive types may form a cycle."""
    circular = []
    arrows = {name: _imported(path) - {name} for name, path in modules().items()}
    for name in arrows:
        reached: set[str] = set()
        waiting = [name]
        while waiting:
            for other in arrows[waiting.pop()] - reached:
                reached.add(other)
                waiting.append(other)
        if name in reached and name not in RECURSIVE_TYPES:
            circular.append(name)
    assert circular == []


def _imported(path: Path) -> set[str]:
    known, found = modules(), set[str]()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module:
            submodules = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= submodules & set(known)
            if node.module in known and submodules - set(known):
                found.add(node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & set(known)
    return found


def test_each_job_s_function_is_listed_as_a_kind() -> None:
    """The runner knows no other: a job that is missing there works until a process stops, and never goes on."""
    written = {
        node.name
        for path in modules().values()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.AsyncFunctionDef)
        and node.name.endswith("_job")
        and [ast.unparse(each.annotation) for each in node.args.args if each.annotation] == ["Services", "JobRun"]
    }
    assert written == {getattr(work, "func", work).__name__ for work in JOB_KINDS.values()}


def test_messages_are_written_where_they_are_raised() -> None:
    """No `message = …` before `raise X(message)`: ruff can only demand the opposite."""
    apart = [
        f"{module}:{after.lineno}"
        for module, path in modules().items()
        for node in ast.walk(tree(path))
        for body in (getattr(node, "body", None), getattr(node, "orelse", None))
        if isinstance(body, list)
        for before, after in pairwise(body)
        if isinstance(before, ast.Assign)
        and isinstance(before.value, ast.Constant | ast.JoinedStr)
        and isinstance(after, ast.Raise)
        and _raises(after, before.targets[0])
    ]
    assert apart == []


def _raises(statement: ast.Raise, target: ast.expr) -> bool:
    """Whether the raised exception's first argument is this variable."""
    raised = statement.exc
    if not (isinstance(raised, ast.Call) and raised.args and isinstance(target, ast.Name)):
        return False
    first = raised.args[0]
    return isinstance(first, ast.Name) and first.id == target.id


@pytest.mark.parametrize("bug", read_bugs(), ids=lambda bug: bug.name)
def test_a_bug_to_be_planted_is_in_the_code_as_it_is(bug: Bug) -> None:
    assert bug.lines(ROOT)
