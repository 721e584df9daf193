"""Pick'em over a WebSocket: a subscriber sees the lock, and then the picks."""

import httpx

from datastore.dynamo import Table
from resolvers.requests.context import Role
from server.auth.tokens import mint
from server.settings import Settings
from tests.attack.serving import serving_on_a_socket
from tests.queries import ADD_MATCH, CREATE_EVENT, LOCK_EVENT, SUBMIT_PREDICTION
from tests.season import in_hours, prediction_input, teams
from tests.service import Service
from tests.waiting import LONGEST
from tests.websockets import open_socket, receive, send

WATCH = """
subscription ($event: ID!) { eventChanged(event: $event) {
  state matches { pickCounts } predictions { nodes { picks { team } } }
} }
"""


async def test_a_lock_arrives_over_a_websocket(service: Service) -> None:
    """First the event as visitors see it, then all picks after the lock. An invalid id is an error."""
    headers = {"authorization": f"Bearer {service.token('editor', '--role', 'editor')}"}
    async with (
        open_socket(service) as connection,
        httpx.AsyncClient(base_url=service.url, headers=headers, timeout=60) as http,
    ):
        await send(connection, {"type": "connection_init"})
        await receive(connection)

        async def done(query: str, **given: object) -> dict[str, dict[str, str]]:
            body = {"query": query, "variables": {"input": given}}
            answer = (await http.post("/graphql", json=body)).json()
            return next(iter(answer["data"].values()))

        event = (await done(CREATE_EVENT, name="Live", season="2026", startsAt=in_hours(5)))["event"]["id"]
        match = (await done(ADD_MATCH, event=event, name="M", points=5, teams=teams("A", "B")))["match"]["id"]
        await done(SUBMIT_PREDICTION, **prediction_input(event, [(match, 1)]))
        for number, (watched, kind) in enumerate(((match, "error"), (event, "next"))):
            payload = {"query": WATCH, "variables": {"event": watched}}
            await send(connection, {"id": str(number), "type": "subscribe", "payload": payload})
            message = await receive(connection)
            assert message["type"] == kind
        hidden = {"state": "UPCOMING", "matches": [{"pickCounts": None}], "predictions": {"nodes": [{"picks": None}]}}
        assert message["payload"]["data"]["eventChanged"] == hidden
        await done(LOCK_EVENT, event=event)
        seen = (await receive(connection))["payload"]["data"]["eventChanged"]
        assert (seen["state"], seen["matches"]) == ("LOCKED", [{"pickCounts": [0, 1]}])
        assert seen["predictions"]["nodes"] == [{"picks": [{"team": 1}]}]


OWN = "subscription ($event: ID!) { eventChanged(event: $event) { state viewerPrediction { picks { team } } } }"


async def test_who_becomes_a_member_by_their_picks_finds_them_in_a_stream_that_was_open_before(
    one_table: Table, settings: Settings
) -> None:
    """Its socket began with a token by which nobody had written anything yet."""
    assert one_table.name == settings.table
    editor = {"authorization": f"Bearer {mint(settings, 'editor', roles=[Role.EDITOR])}"}
    newcomer = {"authorization": f"Bearer {mint(settings, 'newcomer')}"}
    async with (
        serving_on_a_socket(settings) as served,
        open_socket(served) as connection,
        httpx.AsyncClient(base_url=served.url, timeout=LONGEST) as http,
    ):

        async def done(query: str, headers: dict[str, str], **given: object) -> dict[str, dict[str, str]]:
            body = {"query": query, "variables": {"input": given}}
            answer = (await http.post("/graphql", json=body, headers=headers)).json()
            return next(iter(answer["data"].values()))

        event = (await done(CREATE_EVENT, editor, name="New", season="2026", startsAt=in_hours(5)))["event"]["id"]
        added = await done(ADD_MATCH, editor, event=event, name="M", points=5, teams=teams("A", "B"))
        await send(connection, {"type": "connection_init", "payload": newcomer})
        await receive(connection)
        payload = {"query": OWN, "variables": {"event": event}}
        await send(connection, {"id": "1", "type": "subscribe", "payload": payload})
        first = (await receive(connection))["payload"]["data"]["eventChanged"]
        assert first == {"state": "UPCOMING", "viewerPrediction": None}
        await done(SUBMIT_PREDICTION, newcomer, **prediction_input(event, [(added["match"]["id"], 1)]))
        await done(LOCK_EVENT, editor, event=event)
        seen = (await receive(connection))["payload"]["data"]["eventChanged"]
        assert seen == {"state": "LOCKED", "viewerPrediction": {"picks": [{"team": 1}]}}
