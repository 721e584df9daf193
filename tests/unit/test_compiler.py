"""The compiler: which resolvers compiled code calls, how it awaits them, and what it leaves to graphql-core."""

import asyncio
import types
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from dataclasses import field as attribute
from pathlib import Path
from typing import Any

import pytest
import strawberry
from graphql import ExecutionResult, parse
from typer.testing import CliRunner

from resolvers.loading import batched
from schema.framework.declarations import described, field, record_type
from server import Failed
from server.__main__ import app
from server.compiler import Fallback, PreparedOperation
from server.compiler.operation import MAX_PLANS
from server.compiler.plan import MAX_FIELDS
from server.execution.answers import run
from server.execution.documents import Documents, GraphQLRequest, Operation, Result, Turns, hash_of
from server.execution.limits import Limits
from tests.property.differential.comparing import execute_by_core, execute_compiled, to_dicts


@dataclass
class Author:
    name: str


@dataclass
class Comment:
    number: int
    author: str


@dataclass
class Log:
    """The calls of resolvers, and how some of them ended."""

    calls: list[Any] = attribute(default_factory=list)
    ends: list[str] = attribute(default_factory=list)


LOG = Log()


@batched
async def authors(_: Any, comments: Sequence[Comment], /) -> list[Author]:
    LOG.calls.append([comment.author for comment in comments])
    await asyncio.sleep(0)
    return [Author(comment.author) for comment in comments]


async def comments(_: Any, /, *, count: int) -> list[Comment]:
    return [Comment(number, f"author {number}") for number in range(count)]


async def reversed_(_: Any, /, *, numbers: list[int]) -> list[int]:
    numbers.reverse()
    return numbers


async def slow(_: Any, /) -> str:
    LOG.calls.append("slow")
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        LOG.ends.append("slow was cancelled")
        raise
    return "slow"


async def hurried(_: Any, /) -> str:
    try:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(60)
    except TimeoutError:
        return "gave up by itself"
    return "waited"


async def failing(_: Any, /) -> str:
    await asyncio.sleep(0)
    message = "this fails"
    raise ValueError(message)


async def quick(_: Any, /) -> str:
    LOG.calls.append("quick begins")
    await asyncio.sleep(0)
    LOG.calls.append("quick ends")
    return "quick"


@record_type(Author, "Who wrote it.")
class AuthorShape:
    name: str = described("The name.")


@record_type(Comment, "What was written.")
class CommentShape:
    number: int = described("The number.")
    author: AuthorShape = field(authors, "Who wrote it.")
    slow: str = field(lambda ctx, _, /: slow(ctx), "Slow.")
    failing: str = field(lambda ctx, _, /: failing(ctx), "Fails.")


@strawberry.type
class Query:
    comments: list[CommentShape | None] | None = field(comments, "All.", count="How many.")
    slow: str | None = field(slow, "Slow.")
    hurried: str | None = field(hurried, "Ends its own waiting.")
    reversed_: list[int] = field(reversed_, "Reverses its own argument.", numbers="Numbers.")
    must_fail: str = field(failing, "Fails where null cannot stand.")
    failing: str | None = field(failing, "Fails.")


@strawberry.type
class Mutation:
    first: str = field(quick, "First.")
    second: str = field(quick, "Second.")


SCHEMA = strawberry.Schema(query=Query, mutation=Mutation)
CONTEXT: Any = types.SimpleNamespace(services=types.SimpleNamespace(seal=None), address="")


@pytest.fixture(autouse=True)
def _new_log() -> None:
    LOG.calls.clear()
    LOG.ends.clear()


def second_use(documents: Documents, request: GraphQLRequest) -> Operation:
    """The operation as a request finds it that is not the document's first."""
    documents.operation(request, introspection=True)
    return documents.operation(request, introspection=True)


def prepare(text: str, variables: dict[str, Any] | None = None, limits: Limits | None = None) -> Any:
    operation = second_use(Documents(SCHEMA._schema, limits), GraphQLRequest(text))
    return operation.compiled.prepare(variables or {}, suggestions=True)


async def execute(text: str, **variables: Any) -> ExecutionResult:
    prepared = prepare(text, variables)
    assert isinstance(prepared, PreparedOperation)
    result = await prepared.execute(CONTEXT)
    return ExecutionResult(to_dicts(result.data), result.errors)


