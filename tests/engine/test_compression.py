"""Answers and pages are compressed for clients that accept gzip; the rest is sent as it is."""

import gzip
from typing import Any

import httpx
import orjson
import pytest
from graphql import get_introspection_query

from server.http.messages import GZIP_MIN_BYTES, GZIP_THREAD_BYTES, accepts_gzip, remembered
from tests.client import Client

LARGE = {"query": "{ " + " ".join(f"{'name' * 10}_{number}: __typename" for number in range(40)) + " }"}
SMALL = {"query": "{ __typename }"}


@pytest.mark.parametrize(
    ("accept", "accepted"),
    [
        (b"gzip", True),
        (b"br, GZIP;q=0.5", True),
        (b"*", True),
        (b"gzip;q=0, *", False),
        (b"gzip; q=0.00", False),
        (b"br", False),
        (b"", False),
        (b"\xff,;=", False),
    ],
)
def test_gzip_is_used_only_where_it_is_accepted(accept: bytes, *, accepted: bool) -> None:
    assert accepts_gzip(accept) is accepted


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_a_large_answer_is_compressed_once(one_client: Client, method: str) -> None:
    """On the fast path and on FastAPI's; its length and its encoding are those of what is sent."""
    plain = await _ask(one_client, method, LARGE, "identity")
    compressed = await _ask(one_client, method, LARGE, "gzip")
    assert "content-encoding" not in plain.headers
    assert compressed.headers["content-encoding"] == "gzip"
    assert {"Accept", "Accept-Encoding"} <= set(compressed.headers["vary"].split(", "))
    assert "Accept-Encoding" in plain.headers["vary"]
    raw = b"".join([part async for part in compressed.aiter_raw()])
    assert (len(raw), gzip.decompress(raw)) == (int(compressed.headers["content-length"]), await plain.aread())
    assert len(raw) < GZIP_MIN_BYTES < len(plain.content)


async def test_small_answers_and_streams_are_not_compressed(one_client: Client) -> None:
    small = await _ask(one_client, "POST", SMALL, "gzip")
    stream = await _ask(one_client, "POST", LARGE, "gzip", accept="text/event-stream")
    assert "content-encoding" not in small.headers
    assert "content-encoding" not in stream.headers
    assert b"event: next" in await stream.aread()


async def test_pages_and_metrics_are_compressed(one_client: Client) -> None:
    for path, accept in (("/metrics", "*/*"), ("/graphql", "text/html")):
        page = await one_client.http.get(path, headers={"accept": accept, "accept-encoding": "gzip"})
        long_enough = len(page.content) >= GZIP_MIN_BYTES
        assert (page.headers.get("content-encoding") == "gzip") is long_enough, path
    assert len((await one_client.http.get("/metrics")).content) >= GZIP_MIN_BYTES


async def test_a_body_that_is_compressed_beside_the_event_loop_is_the_same(one_client: Client) -> None:
    plain, compressed = [
        await one_client.http.post(
            "/graphql", json={"query": get_introspection_query()}, headers={"accept-encoding": coding}
        )
        for coding in ("identity", "gzip")
    ]
    assert compressed.headers["content-encoding"] == "gzip"
    assert compressed.content == plain.content
    assert len(plain.content) > GZIP_THREAD_BYTES


async def _ask(client: Client, method: str, asked: dict[str, Any], coding: str, accept: str = "*/*") -> httpx.Response:
    headers = {"accept-encoding": coding, "accept": accept, "content-type": "application/json"}
    given: dict[str, Any] = {"params": asked} if method == "GET" else {"content": orjson.dumps(asked)}
    request = client.http.build_request(method, "/graphql", headers=headers, **given)
    return await client.http.send(request, stream=True)


def test_what_is_told_of_a_long_header_is_not_remembered() -> None:
    """Clients choose their headers: a few hundred of 64 KB would stay in memory."""
    short, long, told = b"gzip", b"gzip" * 1000, list[bytes]()
    tell = remembered(2)(told.append)
    for header in (short, short, long, long):
        tell(header)
    assert told == [short, long, long]
