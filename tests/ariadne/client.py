"""The client that ariadne-codegen made of operations, against the service: prints what it saw, as clients.mjs does.

python client.py http://127.0.0.1:8000/graphql TOKEN
"""

import asyncio
import json
import sys
from typing import Any

import httpx
from generated import Client, GraphQLClientGraphQLMultiError, PostCommentInput  # made beside this file by the test
from generated.input_types import DeleteCommentInput

PRODUCT = "ariadne"


async def read_pages(client: Any) -> list[Any]:
    nodes, after, more = [], None, True
    while more:
        page = (await client.page(PRODUCT, after)).comments
        nodes += [edge.node for edge in page.edges]
        after, more = page.page_info.end_cursor, page.page_info.has_next_page
    return nodes


async def hear(client: Any) -> str:
    async for event in client.hear(PRODUCT):
        return str(event.comment_posted.body)
    raise AssertionError


async def error_code(client: Any) -> str:
    try:
        await client.page(PRODUCT, "x")
    except GraphQLClientGraphQLMultiError as refused:
        return str(refused.errors[0].extensions["code"])
    raise AssertionError


async def main(url: str, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    socket = {"ws_url": url.replace("http", "ws"), "ws_connection_init_payload": headers}
    async with httpx.AsyncClient(headers=headers, timeout=60) as http:
        client = Client(url, http_client=http, **socket)

        async def post(body: str) -> None:
            await client.post(PostCommentInput(product=PRODUCT, language="en", rating=5, body=body))

        for body in ("one", "two", "three"):
            await post(body)
        paged = await read_pages(client)
        heard = asyncio.ensure_future(hear(client))
        while not heard.done():  # until the subscription has begun
            await post("heard")
            await asyncio.wait([heard], timeout=0.2)
        deleted = (await client.delete(DeleteCommentInput(comment=paged[0].id))).delete_comment
        left = await read_pages(client)
        refused = (await client.delete(DeleteCommentInput(comment="x"))).delete_comment
        seen = {
            "paged": [node.body for node in paged],
            "heard": heard.result(),
            "deleted": deleted.deleted_id == paged[0].id and paged[0] not in left,
            "refused": refused.code,
            "error": await error_code(client),
        }
    print(json.dumps(seen))


asyncio.run(main(*sys.argv[1:]))
