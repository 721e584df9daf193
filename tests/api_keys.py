"""Creating API keys, as several tests do."""

from typing import Any

from resolvers.requests.context import Role
from tests.client import Client
from tests.queries import mutation

CREATE_API_KEY = mutation(
    "createApiKey", "ApiKeyCreated", "apiKey { id name roles createdAt expiresAt lastUsedAt prefix } secret"
)


async def create_api_key(client: Client, *roles: Role, **more: Any) -> dict[str, Any]:
    """A new key and its secret."""
    admin = client.member("root", Role.ADMIN)
    answer: dict[str, Any] = await admin.ask(CREATE_API_KEY, input={"name": "Robot", "roles": list(roles), **more})
    assert answer["secret"].startswith("rsk_")
    return answer
