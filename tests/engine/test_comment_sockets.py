"""Comments over a WebSocket: they arrive, and an invalid argument is the operation's error."""

import asyncio

import httpx

from tests.queries import POST_COMMENT
from tests.service import Service
from tests.waiting import LONGEST
from tests.websockets import open_socket, receive, send


async def test_a_new_comment_arrives_over_a_websocket(service: Service) -> None:
    """It is posted over HTTP while the subscription is open. With the event's id, one that was missed arrives too."""
    watch = 'subscription { commentPosted(product: "%s") { id body } }'
    given = {"product": "socket", "rating": 5, "language": "en", "body": "Live."}
    headers = {"authorization": f"Bearer {service.token('ada')}"}
    async with (
        open_socket(service) as connection,
        httpx.AsyncClient(base_url=service.url, headers=headers, timeout=60) as http,
    ):
        await send(connection, {"type": "connection_init"})
        await receive(connection)
        await send(connection, {"id": "1", "type": "subscribe", "payload": {"query": watch.replace("%s", "a#b")}})
        refused = await receive(connection)
        assert (refused["type"], refused["id"]) == ("error", "1")
        assert refused["payload"][0]["extensions"] == {"code": "BAD_USER_INPUT", "argument": "product"}
        await send(connection, {"id": "2", "type": "subscribe", "payload": {"query": watch.replace("%s", "socket")}})
        arriving = asyncio.create_task(receive(connection))
        for _ in range(int(LONGEST)):  # a comment posted before the service listens does not arrive
            await http.post("/graphql", json={"query": POST_COMMENT, "variables": {"input": given}})
            if (await asyncio.wait({arriving}, timeout=1))[0]:
                break
        payload = (await arriving)["payload"]
        told = payload["data"]["commentPosted"]
        assert told["body"] == "Live."

        await send(connection, {"id": "2", "type": "complete"})
        missed = {"input": {**given, "body": "Missed."}}
        await http.post("/graphql", json={"query": POST_COMMENT, "variables": missed})
        resumed = watch.replace("%s", f'socket", after: "{payload["extensions"]["eventId"]}')
        await send(connection, {"id": "3", "type": "subscribe", "payload": {"query": resumed}})
        arrived = [told]
        while arrived[-1]["body"] != "Missed.":
            event = await receive(connection)
            if event["id"] == "3":  # others were under way already
                arrived.append(event["payload"]["data"]["commentPosted"])
        assert told not in arrived[1:]
