"""Compiled plans: what they ask for, how they wait, what they leave to graphql-core."""

import asyncio
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import field as attribute
from pathlib import Path
from typing import Any

import pytest
import strawberry
from graphql import ExecutionResult
from typer.testing import CliRunner

from resolvers.loading.batched import batched
from schema.fields import described, field
from schema.types import record_type
from server.__main__ import app
from server.compiler import Fallback, PreparedOperation, to_dicts
from server.compiler.operation import MAX_PLANS
from server.compiler.planning import MAX_FIELDS
from server.execution.answers import run
from server.execution.documents import Documents, GraphQLRequest, hash_of
from server.execution.limits import Limits


@dataclass
class Author:
    name: str


@dataclass
class Comment:
    number: int
    author: str


@dataclass
class Log:
    """What resolvers were asked, and how they ended."""

    asked: list[Any] = attribute(default_factory=list)
    ended: list[str] = attribute(default_factory=list)


LOG = Log()


@batched
async def authors(_: Any, comments: Sequence[Comment], /) -> list[Author]:
    LOG.asked.append([comment.author for comment in comments])
    await asyncio.sleep(0)
    return [Author(comment.author) for comment in comments]


async def comments(_: Any, /, *, count: int) -> list[Comment]:
    return [Comment(number, f"author {number}") for number in range(count)]


async def slow(_: Any, /) -> str:
    LOG.asked.append("slow")
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        LOG.ended.append("slow was cancelled")
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
    LOG.asked.append("quick begins")
    await asyncio.sleep(0)
    LOG.asked.append("quick ends")
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
    must_fail: str = field(failing, "Fails where null cannot stand.")
    failing: str | None = field(failing, "Fails.")


@strawberry.type
class Mutation:
    first: str = field(quick, "First.")
    second: str = field(quick, "Second.")


SCHEMA = strawberry.Schema(query=Query, mutation=Mutation)
ASKING: Any = types.SimpleNamespace(services=types.SimpleNamespace(seal=None))


@pytest.fixture(autouse=True)
def _new_log() -> None:
    LOG.asked.clear()
    LOG.ended.clear()


def ready(text: str, variables: dict[str, Any] | None = None, limits: Limits | None = None) -> Any:
    operation = Documents(SCHEMA._schema, limits).operation(GraphQLRequest(text), introspection=True)
    return operation.compiled.prepare(variables or {}, suggestions=True)


async def answered(text: str, **variables: Any) -> ExecutionResult:
    found = ready(text, variables)
    assert isinstance(found, PreparedOperation)
    result = await found.execute(ASKING)
    return ExecutionResult(to_dicts(result.data), result.errors)


async def test_the_authors_of_a_page_are_asked_for_together() -> None:
    """Twenty comments, one call."""
    result = await answered("{ comments(count: 20) { author { name } } }")
    assert result.data is not None
    assert result.errors is None
    assert result.data["comments"][7] == {"author": {"name": "author 7"}}
    assert LOG.asked == [[f"author {number}" for number in range(20)]]


async def test_two_names_for_the_same_field_are_two_calls() -> None:
    """Each may have other arguments and other fields inside."""
    result = await answered("{ comments(count: 2) { a: author { name } b: author { __typename } } }")
    assert result.data == {
        "comments": [{"a": {"name": f"author {n}"}, "b": {"__typename": "AuthorShape"}} for n in range(2)]
    }
    assert len(LOG.asked) == 2


async def test_a_resolver_may_end_its_own_waiting() -> None:
    """A timeout belongs to the task that began it: no coroutine is begun in one task and ended in another."""
    result = await answered("{ hurried again: hurried failing }")
    assert result.data == {"hurried": "gave up by itself", "again": "gave up by itself", "failing": None}


async def test_what_is_waited_for_ends_with_the_request() -> None:
    """A request that is given up leaves no resolver behind."""
    asked = asyncio.ensure_future(answered("{ slow other: slow comments(count: 2) { slow } }"))
    while len(LOG.asked) < 4:
        await asyncio.sleep(0)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert LOG.ended == ["slow was cancelled"] * 4


async def test_null_on_its_way_up_ends_what_is_waited_for_beneath() -> None:
    """The comment is null because of one field, so its other field is not waited for; the other comment's is not."""
    result = await asyncio.wait_for(answered("{ comments(count: 2) { slow failing } }"), 10)
    assert result.data == {"comments": [None, None]}
    assert [error.path for error in result.errors or ()] == [["comments", 0, "failing"], ["comments", 1, "failing"]]
    assert LOG.ended == ["slow was cancelled"] * 2


async def test_null_at_the_top_ends_everything() -> None:
    """No data, one error, nobody left waiting."""
    result = await asyncio.wait_for(answered("{ slow mustFail comments(count: 1) { slow } }"), 10)
    assert result.data is None
    assert [error.path for error in result.errors or ()] == [["mustFail"]]
    assert set(LOG.ended) == {"slow was cancelled"}


