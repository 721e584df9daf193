"""`ringside explain`: what an operation is compiled to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import orjson
import typer

from schema import schema
from server.commands import Failed
from server.compiler.plans import Ready
from server.execution.documents import Documents, Faulty


def explain(
    file: Annotated[Path, typer.Argument(help="A document with operations and their fragments.")],
    operation: Annotated[str | None, typer.Option(help="The operation's name, if the document has several.")] = None,
    variables: Annotated[
        str, typer.Option(help="A JSON object. Variables of @skip and @include change what is compiled.")
    ] = "{}",
) -> None:
    """Prints the Python function that answers an operation, or why graphql-core answers it."""
    try:
        values = orjson.loads(variables)
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise Failed(f"{error}. Name a file with a document, and give --variables as a JSON object.") from None
    documents = Documents(schema._schema)  # noqa: SLF001 - Strawberry keeps graphql-core's schema there
    try:
        compiled = documents.operation(text, operation, introspection=True)
    except Faulty as faulty:
        raise Failed(str(faulty)) from None
    ready = compiled.plans.ready(values, suggestions=True)
    if isinstance(ready, Ready):
        print(ready.text, end="")  # noqa: T201 - a command prints
    elif isinstance(ready, str):
        raise Failed(f"graphql-core answers this operation: {ready}.")
    else:
        raise Failed("; ".join(error.message for error in ready.errors or ()))
