"""The complexity of an operation is an upper bound of the fields that its answer has.

Random operations on the real schema are executed by graphql-core on a schema of the same types, whose pages are as
large as they are asked for. Fields are counted while they are resolved.
"""

from typing import Any

from graphql import (
    FragmentDefinitionNode,
    GraphQLResolveInfo,
    build_schema,
    execute,
    get_named_type,
    get_nullable_type,
    is_abstract_type,
    is_leaf_type,
    is_list_type,
    parse,
    print_schema,
)
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from schema import schema
from server.execution.limits import LIST_SIZE, Cost
from tests.examples import examples
from tests.property.differential.comparing import definition_of
from tests.property.differential.random_operations import RandomOperation

SCHEMA = build_schema(print_schema(schema._schema))
DEPTH = 7
LARGEST = 3_000
"""Operations above this cost are refused, as by the limit."""


class SizedOperation(RandomOperation):
    """A random operation whose pages are asked for in every way."""

    def _present_value(self, type_: Any) -> Any:
        if is_list_type(type_):
            return [self._value(type_.of_type) for _ in range(self._rng.randint(0, 30))]
        return self._rng.choice([1, 2, 5, 30]) if type_.name == "Int" else super()._present_value(type_)

    def _variable(self, declared: str, value: Any) -> str:
        name = super()._variable(declared, value)
        plain = declared.removesuffix("!")
        if plain in ("Int", "[ID!]"):
            default = "30" if plain == "Int" else f"[{', '.join(['1'] * 30)}]"
            self._definitions[name[1:]] = f"{declared} = {default}" if self._rng.random() < 0.4 else declared
            if self._definitions[name[1:]] != declared and self._rng.random() < 0.5:
                self.variables.pop(name[1:], None)
            elif self._rng.random() < 0.5 and isinstance(self.variables.get(name[1:]), int):
                self.variables[name[1:]] = float(self.variables[name[1:]])
        return name


class TooManyFields(BaseException):
    """More fields than the complexity says; graphql-core does not catch it."""


class LargeAnswers:
    """Answers each field with as many objects as it is asked for."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.fields = 0

    def resolve(self, record: Any, info: GraphQLResolveInfo[Any], **arguments: Any) -> Any:
        self.fields += 1
        if self.fields > self._most:
            raise TooManyFields(f"The complexity is {self._most}.")
        type_ = get_nullable_type(info.return_type)
        named: Any = get_named_type(type_)
        if is_leaf_type(named):
            return None
        sizes = [arguments.get(name) for name in ("first", "last")]
        size = max((size for size in sizes if size is not None), default=20)
        if named.name.endswith("Connection"):
            return {"size": size}
        if not is_list_type(type_):
            return {}
        if "first" in info.parent_type.fields[info.field_name].args:
            return [{}] * size
        if record is not None and "size" in record:
            return [{}] * record["size"]
        named_objects = (len(arguments[name]) for name in ("ids", "products") if name in arguments)
        return [{}] * next(named_objects, LIST_SIZE)


def type_of(_: Any, __: Any, type_: Any) -> str:
    return str(SCHEMA.get_possible_types(type_)[0].name) if is_abstract_type(type_) else str(type_.name)


def cost(text: str, variables: dict[str, Any]) -> int:
    document = parse(text)
    fragments = {one.name.value: one for one in document.definitions if isinstance(one, FragmentDefinitionNode)}
    return Cost(SCHEMA, definition_of(document), fragments)(variables)


def fields(text: str, variables: dict[str, Any], most: int) -> int:
    """How many fields the answer has, if it has them at most; nulls are errors here, and end nothing."""
    answers = LargeAnswers(most)
    document = parse(text.replace("{", "@experimental_disableErrorPropagation {", 1))
    execute(SCHEMA, document, variable_values=variables, field_resolver=answers.resolve, type_resolver=type_of)
    return answers.fields


@settings(max_examples=examples(150), suppress_health_check=list(HealthCheck), database=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["query", "query", "query", "mutation"]))
def test_no_answer_has_more_fields_than_the_complexity_says(seed: int, kind: str) -> None:
    """Whatever decides the size of a page: literals, variables, defaults, whole floats, null beside a size."""
    operation = SizedOperation(SCHEMA, seed, kind, max_depth=DEPTH)
    counted = cost(operation.text, operation.variables)
    assume(counted <= LARGEST)
    assert fields(operation.text, operation.variables, counted) <= counted, (operation.text, operation.variables)
