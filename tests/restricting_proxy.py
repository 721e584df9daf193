"""A proxy that allows what an IAM policy allows, refuses everything else as DynamoDB does, and notes what was used."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from tests.fault.faults import JSON, NAMESPACE, Answer
from tests.fault.proxy import Proxy

ARN = "arn:aws:dynamodb:eu-central-1:123456789012:table/ringside"
TRANSACT_ACTIONS = {
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
}


def permissions(policy: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Pairs of an action and a resource, of a policy with Allow statements and exact actions only."""
    assert all(statement["Effect"] == "Allow" for statement in policy["Statement"])
    return {(action, statement["Resource"]) for statement in policy["Statement"] for action in statement["Action"]}


def needed(operation: str, body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The permissions that a request needs: a transaction needs those of its parts, a query of an index the index's."""
    resource = f"{ARN}/index/*" if "IndexName" in body else ARN
    if operation == "TransactWriteItems":
        for item in body["TransactItems"]:
            yield from ((f"dynamodb:{TRANSACT_ACTIONS[kind]}", resource) for kind in item)
    else:
        yield f"dynamodb:{operation}", resource


class RestrictingProxy(Proxy):
    """Lets through what the policy allows."""

    def __init__(self, engine: str, policy: Mapping[str, Any]) -> None:
        super().__init__(engine)
        self.allowed = permissions(policy)
        self.used = set[tuple[str, str]]()
        self.refused = set[tuple[str, str]]()

    async def _forward(self, raw: bytes, headers: dict[str, str]) -> Answer:
        target = next(value for name, value in headers.items() if name.lower() == "x-amz-target")
        wanted = set(needed(target.rpartition(".")[2], orjson.loads(raw)))
        if refused := wanted - self.allowed:
            self.refused |= refused
            message = f"User: ringside is not authorized to perform: {min(refused)[0]}"
            return Answer(
                400, json.dumps({"__type": f"{NAMESPACE}AccessDeniedException", "Message": message}).encode(), JSON
            )
        self.used |= wanted
        return await super()._forward(raw, headers)
