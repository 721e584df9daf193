"""/admin: the pages for members with a role, on the public API alone.

`make pages` builds their script from `elements/admin/` into `server/http/pages/admin/`. Whoever opens them without a
role learns who may, and where to sign in: the API decides what each may see and do.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Final

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from resolvers.values.page_languages import page_language
from server.http.built_files import BuiltFiles
from server.http.demo import WITH_ROLES, demo_viewers
from server.http.messages import SECURITY_HEADERS
from server.http.sign_in import content_policy
from server.settings import Settings

BUILT: Final = Path(__file__).with_name("pages") / "admin"
_PAGE: Final = """<!doctype html>
<html lang="{language}" dir="{direction}">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>Ringside</title>
<link rel="icon" href="data:,">
<script type="module" src="/{script}"></script>
<ringside-admin data-viewers="{viewers}"></ringside-admin>
</html>
"""


class AdminPages:
    """The page, its script and the script's parts."""

    def __init__(self, settings: Settings, folder: Path = BUILT) -> None:
        self._settings = settings
        self._folder = folder
        self._files = BuiltFiles(directory=folder, check_dir=False)
        self._headers = {
            **SECURITY_HEADERS,
            "Content-Security-Policy": content_policy(settings.image_hosts),
            "Cache-Control": "no-store",
            "Vary": "Accept-Language",
        }

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/admin", self._page),
            Route("/admin.{hash}.js", self._script),
            Mount("/admin", BuiltFiles(directory=self._folder / "admin", check_dir=False), name="admin"),
        ]

    async def _page(self, request: Request) -> Response:
        script = next(self._folder.glob("admin.*.js"), None)
        if script is None:
            raise HTTPException(404)
        language = page_language(request.headers.get("accept-language", ""))
        direction = "rtl" if language == "ar" else "ltr"
        viewers = escape(orjson.dumps(demo_viewers(self._settings, request.scope, WITH_ROLES)).decode())
        html = _PAGE.format(language=language, direction=direction, script=script.name, viewers=viewers)
        return HTMLResponse(html, headers=self._headers)

    async def _script(self, request: Request) -> Response:
        return await self._files.get_response(f"admin.{request.path_params['hash']}.js", request.scope)
