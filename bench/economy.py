"""How much there is to this code, and what it costs: the figures by which its mechanisms are kept few.

    python -m bench.economy [--write] [--quick]

Most are counted in the syntax tree of the four layers, never by names alone:

- **Import lines**: those of import statements, all lines of each.
- **Constants of liveness**: constants of a module, in seconds or a timedelta, that a moment is compared with in a
  condition about a claim, a lease, a mark or a change under way: for how long its holder is believed to live.
- **Containers that expire**: dictionaries of a module or an instance, whose values are a moment, or have one. Kinds of
  reads that are kept in the read cache are declarations, and not counted.
- **Loops that try again**: loops around a `try` that are left when it succeeds and go on after an exception; not those
  that go on with the next thing of several.

The rest is measured as the benchmarks functions, cost and distance do. `--quick` only counts in the tree.
"""

import argparse
import ast
import asyncio
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from bench import cost, distance, functions
from bench.heat import add_board, new_site
from bench.services.measurement import repository_root
from tests.client import Client
from tests.comments import post
from tests.engines import EnginePair, running_pair
from tests.queries import CAST_VOTE, DRAW_MATCHUP, UPDATE_PROFILE
from tests.season import EventEditor, submit

ROOT: Final = repository_root()
RESULTS: Final = Path(__file__).parent / "results" / "economy.md"
HEAD: Final = """# Economy

    python -m bench.economy --write

How much there is to this code, and what it costs. `bench/economy.py` says what is counted and how.

| | |
|---|---:|
"""
ABOUT_WORK: Final = re.compile(r"(^|_)(claim|holder|lease|mark|term)(ed|s|_|$)")
"""In a name: that the expression is about who does some work."""
AGES: Final = {"at_least"}
"""In a condition: that it compares for how long something has been as it is; see `Age`."""
CONDITIONS: Final = {"outside", "less", "more"}
"""Functions that compare a stored value."""
MOMENTS: Final = {"float", "datetime", "date"}
DICTIONARIES: Final = {"BoundedDict", "OrderedDict", "dict"}
RATE: Final = 50
VOTES_EACH: Final = 10
NOTHING_KEPT: Final = 11.0
"""Seconds after which no cache that requests wait for has anything left."""
VOTE: Final = "castVote, with the pair's record and progress"
DISTANT: Final = (VOTE, "topProducts")


# ── counted in the syntax tree ──


@dataclass(frozen=True)
class Module:
    """A module of the product."""

    name: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @property
    def import_lines(self) -> int:
        statements = (node for node in ast.walk(self.tree) if isinstance(node, ast.Import | ast.ImportFrom))
        return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in statements)

    @cached_property
    def durations(self) -> dict[str, str]:
        """The module's constants that are a number or a timedelta, as they are written."""
        found = {}
        for node in self.tree.body:
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            value = getattr(node, "value", None)
            if isinstance(target, ast.Name) and value is not None and _is_duration(value):
                found[target.id] = ast.unparse(value)
        return found

    @cached_property
    def attributes(self) -> dict[str, str]:
        """The attributes that begin as a constant of the module."""
        return {
            node.targets[0].attr: node.value.id
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in self.durations
        }

    @cached_property
    def imported(self) -> dict[str, tuple[str, str]]:
        """Where each name comes from that the module imports: a module and a name there."""
        statements = (node for node in ast.walk(self.tree) if isinstance(node, ast.ImportFrom))
        return {
            alias.asname or alias.name: (f"{node.module}", alias.name) for node in statements for alias in node.names
        }


def product() -> dict[str, Module]:
    files = (path for package in functions.PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    names = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in files}
    return {name: Module(name, path.read_text(encoding="utf-8")) for path, name in names.items()}


