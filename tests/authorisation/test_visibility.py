"""Each field shows what a part's module `visibility` has made, or is listed there as shown without it.

What a viewer sees has types of its own, which only these modules make: classes, or a `NewType` of a record that is
shown as it is stored. Resolvers declare what they answer with; mypy sees to it that they tell the truth.
"""

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from types import ModuleType, NoneType
from typing import Any, Final, NewType, get_args, get_type_hints

import strawberry
from graphql import GraphQLField, GraphQLObjectType, GraphQLUnionType, get_named_type

from datastore.dynamo import Page, Window
from datastore.voting import contenders, votes
from resolvers.requests.context import Context
from resolvers.voting import visibility as voting_visibility
from resolvers.whole.node import LOADERS
from schema import schema
from schema.framework.declarations import Resolution, described, field, record_type
from schema.voting import Contender, ContenderConnection
from tests.generated import ROOT

PARTS: Final = {
    "schema.voting": "voting",
    "schema.comments": "comments",
    "schema.pickem": "pickem",
    "schema.vocabulary": "vocabulary",
    "schema.people": "people",
    "schema.members": "members",
}
"""The modules of the schema, and the part that each belongs to."""

UNGATED: Final = {
    "schema.imports": "What is wrong with a text is told to the editor who sent it.",
    "schema.jobs": "A job is loaded for the member who began it, or for an admin.",
    "schema.journal": "For moderators and admins: each query begins with their role.",
}
"""The other modules of the schema that show records."""

GATES: Final = {part: import_module(f"resolvers.{part}.visibility") for part in sorted(set(PARTS.values()))}
LISTED: Final = {name for gate in GATES.values() for name in gate.AS_STORED}


def test_each_field_shows_what_its_part_s_visibility_made() -> None:
    """Records, rows and pages of them, what a resolver reads for a number or a text, and answers to mutations."""
    assert sorted(bypasses(schema)) == []


def test_each_node_is_made_by_its_part_s_visibility() -> None:
    """`node` and `nodes` show objects of every type."""
    types = types_of(schema)
    assert [name for name, load in LOADERS.items() if not shows(types[name], answer_of(called_by(load)))] == []


def test_only_a_part_s_visibility_makes_what_is_shown() -> None:
    """No other module calls its types, or casts to them."""
    makers = []
    for part, gate in GATES.items():
        for path in sorted(ROOT.glob(f"resolvers/{part}/*.py")):
            if path.stem != "visibility":
                made = set(names_made(ast.parse(path.read_text(encoding="utf-8"))))
                makers += [f"{path.stem}: {kind.__name__}" for kind in shown_types(gate) if kind.__name__ in made]
    assert makers == []


def test_each_type_of_a_record_belongs_to_a_part() -> None:
    """A new module of the schema must say where its part's visibility is, or why it has none."""
    modules = {module_of(kind) for kind in types_of(schema).values() if records_behind(kind)}
    assert modules - PARTS.keys() == UNGATED.keys()


def test_what_is_listed_exists() -> None:
    """Each is a type, or a field of one, and has a reason."""
    types = types_of(schema)
    for listed, reason in (item for gate in GATES.values() for item in gate.AS_STORED.items()):
        name, _, of_type = listed.partition(".")
        assert not of_type or of_type in types[name].fields, listed
        assert reason.endswith("."), listed


# ── fields that go around it ──


async def stored_contender(_: Context, /) -> contenders.Contender | None:
    return None


async def stored_page(_: Context, /, *, window: Window) -> Page[contenders.Contender]:
    raise NotImplementedError


def wins_of(_: Context, contender: voting_visibility.ShownContender, /) -> int:
    return contender.ordinal


@record_type(votes.PairTally, "A record that no module has made for a viewer.")
class Tally:
    ties: int = described("Votes for neither.")


Tally.__module__ = "schema.voting"


@record_type(voting_visibility.Matchup, "What is shown, with a field that reads what is not.")
class Pair:
    ties: int = described("Votes for neither.")
    wins: int = field(wins_of, "Votes that it looks up itself.")


Pair.__module__ = "schema.voting"


@strawberry.type
class Query:
    contender: Contender | None = field(stored_contender, "A contender.")
    page: ContenderConnection = field(stored_page, "Contenders.")
    tally: Tally = described("A tally.")
    matchup: Pair = described("A matchup.")


def test_a_field_that_goes_around_it_is_found() -> None:
    """A stored record, a page of them, a record's attributes, and a number that a resolver reads by itself."""
    planted = strawberry.Schema(query=Query)
    assert sorted(bypasses(planted)) == ["Pair.wins", "Query.contender", "Query.page", "Tally.ties"]


# ── the walk ──


def types_of(of_schema: strawberry.Schema) -> dict[str, GraphQLObjectType]:
    types = of_schema._schema.type_map.items()
    return {name: kind for name, kind in types if isinstance(kind, GraphQLObjectType) and not name.startswith("__")}


def bypasses(of_schema: strawberry.Schema) -> Iterator[str]:
    """The fields that show what their part's visibility has not made."""
    for name, kind in types_of(of_schema).items():
        for field_name, shown in kind.fields.items():
            if field_name != "id" and f"{name}.{field_name}" not in LISTED and goes_around(kind, shown):
                yield f"{name}.{field_name}"


