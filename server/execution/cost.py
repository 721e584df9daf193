"""The complexity of an operation: an upper bound of the fields in its answer, as a function of its variables.

Every field counts 1, and one that reads the table for the object that it is asked of as many as it declares: a call
takes as much of the processor as 40 fields (`schema.framework.fields.READ`). What is selected inside a field counts
once for each object that the field may answer, and so does what it costs to read one of the objects that a list names.
The field's type and its arguments say how many objects these are:

- a page: as many as `first` or `last`, whichever is larger, and 20 without them. A field is a page if its type is a
  connection, or if it has one of these arguments. `edges` and `nodes` are counted at the page itself, whose
  objects count 1 if neither is selected: they are read all the same. The connection's other fields count once.
- a list that is asked for by a list of ids, such as `nodes(ids:)`: as many as that list has.
- any other list of objects: 10. It has no argument for its size; what it shows bounds it, such as an event's card.

A variable that is a list or an object counts 2 for each of its values but ten, for each field that uses it: each
converts it, which takes longer than answering a field.

As sizes, variables count as graphql-core coerces them: an absent one has its default, and 100.0 is 100. A value that is
no size counts as the largest page. Fields of the introspection count once, because their depth has a limit of its own.

`Cost` is built once for each operation, so that a request only multiplies and adds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLField,
    GraphQLSchema,
    InlineFragmentNode,
    ListValueNode,
    NonNullTypeNode,
    ObjectValueNode,
    OperationDefinitionNode,
    SelectionNode,
    SelectionSetNode,
    TypeNode,
    Undefined,
    ValueNode,
    VariableNode,
    get_named_type,
    get_nullable_type,
    is_leaf_type,
    is_list_type,
    type_from_ast,
)
from graphql.utilities import value_from_ast_untyped

from schema.framework.arguments import names_objects
from schema.framework.fields import complexity_of_each, own_complexity
from schema.framework.windows import LARGEST_PAGE, PAGE_SIZE
from server.execution.limits import MOST_VALUES, count_values
from server.execution.named_objects import NamedObjects

Variables: TypeAlias = Mapping[str, Any]

LIST_SIZE = 10
_FREE_VALUES = 10
_VALUE = 2
"""What each further value in a variable counts, for each field that uses it."""
_PAGE_ARGUMENTS = ("first", "last")
_OBJECTS = frozenset({"edges", "nodes"})


class _Size(NamedTuple):
    """How many objects a field may answer: the largest of its sizes."""

    constant: int
    """The largest of those in the document; 0 if there is none."""
    variables: list[tuple[str, Any]]
    """The names of the others, and the defaults of these variables."""
    default: int
    """The size if none is given."""

    def of(self, given: Variables) -> int:
        largest = self.constant
        for name, default in self.variables:
            value = given.get(name, default)
            largest = max(largest, value if type(value) is int and value > 0 else _objects(value))
        return largest or self.default


class _Part(Enum):
    """What is selected of a connection."""

    OBJECTS = "edges and nodes"
    PAGE = "all else"


class _Input(NamedTuple):
    """A variable with many values, used in a field's arguments: each use converts all of them."""

    variable: str


class _Sum(NamedTuple):
    """A constant, and products of a factor and an earlier sum, which stands at an index."""

    constant: int
    products: list[tuple[int | _Size | _Input, int]]