def _is_duration(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id == "timedelta"
    return isinstance(value, ast.Constant) and type(value.value) in (int, float)


def _names(node: ast.AST) -> Iterator[str]:
    """Every name, attribute and text in an expression."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.Attribute):
            yield each.attr
        elif isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value


def _comparisons(node: ast.AST) -> Iterator[ast.expr]:
    """The outermost conditions that compare something."""
    for child in ast.iter_child_nodes(node):
        is_condition = isinstance(child, ast.BoolOp | ast.Compare) or (
            isinstance(child, ast.Call) and isinstance(child.func, ast.Name) and child.func.id in CONDITIONS
        )
        if is_condition and isinstance(child, ast.expr):
            yield child
        else:
            yield from _comparisons(child)


def liveness(modules: Mapping[str, Module]) -> dict[str, str]:
    """Each constant of liveness and its value."""
    found: dict[str, str] = {}
    for module in modules.values():
        for condition in _comparisons(module.tree):
            has_moments = not AGES.isdisjoint(_names(condition)) or any(
                isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub) for node in ast.walk(condition)
            )
            if not has_moments or not any(ABOUT_WORK.search(name) for name in _names(condition)):
                continue
            for node in ast.walk(condition):
                if isinstance(node, ast.Name):
                    home, name = module.imported.get(node.id, (module.name, node.id))
                    if home in modules and name in modules[home].durations and name.isupper():
                        found[f"{home}.{name}"] = modules[home].durations[name]
                elif isinstance(node, ast.Attribute) and node.attr in module.attributes:
                    name = module.attributes[node.attr]
                    found[f"{module.name}.{name}"] = module.durations[name]
    return found


def expiring(modules: Mapping[str, Module]) -> list[str]:
    """Where each container is made whose entries expire."""
    return [
        f"{module.name}:{node.lineno}"
        for module in modules.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.AnnAssign)
        and (isinstance(node.target, ast.Attribute) or node in module.tree.body)
        and _keeps_moments(node, MOMENTS | _records_with_moments(module))
    ]


def _records_with_moments(module: Module) -> set[str]:
    """The module's classes that declare a field which is a moment."""
    return {
        each.name
        for each in module.tree.body
        if isinstance(each, ast.ClassDef)
        and any(
            isinstance(field, ast.AnnAssign)
            and isinstance(field.annotation, ast.Name)
            and field.annotation.id in MOMENTS
            for field in each.body
        )
    }


def _keeps_moments(made: ast.AnnAssign, moments: set[str]) -> bool:
    """Whether it is a dictionary whose values are a moment, or a tuple that has one."""
    kind = made.annotation
    if not (isinstance(kind, ast.Subscript) and isinstance(kind.value, ast.Name) and kind.value.id in DICTIONARIES):
        return False
    value = kind.slice.elts[-1] if isinstance(kind.slice, ast.Tuple) else kind.slice
    if isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name) and value.value.id == "tuple":
        parts = value.slice.elts if isinstance(value.slice, ast.Tuple) else [value.slice]
        return any(isinstance(part, ast.Name) and part.id in moments for part in parts)
    return isinstance(value, ast.Name) and value.id in moments


def repeating(modules: Mapping[str, Module]) -> list[str]:
    """Where each loop is that tries again."""
    return [
        f"{module.name}:{node.lineno}"
        for module in modules.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.For | ast.AsyncFor | ast.While)
        and any(
            isinstance(part, ast.Try) and _is_repeated(part) and not _is_about_next(node, part)
            for part in _own_parts(node.body)
        )
    ]


