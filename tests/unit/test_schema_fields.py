"""Fields and mutations made of resolvers: their arguments, their input types, and what the resolvers receive."""

import re
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
import strawberry

from datastore.refusals import InvalidInput
from resolvers.requests.context import UNSET, Context, NodeOf, Unset
from resolvers.values.node_ids import node_id
from schema.framework.arguments import Parameters, input_type
from schema.framework.declarations import field, mutation

calls: list[Any] = []


@dataclass(frozen=True, kw_only=True)
class Guest:
    name: str
    seat: Annotated[str, NodeOf("Seat")]
    diet: str | None = None


async def invite(
    _: Context,
    /,
    *,
    guests: list[Guest],
    host: Annotated[str, NodeOf("User")],
    note: str | Unset | None = UNSET,
    at_most: int = 3,
) -> int:
    calls.append((guests, host, note, at_most))
    return len(guests)


def count(_: Context, /, *, from_: int | None = None) -> int:
    return from_ or 0


input_type(Guest, "GuestInput", "A guest.", name="The name.", seat="The seat's id.", diet="What to cook.")


@strawberry.type(description="They are invited.")
class Invited:
    how_many: int = strawberry.field(description="How many.")


@strawberry.type
class Query:
    count: int = field(count, "Counts.", from_="Where to begin.")


@strawberry.type
class Mutation:
    invite = mutation(
        invite,
        "Invites guests.",
        Invited,
        input_description="Who comes.",
        result_description="How many, or why nobody.",
        guests="The guests.",
        host="The host's id.",
        note="A note.",
        at_most="How many at most.",
    )


SCHEMA = strawberry.Schema(query=Query, mutation=Mutation)
SDL = SCHEMA.as_str()


def test_an_input_type_has_the_resolver_s_parameters() -> None:
    """Ids for keys, input types for records, defaults where the resolver shows one, and the idempotency key last."""
    assert _fields("input InviteInput") == [
        "guests: [GuestInput!]!",
        "host: ID!",
        "note: String",
        "atMost: Int! = 3",
        "idempotencyKey: String",
    ]
    assert _fields("input GuestInput") == ["name: String!", "seat: ID!", "diet: String"]


def test_a_result_is_the_payload_or_a_refusal() -> None:
    """Named after the resolver."""
    assert "union InviteResult = Invited | Refused" in SDL
    assert "invite(" in SDL


def test_an_argument_may_have_a_name_that_python_reserves() -> None:
    """`from_` is shown without its underscore."""
    assert "from: Int" in SDL
    assert SCHEMA.execute_sync("{ count(from: 4) }", context_value=context()).data == {"count": 4}


async def test_a_resolver_receives_records() -> None:
    """What was left out takes the resolver's own default, and null stays null."""
    calls.clear()
    guests = [{"name": "Ann", "seat": node_id("Seat", "1")}, {"name": "Bo", "seat": node_id("Seat", "2"), "diet": None}]
    await invited(guests=guests, host=node_id("User", "ada"))
    await invited(guests=[], host=node_id("User", "ada"), note=None, atMost=1)
    assert calls == [
        ([Guest(name="Ann", seat="1"), Guest(name="Bo", seat="2")], "ada", UNSET, 3),
        ([], "ada", None, 1),
    ]


@pytest.mark.parametrize(
    ("guest", "path"),
    [
        ({"name": "A\x00", "seat": node_id("Seat", "1")}, ["input", "guests", "0", "name"]),
        ({"name": "Ann", "seat": node_id("User", "1")}, ["input", "guests", "0", "seat"]),
    ],
)
async def test_a_wrong_value_in_a_record_is_refused_with_its_place(guest: dict[str, Any], path: list[str]) -> None:
    """Before the resolver runs."""
    calls.clear()
    assert (await invited(guests=[guest], host=node_id("User", "ada")))["path"] == path
    assert calls == []


def test_descriptions_and_parameters_must_agree() -> None:
    """At import, for a missing description as for one too many."""
    with pytest.raises(TypeError, match="from_"):
        field(count, "Counts.")
    with pytest.raises(TypeError, match="to"):
        field(count, "Counts.", from_="Where to begin.", to="Where to end.")


def test_a_text_with_half_a_character_is_refused() -> None:
    """A lone surrogate cannot be stored."""
    with pytest.raises(InvalidInput) as refused:
        Parameters.of(invite).parse_values({"note": "\ud800"}, ("input",))
    assert refused.value.path == ("input", "note")


def context() -> Any:
    viewer = SimpleNamespace(id="v", is_member=False, node=None, proven=None, is_guest=False)
    services = SimpleNamespace(seal=None, profiles=None, journal=SimpleNamespace(is_current=True))
    return SimpleNamespace(services=services, viewer=viewer, table=None, now=lambda: None)


async def invited(**given: Any) -> Any:
    text = "mutation ($input: InviteInput!) { invite(input: $input) { ... on Refused { message path } } }"
    answer = await SCHEMA.execute(text, {"input": given}, context_value=context())
    assert answer.errors is None
    assert answer.data is not None
    return answer.data["invite"]


def _fields(start: str) -> list[str]:
    lines = SDL[SDL.index(start + " {") :].split("\n}")[0].split("\n")[1:]
    return [line.strip() for line in lines if re.match(r"  \w+: ", line)]
