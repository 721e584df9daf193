"""A data folder of the embedded engine, and the command line on it."""

import os
import subprocess
import sys
from pathlib import Path

from datastore.dynamo import open_table
from datastore.dynamo.declaration import create
from datastore.people.profiles import PROFILE, Profile
from datastore.whole.layout import ensure_layout
from resolvers.requests.context import utc_now
from server.engine import run_engine_async
from tests.command import ROOT, environment, ringside
from tests.waiting import LONGEST

KILLED_AT = """
import os, signal, sys
from pathlib import Path
from server.engine import backup, folder

steps = int(sys.argv.pop())
def dying(original):
    def call(*given, **more):
        global steps
        if not steps:
            os.kill(os.getpid(), signal.SIGKILL)
        steps -= 1
        return original(*given, **more)
    return call
for module, name in (
    (backup, "copy_file"), (backup, "_copy_backup"), (backup, "check_backup"), (backup, "sync"), (folder, "sync"),
    (folder, "complete_restore"), (Path, "rename"),
):
    setattr(module, name, dying(getattr(module, name)))

from server.__main__ import main
main()
"""
"""The command line, killed before its n-th step."""


async def write_profiles(data: Path, *names: str) -> None:
    async with run_engine_async(data) as engine, open_table("ringside", url=engine.url) as table:
        await create(table)
        await ensure_layout(table)
        for name in names:
            await table.write(PROFILE.put(Profile(name, name, utc_now())))


async def read_profiles(data: Path) -> list[str]:
    async with run_engine_async(data) as engine, open_table("ringside", url=engine.url) as table:
        return sorted([profile.user async for profile in table.scan(PROFILE)])


def run_on(data: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return ringside(*arguments, RINGSIDE_DATA=str(data), **variables)


def run_script(script: str, data: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A changed command line, such as `KILLED_AT`."""
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], env=environment(RINGSIDE_DATA=str(data), **variables),
        cwd=ROOT, capture_output=True, text=True, timeout=LONGEST, check=False,
    )  # fmt: skip


def refused_on(data: Path, *arguments: str, **variables: str) -> str:
    result = run_on(data, *arguments, **variables)
    assert result.returncode == 1, result.stdout
    assert "Traceback" not in result.stderr
    return result.stderr


def damage(file: Path) -> None:
    size = file.stat().st_size
    with file.open("r+b") as opened:
        opened.seek(size // 2)
        opened.write(os.urandom(min(20_000, size // 3)))
