"""GET /products/<id>.jsonld: a product's ratings for search engines, to be put into the shop's page by its server.

| answer | when                                                                                |
|--------|-------------------------------------------------------------------------------------|
| 200    | the JSON-LD, for pages of every origin, the same for everybody                      |
| 304    | it has not changed since the client read it                                         |
| 400    | no product can have this id                                                         |
| 404    | the product has no rated comments                                                   |
| 503    | the service is busy or its table does not answer: `Retry-After` says when to ask again |
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

import orjson
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from datastore.dynamo import DynamoError, deadline
from datastore.refusals import InvalidInput, Overloaded
from resolvers.comments.structured_data import product_data
from resolvers.requests.context import Context, Kind, Viewer
from resolvers.values.network_addresses import network
from server.http.messages import SECURITY_HEADERS
from server.http.pipeline import Client, Pipeline

_HEADERS: Final = {
    **SECURITY_HEADERS,
    "Access-Control-Allow-Origin": "*",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Cache-Control": "public, max-age=60",
}
_NOBODY: Final = Viewer(id="", kind=Kind.VISITOR)
# Pages put the text between script tags, where no `<` may stand.
_ESCAPED: Final = {b"<": b"\\u003c", b">": b"\\u003e", b"&": b"\\u0026"}


async def product_jsonld(request: Request) -> Response:
    pipeline: Pipeline = request.state.pipeline
    address = request.client.host if request.client else ""
    try:
        with pipeline.in_flight(address), deadline(pipeline.settings.request_timeout):
            await pipeline.request_turns.take(Client(network(address)))
            ctx = Context(pipeline.services, _NOBODY, address)
            data = await product_data(ctx, request.path_params["product"])
    except InvalidInput as refused:
        return PlainTextResponse(f"{refused.message}\n", 400, _HEADERS)
    except (Overloaded, DynamoError):
        return PlainTextResponse("The service is busy.\n", 503, {**_HEADERS, "Retry-After": "1"})
    if data is None:
        return PlainTextResponse("This product has no rated comments.\n", 404, _HEADERS)
    body = orjson.dumps(data)
    for character, escape in _ESCAPED.items():
        body = body.replace(character, escape)
    headers = {**_HEADERS, "ETag": f'"{sha256(body).hexdigest()[:32]}"'}
    known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
    if headers["ETag"] in known:
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type="application/ld+json")