class Cost:
    """The complexity of a valid operation.

    A fragment is added up once however often it is spread: a chain of fragments can stand for more fields than there
    is time to count.
    """

    def __init__(
        self,
        schema: GraphQLSchema,
        operation: OperationDefinitionNode,
        fragments: Mapping[str, FragmentDefinitionNode],
    ) -> None:
        self._schema = schema
        self._fragments = fragments
        self._defaults = {
            definition.variable.name.value: _literal(definition.default_value)
            for definition in operation.variable_definitions or ()
        }
        self.named = NamedObjects(self._defaults)
        self._fragment_sums: dict[tuple[str, _Part | None], _Sum] = {}
        self._inputs = {
            definition.variable.name.value
            for definition in operation.variable_definitions or ()
            if _is_large(schema, definition.type)
        }
        # One, then the sums that depend on variables, inner ones first, and the operation's own.
        self._sums: list[_Sum] = [_Sum(1, [])]
        self._sums.append(self._sum(operation.selection_set, schema.get_root_type(operation.operation)))

    @property
    def fixed(self) -> int | None:
        """The complexity if no variable changes it."""
        own = self._sums[-1]
        return None if own.products else own.constant

    def __call__(self, variables: Variables) -> int:
        totals: list[int] = []
        inputs: dict[_Input, int] = {}
        for constant, products in self._sums:
            total = constant
            for factor, index in products:
                if isinstance(factor, _Input):
                    if factor not in inputs:  # a document may use one variable hundreds of times
                        values = count_values(variables.get(factor.variable), MOST_VALUES)
                        inputs[factor] = _VALUE * max(0, values - _FREE_VALUES)
                    size = inputs[factor]
                else:
                    size = factor if isinstance(factor, int) else factor.of(variables)
                total += size * totals[index]
            totals.append(total)
        return totals[-1]

    def _sum(self, selection_set: SelectionSetNode, parent: Any, part: _Part | None = None) -> _Sum:
        """The sum of what is selected of a type; of a connection, one part of it."""
        constant = 0
        products: list[tuple[int | _Size | _Input, int]] = []
        for node in selection_set.selections:
            if isinstance(node, FieldNode):
                if part is not None and _part(node) is not part:
                    continue
                definition = self._schema.get_field(parent, node.name.value)
                constant += own_complexity(definition) if definition else 1
                if definition:
                    self.named.add(node, definition)
                products += [(_Input(name), 0) for name in self._input_variables(node)]
            for factor, inner in self._inner(node, parent, part):
                if isinstance(factor, int) and not inner.products:
                    constant += factor * inner.constant
                else:
                    self._sums.append(inner)
                    products.append((factor, len(self._sums) - 1))
        return _Sum(constant, products)

    def _inner(self, node: SelectionNode, parent: Any, part: _Part | None) -> Iterator[tuple[int | _Size, _Sum]]:
        """The sums of what is selected inside a node, and how often each counts."""
        if isinstance(node, FragmentSpreadNode):
            key = (node.name.value, part)
            if key not in self._fragment_sums:
                fragment = self._fragments[node.name.value]
                self._fragment_sums[key] = self._sum(fragment.selection_set, self._type(fragment), part)
            yield 1, self._fragment_sums[key]
        elif isinstance(node, InlineFragmentNode):
            yield 1, self._sum(node.selection_set, self._type(node) if node.type_condition else parent, part)
        elif isinstance(node, FieldNode) and node.selection_set is not None:
            definition = self._schema.get_field(parent, node.name.value)
            answered = get_named_type(definition.type) if definition else None
            factor = self._factor(node, definition, parent) if definition else 1
            each = complexity_of_each(definition) if definition else 0
            if answered is not None and _is_connection(answered.name):
                constant, products = self._sum(node.selection_set, answered, _Part.OBJECTS)
                yield factor, _Sum(max(1, constant) + each, products)
                yield 1, self._sum(node.selection_set, answered, _Part.PAGE)
            else:
                constant, products = self._sum(node.selection_set, answered)
                yield factor, _Sum(constant + each, products)

    def _input_variables(self, node: FieldNode) -> list[str]:
        """Variables with lists or objects used in the arguments, one entry per use."""
        names: list[str] = []
        pending: list[Any] = [argument.value for argument in node.arguments or ()]
        while pending:
            value = pending.pop()
            if isinstance(value, VariableNode):
                names += [value.name.value] if value.name.value in self._inputs else []
            elif isinstance(value, ListValueNode):
                pending += value.values
            elif isinstance(value, ObjectValueNode):
                pending += [each.value for each in value.fields]
        return names

    def _type(self, fragment: Any) -> Any:
        return self._schema.get_type(fragment.type_condition.name.value)

    def _factor(self, node: FieldNode, definition: GraphQLField, parent: Any) -> int | _Size:
        """How many objects a field may answer."""
        type_name, is_list = get_named_type(definition.type).name, is_list_type(get_nullable_type(definition.type))
        if type_name.startswith("__") or _is_connection(parent.name):
            return 1
        if _is_connection(type_name) or not definition.args.keys().isdisjoint(_PAGE_ARGUMENTS):
            return self._size(node, definition, _PAGE_ARGUMENTS, PAGE_SIZE)
        if not is_list:
            return 1
        lists = tuple(name for name, argument in definition.args.items() if names_objects(argument))
        return self._size(node, definition, lists, LIST_SIZE)

    def _size(self, node: FieldNode, definition: GraphQLField, names: tuple[str, ...], default: int) -> int | _Size:
        """The largest size that these arguments give; the default if they give none."""
        given = {argument.name.value: argument.value for argument in node.arguments or ()}
        constant, variables = 0, []
        for name in names:
            if name not in definition.args:
                continue
            value, otherwise = given.get(name), definition.args[name].default_value
            if isinstance(value, VariableNode):
                variable = value.name.value
                default_of_variable = self._defaults.get(variable)
                variables.append((variable, otherwise if default_of_variable is None else default_of_variable))
            else:
                constant = max(constant, _objects(otherwise if value is None else _literal(value)))
        return _Size(constant, variables, default) if variables else constant or default


def _is_large(schema: GraphQLSchema, type_node: TypeNode) -> bool:
    """Whether a variable of this type may have many values."""
    return not is_leaf_type(
        type_from_ast(schema, type_node.type if isinstance(type_node, NonNullTypeNode) else type_node)
    )


def _part(node: FieldNode) -> _Part:
    """Which part of a connection a field selects."""
    return _Part.OBJECTS if node.name.value in _OBJECTS else _Part.PAGE


def _is_connection(type_name: str) -> bool:
    """Whether a type is a connection, by Relay's rule for names."""
    return type_name.endswith("Connection")


def _literal(value: ValueNode | None) -> Any:
    return None if value is None else value_from_ast_untyped(value)


def _objects(value: Any) -> int:
    """How many objects a value asks for; 0 if it leaves that to the default."""
    if isinstance(value, list | tuple):
        return max(1, len(value))
    if isinstance(value, float) and value.is_integer():
        return max(1, int(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return max(1, value)
    return 0 if value is None or value is Undefined else LARGEST_PAGE
