"""Waiting for what holds only after a while: on DynamoDB, indexes and plain reads are behind for a moment."""

from __future__ import annotations

import aiohttp

from tests.lagging.engine import CATCH_UP


async def caught_up(engine_url: str, promise: str) -> None:
    """Wait until indexes and plain reads show everything written so far; `promise` says what that makes true.

    An engine that lags (tests/lagging) is told not to wait any longer; the other engines never lag.
    """
    assert promise
    async with aiohttp.ClientSession() as http:
        target = {"X-Amz-Target": f"DynamoDB_20120810.{CATCH_UP}", "Content-Type": "application/x-amz-json-1.0"}
        async with http.post(engine_url, data=b"{}", headers=target) as response:
            await response.read()
