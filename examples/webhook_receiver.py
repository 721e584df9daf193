"""A receiver of webhooks in Python: verifies each message, and decides about comments that wait for a moderator.

    RINGSIDE_WEBHOOK_SECRET=whsec_… RINGSIDE_TOKEN=rsk_… python3 examples/webhook_receiver.py [API] [PORT]

`addWebhook` with the kinds `comment.posted` and `comment.edited` returns the secret; the token is a moderator's,
for example an API key. A comment with a link is rejected as spam; any other is published.
"""

import base64
import hmac
import json
import os
import sys
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

TOLERANCE = 300
"""Seconds that a message may be old, so that nobody can send a captured one again later."""

COMMENT = "query Waiting($id: ID!) { node(id: $id) { ... on Comment { id status revision title body } } }"
DECIDE = """
mutation Decide($input: ModerateCommentInput!) {
  moderateComment(input: $input) { ... on CommentModerated { comment { id } } ... on Refused { code message } }
}
"""


class Forged(Exception):
    """The message was not signed with the secret, or is too old."""


def verify(secret: str, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    """The content of a genuine message. Packages for many languages do this: see standardwebhooks.com."""
    message_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")[:20]
    if not timestamp.isdecimal() or abs(time.time() - int(timestamp)) > TOLERANCE:
        raise Forged
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.digest(key, f"{message_id}.{timestamp}.".encode() + body, "sha256")
    expected = b"v1," + base64.b64encode(digest)
    if not any(hmac.compare_digest(expected, one) for one in headers.get("webhook-signature", "").encode().split()):
        raise Forged
    content: dict[str, Any] = json.loads(body)
    return content


class Ringside:
    """The API at an address, used with the token of a moderator."""

    def __init__(self, address: str, token: str) -> None:
        self._http = httpx.Client(headers={"authorization": f"Bearer {token}", "accept": "application/json"})
        self._address = address

    def ask(self, document: str, **variables: Any) -> dict[str, Any]:
        answer = self._http.post(self._address, json={"query": document, "variables": variables}).json()
        if "errors" in answer:
            raise RuntimeError(answer["errors"][0]["message"])
        data: dict[str, Any] = answer["data"]
        return data

    def decide(self, comment_id: str) -> None:
        """Publish or reject a comment that waits.

        Messages may come twice, and in any order. Neither does harm, since this asks for the comment as it is now, and
        does nothing if it no longer waits. If its author changes it meanwhile, the decision is refused because of its
        `revision`, and the message comes again. A receiver that keeps what messages say compares their `sequence`.
        """
        comment = self.ask(COMMENT, id=comment_id)["node"]
        if comment is None or comment["status"] != "PENDING":
            return
        text = f"{comment['title'] or ''} {comment['body']}"
        decision = {"status": "PUBLISHED"}
        if "http://" in text or "https://" in text:
            decision = {"status": "REJECTED", "ground": "SPAM", "note": "Please leave out the link."}
        given = {"comment": comment_id, "revision": comment["revision"], **decision}
        answer = self.ask(DECIDE, input=given)["moderateComment"]
        if "code" in answer:
            raise RuntimeError(answer["message"])


def handler(secret: str, ringside: Ringside) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Answers 204 once a message is dealt with; with any other answer it is sent again later."""

        def do_POST(self) -> None:
            body = self.rfile.read(min(int(self.headers.get("content-length", "0")), 65_536))
            try:
                message = verify(secret, {name.lower(): value for name, value in self.headers.items()}, body)
            except Forged:
                self.send_error(401)
                return
            if message["type"] in ("comment.posted", "comment.edited"):
                ringside.decide(message["data"]["object"])
            self.send_response(204)
            self.end_headers()

    return Handler


def main() -> None:
    address, port = (*sys.argv[1:], *("http://127.0.0.1:8000/graphql", "8300")[len(sys.argv) - 1 :])
    ringside = Ringside(address, os.environ["RINGSIDE_TOKEN"])
    server = ThreadingHTTPServer(("127.0.0.1", int(port)), handler(os.environ["RINGSIDE_WEBHOOK_SECRET"], ringside))
    print(f"Listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