async def test_the_authors_of_a_page_are_loaded_by_one_call() -> None:
    """A batched resolver takes all twenty comments."""
    result = await execute("{ comments(count: 20) { author { name } } }")
    assert result.data is not None
    assert result.errors is None
    assert result.data["comments"][7] == {"author": {"name": "author 7"}}
    assert LOG.calls == [[f"author {number}" for number in range(20)]]


async def test_two_names_for_the_same_field_are_two_calls() -> None:
    """Each may have other arguments and other fields inside."""
    result = await execute("{ comments(count: 2) { a: author { name } b: author { __typename } } }")
    assert result.data == {
        "comments": [{"a": {"name": f"author {n}"}, "b": {"__typename": "AuthorShape"}} for n in range(2)]
    }
    assert len(LOG.calls) == 2


async def test_a_resolver_may_time_out_by_itself() -> None:
    """A timeout belongs to the task that began it: no coroutine begins in one task and ends in another."""
    result = await execute("{ hurried again: hurried failing }")
    assert result.data == {"hurried": "gave up by itself", "again": "gave up by itself", "failing": None}


async def test_cancelling_a_request_cancels_its_resolvers() -> None:
    """No resolver outlives its request."""
    request = asyncio.ensure_future(execute("{ slow other: slow comments(count: 2) { slow } }"))
    while len(LOG.calls) < 4:
        await asyncio.sleep(0)
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    assert LOG.ends == ["slow was cancelled"] * 4


async def test_a_null_cancels_the_resolvers_below_it() -> None:
    """A comment is null because of one field, so its other field is not awaited any more."""
    result = await asyncio.wait_for(execute("{ comments(count: 2) { slow failing } }"), 120)
    assert result.data == {"comments": [None, None]}
    assert [error.path for error in result.errors or ()] == [["comments", 0, "failing"], ["comments", 1, "failing"]]
    assert LOG.ends == ["slow was cancelled"] * 2


async def test_a_null_at_the_root_cancels_all_resolvers() -> None:
    """No data, one error, and no resolver still runs."""
    result = await asyncio.wait_for(execute("{ slow mustFail comments(count: 1) { slow } }"), 120)
    assert result.data is None
    assert [error.path for error in result.errors or ()] == [["mustFail"]]
    assert set(LOG.ends) == {"slow was cancelled"}


async def test_mutations_run_one_after_the_other() -> None:
    """The second begins when the first has ended."""
    result = await execute("mutation { first second }")
    assert result.data == {"first": "quick", "second": "quick"}
    assert LOG.calls == ["quick begins", "quick ends"] * 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [("{ __schema { queryType { name } } }", "introspection"), ("query @d { slow }", "directive of an operation")],
)
async def test_an_operation_that_cannot_be_compiled_is_left_to_graphql_core(text: str, reason: str) -> None:
    """The compiler decides before it runs, and says why."""
    documents = Documents(strawberry.Schema(query=Query, directives=[])._schema)
    if "@d" in text:
        from strawberry.directive import DirectiveLocation  # noqa: PLC0415 - for this case alone

        @strawberry.directive(locations=[DirectiveLocation.QUERY])
        def d() -> str:
            return ""

        documents = Documents(strawberry.Schema(query=Query, directives=[d])._schema)
    operation = second_use(documents, GraphQLRequest(text))
    assert operation.compiled.prepare({}, suggestions=True) == Fallback(reason)


async def at_once() -> None:
    """Take no turn."""


async def test_an_operation_left_to_graphql_core_is_answered_and_counted() -> None:
    """The count has the reason."""
    counted: list[str] = []
    operation = second_use(Documents(SCHEMA._schema), GraphQLRequest('{ __type(name: "Query") { name } }'))
    ctx: Any = types.SimpleNamespace(address="", notes={}, event_id=None)
    answer = await run(operation, {}, ctx, Turns(), suggestions=True, begin=at_once, fell_back=counted.append)
    assert answer.data == {"__type": {"name": "Query"}}
    assert counted == ["introspection"]


