"""The compiler: GraphQL operations become Python functions.

    CompiledOperation ── prepare(variables) ── PreparedOperation ── execute(ctx) ── ExecutionResult

| module    | contents                                                                                   |
|-----------|--------------------------------------------------------------------------------------------|
| operation | what the rest of the server uses; executes compiled plans, and awaits what they leave      |
| plan      | an operation's plan: its fields, where their values come from, their arguments             |
| codegen   | from a plan to Python functions                                                            |
| core      | what is left to graphql-core, and what plans and the runtime share: leaves, answer objects |

It knows graphql-core and Strawberry, and nothing of this service. What a schema may tell it is in `plan`: `Resolution`
and `ResolutionByType`.
"""

from server.compiler.core import encode_json
from server.compiler.operation import CompiledOperation, Fallback, PreparedOperation

__all__ = ["CompiledOperation", "Fallback", "PreparedOperation", "encode_json"]