def goes_around(owner: GraphQLObjectType, shown: GraphQLField) -> bool:
    kind = get_named_type(shown.type)
    if isinstance(kind, GraphQLUnionType):
        return answers_around(kind.types[0], shown)
    resolver = resolver_of(shown)
    if resolver is None:
        return attribute_goes_around(owner, shown)
    if isinstance(kind, GraphQLObjectType):
        return not shows(kind, answer_of(resolver))
    module = resolver.__module__.split(".")
    gate = GATES.get(module[1] if module[1] in GATES else part_of(owner) or "")
    return gate is not None and resolver.__module__ != gate.__name__ and owner.name not in LISTED


def attribute_goes_around(owner: GraphQLObjectType, shown: GraphQLField) -> bool:
    """An attribute of a record that was made for the viewer; if it is an object, it was made for the viewer too."""
    records = records_behind(owner)
    if not records or part_of(owner) is None:
        return False
    if owner.name not in LISTED and not all(map(is_made, records)):
        return True
    kind, name = get_named_type(shown.type), definition(shown).python_name
    return isinstance(kind, GraphQLObjectType) and not all(shows(kind, attribute_of(each, name)) for each in records)


def answers_around(payload: GraphQLObjectType, shown: GraphQLField) -> bool:
    """A mutation: its answer is the payload, or the only field of the payload, or has the payload's fields."""
    inside = inspect.getclosurevars(definition(shown).base_resolver.wrapped_func).nonlocals
    answer = answer_of(inside["show"] or inside["resolver"])
    if records_behind(payload):
        return not shows(payload, answer)
    objects = {definition(each).python_name: get_named_type(each.type) for each in payload.fields.values()}
    objects = {name: kind for name, kind in objects.items() if isinstance(kind, GraphQLObjectType)}
    if len(payload.fields) == 1:
        return not all(shows(kind, answer) for kind in objects.values())
    return not all(shows(kind, attribute_of(answer, name)) for name, kind in objects.items())


def shows(kind: GraphQLObjectType, declared: Any) -> bool:
    """Whether what is declared was made to be shown as this type, or the type is shown as it is stored."""
    if "nodes" in kind.fields:
        kind = get_named_type(kind.fields["nodes"].type)
    if part_of(kind) is None or kind.name in LISTED:
        return True
    records = set(records_in(declared))
    return bool(records) and records <= set(shown_types(GATES[part_of(kind) or ""]))


def records_in(declared: Any) -> Iterator[Any]:
    """The records of a declared type: `Page[X] | None` has X."""
    if arguments := get_args(declared):
        for argument in arguments:
            yield from records_in(argument)
    elif declared not in (NoneType, Ellipsis):
        yield declared


def is_made(record: type) -> bool:
    kinds = [kind for gate in GATES.values() for kind in shown_types(gate)]
    return any(record in (kind, getattr(kind, "__supertype__", None)) for kind in kinds)


@cache
def shown_types(gate: ModuleType) -> tuple[Any, ...]:
    """The types that a module defines for what it shows."""
    kinds = [kind for kind in vars(gate).values() if isinstance(kind, type | NewType)]
    return tuple(kind for kind in kinds if kind.__module__ == gate.__name__)


def names_made(tree: ast.Module) -> Iterator[str]:
    """What is called, and what is cast to."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        made = ast.unparse(call.args[0] if ast.unparse(call.func) == "cast" else call.func)
        yield from re.findall(r"\w+", made)


# ── what Strawberry knows of a field ──


def definition(shown: GraphQLField) -> Any:
    return shown.extensions["strawberry-definition"]


def part_of(kind: GraphQLObjectType) -> str | None:
    return PARTS.get(module_of(kind))


def module_of(kind: GraphQLObjectType) -> str:
    return str(kind.extensions["strawberry-definition"].origin.__module__)


def records_behind(kind: GraphQLObjectType) -> list[type]:
    kinds = getattr(kind.is_type_of, "kinds", ())
    return [each for each in kinds if each is not kind.extensions["strawberry-definition"].origin]


def resolver_of(shown: GraphQLField) -> Callable[..., Any] | None:
    """The function that answers a field or a subscription; None for an attribute."""
    if (wrapper := definition(shown).base_resolver) is None:
        return None
    resolution = getattr(wrapper.wrapped_func, "resolution", None)
    if isinstance(resolution, Resolution):
        return resolution.resolver
    found: Callable[..., Any] = inspect.getclosurevars(wrapper.wrapped_func).nonlocals["resolver"]
    return found


def answer_of(function: Callable[..., Any]) -> Any:
    return get_type_hints(function)["return"]


def attribute_of(record: Any, name: str) -> Any:
    record = getattr(record, "__supertype__", record)
    found = inspect.getattr_static(record, name, None)
    return answer_of(found.fget) if isinstance(found, property) and found.fget else get_type_hints(record)[name]


def called_by(load: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a module that a lambda calls; another function itself."""
    if load.__name__ != "<lambda>":
        return load
    module, name = load.__code__.co_names[:2]
    found: Callable[..., Any] = getattr(load.__globals__[module], name)
    return found