async def test_each_choice_of_skipped_fields_has_a_plan_up_to_a_limit() -> None:
    """Beyond the limit, graphql-core executes the operation."""
    names = [f"v{number}" for number in range(8)]
    fields = " ".join(f"{name}: slow @skip(if: ${name})" for name in names)
    text = f"query Q({', '.join(f'${name}: Boolean!' for name in names)}) {{ {fields} __typename }}"
    operation = second_use(Documents(SCHEMA._schema), GraphQLRequest(text))
    prepared = [
        operation.compiled.prepare(
            {name: bool(choice >> index & 1) for index, name in enumerate(names)}, suggestions=True
        )
        for choice in range(MAX_PLANS + 1)
    ]
    assert all(isinstance(operation, PreparedOperation) for operation in prepared[:MAX_PLANS])
    assert prepared[MAX_PLANS] == Fallback("too many choices")


async def test_a_variable_that_decides_in_a_fragment_alone_chooses_the_plan() -> None:
    """Of the fragments inside it too: otherwise the first request's choice would hold for all."""
    text = (
        "query Q($x: Boolean!) { ...outer } fragment outer on Query { hurried ...inner } "
        "fragment inner on Query { comments(count: 1) @include(if: $x) { number } }"
    )
    operation = second_use(Documents(SCHEMA._schema), GraphQLRequest(text, "Q", {"x": True}))
    for chosen, fields in ((True, {"hurried", "comments"}), (False, {"hurried"})):
        prepared = operation.compiled.prepare({"x": chosen}, suggestions=True)
        assert isinstance(prepared, PreparedOperation)
        assert to_dicts((await prepared.execute(CONTEXT)).data).keys() == fields


async def test_operations_of_one_document_share_no_variables() -> None:
    """Here `$x` is a Boolean that decides what is selected, there a list."""
    text = (
        "query Other($x: Boolean!) { ...part @include(if: $x) slow @skip(if: $x) } fragment part on Query { hurried } "
        "query This($x: [Int!]!) { reversed_(numbers: $x) }"
    )
    operation = second_use(Documents(SCHEMA._schema), GraphQLRequest(text, "This"))
    for numbers in ([1, 2], [3, 4]):
        prepared = operation.compiled.prepare({"x": numbers}, suggestions=True)
        assert isinstance(prepared, PreparedOperation)
        result = await prepared.execute(CONTEXT)
        assert result.data == {"reversed_": numbers[::-1]}
    assert len(operation.compiled.plans) == 1


async def test_an_operation_may_be_too_large_to_compile() -> None:
    """Code takes memory: so many fields, counted in every type they may belong to, and no more."""
    fields = " ".join(f"a{number}: slow" for number in range(MAX_FIELDS + 1))
    assert prepare(
        f"{{ {fields} }}", limits=Limits(fields=5000, aliases=5000, same_name=5000, tokens=9000)
    ) == Fallback("too large")


async def test_wrong_variables_are_errors_before_anything_runs() -> None:
    """In graphql-core's words."""
    result = prepare("query Q($count: Int!) { comments(count: $count) { number } }", {"count": "many"})
    assert isinstance(result, ExecutionResult)
    assert [error.message for error in result.errors or ()] == [
        "Variable '$count' has invalid value: Int cannot represent non-integer value: 'many'"
    ]


async def test_a_document_is_compiled_at_its_second_use() -> None:
    """A client that sends each document once cannot make the service compile; the answer is the same."""
    reasons: list[str] = []
    documents, request = Documents(SCHEMA._schema), GraphQLRequest("{ comments(count: 2) { number } }")
    ctx: Any = types.SimpleNamespace(services=CONTEXT.services, address="", notes={}, event_id=None)
    for plan_count in (0, 1, 1):
        operation = documents.operation(request, introspection=True)
        answer = await run(operation, {}, ctx, Turns(), suggestions=True, begin=at_once, fell_back=reasons.append)
        assert to_dicts(answer.data) == {"comments": [{"number": 0}, {"number": 1}]}
        assert len(operation.compiled.plans) == plan_count
    assert reasons == ["first use"]


