"""By which methods people sign in here."""

from __future__ import annotations

from datastore.people.identities import SignInMethod
from resolvers.members.sign_in_codes import SignInCodes
from resolvers.requests.context import Context, Services


def offered_methods(services: Services) -> list[SignInMethod]:
    """Those that `/sign-in` offers, and the one of sites, in the order of the enum."""
    offered = set(services.policy.sign_in_methods)
    if services.get(SignInCodes).can_send:
        offered.add(SignInMethod.EMAIL.value)
    return [method for method in SignInMethod if method.value in offered]


async def sign_in_methods(ctx: Context, /) -> list[SignInMethod]:
    """What this deployment offers, perhaps nothing."""
    return offered_methods(ctx.services)
