"""The compiler: GraphQL operations become Python functions.

    CompiledOperation ── prepare(variables) ── PreparedOperation ── execute(ctx) ── ExecutionResult

It knows graphql-core and Strawberry, and nothing of this service; `fields` says what a schema may tell it.
`operation` holds what the rest of the server uses. Below it, `planning` makes a `plan`, `codegen` makes it a `compiled`
plan, and `runtime` executes that.
"""

from server.compiler.core import encode_json, to_dicts
from server.compiler.operation import CompiledOperation, Fallback, PreparedOperation

__all__ = ["CompiledOperation", "Fallback", "PreparedOperation", "encode_json", "to_dicts"]