def _own_parts(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a loop, without those of functions, classes and loops in it."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If | ast.With | ast.AsyncWith | ast.Try):
            for name in ("body", "orelse", "finalbody"):
                yield from _own_parts(getattr(statement, name, []))


def _is_about_next(loop: ast.For | ast.AsyncFor | ast.While, tried: ast.Try) -> bool:
    """Whether the loop goes on with the next thing, since what it tries has to do with one."""
    if isinstance(loop, ast.While):
        return False
    about = {*_names(loop.target)}
    for part in loop.body:
        if isinstance(part, ast.Assign) and not about.isdisjoint(_names(part.value)):
            about.update(name for target in part.targets for name in _names(target))
    return not about.isdisjoint(name for part in tried.body for name in _names(part))


def _is_repeated(tried: ast.Try) -> bool:
    """Whether the loop goes on after an exception that this catches, and not after a success."""
    leaves = any(isinstance(part, ast.Return | ast.Break) for part in _own_parts([*tried.body, *tried.orelse]))
    for handler in tried.handlers:
        last = handler.body[-1]
        if isinstance(last, ast.Continue) or (leaves and not isinstance(last, ast.Return | ast.Raise | ast.Break)):
            return True
    return False


def counted(modules: Mapping[str, Module]) -> dict[str, str]:
    lines = sum(module.lines for module in modules.values())
    imports = sum(module.import_lines for module in modules.values())
    alive = liveness(modules)
    values = ", ".join(alive.values())
    return {
        "lines of Python in the four layers": f"{lines:,}",
        "of them lines of imports": f"{imports:,}, {imports / lines:.1%}",
        f"constants of liveness ({values})": str(len(alive)),
        "containers that expire": str(len(expiring(modules))),
        "loops that try again": str(len(repeating(modules))),
    }


# ── measured ──


def modules_of_requests() -> dict[str, str]:
    """Of a page of comments, a vote and a scoring."""
    recorded = functions.record_all()
    return {
        f"modules that a {kind} runs through, and functions": (
            f"{len(calls.modules)}, {len({code for _, _, code in calls.recorded})}"
        )
        for kind, calls in recorded.items()
    }


class Pace:
    """Turns of `RATE` a second, as operations come to a service that is in use."""

    def __init__(self) -> None:
        self._begun = asyncio.get_running_loop().time()

    async def turn(self, number: int) -> None:
        await asyncio.sleep(self._begun + number / RATE - asyncio.get_running_loop().time())


async def units(engines: EnginePair) -> dict[str, str]:
    """What a member who has a profile writes, with all that follows from it; and the process that has nothing to do."""
    async with new_site(engines) as site:
        idle = (await cost.observed(site, site.client.visitor())).values()
    async with new_site(engines) as site:
        meter = cost.Meter(site)
        for number, member in enumerate(meter.members):
            await member.ask(UPDATE_PROFILE, input={"name": f"Member {number}"})
        written = {
            f"write units of a vote ({VOTES_EACH} a visitor)": await vote_cost(meter),
            "write units of a comment of 300 bytes": await comment_cost(meter),
            "write units of a prediction": await prediction_cost(meter),
        }
    dollars = sum(each.reads * cost.READ_PRICE + each.writes * cost.WRITE_PRICE for each in idle)
    return {
        **{name: f"{one.writes:.1f}" for name, one in written.items()},
        "dollars a month of a process with nothing to do": f"{dollars * cost.MONTH_SECONDS / 1e6:.2f}",
    }


async def vote_cost(meter: cost.Meter) -> cost.Cost:
    await add_board(meter.site, "b", 100)
    pace, rounds = Pace(), meter.members[: cost.OPERATIONS // VOTES_EACH] * VOTES_EACH

    async def vote(client: Client, number: int) -> Any:
        await pace.turn(number)
        ballot = await client.ask(DRAW_MATCHUP, board="b")
        return await client.ask(CAST_VOTE, token=ballot["token"], verdict="LEFT")

    return await meter.each(vote, rounds)


async def comment_cost(meter: cost.Meter) -> cost.Cost:
    pace = Pace()

    async def comment(client: Client, number: int) -> Any:
        await pace.turn(number)
        return await post(client, product=f"p{number % 10}", body=cost.BODY)

    return await meter.each(comment, meter.members)


async def prediction_cost(meter: cost.Meter) -> cost.Cost:
    editor = EventEditor(meter.site.client)
    event = (await editor.event())["id"]
    picks = [((await editor.match(event, "A", "B"))["id"], 1) for _ in range(10)]
    pace = Pace()

    async def predict(client: Client, number: int) -> Any:
        await pace.turn(number)
        return await submit(client, event, picks)

    return await meter.each(predict, meter.members)


async def dependent_calls() -> dict[str, str]:
    operations = [operation for operation in distance.OPERATIONS if operation.name in DISTANT]
    distances = await distance.run(distance.Plan(0.04, 4, NOTHING_KEPT, operations))
    return {
        f"calls that {name.partition(',')[0]} waits for when nothing is kept": f"{later:.1f}"
        for name, (_, later) in distances.items()
    }


async def measured() -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder, running_pair(Path(folder)) as engines:
        return {**await units(engines), **await dependent_calls()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--quick", action="store_true", help="only count in the syntax tree, and say where")
    options = parser.parse_args()
    modules = product()
    rows = counted(modules)
    if options.quick:
        for found in (liveness(modules), expiring(modules), repeating(modules)):
            print("\n".join(found), end="\n\n")
    else:
        rows |= modules_of_requests() | asyncio.run(measured())
    text = HEAD + "\n".join(f"| {name} | {value} |" for name, value in rows.items()) + "\n"
    print(text)
    if options.write:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
