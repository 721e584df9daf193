"""Which hosts and origins a request may name."""

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from datastore.dynamo import Table
from server.http.hosts import default_hosts
from tests.attack.raw_http import exchange, head
from tests.attack.serving import serving_on_a_socket
from tests.conftest import settings_for
from tests.engines import RunningEngine
from tests.service import Service
from tests.waiting import until
from tests.websockets import PROTOCOL, open_socket

HANDSHAKE = (
    "connection: upgrade",
    "upgrade: websocket",
    "sec-websocket-version: 13",
    "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
    f"sec-websocket-protocol: {PROTOCOL}",
)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost@evil.example",
        "127.0.0.1:8000@evil.example",
        "[::1]@evil.example",
        "localhost:80:80",
        "[::2]",
        "\xff",
    ],
)
async def test_a_service_on_loopback_answers_for_itself_only(service: Service, host: str) -> None:
    """A foreign name that points here is a page's way around the browser's rules; health is told to anyone."""

    def named(path: str, *lines: str) -> bytes:
        return head("GET", path, *lines).replace(b"host: 127.0.0.1", b"host: " + host.encode("latin-1"))

    for path in ("/graphql?query={__typename}", "/graphql", "/", "/explorer"):
        assert (await exchange(service.url, [named(path)])).statuses == [400]
    assert (await exchange(service.url, [named("/graphql", *HANDSHAKE)])).statuses == [400]
    for path in ("/livez", "/metrics"):
        assert (await exchange(service.url, [named(path)])).statuses == [200]

    async def is_ready() -> bool:
        return (await exchange(service.url, [named("/readyz")])).statuses == [200]

    await until(is_ready, "the engine answers within two seconds")


@pytest.mark.parametrize("hosts", [("127.0.0.1", "evil.example"), ("evil.example", "127.0.0.1")])
async def test_a_request_that_names_two_hosts_names_a_foreign_one(service: Service, hosts: tuple[str, str]) -> None:
    """A proxy may go by either."""
    both = "\r\nhost: ".join(hosts).encode()
    sent = head("GET", "/graphql?query={__typename}").replace(b"127.0.0.1", both)
    assert (await exchange(service.url, [sent])).statuses == [400]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:80", "[::1]:8000", "localhost."])
async def test_the_names_of_loopback_are_its_own(service: Service, host: str) -> None:
    """With any port, because it may be forwarded."""
    sent = head("GET", "/graphql?query={__typename}").replace(b"host: 127.0.0.1", b"host: " + host.encode())
    assert (await exchange(service.url, [sent])).statuses == [200]


async def test_hosts_may_be_named(default_engine: RunningEngine, one_table: Table) -> None:
    """Besides that of the public address; a star allows all."""
    expected = {"api.example.com": 200, "www.example.com": 200, "127.0.0.1": 400}
    named = {"allowed_hosts": ("api.example.com",), "public_url": "https://www.example.com"}
    for settings, statuses in ((named, expected), ({"allowed_hosts": ("*",)}, dict.fromkeys(expected, 200))):
        async with serving_on_a_socket(settings_for(default_engine, one_table.name, **settings)) as served:
            for host, status in statuses.items():
                sent = head("GET", "/graphql?query={__typename}").replace(b"127.0.0.1", host.encode())
                assert (await exchange(served.url, [sent])).statuses == [status]


async def test_addresses_in_settings_stand_for_what_browsers_send(
    default_engine: RunningEngine, one_table: Table
) -> None:
    """A host with letters beyond ASCII is sent in ASCII, and the port that the scheme implies is not sent."""
    settings = settings_for(
        default_engine,
        one_table.name,
        allowed_hosts=("127.0.0.1",),
        cors_origins=("https://Bücher.example", "https://straße.example:443", "http://shop.example:443"),
        public_url="https://münchen.example:443/api",
    )
    origins = {
        "https://xn--bcher-kva.example": 200,
        "https://xn--strae-oqa.example": 200,
        "http://shop.example:443": 200,
        "https://strasse.example": 400,
        "http://shop.example": 400,
    }
    async with serving_on_a_socket(settings) as served, httpx.AsyncClient(base_url=served.url, timeout=60) as http:
        for origin, status in origins.items():
            headers = {"origin": origin, "access-control-request-method": "POST"}
            assert (await http.options("/graphql", headers=headers)).status_code == status, origin
        address, own = served.url.replace("http", "ws") + "/graphql", Origin("https://xn--mnchen-3ya.example")
        async with connect(address, subprotocols=[PROTOCOL], origin=own):
            pass
        sent = head("GET", "/graphql?query={__typename}").replace(b"127.0.0.1", b"xn--mnchen-3ya.example")
        assert (await exchange(served.url, [sent])).statuses == [200]


def test_only_loopback_is_checked_by_default() -> None:
    """In a container the service does not know its names."""
    assert default_hosts("0.0.0.0", "http://127.0.0.1:8000") == ()
    assert default_hosts("10.0.0.5", "https://api.example.com") == ()
    for address in ("127.0.0.1", "127.1.2.3", "::1", "localhost"):
        assert default_hosts(address, "https://api.example.com")[-1] == "api.example.com"
    assert "127.1.2.3" in default_hosts("127.1.2.3", "")  # the address that it prints


async def test_no_answer_redirects(service: Service) -> None:
    """Least of all to the host that the request names."""
    async with httpx.AsyncClient(base_url=service.url, timeout=60) as http:
        for path in ("/graphql/", "/explorer/assets", "/livez/", "//evil.example", "/unsubscribe/"):
            response = await http.get(path)
            assert "location" not in response.headers
            assert response.status_code in (200, 400, 404, 405)


async def test_an_origin_includes_its_scheme(service: Service, default_engine: RunningEngine, one_table: Table) -> None:
    """A page over TLS is not a page of a service without, unless that is its public address."""
    with pytest.raises(InvalidStatus):
        async with open_socket(service, origin=service.url.replace("http", "https")):
            pass
    settings = settings_for(default_engine, one_table.name, public_url="https://api.example.com")
    async with serving_on_a_socket(settings) as served:
        address = served.url.replace("http", "ws") + "/graphql"
        async with connect(address, subprotocols=[PROTOCOL], origin=Origin("https://api.example.com")):
            pass
        with pytest.raises(InvalidStatus):
            async with connect(address, subprotocols=[PROTOCOL], origin=Origin("http://api.example.com")):
                pass
