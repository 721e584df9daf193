"""The elements: the script that pages of any site load, and its parts.

`make pages` builds them from `elements/` into `server/http/pages/elements/`. `/elements.js` is always the present
script; it names its parts by their hashes, so browsers ask for it anew and keep the rest. `/elements.<hash>.js` is the
same script under a name that never changes its content, for pages that pin it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from server.http.built_files import BuiltFiles

BUILT: Final = Path(__file__).with_name("pages") / "elements"
_ANYWHERE: Final = {"Access-Control-Allow-Origin": "*", "Cross-Origin-Resource-Policy": "cross-origin"}


class Elements:
    """The built files in a folder."""

    def __init__(self, folder: Path = BUILT) -> None:
        self._folder = folder
        self._scripts = BuiltFiles(directory=folder, check_dir=False, headers=_ANYWHERE)
        self._parts = BuiltFiles(directory=folder / "elements", check_dir=False, headers=_ANYWHERE)

    @property
    def script(self) -> Path | None:
        """The present script; None if it has not been built."""
        return next(self._folder.glob("elements.*.js"), None)

    def documents(self) -> Mapping[str, str]:
        """The documents of these elements, by their hashes, and those that the release before had."""
        known: dict[str, str] = {}
        for name in ("previous.json", "documents.json"):
            file = self._folder / name
            if file.is_file():
                known.update(orjson.loads(file.read_bytes()))
        return known

    def tags(self, address: str) -> tuple[str, str]:
        """The script's tag for a page, and the one that pins it; FileNotFoundError if it has not been built."""
        if self.script is None:
            raise FileNotFoundError("elements.*.js")
        digest = base64.b64encode(hashlib.sha384(self.script.read_bytes()).digest()).decode()
        start = f'<script type="module" src="{address.rstrip("/")}'
        return (
            f'{start}/elements.js"></script>',
            f'{start}/{self.script.name}" integrity="sha384-{digest}" crossorigin></script>',
        )

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/elements.js", self._present),
            Route("/elements.{hash}.js", self._pinned),
            Mount("/elements", self._parts, name="elements"),
        ]

    async def _present(self, request: Request) -> Response:
        if self.script is None:
            raise HTTPException(404)
        response = await self._scripts.get_response(self.script.name, request.scope)
        response.headers["Cache-Control"] = "no-cache"
        return response

    async def _pinned(self, request: Request) -> Response:
        return await self._scripts.get_response(f"elements.{request.path_params['hash']}.js", request.scope)
