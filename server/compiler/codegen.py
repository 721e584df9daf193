"""A plan as Python source: one specialised function per object type and place, straight lines and loops.

    fill_n(s, o, p)      the fields of the object `o` at the path `p`, each under its own care for errors
    complete_n(s, v, p)  the value of a field, as its type wants it
    list_n(s, v, p)      the items of a list
    plain_n(s, v, p)     the same for what is plain (see plan.py), which needs no care
    settle_n(s, j, vs)   the values of a field that was waited for, each put in its place

`s` is the run (running.py). A path is a chain of (before, key, object type), just what graphql-core's own path is.
Whatever a value is not (not the record, not a list, to be waited for), is handed to graphql-core at that very place:
`s.core`. An exception ends in `s.failed`, which is graphql-core's handling of a field's error.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from graphql import (
    GraphQLSchema,
    get_named_type,
    is_abstract_type,
    is_leaf_type,
    is_list_type,
    is_non_null_type,
)

from server.compiler.fields import ANYTHING, ATTRIBUTE, OF_TYPE, RESOLVER, TYPENAME, kinds_of
from server.compiler.leaves import COMMON, leaf, names_of, plain, tested
from server.compiler.plan import Selection, Step, dispatch
from server.compiler.structs import PLACE, shape
from server.compiler.writer import Text

_NEAR = "type=type, str=str, int=int"
"""Parameters that nobody gives: a name of a function's own is found faster than one of Python's, 1 µs for 100 rows."""
_ROOM = 6
"""Blocks within blocks in one function; Python itself allows 20."""


class Odd(Exception):
    """Plain code met a value that is not plain. Nothing is told: graphql-core looks at it again."""


@dataclass(frozen=True, slots=True)
class _At:
    """A value in the text: of which field, in which variable, at which path."""

    step: Step
    constant: str
    v: str
    path: str

    def call(self, method: str, type_: str) -> str:
        return f"s.{method}({self.constant}, {type_}, {self.v}, {self.path})"


@dataclass(frozen=True, slots=True)
class _In:
    """A value in plain code: in which variable, at which path, with room for how many blocks within blocks."""

    v: str
    path: str
    room: int

    def inside(self) -> _In:
        return _In(self.v, self.path, self.room - 1)


class Source:
    """The text of a plan, and where its functions are found once it is executed."""

    def __init__(self, schema: GraphQLSchema, selections: list[Selection]) -> None:
        self._schema = schema
        self.text = Text()
        self.text.names |= {"COMMON": COMMON, "plain": plain, "Odd": Odd}
        self._fills: dict[int, str] = {}
        self._plains: dict[tuple[int, str], str] = {}
        self._leaves: dict[str, Any] = {}
        self._enums: dict[str, Any] = {}
        self._tables: dict[str, dict[Any, str]] = {}
        self._completions: dict[Step, str] = {}
        self._settlements: dict[Step, str] = {}
        self.roots = [self._fill(selection) for selection in selections]

    @property
    def steps(self) -> Iterable[Step]:
        """The fields whose values are completed by a function of their own."""
        return self._completions

    def functions(self) -> dict[str, Any]:
        """The text, executed: each function by its name."""
        names = self.text.names
        exec(compile(str(self.text), "<plan>", "exec"), names)  # noqa: S102 - a text of our own, made of names alone
        for table, functions in self._tables.items():
            names[table] = {key: names[function] for key, function in functions.items()}
        for step, name in self._completions.items():
            step.complete = names[name]
        for step, name in self._settlements.items():
            step.settle = names[name]
        return names

    # ── with care: `fill`, `complete`, `list` ──

    def _fill(self, selection: Selection) -> str:
        name = self._fills.get(id(selection))
        if name is not None:
            return name
        name = self._fills[id(selection)] = self.text.name("fill_")
        # What a function calls is written before it, so that the text reads from the leaves to the root.
        completions = {step.key: self._completion(step) for step in selection.steps.values() if _is_called(step)}
        with self.text.function(f"{name}(s, o, p)"):
            self.text(f'"""{selection.type.name}"""')
            self.text("d = {}")
            for step in selection.steps.values():
                self._step(step, completions.get(step.key, ""))
            self.text("return d")
        return name

    def _step(self, step: Step, completion: str) -> None:
        text, source = self.text, step.source
        constant = self._constant(step)
        if source.kind == TYPENAME:
            text(f"d[{step.key!r}] = {step.parent.name!r}")
            return
        if step.is_waited_for:
            text(f"d[{step.key!r}] = None")
            text(f"s.pending.append(({constant}, o, d, p))")
            return
        with text.block("try:"):
            text(f"v = {self._had(step, constant)}")
            inner = get_named_type(step.type)
            if completion:
                call = f"v = {completion}(s, v, (p, {step.key!r}, {step.parent.name!r}))"
                test = tested(inner, "v") if is_leaf_type(_bare(step.type)) else None
                text(f"if not ({test}): {call}" if test else call)
            else:
                self._leaf(step.type, "v", f"raise s.null({constant})" if is_non_null_type(step.type) else "")
        with text.block("except Exception as e:"):
            text(f"v = s.failed({constant}, d, p, e)")
        text(f"d[{step.key!r}] = v")

    def _had(self, step: Step, constant: str) -> str:
        """An expression for a field's value."""
        source = step.source
        if source.kind in (ATTRIBUTE, OF_TYPE):
            return self._read(step, "o")
        if source.kind == ANYTHING:
            return f"s.asked({constant}, o, p)"
        assert source.resolution is not None  # noqa: S101 - RESOLVER
        resolver = self.text.constant(_name_of(source.resolution.resolver), source.resolution.resolver)
        record = ", o" if source.resolution.of_record else ""
        takes = step.definition.args or source.resolution.parameters.window
        return f"{resolver}(s.ctx{record}{f', **s.arguments({constant})' if takes else ''})"

    def _constant(self, step: Step) -> str:
        return self.text.constant(f"step_{step.name.strip('_')}_", step)

    def _completion(self, step: Step) -> str:
        if step in self._completions:
            return self._completions[step]
        name = self._completions[step] = self.text.name("complete_")
        inside = self._prepared(step, step.type)
        with self.text.function(f"{name}(s, v, p)"):
            self._completed(_At(step, self._constant(step), "v", "p"), step.type, inside)
            self.text("return v")
        if step.is_waited_for and step.plain_inside:
            self._settlements[step] = self._settlement(step)
        return name

    def _settlement(self, step: Step) -> str:
        name = self.text.name("settle_")
        with self.text.function(f"{name}(s, job, values, {_NEAR})"):
            if step.notes:
                self.text("noted = len(s.pending)")
            with self.text.block("for (_, _, d, p), value in zip(job, values):"):
                with self.text.block("try:"):
                    self.text("v = value")
                    path = self._path(step, f"(p, {step.key!r}, {step.parent.name!r})")
                    self._plain_position(step, step.type, _In("v", path, _ROOM - 1))
                    self.text(f"if type(d) is dict: d[{step.key!r}] = v")
                    self.text(f"else: d.{PLACE}{step.place} = v")
                with self.text.block("except Exception:"):
                    if step.notes:
                        self.text("del s.pending[noted:]")
                    self.text(f"s.put({self._constant(step)}, d, p, value)")
                if step.notes:
                    self.text("noted = len(s.pending)")
        return name

    def _prepared(self, step: Step, type_: Any) -> Any:
        """The names of the functions that a completion calls, written before it."""
        type_ = _bare(type_)
        if is_leaf_type(type_):
            return None
        if step.plain_inside:
            return self._plain(step, type_)
        if is_list_type(type_):
            return self._list(step, type_)
        return {name: self._fill(selection) for name, selection in step.selections.items()}

    def _completed(self, at: _At, type_: Any, inside: Any) -> None:
        """Statements that complete a value, whose type this is."""
        text, bare, v = self.text, _bare(type_), at.v
        handed = f"{v} = {at.call('core', text.constant('type_', bare))}"
        if is_leaf_type(bare):
            self._leaf(type_, v, f"raise s.null({at.constant})" if is_non_null_type(type_) else "")
            return
        if at.step.plain_inside:
            self._tried(at, inside, handed)
        elif is_list_type(bare):
            with text.block(f"if type({v}) is list or type({v}) is tuple:"):
                text(f"{v} = {inside}(s, {v}, {at.path})")
            with text.block(f"elif {v} is not None:"):
                text(handed)
        elif is_abstract_type(bare):
            self._abstract(at, bare, inside, handed)
        else:
            self._object(at, bare, inside[bare.name], handed)
        if is_non_null_type(type_):
            with text.block(f"if {v} is None:"):
                text(f"raise s.null({at.constant})")

    def _tried(self, at: _At, function: str, handed: str) -> None:
        text, v = self.text, at.v
        with text.block(f"if {v} is not None:"):
            if at.step.notes:
                text("noted = len(s.pending)")
            with text.block("try:"):
                text(f"{v} = {function}(s, {v}, {at.path})")
            with text.block("except Exception:"):
                if at.step.notes:
                    text("del s.pending[noted:]")
                text(handed)

    def _object(self, at: _At, type_: Any, fill: str, handed: str) -> None:
        text, v = self.text, at.v
        kinds = kinds_of(type_)
        if kinds is not None:
            test = f"isinstance({v}, {text.constant('kinds_', kinds)})"
        elif type_.is_type_of is None:
            test = f"type({v}) in COMMON or plain({v})"
        else:
            test = at.call("is_of", text.constant("type_", type_))
        with text.block(f"if {v} is not None:"):
            with text.block(f"if {test}:"):
                text(f"{v} = {fill}(s, {v}, {at.path})")
            with text.block("else:"):
                text(handed)

    def _abstract(self, at: _At, type_: Any, fills: dict[str, str], handed: str) -> None:
        text, v = self.text, at.v
        kinds, names = text.name("by_kind_"), text.name("by_name_")
        self._tables[kinds] = {kind: fills[name] for kind, name in dispatch(self._schema, type_).items()}
        self._tables[names] = fills
        told = at.call("runtime", f"{text.constant('type_', type_)}, {names}")
        with text.block(f"if {v} is not None:"):
            text(f"f = {kinds}.get(type({v})) or {told}")
            with text.block("if f is not None:"):
                text(f"{v} = f(s, {v}, {at.path})")
            with text.block("else:"):
                text(handed)

    def _list(self, step: Step, type_: Any) -> str:
        item = type_.of_type
        inside = self._prepared(step, item)
        name = self.text.name("list_")
        constant = self._constant(step)
        with self.text.function(f"{name}(s, items, p)"):
            self.text("out = []")
            with self.text.block("for i, v in enumerate(items):"):
                with self.text.block("try:"):
                    self._completed(_At(step, constant, "v", "(p, i, None)"), item, inside)
                with self.text.block("except Exception as e:"):
                    self.text(f"v = s.failed_item({constant}, {self.text.constant('type_', item)}, out, i, p, e)")
                self.text("out.append(v)")
            self.text("return out")
        return name

    def _leaf(self, type_: Any, v: str, missing: str = "") -> None:
        """Statements that complete a leaf; `missing` is what to do with null, where it cannot stand."""
        text, bare = self.text, _bare(type_)
        completed = f"{v} = {text.constant(f'leaf_{bare.name}_', self._leaf_of(bare))}({v})"
        test = tested(bare, v)
        if test:
            with text.block(f"if not ({test}):" if missing else f"if {v} is not None and not ({test}):"):
                self._completed_leaf(v, completed, missing)
        elif named := names_of(bare):
            kind, names = text.constant("kind_", named[0]), self._enum_names(bare, named[1])
            text(f"if type({v}) is {kind}: {v} = {names}[{v}]")
            with text.block("else:" if missing else f"elif {v} is not None:"):
                self._completed_leaf(v, completed, missing)
        else:
            with text.block(f"if {v} is not None:"):
                text(completed)
            if missing:
                text(f"if {v} is None: {missing}")

    def _completed_leaf(self, v: str, completed: str, missing: str) -> None:
        self.text(completed)
        if missing:
            self.text(f"if {v} is None: {missing}")

    def _leaf_of(self, type_: Any) -> Any:
        return self._leaves.setdefault(type_.name, leaf(type_))

    def _enum_names(self, type_: Any, names: dict[Any, str]) -> str:
        return self.text.constant("names_", self._enums.setdefault(type_.name, names))

    # ── without: `plain` ──

    def _plain(self, step: Step, type_: Any) -> str:
        place = (id(step), str(type_))
        if place not in self._plains:
            name = self.text.name("plain_")
            self._plains[place] = name
            with self.text.function(f"{name}(s, v, p, {_NEAR})"):
                self._plain_value(step, type_, _In("v", "p", _ROOM))
                self.text("return v")
        return self._plains[place]

    def _plain_position(self, step: Step, type_: Any, at: _In) -> None:
        """Statements that complete a value, which may be null if the type says so."""
        text, bare, v = self.text, _bare(type_), at.v
        if is_leaf_type(bare):
            self._leaf(type_, v, "raise Odd" if is_non_null_type(type_) else "")
        elif at.room <= 0:
            call = f"{v} = {self._plain(step, bare)}(s, {v}, {at.path})"
            text(f"if {v} is not None: {call}" if bare is type_ else call)
        elif bare is type_:
            with text.block(f"if {v} is not None:"):
                self._plain_value(step, bare, at.inside())
        else:
            self._plain_value(step, bare, at)

    def _plain_value(self, step: Step, type_: Any, at: _In) -> None:
        """Statements that complete a value, which is not null."""
        text, v = self.text, at.v
        if is_list_type(type_):
            text(f"if type({v}) is not list and type({v}) is not tuple: raise Odd")
            out, item, place = text.name("out"), text.name("v"), text.name("i")
            text(f"{out} = []")
            with text.block(f"for {place}, {item} in enumerate({v}):" if step.notes else f"for {item} in {v}:"):
                path = self._path(step, f"({at.path}, {place}, None)")
                self._plain_position(step, type_.of_type, _In(item, path, at.room - 1))
                text(f"{out}.append({item})")
            text(f"{v} = {out}")
        elif is_abstract_type(type_):
            kind = text.name("kind")
            text(f"{kind} = {text.constant('by_kind_', dispatch(self._schema, type_))}.get(type({v}))")
            for place_, selection in enumerate(step.selections.values()):
                with text.block(f"{'elif' if place_ else 'if'} {kind} == {selection.type.name!r}:"):
                    self._plain_object(selection, at.inside())
            text("else: raise Odd")
        else:
            kinds = kinds_of(type_)
            if kinds is not None:
                exact = text.constant("kind_", kinds[-1])
                text(
                    f"if type({v}) is not {exact} and not isinstance({v}, {text.constant('kinds_', kinds)}): raise Odd"
                )
            else:
                text(f"if type({v}) not in COMMON and not plain({v}): raise Odd")
            self._plain_object(step.selections[type_.name], at)

    def _plain_object(self, selection: Selection, at: _In) -> None:
        text, v, waited = self.text, at.v, []
        shown: dict[str, str] = {}
        for step in selection.steps.values():
            if step.source.kind == TYPENAME:
                shown[step.key] = repr(selection.type.name)
            elif step.is_waited_for:
                shown[step.key] = "None"
                waited.append(step)
                self._completion(step)
            else:
                field = text.name("v")
                text(f"{field} = {self._read(step, v)}")
                path = self._path(step, f"({at.path}, {step.key!r}, {selection.type.name!r})")
                self._plain_position(step, step.type, _In(field, path, at.room))
                shown[step.key] = field
        done = text.name("d") if waited else v
        text(f"{done} = {text.constant('shape_', shape(*selection.steps))}({', '.join(shown.values())})")
        for step in waited:
            text(f"s.pending.append(({self._constant(step)}, {v}, {done}, {at.path}))")
        if waited:
            text(f"{v} = {done}")

    def _path(self, step: Step, path: str) -> str:
        """A path is made only where something is noted with it."""
        if not step.notes:
            return "None"
        name = self.text.name("p")
        self.text(f"{name} = {path}")
        return name

    def _read(self, step: Step, record: str) -> str:
        if step.source.kind == OF_TYPE:
            return f"{self.text.constant('of_type_', step.source.function)}({record})"
        name = step.source.attribute
        if name.isidentifier() and not keyword.iskeyword(name):
            return f"{record}.{name}"
        return f"getattr({record}, {name!r})"


def _name_of(resolver: Any) -> str:
    name = getattr(resolver, "__name__", "")
    return f"{name if name.isidentifier() else 'resolver'}_"


def _bare(type_: Any) -> Any:
    return type_.of_type if is_non_null_type(type_) else type_


def _is_called(step: Step) -> bool:
    """Whether the field's value is completed by a function of its own: all but attributes that are leaves."""
    if step.source.kind == TYPENAME:
        return False
    return step.source.kind in (RESOLVER, ANYTHING) or not is_leaf_type(_bare(step.type))
