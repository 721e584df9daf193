"""Fixtures of several modules about the service on an engine."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from datastore.dynamo import Table
from tests.confirmations import MailingService, mailing
from tests.conftest import settings_for
from tests.engines import RunningEngine


@pytest.fixture
async def mail(table: Table, engine: RunningEngine, tmp_path: Path) -> AsyncIterator[MailingService]:
    """The service with a mail server, on each of the engines."""
    async with mailing(settings_for(engine, table.name), tmp_path) as service:
        yield service


@pytest.fixture
async def one_mail(one_table: Table, default_engine: RunningEngine, tmp_path: Path) -> AsyncIterator[MailingService]:
    """The same on one engine, the default one."""
    async with mailing(settings_for(default_engine, one_table.name), tmp_path) as service:
        yield service
