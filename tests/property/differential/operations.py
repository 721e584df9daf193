"""Random operations on any schema: aliases, merging, fragments of both kinds, directives, arguments and variables."""

from __future__ import annotations

import random
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

DEEPEST = 4


class Operation:
    """One operation as text, with its variables."""

    def __init__(self, schema: GraphQLSchema, seed: int, kind: str = "query") -> None:
        self._schema = schema
        self._drawn = random.Random(seed)
        self._declared: dict[str, str] = {}
        self._fragments: dict[str, tuple[str, str]] = {}
        self._aliases = 0
        self._open: list[str] = []
        self.variables: dict[str, Any] = {}
        root = getattr(schema, f"{kind}_type")
        body = (
            self._field(root, next(iter(root.fields.items())), 0) if kind == "subscription" else self._fields(root, 0)
        )
        heads = ", ".join(f"${name}: {declared}" for name, declared in self._declared.items())
        self.head = f"{kind} Asked{f'({heads})' if heads else ''}"
        self.rest = (
            "{ " + body + " }" + "".join(f"\nfragment {n} on {t} {{ {b} }}" for n, (t, b) in self._fragments.items())
        )

    @property
    def text(self) -> str:
        return f"{self.head} {self.rest}"

    def with_directive(self, directive: str) -> str:
        return f"{self.head} {directive} {self.rest}"

    def _fields(self, type_: Any, depth: int) -> str:
        drawn, parts = self._drawn, []
        own = list(type_.fields.items()) if hasattr(type_, "fields") else []
        for _ in range(drawn.randint(1, 4 if depth < 3 else 2)):
            choice = drawn.random()
            if choice < 0.08 or (not own and choice < 0.4):
                parts.append("__typename")
            elif choice < 0.2 or (not own) or (is_abstract_type(type_) and choice < 0.6):
                parts.append(self._fragment(type_, depth))
            else:
                parts.append(self._field(type_, drawn.choice(own), depth))
        if depth and drawn.random() < 0.15:
            parts.append(drawn.choice(parts))  # merged with its like
        return " ".join(parts)

    def _field(self, type_: Any, named: tuple[str, Any], depth: int) -> str:
        drawn, (name, field) = self._drawn, named
        arguments = self._arguments(field)
        inner = get_named_type(field.type)
        alias = ""
        if arguments or drawn.random() < 0.15:
            self._aliases += 1
            alias = f"a{self._aliases}: "
        selection = ""
        if not is_leaf_type(inner):
            selection = " { " + (self._fields(inner, depth + 1) if depth < DEEPEST else "__typename") + " }"
        # Directives may not decide whether a subscription has its one field.
        directives = self._directives() if type_ is not self._schema.subscription_type else ""
        field_text = f"{alias}{name}{arguments}{directives}{selection}"
        if drawn.random() < 0.1 and selection and depth < DEEPEST:
            field_text += f" {alias}{name}{arguments} {{ {self._fields(inner, depth + 1)} }}"
        return field_text

    def _fragment(self, type_: Any, depth: int) -> str:
        drawn = self._drawn
        condition = type_
        if is_abstract_type(type_):
            condition = drawn.choice([type_, *self._schema.get_possible_types(type_)])
        if depth >= DEEPEST:
            return "__typename"
        if drawn.random() < 0.5:
            on = f"on {condition.name}" if condition is not type_ or drawn.random() < 0.5 else ""
            return f"... {on}{self._directives()} {{ {self._fields(condition, depth + 1)} }}"
        known = [name for name, (on, _) in self._fragments.items() if on == condition.name and name not in self._open]
        if known and drawn.random() < 0.6:
            return f"...{drawn.choice(known)}{self._directives()}"
        name = f"F{len(self._fragments) + len(self._open)}"
        if name in self._fragments or name in self._open:
            return "__typename"
        self._open.append(name)
        body = self._fields(condition, depth + 1)
        self._open.remove(name)
        self._fragments[name] = (condition.name, body)
        return f"...{name}{self._directives()}"

    def _directives(self) -> str:
        text = ""
        for directive in ("skip", "include"):
            if self._drawn.random() < 0.08:
                value = self._drawn.random() < 0.5
                literal = str(value).lower()
                text += (
                    f" @{directive}(if: {self._variable('Boolean!', value) if self._drawn.random() < 0.6 else literal})"
                )
        return text

    def _arguments(self, field: Any) -> str:
        given = []
        for name, argument in field.args.items():
            needed = is_non_null_type(argument.type) and not argument.default
            if needed or self._drawn.random() < 0.7:
                value = self._value(argument.type)
                varied = self._drawn.random() < 0.4
                declared = str(argument.type)
                told = self._variable(declared, value) if varied else self._literal(value, argument.type)
                given.append(f"{name}: {told}")
        return f"({', '.join(given)})" if given else ""

    def _value(self, type_: Any) -> Any:
        drawn = self._drawn
        if is_non_null_type(type_):
            return self._given(type_.of_type)
        return None if drawn.random() < 0.2 else self._given(type_)

    def _given(self, type_: Any) -> Any:
        drawn = self._drawn
        if is_list_type(type_):
            return [self._value(type_.of_type) for _ in range(drawn.randint(0, 2))]
        if isinstance(type_, GraphQLEnumType):
            return drawn.choice(list(type_.values))
        if isinstance(type_, GraphQLInputObjectType):
            return {
                name: self._value(field.type)
                for name, field in type_.fields.items()
                if drawn.random() < 0.6 or (is_non_null_type(field.type) and not field.default)
            }
        return {
            "Int": lambda: drawn.randint(0, 9),
            "Float": lambda: 0.5,
            "Boolean": lambda: drawn.random() < 0.5,
            "DateTime": lambda: "2026-11-20T20:00:00Z",
            "Date": lambda: "2026-11-20",
        }.get(type_.name, lambda: f"given {drawn.randint(0, 9)}")()

    def _literal(self, value: Any, type_: Any) -> str:
        type_ = getattr(type_, "of_type", type_) if is_non_null_type(type_) else type_
        if value is None:
            return "null"
        if is_list_type(type_):
            return f"[{', '.join(self._literal(one, type_.of_type) for one in value)}]"
        if isinstance(type_, GraphQLInputObjectType):
            inner = (f"{name}: {self._inner(one, type_.fields[name].type)}" for name, one in value.items())
            return f"{{{', '.join(inner)}}}"
        if isinstance(value, bool):
            return str(value).lower()
        return str(value) if isinstance(type_, GraphQLEnumType) or isinstance(value, int | float) else f'"{value}"'

    def _inner(self, value: Any, type_: Any) -> str:
        """A value within an input: now and then a variable of its own."""
        return self._variable(str(type_), value) if self._drawn.random() < 0.2 else self._literal(value, type_)

    def _variable(self, declared: str, value: Any) -> str:
        drawn = self._drawn
        name = f"v{len(self._declared)}"
        default = ""
        if declared in ("Int", "Boolean", "String") and drawn.random() < 0.3:
            default = " = " + {"Int": "4", "Boolean": "true", "String": '"by default"'}[declared]
        self._declared[name] = declared + default
        if not (not declared.endswith("!") and drawn.random() < 0.2):  # left out, if it may be
            self.variables[name] = "wrong" if drawn.random() < 0.01 else value
        return f"${name}"
