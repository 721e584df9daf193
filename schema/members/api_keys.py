"""API keys: the type, the list for admins, and issuing and revoking keys."""

from __future__ import annotations

from datetime import datetime

import strawberry

from datastore.members import api_keys as api_key_store
from resolvers.members import (
    api_keys as api_key_resolvers,  # a class with a field `api_keys` does not see a module `api_keys`
)
from schema.framework.connections import connection
from schema.framework.fields import described, field
from schema.framework.mutations import mutation
from schema.framework.types import Node, object_type, record_type


@record_type(api_key_store.ApiKey, "A key by which a machine signs in, sent as `Authorization: Bearer rsk_…`.")
class ApiKey(Node):
    name: str = described("What it is for.")
    roles: list[str] = described("What it may do: member, moderator, editor, admin.")
    created_at: datetime = described("When it was created.")
    expires_at: datetime | None = described("When it stops working; null if it works until it is revoked.")
    last_used_at: datetime | None = described("When it was last used, to the minute; null if it never was.")
    prefix: str = described("The beginning of the key, to recognise it by.")


ApiKeyConnection = connection(ApiKey, "A page of API keys.", edge="An API key in a list.")


@strawberry.type
class ApiKeysQuery:
    api_keys: ApiKeyConnection = field(api_key_resolvers.api_keys, "All API keys, newest first. For admins.")


@strawberry.type
class ApiKeysMutation:
    create_api_key = mutation(
        api_key_resolvers.create_api_key,
        "Creates an API key for a machine. For admins.",
        object_type(
            "ApiKeyCreated",
            "The key was created.",
            api_key=(ApiKey, "The new key."),
            secret=(
                str | None,
                (
                    "The key itself, shown this once, since only its hash is stored. Null when a request is repeated "
                    "with its idempotency key."
                ),
            ),
        ),
        input_description="A new API key.",
        result_description="The key with its secret, or why none was created.",
        name="What the key is for, 1 to 80 characters.",
        roles="What it may do: member, moderator, editor, admin; at least one.",
        days="The number of days after which it expires, 1 to 3,650. Without it the key works until it is revoked.",
    )
    revoke_api_key = mutation(
        api_key_resolvers.revoke_api_key,
        "Revokes an API key for good. For admins.",
        object_type(
            "ApiKeyRevoked",
            "The key was revoked.",
            api_key=(ApiKey, "The key as it was. It is refused everywhere within a minute."),
        ),
        input_description="An API key to revoke.",
        result_description="The revoked key, or why it was not revoked.",
        key="The key's id.",
    )
