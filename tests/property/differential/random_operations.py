"""Random operations on any schema: aliases, merging, fragments of both kinds, directives, arguments and variables."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable
from typing import Any

from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLSchema,
    get_named_type,
    is_abstract_type,
    is_leaf_type,
    is_list_type,
    is_non_null_type,
)

MAX_DEPTH = 4


class RandomOperation:
    """One operation as text, with its variables."""

    def __init__(self, schema: GraphQLSchema, seed: int, kind: str = "query", *, max_depth: int = MAX_DEPTH) -> None:
        self._schema = schema
        self._max_depth = max_depth
        self._rng = random.Random(seed)
        self._definitions: dict[str, str] = {}
        self._fragments: dict[str, tuple[str, str]] = {}
        self._aliases = 0
        self._unfinished: list[str] = []
        self.variables: dict[str, Any] = {}
        root = getattr(schema, f"{kind}_type")
        body = (
            self._field(root, next(iter(root.fields.items())), 0) if kind == "subscription" else self._fields(root, 0)
        )
        definitions = ", ".join(f"${name}: {declared}" for name, declared in self._definitions.items())
        self._head = f"{kind} Random{f'({definitions})' if definitions else ''}"
        self._rest = (
            "{ " + body + " }" + "".join(f"\nfragment {n} on {t} {{ {b} }}" for n, (t, b) in self._fragments.items())
        )

    @property
    def text(self) -> str:
        return f"{self._head} {self._rest}"

    def beside(self, others: Iterable[RandomOperation]) -> str:
        """A document with this operation, named Random, after others that share its variables' names."""
        texts = [other.text for other in others]
        names = re.compile(r"\b(Random|F\d+)\b")
        renamed = [names.sub(rf"\g<1>_{index}", text) for index, text in enumerate(texts)]
        return "\n".join([*renamed, self.text])

    def with_directive(self, directive: str) -> str:
        return f"{self._head} {directive} {self._rest}"

    def _fields(self, type_: Any, depth: int) -> str:
        rng, parts = self._rng, []
        fields = list(type_.fields.items()) if hasattr(type_, "fields") else []
        for _ in range(rng.randint(1, 4 if depth < 3 else 2)):
            choice = rng.random()
            if choice < 0.08 or (not fields and choice < 0.4):
                parts.append("__typename")
            elif choice < 0.2 or (not fields) or (is_abstract_type(type_) and choice < 0.6):
                parts.append(self._fragment(type_, depth))
            else:
                parts.append(self._field(type_, rng.choice(fields), depth))
        if depth and rng.random() < 0.15:
            parts.append(rng.choice(parts))  # merged with its like
        return " ".join(parts)

    def _field(self, type_: Any, item: tuple[str, Any], depth: int) -> str:
        rng, (name, field) = self._rng, item
        arguments = self._arguments(field)
        inner = get_named_type(field.type)
        alias = ""
        if arguments or rng.random() < 0.15:
            self._aliases += 1
            alias = f"a{self._aliases}: "
        selection = ""
        if not is_leaf_type(inner):
            selection = " { " + (self._fields(inner, depth + 1) if depth < self._max_depth else "__typename") + " }"
        # Directives may not decide whether a subscription has its one field.
        directives = self._directives() if type_ is not self._schema.subscription_type else ""
        field_text = f"{alias}{name}{arguments}{directives}{selection}"
        if rng.random() < 0.1 and selection and depth < self._max_depth:
            field_text += f" {alias}{name}{arguments} {{ {self._fields(inner, depth + 1)} }}"
        return field_text

    def _fragment(self, type_: Any, depth: int) -> str:
        rng = self._rng
        condition = type_
        if is_abstract_type(type_):
            condition = rng.choice([type_, *self._schema.get_possible_types(type_)])
        if depth >= self._max_depth:
            return "__typename"
        if rng.random() < 0.5:
            on = f"on {condition.name}" if condition is not type_ or rng.random() < 0.5 else ""
            return f"... {on}{self._directives()} {{ {self._fields(condition, depth + 1)} }}"
        usable = [
            name for name, (on, _) in self._fragments.items() if on == condition.name and name not in self._unfinished
        ]
        if usable and rng.random() < 0.6:
            return f"...{rng.choice(usable)}{self._directives()}"
        name = f"F{len(self._fragments) + len(self._unfinished)}"
        if name in self._fragments or name in self._unfinished:
            return "__typename"
        self._unfinished.append(name)
        body = self._fields(condition, depth + 1)
        self._unfinished.remove(name)
        self._fragments[name] = (condition.name, body)
        return f"...{name}{self._directives()}"

    def _directives(self) -> str:
        text = ""
        for directive in ("skip", "include"):
            if self._rng.random() < 0.08:
                value = self._rng.random() < 0.5
                literal = str(value).lower()
                text += (
                    f" @{directive}(if: {self._variable('Boolean!', value) if self._rng.random() < 0.6 else literal})"
                )
        return text

    def _arguments(self, field: Any) -> str:
        given = []
        for name, argument in field.args.items():
            required = is_non_null_type(argument.type) and not argument.default
            if required or self._rng.random() < 0.7:
                value = self._value(argument.type)
                is_variable = self._rng.random() < 0.4
                declared = str(argument.type)
                value_text = self._variable(declared, value) if is_variable else self._literal(value, argument.type)
                given.append(f"{name}: {value_text}")
        return f"({', '.join(given)})" if given else ""

    def _value(self, type_: Any) -> Any:
        rng = self._rng
        if is_non_null_type(type_):
            return self._present_value(type_.of_type)
        return None if rng.random() < 0.2 else self._present_value(type_)

    def _present_value(self, type_: Any) -> Any:
        rng = self._rng
        if is_list_type(type_):
            return [self._value(type_.of_type) for _ in range(rng.randint(0, 2))]
        if isinstance(type_, GraphQLEnumType):
            return rng.choice(list(type_.values))
        if isinstance(type_, GraphQLInputObjectType):
            return {
                name: self._value(field.type)
                for name, field in type_.fields.items()
                if rng.random() < 0.6 or (is_non_null_type(field.type) and not field.default)
            }
        leaves: dict[str, Callable[[], Any]] = {
            "Int": lambda: rng.randint(0, 9),
            "Float": lambda: 0.5,
            "Boolean": lambda: rng.random() < 0.5,
            "DateTime": lambda: "2026-11-20T20:00:00Z",
            "Date": lambda: "2026-11-20",
        }
        return leaves.get(type_.name, lambda: f"text {rng.randint(0, 9)}")()

    def _literal(self, value: Any, type_: Any) -> str:
        type_ = getattr(type_, "of_type", type_) if is_non_null_type(type_) else type_
        if value is None:
            return "null"
        if is_list_type(type_):
            return f"[{', '.join(self._literal(item, type_.of_type) for item in value)}]"
        if isinstance(type_, GraphQLInputObjectType):
            inner = (f"{name}: {self._inner_value(item, type_.fields[name].type)}" for name, item in value.items())
            return f"{{{', '.join(inner)}}}"
        if isinstance(value, bool):
            return str(value).lower()
        return str(value) if isinstance(type_, GraphQLEnumType) or isinstance(value, int | float) else f'"{value}"'

    def _inner_value(self, value: Any, type_: Any) -> str:
        """A value within an input: now and then a variable of its own."""
        return self._variable(str(type_), value) if self._rng.random() < 0.2 else self._literal(value, type_)

    def _variable(self, declared: str, value: Any) -> str:
        rng = self._rng
        name = f"v{len(self._definitions)}"
        default = ""
        if declared in ("Int", "Boolean", "String") and rng.random() < 0.3:
            default = " = " + {"Int": "4", "Boolean": "true", "String": '"by default"'}[declared]
        self._definitions[name] = declared + default
        if not (not declared.endswith("!") and rng.random() < 0.2):  # left out, if it may be
            self.variables[name] = "wrong" if rng.random() < 0.01 else value
        return f"${name}"