async def test_mutations_follow_one_another() -> None:
    """The second begins when the first has ended."""
    result = await answered("mutation { first second }")
    assert result.data == {"first": "quick", "second": "quick"}
    assert LOG.asked == ["quick begins", "quick ends"] * 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [("{ __schema { queryType { name } } }", "introspection"), ("query @d { slow }", "directive of an operation")],
)
async def test_what_is_not_known_is_left_with_its_reason(text: str, reason: str) -> None:
    """By decision when it is compiled, never in the middle of a run."""
    documents = Documents(strawberry.Schema(query=Query, directives=[])._schema)
    if "@d" in text:
        from strawberry.directive import DirectiveLocation  # noqa: PLC0415 - for this case alone

        @strawberry.directive(locations=[DirectiveLocation.QUERY])  # type: ignore[arg-type]
        def d() -> str:
            return ""

        documents = Documents(strawberry.Schema(query=Query, directives=[d])._schema)
    operation = documents.operation(GraphQLRequest(text), introspection=True)
    assert operation.compiled.prepare({}, suggestions=True) == Fallback(reason)


async def test_an_operation_left_to_graphql_core_is_counted() -> None:
    """And answered."""
    counted: list[str] = []
    operation = Documents(SCHEMA._schema).operation(
        GraphQLRequest('{ __type(name: "Query") { name } }'), introspection=True
    )
    ctx: Any = types.SimpleNamespace(notes={}, mark=None)
    answer = await run(operation, {}, ctx, suggestions=True, fell_back=counted.append)
    assert answer.data == {"__type": {"name": "Query"}}
    assert counted == ["introspection"]


async def test_choices_are_compiled_apart_and_bounded() -> None:
    """A plan for each choice of what is skipped; beyond so many, graphql-core."""
    names = [f"v{number}" for number in range(8)]
    fields = " ".join(f"{name}: slow @skip(if: ${name})" for name in names)
    text = f"query Q({', '.join(f'${name}: Boolean!' for name in names)}) {{ {fields} __typename }}"
    operation = Documents(SCHEMA._schema).operation(GraphQLRequest(text), introspection=True)
    found = [
        operation.compiled.prepare(
            {name: bool(choice >> place & 1) for place, name in enumerate(names)}, suggestions=True
        )
        for choice in range(20)
    ]
    assert [isinstance(one, PreparedOperation) for one in found] == [True] * MAX_PLANS + [False] * (20 - MAX_PLANS)
    assert found[-1] == Fallback("too many choices")


async def test_an_operation_may_be_too_large_to_compile() -> None:
    """Code takes memory: so many fields, counted in every type they may be of, and no more."""
    fields = " ".join(f"a{number}: slow" for number in range(MAX_FIELDS + 1))
    assert ready(f"{{ {fields} }}", limits=Limits(fields=5000, aliases=5000, same_name=5000, tokens=9000)) == Fallback(
        "too large"
    )


async def test_wrong_variables_are_told_before_anything_runs() -> None:
    """As graphql-core words it."""
    found = ready("query Q($count: Int!) { comments(count: $count) { number } }", {"count": "many"})
    assert isinstance(found, ExecutionResult)
    assert [error.message for error in found.errors or ()] == [
        "Variable '$count' has invalid value: Int cannot represent non-integer value: 'many'"
    ]


async def test_trusted_documents_are_compiled_at_the_start() -> None:
    """The first request is answered by a plan that is there already."""
    text = "query Page($count: Int!) { comments(count: $count) { number } }"
    documents = Documents(SCHEMA._schema, manifest={hash_of(text): text})
    request = GraphQLRequest(None, document_id=hash_of(text))
    assert documents.operation(request, introspection=True).compiled.plan_count == 1


def test_explain_prints_the_function(tmp_path: Path) -> None:
    """For people who want to know what runs."""
    file = tmp_path / "viewer.graphql"
    file.write_text("{ viewer { id name } }")
    printed = CliRunner().invoke(app, ["explain", str(file)])
    assert printed.exit_code == 0, printed.output
    compile(printed.stdout, "explained", "exec")
    assert ".name" in printed.stdout


def test_a_resolver_of_many_records_works_for_one() -> None:
    """Plain Strawberry asks for each record alone, and gets the same."""
    asked: Callable[[str], Any] = lambda text: SCHEMA.execute(text, context_value=ASKING)  # noqa: E731
    result = asyncio.run(asked("{ comments(count: 3) { author { name } } }"))
    assert [comment["author"]["name"] for comment in result.data["comments"]] == ["author 0", "author 1", "author 2"]
    assert LOG.asked == [["author 0"], ["author 1"], ["author 2"]]
