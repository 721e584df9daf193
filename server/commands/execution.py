"""`ringside schema`, `manifest` and `explain`: the schema, and how documents fit it and are executed."""

from pathlib import Path
from typing import Annotated

import orjson
import typer
from graphql import ExecutionResult

from schema import schema as ringside_schema
from server import Failed
from server.commands.files import STANDARD, read_text, write_text
from server.compiler import Fallback
from server.execution.documents import Documents, GraphQLRequest, write_manifest
from server.execution.limits import InvalidOperation
from server.settings import Settings

app = typer.Typer()


@app.command()
def schema(
    file: Annotated[Path, typer.Argument(help="The file to write; - prints.", allow_dash=True)] = STANDARD,
) -> None:
    """Prints the schema in GraphQL's schema definition language."""
    write_text(file, ringside_schema.as_str() + "\n")


@app.command()
def manifest(
    files: Annotated[list[Path], typer.Argument(help="Files, each with a GraphQL document; - reads standard input.")],
    out_file: Annotated[Path, typer.Option("--out", help="The file to write; - prints.", allow_dash=True)] = STANDARD,
) -> None:
    """Prints the manifest of trusted documents for these files, all of which must fit the schema and the limits."""
    texts, documents = [read_text(file) for file in files], Documents.of(Settings.from_environment())
    for file, text in zip(files, texts, strict=True):
        try:
            documents.check_to_trust(text)
        except InvalidOperation as invalid:
            raise Failed(f"{file} is not a valid document: {invalid}") from None
    write_text(out_file, write_manifest(texts))


@app.command()
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
    documents = Documents.of(Settings.from_environment())
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
    print(prepared.plan.source, end="")
