"""`ringside explain`: the code that an operation is compiled to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import orjson
import typer
from graphql import ExecutionResult

from schema import schema
from server.commands import Failed
from server.commands.files import read_text
from server.compiler import Fallback
from server.execution.documents import Documents, GraphQLRequest, InvalidOperation


def explain(
    file: Annotated[
        Path, typer.Argument(help="A document with operations and their fragments; - reads standard input.")
    ],
    operation: Annotated[str | None, typer.Option(help="The operation's name, if the document has several.")] = None,
    variables: Annotated[
        str, typer.Option(help="A JSON object. Variables of @skip and @include change what is compiled.")
    ] = "{}",
) -> None:
    """Prints the Python code that an operation is compiled to, or why graphql-core executes it."""
    try:
        values = orjson.loads(variables)
    except ValueError as error:
        raise Failed(f"--variables is not JSON: {error}.") from None
    if not isinstance(values, dict):
        raise Failed("--variables is not a JSON object.")
    documents = Documents(schema._schema)  # noqa: SLF001 - Strawberry keeps graphql-core's schema there
    try:
        chosen = documents.operation(GraphQLRequest(read_text(file), operation, values), introspection=True)
    except InvalidOperation as invalid:
        raise Failed(str(invalid)) from None
    chosen.compiled.is_postponed = False
    prepared = chosen.compiled.prepare(values, suggestions=True)
    if isinstance(prepared, Fallback):
        raise Failed(f"graphql-core executes this operation: {prepared.reason}.")
    if isinstance(prepared, ExecutionResult):
        raise Failed("; ".join(error.message for error in prepared.errors or ()))
    print(prepared.source, end="")  # noqa: T201 - a command prints
