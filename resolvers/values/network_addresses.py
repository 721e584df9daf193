"""Network addresses, as limits count them."""

from functools import lru_cache
from ipaddress import IPv6Address, IPv6Network, ip_address


@lru_cache(10_000)
def network(address: str) -> str:
    """The network that limits count for an address: an IPv4 address itself, the /64 of an IPv6 address."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    return str(parsed.ipv4_mapped or IPv6Network((parsed, 64), strict=False))
