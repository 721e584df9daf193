"""Candidates for planted bugs: small changes of a function's syntax tree, of five kinds.

operator    `+` for `-`, `and` for `or`, `==` for `!=`, `in` for `not in`, `is` for `is not`
condition   the opposite of what an `if`, a `while` or a comprehension asks
await       a call whose answer nobody uses is not made; another is not awaited
order       two neighbouring statements, or the first two arguments of a call, change places
bound       `<` for `<=`, `>` for `>=`, or a number that is one more
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

KINDS = ("operator", "condition", "await", "order", "bound")

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign)
OTHER_OPERATOR: dict[type[ast.AST], tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "//"), ast.FloorDiv: ("//", "*"), ast.Mod: ("%", "//"),
    ast.BitOr: ("|", "&"), ast.BitAnd: ("&", "|"), ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"), ast.And: ("and", "or"), ast.Or: ("or", "and"),
}  # fmt: skip
OTHER_BOUND: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
}  # fmt: skip


@dataclass(frozen=True)
class Change:
    """Lines of a function, and what they become; `lines` are their numbers in the file."""

    kind: str
    function: str
    lines: range
    original: str
    changed: str


@dataclass(frozen=True)
class Edit:
    """A text between two positions of the file, in bytes, and the one in its place."""

    kind: str
    start: int
    end: int
    text: str


class Source:
    """A file's text and its tree, whose positions count bytes of a line."""

    def __init__(self, text: str) -> None:
        self.bytes = text.encode()
        self.tree = ast.parse(text)
        self.starts = [0]
        for line in self.bytes.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def start(self, node: ast.AST) -> int:
        return self.starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined, no-any-return]

    def end(self, node: ast.AST) -> int:
        return self.starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined, no-any-return]

    def text(self, start: int, end: int) -> str:
        return self.bytes[start:end].decode()

    def line(self, position: int) -> int:
        """Return the number of the line, from 1."""
        return next(number for number, start in enumerate(self.starts) if start > position)


def changes(text: str) -> Iterator[Change]:
    """Yield each change of a file that compiles, and whose lines stand once in their function."""
    source = Source(text)
    for name, function in functions(source.tree):
        whole = source.text(source.start(function), source.end(function))
        for edit in _edits(source, function):
            first, last = source.line(edit.start), source.line(edit.end - 1)
            begin, finish = source.starts[first - 1], source.starts[last]
            original = source.text(begin, finish)
            changed = source.text(begin, edit.start) + edit.text + source.text(edit.end, finish)
            if whole.count(original.rstrip("\n")) == 1 and original != changed and _compiles(source, edit):
                yield Change(edit.kind, name, range(first, last + 1), original.rstrip("\n"), changed.rstrip("\n"))


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield the functions and methods with their names, but not functions inside a function."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, FUNCTIONS):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")
        elif not isinstance(node, ast.expr):
            yield from functions(node, prefix)


def _compiles(source: Source, edit: Edit) -> bool:
    try:
        compile(source.bytes[: edit.start] + edit.text.encode() + source.bytes[edit.end :], "changed", "exec")
    except SyntaxError:
        return False
    return True


def _edits(source: Source, function: ast.AST) -> Iterator[Edit]:
    for node in _executed(function):
        yield from _operators(source, node)
        yield from _conditions(source, node)
        yield from _awaits(source, node)
        yield from _orders(source, node)
        yield from _bounds(source, node)


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below this one, without annotations, decorators and defaults."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "args") and not isinstance(node, ast.Call):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child
                yield from _executed(child)


def _between(source: Source, kind: str, left: ast.AST, right: ast.AST, change: tuple[str, str]) -> Iterator[Edit]:
    """Change the operator that stands between two operands."""
    start, end = source.end(left), source.start(right)
    old, new = change
    text = source.text(start, end)
    if text.count(old) == 1 and "#" not in text:
        yield Edit(kind, start, end, text.replace(old, new))


def _operators(source: Source, node: ast.AST) -> Iterator[Edit]:
    match node:
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OTHER_OPERATOR:
            if not any(isinstance(side, ast.JoinedStr) or _is_text(side) for side in (left, right)):
                yield from _between(source, "operator", left, right, OTHER_OPERATOR[type(op)])
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in OTHER_OPERATOR:
            yield from _between(source, "operator", left, right, OTHER_OPERATOR[type(op)])
        case ast.BoolOp(op=op, values=[left, right, *_]):
            yield from _between(source, "operator", left, right, OTHER_OPERATOR[type(op)])


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _conditions(source: Source, node: ast.AST) -> Iterator[Edit]:
    asked: list[ast.expr] = []
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            asked = [test]
        case ast.comprehension(ifs=ifs):
            asked = ifs
    for test in asked:
        start, end = source.start(test), source.end(test)
        yield Edit("condition", start, end, f"not ({source.text(start, end)})")


def _awaits(source: Source, node: ast.AST) -> Iterator[Edit]:
    match node:
        case ast.Expr(value=ast.Await()):
            yield Edit("await", source.start(node), source.end(node), "pass")
        case ast.Assign(value=ast.Await() as awaited) | ast.Return(value=ast.Await() as awaited):
            yield Edit("await", source.start(awaited), source.start(awaited.value), "")


def _orders(source: Source, node: ast.AST) -> Iterator[Edit]:
    for block in (getattr(node, "body", None), getattr(node, "orelse", None), getattr(node, "finalbody", None)):
        if isinstance(block, list):
            for first, second in pairwise(block):
                if _has_effect(first) and _has_effect(second) and not _needs(second, first):
                    yield _swapped(source, first, second)
    match node:
        case ast.Call(args=[first, second, *_]):
            if not isinstance(first, ast.Starred) and not isinstance(second, ast.Starred):
                yield _swapped(source, first, second)


def _has_effect(statement: ast.AST) -> bool:
    """Whether a simple statement calls something, or changes an object: two that do not may stand in any order."""
    return isinstance(statement, SIMPLE) and any(
        isinstance(node, ast.Call)
        or (isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store))
        for node in ast.walk(statement)
    )


def _needs(second: ast.AST, first: ast.AST) -> bool:
    """Whether the second statement reads a name that the first one sets; a docstring stays first, too."""
    stored = {node.id for node in ast.walk(first) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return docstring or any(isinstance(node, ast.Name) and node.id in stored for node in ast.walk(second))


def _swapped(source: Source, first: ast.AST, second: ast.AST) -> Edit:
    start, first_end, second_start, end = (
        source.start(first),
        source.end(first),
        source.start(second),
        source.end(second),
    )
    between = source.text(first_end, second_start)
    return Edit("order", start, end, source.text(second_start, end) + between + source.text(start, first_end))


def _bounds(source: Source, node: ast.AST) -> Iterator[Edit]:
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in OTHER_BOUND:
            yield from _between(source, "bound", left, right, OTHER_BOUND[type(op)])
        case ast.Constant(value=int(number)) if not isinstance(node.value, bool):
            yield Edit("bound", source.start(node), source.end(node), str(number + 1))