async def test_each_choice_of_variables_is_compiled_in_a_turn() -> None:
    """Also the second one, when the operation has a plan already; a third is left to graphql-core."""
    text = """query ($a: Boolean!, $b: Boolean!) {
      x: comments(count: 1) @skip(if: $a) { number } y: comments(count: 1) @skip(if: $b) { number } }"""
    documents, request = Documents(SCHEMA._schema), GraphQLRequest(text)
    ctx: Any = types.SimpleNamespace(services=CONTEXT.services, address="", notes={}, event_id=None)
    taken: list[object] = []

    class CountingTurns(Turns):
        async def take(self, key: Hashable, work: Callable[[], Result], client: Hashable = "") -> Result:
            taken.append(key)
            return await super().take(key, work, client)

    turns = CountingTurns()
    reasons: list[str] = []
    documents.operation(request, introspection=True)
    for a, b, plan_count, turn_count in ((False, True, 1, 1), (True, False, 2, 2), (False, False, 2, 2)):
        operation = documents.operation(request, introspection=True)
        answer = await run(
            operation, {"a": a, "b": b}, ctx, turns, suggestions=True, begin=at_once, fell_back=reasons.append
        )
        page = [{"number": 0}]
        assert to_dicts(answer.data) == {**({} if a else {"x": page}), **({} if b else {"y": page})}
        assert (len(operation.compiled.plans), len(taken)) == (plan_count, turn_count)
    assert reasons == ["too many choices"]


async def test_trusted_documents_are_compiled_at_the_start() -> None:
    """The first request meets a plan that is there already."""
    text = "query Page($count: Int!) { comments(count: $count) { number } }"
    documents = Documents(SCHEMA._schema, manifest={hash_of(text): text})
    request = GraphQLRequest(None, document_id=hash_of(text))
    assert len(documents.operation(request, introspection=True).compiled.plans) == 1


def test_explain_prints_the_code(tmp_path: Path) -> None:
    """It is Python, and reads the record's attributes."""
    file = tmp_path / "viewer.graphql"
    file.write_text("{ viewer { id name } }")
    printed = CliRunner().invoke(app, ["explain", str(file)])
    assert printed.exit_code == 0, printed.output
    compile(printed.stdout, "explained", "exec")
    assert ".name" in printed.stdout


def test_explain_refuses_variables_that_are_no_object(tmp_path: Path) -> None:
    """It says which option is wrong."""
    file = tmp_path / "viewer.graphql"
    file.write_text("{ viewer { id name } }")
    printed = CliRunner().invoke(app, ["explain", str(file), "--variables", "[1]"])
    assert isinstance(printed.exception, Failed)
    assert str(printed.exception) == "--variables is not a JSON object."


def test_a_batched_resolver_works_without_the_compiler() -> None:
    """Plain Strawberry calls it for each record alone, and answers the same."""
    asked: Any = SCHEMA.execute("{ comments(count: 3) { author { name } } }", context_value=CONTEXT)
    result = asyncio.run(asked)
    assert [comment["author"]["name"] for comment in result.data["comments"]] == ["author 0", "author 1", "author 2"]
    assert LOG.calls == [["author 0"], ["author 1"], ["author 2"]]


async def test_a_resolver_that_changes_a_list_argument_changes_no_other_call() -> None:
    """Neither the list in the document nor the one in the variables is shared."""
    fields = "a: reversed_(numbers: [1, 2]) b: reversed_(numbers: $numbers) c: reversed_(numbers: $numbers)"
    prepared = prepare(f"query Q($numbers: [Int!]!) {{ {fields} }}", {"numbers": [1, 2]})
    for _ in range(2):
        result = await prepared.execute(CONTEXT)
        assert result.data == {"a": [2, 1], "b": [2, 1], "c": [2, 1]}


@strawberry.type
class Unchecked:
    """A type without a check of its records' class."""

    name: str


@dataclass
class Owner:
    number: int


async def _required(_: Any, owner: Owner, /) -> Any:
    return Unchecked(name="first") if owner.number else None


@record_type(Owner, "An owner.")
class OwnerType:
    required: Unchecked = field(_required, "Always there.")


@strawberry.type
class Owners:
    owners: list[OwnerType | None] = strawberry.field(  # type: ignore[assignment]  # records of that type
        resolver=lambda: [Owner(1), Owner(0)]
    )


async def test_a_null_is_no_object_even_if_only_its_type_name_is_selected() -> None:
    """A field that must not be null is an error then, as with graphql-core."""
    graphql_schema, document = strawberry.Schema(Owners)._schema, parse("{ owners { required { __typename } } }")
    expected = await execute_by_core(graphql_schema, document, {})
    result = await execute_compiled(graphql_schema, document, {})
    assert isinstance(result, ExecutionResult)
    assert to_dicts(result.data) == expected.data == {"owners": [{"required": {"__typename": "Unchecked"}}, None]}
    assert [error.message for error in result.errors or ()] == [error.message for error in expected.errors or ()]
