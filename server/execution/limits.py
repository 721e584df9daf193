"""Limits of an operation, checked before it runs: on its text, on its syntax tree, and on the cost of what it asks for.

The order matters. Line ends are counted first, which is cheapest. Brackets are counted before parsing, because the
parser recurses. Names are counted before validation, which compares fields of the same name pair by pair. Depth and
complexity need fragments without cycles, so they follow validation. The values of the variables are counted before they
are coerced.

The complexity of an operation is an upper bound of the fields in its answer, as a function of its variables. `Cost` is
built once for each operation, so that a request only multiplies and adds.

Every field counts 1, and one that reads the table for the object that it is asked of as many as it declares: a call
takes as much of the processor as 40 fields (`declarations.READ` of the schema). What is selected inside a field counts
once for each object that the field may answer, and so does what it costs to read one of the objects that a list names.
The field's type and its arguments say how many objects these are:

- a page: as many as `first` or `last`, whichever is larger, and 20 without them. A field is a page if its type is a
  connection, or if it has one of these arguments. `edges` and `nodes` are counted at the page itself, whose
  objects count 1 if neither is selected: they are read all the same. The connection's other fields count once.
- a list that is asked for by a list of ids, such as `nodes(ids:)`: as many as that list has.
- any other list of objects: as many as it says that it may have, or 10. It has no argument for its size; what it shows
  bounds it, such as an event's card.

A variable that is a list or an object counts 2 for each of its values but ten, for each field that uses it: each
converts it, which takes longer than answering a field.

As sizes, variables count as graphql-core coerces them: an absent one has its default, and 100.0 is 100. A value that is
no size counts as the largest page. Fields of the introspection count once: they are counted by themselves, exactly.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

import graphql
from graphql.utilities import value_from_ast_untyped

from datastore.dynamo import LARGEST_PAGE, PAGE_SIZE
from schema.framework.arguments import MOST_NAMED, names_objects
from schema.framework.declarations import COMPLEXITY, COMPLEXITY_OF_EACH, MOST_OBJECTS, declared_of
from server.execution.lexer import count_line_ends

# ── text and syntax ──

MAX_DIGITS = 20
"""Int has 10 digits at most, and an ID that is written as a number rarely more. Python refuses to read above 4,300."""
MAX_NAME = 200
"""Also of a number with its decimals. An operation's name is written to the log, to traces and to metrics."""
MAX_LINE_ENDS = 20_000
"""Ten for each token. Finding the lines of errors takes 3 ms for so many."""
MOST_VALUES = 6_000
"""In the variables. The largest input is 500 words of eight fields, some 4,500 values."""
MAX_JSON_PARTS = 20_000
"""Strings, brackets and commas of a request's JSON. Each value in the variables has three at most: one for its key, one
for itself, a comma. The rest is for `extensions`."""
_JSON_PARTS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[{\[,]', re.DOTALL)
_TOKENS = re.compile(
    rf'''
      (?P<ignored> (?: [ \t\r\n,]++ | \#[^\r\n]*+ )++ )
    | (?P<opened> [{{(\[] )
    | (?P<closed> [}})\]] )
    | (?P<long_number> -?\d{{{MAX_DIGITS + 1}}} )
    | (?P<long_name> (?: -?\d++(?:\.\d++)?[eE][+-] | -?\d++\. )? \w{{{MAX_NAME + 1}}} )
    | -?\d++(?:\.\d++)?(?:[eE][+-]?\d++)?
    | """ [^"]*+ (?: ""?+ [^"]++ | (?<=\\)""" [^"]*+ )*+ (?:""")?
    | " [^"\\\n]*+ (?: \\. [^"\\\n]*+ )*+ "?
    | \.\.\. | \w+ | [\s\S]
    ''',
    re.VERBOSE,
)
"""A token begins at each character, so none is looked at twice; a string that never ends, which the parser refuses, is
one too. Other threads wait for the end of a match, some 10 ms at most for a megabyte."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a deployment. With the defaults GraphiQL's introspection and all examples pass."""

    nesting: int = 60
    tokens: int = 2_000
    fields: int = 400
    same_name: int = 40
    aliases: int = 40
    directives: int = 40
    operations: int = 30
    fragments: int = 32
    depth: int = 16
    introspection_depth: int = 20
    complexity: int = 10_000
    introspection: int = 80_000
    """Fields in its answer: GraphiQL's, with all of its options, has some 20,000."""
    named: int = MOST_NAMED
    values: int = MOST_VALUES


class InvalidOperation(Exception):
    """An operation that must not run, with the errors to answer."""

    def __init__(self, *errors: graphql.GraphQLError) -> None:
        super().__init__("; ".join(error.message for error in errors))
        self.errors = errors


class LimitExceeded(InvalidOperation):
    """The operation exceeds a limit; the message names it."""

    def __init__(self, counted: str, count: int | str, limit: int) -> None:
        message = f"Too many {counted}: {count}. At most {limit} are accepted; ask for less, or send several requests."
        super().__init__(graphql.GraphQLError(message, extensions={"code": "BAD_USER_INPUT"}))


def check_json(json: bytes | bytearray) -> None:
    """Before a request's JSON is parsed, on the event loop: making the objects of a megabyte takes 60 ms, this 2 ms."""
    is_long = len(json) > MAX_JSON_PARTS  # the others cannot have as many
    if is_long and next(islice(_JSON_PARTS.finditer(json), MAX_JSON_PARTS, None), None):
        count = f"more than {MAX_JSON_PARTS}"
        raise LimitExceeded("strings, brackets and commas in the JSON", count, MAX_JSON_PARTS)


def check_text(text: str, limits: Limits) -> None:
    """Before parsing: the parser recurses with every bracket, and validation reads every number.

    The parser counts tokens too, but takes 15 ms for the first 2,000; this takes 1 ms, and then stops.
    """
    if (line_ends := count_line_ends(text)) > MAX_LINE_ENDS:
        raise LimitExceeded("line ends", line_ends, MAX_LINE_ENDS)
    tokens = level = 0
    for token in _TOKENS.finditer(text):
        kind = token.lastgroup
        if kind == "ignored":
            continue
        tokens += 1
        level += (kind == "opened") - (kind == "closed")
        if tokens > limits.tokens:
            raise LimitExceeded("tokens", f"more than {limits.tokens}", limits.tokens)
        if level > limits.nesting:
            raise LimitExceeded("nested brackets", f"more than {limits.nesting} levels", limits.nesting)
        if kind == "long_name":
            raise LimitExceeded("characters in a name", f"more than {MAX_NAME}", MAX_NAME)
        if kind == "long_number":
            raise LimitExceeded("digits in a number", f"more than {MAX_DIGITS}", MAX_DIGITS)


def count_values(value: Any, most: int) -> int:
    """How many values a JSON value has, itself and all objects and lists in it included; stops beyond `most`.

    Counted before variables are coerced, which takes some 10 µs a value on the event loop.
    """
    count, pending = 0, [value]
    while pending and count <= most:
        inner = pending.pop()
        if isinstance(inner, dict):
            pending.extend(inner.values())
        elif isinstance(inner, list):
            pending.extend(inner)
        count += 1
    return count


def check_counts(document: graphql.DocumentNode, limits: Limits) -> None:
    """Before validation: counts that need no schema."""
    names: Counter[str] = Counter()
    aliases = directives = operations = fragments = 0
    for node in _selections(document):
        directives += len(node.directives or ())
        if isinstance(node, graphql.FieldNode):
            aliases += node.alias is not None
            names[(node.alias or node.name).value] += 1
    for definition in document.definitions:
        operations += isinstance(definition, graphql.OperationDefinitionNode)
        fragments += isinstance(definition, graphql.FragmentDefinitionNode)
        directives += len(getattr(definition, "directives", None) or ())
    counts = (
        ("aliases", aliases, limits.aliases),
        ("directives", directives, limits.directives),
        ("operations", operations, limits.operations),
        ("fragments", fragments, limits.fragments),
        ("fields", names.total(), limits.fields),
        ("fields of the same name", max(names.values(), default=0), limits.same_name),
    )
    for counted, count, limit in counts:
        if count > limit:
            raise LimitExceeded(counted, count, limit)


def _selections(
    document: graphql.DocumentNode,
) -> Iterator[graphql.FieldNode | graphql.InlineFragmentNode | graphql.FragmentSpreadNode]:
    pending = [definition.selection_set for definition in document.definitions if hasattr(definition, "selection_set")]
    while pending:
        selection_set = pending.pop()
        if selection_set is None:
            continue
        for node in selection_set.selections:
            yield node
            if isinstance(node, graphql.FieldNode | graphql.InlineFragmentNode):
                pending.append(node.selection_set)


def check_depth(
    operation: graphql.OperationDefinitionNode, fragments: Mapping[str, graphql.FragmentDefinitionNode], limits: Limits
) -> None:
    """After validation: how deep fields lie within fields. Introspection has a limit of its own."""
    fragment_depths: dict[str, int] = {}

    def depth(selection_set: graphql.SelectionSetNode | None) -> int:
        return max((depth_of(node) for node in selection_set.selections), default=0) if selection_set else 0

    def depth_of(node: Any) -> int:
        if isinstance(node, graphql.FieldNode):
            return 1 + depth(node.selection_set)
        if isinstance(node, graphql.InlineFragmentNode):
            return depth(node.selection_set)
        name = node.name.value
        if name not in fragment_depths:
            fragment_depths[name] = depth(fragments[name].selection_set)
        return fragment_depths[name]

    for node in operation.selection_set.selections:
        introspects = isinstance(node, graphql.FieldNode) and node.name.value.startswith("__")
        limit = limits.introspection_depth if introspects else limits.depth
        if (levels := depth_of(node)) > limit:
            raise LimitExceeded("levels of fields", levels, limit)


# ── introspection ──
# graphql-core answers it at once, while everything else waits. The schema is known, so its fields are counted exactly:
# what is selected of an object counts the same wherever the two meet again, and is counted once.


def check_introspection(
    schema: graphql.GraphQLSchema,
    operation: graphql.OperationDefinitionNode,
    fragments: Mapping[str, graphql.FragmentDefinitionNode],
    limits: Limits,
) -> None:
    """After validation: how many fields of the schema's own types an answer has, as if no directive left any out."""
    try:
        counting = _Introspected(schema, fragments, limits.introspection)
        counting.count(operation.selection_set, schema.get_root_type(operation.operation), None)
    except OverflowError:
        counted = f"more than {limits.introspection}"
        raise LimitExceeded("fields of the introspection", counted, limits.introspection) from None


class _Introspected:
    """Counts the fields of selections of a schema; OverflowError above `most`."""

    def __init__(
        self, schema: graphql.GraphQLSchema, fragments: Mapping[str, graphql.FragmentDefinitionNode], most: int
    ) -> None:
        self._fragments = fragments
        self._most = most
        self._info = SimpleNamespace(schema=schema)
        self._counts: dict[tuple[int, int], int] = {}

    def count(self, selection_set: graphql.SelectionSetNode, parent: Any, source: Any) -> int:
        key = id(selection_set), id(source[-1] if isinstance(source, tuple) else source)  # a field comes with its name
        if key not in self._counts:
            total = sum(self._of(node, parent, source) for node in selection_set.selections)
            if total > self._most:
                raise OverflowError
            self._counts[key] = total
        return self._counts[key]

    def _of(self, node: Any, parent: Any, source: Any) -> int:
        if not isinstance(node, graphql.FieldNode):
            fragment = self._fragments[node.name.value] if isinstance(node, graphql.FragmentSpreadNode) else node
            return self.count(fragment.selection_set, parent, source)
        field: Any = self._info.schema.get_field(parent, node.name.value)
        inner, type_ = node.selection_set, graphql.get_named_type(field.type)
        if inner is None or not type_.name.startswith("__"):
            return 1  # and what is no introspection counts in the complexity
        return 1 + sum(self.count(inner, type_, each) for each in self._objects(node, field, source))

    def _objects(self, node: graphql.FieldNode, field: graphql.GraphQLField, source: Any) -> Iterable[Any]:
        """What a field answers: with all that is deprecated, and for a type that a variable names all types."""
        if node.name.value == "__type":
            named = [
                each.value.value for each in node.arguments or () if isinstance(each.value, graphql.StringValueNode)
            ]
            types = self._info.schema.type_map
            return [types[name] for name in named if name in types] if named else types.values()
        given = {"includeDeprecated": True} if "includeDeprecated" in field.args else {}
        found: Any = field.resolve and field.resolve(source, self._info, **given)
        if found is None:
            return ()
        return found if isinstance(found, Iterable) else [found]


# ── named objects ──
# The objects that an operation names in lists, such as `nodes(ids:)`, to have them read.
#
# Each entry is read by itself, so their number is limited in the whole operation: in all fields and fragments together,
# from literals, variables and defaults, whether or not `@skip` leaves the field out. What one list names again is read
# once and counts once, in the same field or in another one with another alias.
#
# `names_objects` in schema/framework/arguments.py says which lists do. `Cost` finds them while it walks through the
# operation.


class NamedObjects:
    """The entries of an operation's lists."""

    def __init__(self, defaults: Mapping[str, Any]) -> None:
        self._defaults = defaults
        """Of the variables."""
        self._literals: defaultdict[str, set[str]] = defaultdict(set)
        """The entries in the document, by their lists."""
        self._variables: dict[tuple[str, str], Any] = {}
        """The default of each variable that is a list or an entry of one."""

    @property
    def lists(self) -> tuple[str, ...]:
        """The operation's lists as people write them: `nodes(ids:)`."""
        return tuple(dict.fromkeys([*self._literals, *(place for place, _ in self._variables)]))

    def add(self, node: graphql.FieldNode, definition: graphql.GraphQLField) -> None:
        """Add the lists of a field."""
        for name, argument in definition.args.items():
            if names_objects(argument):
                place = f"{node.name.value}({name}:)"
                given = next((each.value for each in node.arguments or () if each.name.value == name), None)
                self._add(place, given, argument.default_value)

    def _add(self, place: str, given: graphql.ValueNode | None, default: Any) -> None:
        values = given.values if isinstance(given, graphql.ListValueNode) else () if given is None else (given,)
        for value in values:
            if isinstance(value, graphql.VariableNode):
                name = value.name.value
                own_default = self._defaults.get(name)
                self._variables[place, name] = default if own_default is None else own_default
            else:
                self._literals[place].update(_ids(_entries(value_from_ast_untyped(value))))
        if given is None:
            self._literals[place].update(_ids(_entries(default)))

    def count(self, variables: Mapping[str, Any], most: int) -> int:
        """How many objects are named; repeated ones are looked for only if there are more than `most` entries."""
        given = [(place, _entries(variables.get(name, default))) for (place, name), default in self._variables.items()]
        entries = sum(map(len, self._literals.values())) + sum(len(values) for _, values in given)
        if entries <= most:
            return entries
        distinct = {place: set(values) for place, values in self._literals.items()}
        for place, values in given:
            distinct.setdefault(place, set()).update(_ids(values))
        return sum(map(len, distinct.values()))


def _entries(value: Any) -> list[Any]:
    """The entries of a value that is a list, or is taken as one; in a variable it may still be anything."""
    if value is None or value is graphql.Undefined:
        return []
    return value if isinstance(value, list) else [value]


def _ids(values: list[Any]) -> set[str]:
    """The ids as a field receives them: 1 and "1" are the same. Other values are refused before a field does."""
    return {str(value) for value in values if isinstance(value, str | int | float)}


# ── cost ──

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
        schema: graphql.GraphQLSchema,
        operation: graphql.OperationDefinitionNode,
        fragments: Mapping[str, graphql.FragmentDefinitionNode],
    ) -> None:
        self._schema = schema
        self._fragments = fragments
        self._defaults = {
            definition.variable.name.value: _literal(definition.default_value)
            for definition in operation.variable_definitions or ()
        }
        self.named = NamedObjects(self._defaults)
        self._fragment_sums: dict[tuple[str, bool | None], _Sum] = {}
        self._inputs = {
            definition.variable.name.value
            for definition in operation.variable_definitions or ()
            if _is_large(schema, definition.type)
        }
        # One, then the sums that depend on variables, inner ones first, and the operation's own.
        self._sums: list[_Sum] = [_Sum(1, [])]
        self._sums.append(self._sum(operation.selection_set, schema.get_root_type(operation.operation)))

    @property
    def is_fixed(self) -> bool:
        """Whether no variable changes the complexity."""
        return not self._sums[-1].products

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

    def _sum(self, selection_set: graphql.SelectionSetNode, parent: Any, *, objects: bool | None = None) -> _Sum:
        """The sum of what is selected of a type; of a connection, either its objects or all else."""
        constant = 0
        products: list[tuple[int | _Size | _Input, int]] = []
        for node in selection_set.selections:
            if isinstance(node, graphql.FieldNode):
                if objects not in (None, node.name.value in _OBJECTS):
                    continue
                definition: Any = self._schema.get_field(parent, node.name.value)
                constant += declared_of(definition, COMPLEXITY, 1)
                self.named.add(node, definition)
                products += [(_Input(name), 0) for name in self._input_variables(node)]
            for factor, inner in self._inner(node, parent, objects=objects):
                if isinstance(factor, int) and not inner.products:
                    constant += factor * inner.constant
                else:
                    self._sums.append(inner)
                    products.append((factor, len(self._sums) - 1))
        return _Sum(constant, products)

    def _inner(
        self, node: graphql.SelectionNode, parent: Any, *, objects: bool | None
    ) -> Iterator[tuple[int | _Size, _Sum]]:
        """The sums of what is selected inside a node, and how often each counts."""
        if isinstance(node, graphql.FragmentSpreadNode):
            key = (node.name.value, objects)
            if key not in self._fragment_sums:
                fragment = self._fragments[node.name.value]
                self._fragment_sums[key] = self._sum(fragment.selection_set, self._type(fragment), objects=objects)
            yield 1, self._fragment_sums[key]
        elif isinstance(node, graphql.InlineFragmentNode):
            type_ = self._type(node) if node.type_condition else parent
            yield 1, self._sum(node.selection_set, type_, objects=objects)
        elif isinstance(node, graphql.FieldNode) and node.selection_set is not None:
            definition: Any = self._schema.get_field(parent, node.name.value)
            answered = graphql.get_named_type(definition.type)
            factor = self._factor(node, definition, parent)
            each = declared_of(definition, COMPLEXITY_OF_EACH, 0)
            if _is_connection(answered.name):
                constant, products = self._sum(node.selection_set, answered, objects=True)
                yield factor, _Sum(max(1, constant) + each, products)
                yield 1, self._sum(node.selection_set, answered, objects=False)
            else:
                constant, products = self._sum(node.selection_set, answered)
                yield factor, _Sum(constant + each, products)

    def _input_variables(self, node: graphql.FieldNode) -> list[str]:
        """Variables with lists or objects used in the arguments, one entry per use."""
        names: list[str] = []
        pending: list[Any] = [argument.value for argument in node.arguments or ()]
        while pending:
            value = pending.pop()
            if isinstance(value, graphql.VariableNode):
                names += [value.name.value] if value.name.value in self._inputs else []
            elif isinstance(value, graphql.ListValueNode):
                pending += value.values
            elif isinstance(value, graphql.ObjectValueNode):
                pending += [each.value for each in value.fields]
        return names

    def _type(self, fragment: Any) -> Any:
        return self._schema.get_type(fragment.type_condition.name.value)

    def _factor(self, node: graphql.FieldNode, definition: graphql.GraphQLField, parent: Any) -> int | _Size:
        """How many objects a field may answer."""
        type_name = graphql.get_named_type(definition.type).name
        if type_name.startswith("__") or _is_connection(parent.name):
            return 1
        if _is_connection(type_name) or not definition.args.keys().isdisjoint(_PAGE_ARGUMENTS):
            return self._size(node, definition, _PAGE_ARGUMENTS, PAGE_SIZE)
        if not graphql.is_list_type(graphql.get_nullable_type(definition.type)):
            return 1
        lists = tuple(name for name, argument in definition.args.items() if names_objects(argument))
        return self._size(node, definition, lists, declared_of(definition, MOST_OBJECTS, LIST_SIZE))

    def _size(
        self, node: graphql.FieldNode, definition: graphql.GraphQLField, names: tuple[str, ...], default: int
    ) -> int | _Size:
        """The largest size that these arguments give; the default if they give none."""
        given = {argument.name.value: argument.value for argument in node.arguments or ()}
        constant, variables = 0, []
        for name in names:
            if name not in definition.args:
                continue
            value, otherwise = given.get(name), definition.args[name].default_value
            if isinstance(value, graphql.VariableNode):
                variable = value.name.value
                default_of_variable = self._defaults.get(variable)
                variables.append((variable, otherwise if default_of_variable is None else default_of_variable))
            else:
                constant = max(constant, _objects(otherwise if value is None else _literal(value)))
        return _Size(constant, variables, default) if variables else constant or default


def _is_large(schema: graphql.GraphQLSchema, type_node: graphql.TypeNode) -> bool:
    """Whether a variable of this type may have many values."""
    return not graphql.is_leaf_type(
        graphql.type_from_ast(schema, type_node.type if isinstance(type_node, graphql.NonNullTypeNode) else type_node)
    )


def _is_connection(type_name: str) -> bool:
    """Whether a type is a connection, by Relay's rule for names."""
    return type_name.endswith("Connection")


def _literal(value: graphql.ValueNode | None) -> Any:
    return None if value is None else value_from_ast_untyped(value)


def _objects(value: Any) -> int:
    """How many objects a value asks for; 0 if it leaves that to the default."""
    if isinstance(value, list | tuple):
        return max(1, len(value))
    if isinstance(value, float) and value.is_integer():
        return max(1, int(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return max(1, value)
    return 0 if value is None or value is graphql.Undefined else LARGEST_PAGE
