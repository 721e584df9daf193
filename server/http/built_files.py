"""Files that the build named after their content: cached for a year, compressed once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from server.http.messages import SECURITY_HEADERS, accepts_gzip

# A worker has the policy of its own file, and an icon opened in a tab is a page. Neither needs any permission.
FILES_POLICY: Final = "default-src 'none'; frame-ancestors 'none'"

# File names contain a hash of the content, so a year is safe.
IMMUTABLE: Final = "public, max-age=31536000, immutable"

# Explicit, because the operating system's list differs, and slim containers have none.
CONTENT_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".ttf": "font/ttf",
}


class BuiltFiles(StaticFiles):
    """Static files that are cached for a year and have the right content type. The build made a .gz file of each."""

    def __init__(self, *, headers: Mapping[str, str] | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._headers = {
            **SECURITY_HEADERS,
            "Content-Security-Policy": FILES_POLICY,
            "Cache-Control": IMMUTABLE,
            **(headers or {}),
        }

    async def get_response(self, path: str, scope: Scope) -> Response:
        if accepts_gzip(Headers(scope=scope).get("accept-encoding", "").encode("latin-1")):
            with suppress(HTTPException):  # there is none
                response = await super().get_response(f"{path}.gz", scope)
                response.headers["Content-Encoding"] = "gzip"
                response.headers.add_vary_header("Accept-Encoding")
                return response
        return await super().get_response(path, scope)

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers.update(self._headers)
        content_type = CONTENT_TYPES.get(Path(str(full_path).removesuffix(".gz")).suffix)
        if content_type is not None and "content-type" in response.headers:
            response.headers["Content-Type"] = content_type
        return response
