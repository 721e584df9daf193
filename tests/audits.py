"""What the audit finds."""

from resolvers.requests.context import Services
from server import audit


async def breaches_in(services: Services) -> list[str]:
    return await audit.find_breaches(services)
