"""The lower bound: Starlette serves the prepared response bytes; the path selects the page."""

import os
import sys
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

FOLDER = Path(os.environ["BENCH_STATIC"])
BODIES = {file.stem: file.read_bytes() for file in FOLDER.glob("*.json")}


async def answer(request: Request) -> Response:
    await request.body()
    return Response(BODIES[request.path_params["page"]], media_type="application/json")


app = Starlette(routes=[Route("/{page}", answer, methods=["POST"])])

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
