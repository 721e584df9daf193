"""Backups that the service makes on a schedule."""

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from structlog.testing import capture_logs

from server.engine import back_up, backup, scheduled_backups, table_file
from server.engine.folder import Stopped
from tests.data_folders import read_profiles, refused_on, run_on, write_profiles
from tests.service import running_service, start_service
from tests.waiting import LONGEST, until


def _back_up_by_schedule(data: Path) -> None:
    backup.back_up_by_schedule(data, lambda: False)


def _names(data: Path) -> list[str]:
    return sorted(path.name for path in (data / "backups").glob("*.db"))


async def test_the_service_makes_scheduled_backups_and_keeps_seven(data: Path) -> None:
    """One is due at the start if the newest is old; it replaces the oldest.

    The metrics say when it was made, and how long after it the next one is due.
    """
    await write_profiles(data, "ada")
    folder = data / "backups"
    folder.mkdir()
    old = [datetime.now(UTC) - timedelta(hours=number) for number in range(3, 12)]
    for moment in old:
        back_up(data, folder / moment.strftime(backup._NAME))
    with ExitStack() as stack:
        variables = {"RINGSIDE_DATA": str(data), "RINGSIDE_BACKUP_HOURS": "2"}
        service = await start_service(variables, stack)
        async with asyncio.timeout(LONGEST), httpx.AsyncClient(base_url=service.url, timeout=60) as http:
            while len(names := _names(data)) != 7 or names[-1] <= old[0].strftime(backup._NAME):
                await asyncio.sleep(0.1)
            figures = (await http.get("/metrics")).text
        assert "ringside_backup_failures 0.0" in figures
        assert "ringside_backup_period_seconds 7200.0" in figures
        newest = next(line for line in figures.splitlines() if line.startswith("ringside_backup_newest"))
        assert float(newest.split()[1]) > old[0].timestamp() + 3600
        service.stop()
    restored = await asyncio.to_thread(run_on, data, "restore", str(folder / names[-1]))
    assert restored.returncode == 0, restored.stderr
    assert await read_profiles(data) == ["ada"]


@pytest.mark.soak
async def test_one_of_several_processes_makes_the_backups_and_all_tell_of_them(data: Path) -> None:
    """The one that runs the engine; the metrics of the workers read when it was."""
    engine_variables = {"RINGSIDE_DATA": str(data), "RINGSIDE_BACKUP_HOURS": "1"}
    with ExitStack() as stack:
        running = running_service(engine_variables, ["--workers", "2"])
        service = await asyncio.to_thread(stack.enter_context, running)
        async with asyncio.timeout(LONGEST), httpx.AsyncClient(base_url=service.url, timeout=60) as http:
            while not _names(data):
                await asyncio.sleep(0.1)
            figures = (await http.get("/metrics")).text
        made = [line for line in figures.splitlines() if line.startswith("ringside_backup_newest")]
        assert len(made) == 1
        assert float(made[0].split()[1]) > 0
        assert len(_names(data)) == 1
        assert service.stop() == 0


async def test_backups_from_a_clock_that_was_ahead_make_room_for_new_ones(data: Path) -> None:
    """They count as the oldest, for the metrics too; what somebody else named in a similar way is left alone."""
    await write_profiles(data, "ada")
    folder = data / "backups"
    folder.mkdir()
    ahead = [datetime.now(UTC) + timedelta(days=30 + number) for number in range(backup.KEPT)]
    for moment in ahead:
        (folder / moment.strftime(backup._NAME)).touch()
    copies = [f"ringside-{number}-keepZ.db" for number in range(backup.KEPT)]
    for name in copies:
        (folder / name).touch()
    assert backup.seconds_until_due(data, 3600) == 0
    assert backup.backup_figures(data)["newest"] == 0
    _back_up_by_schedule(data)
    kept = [name for name in _names(data) if name not in copies]
    assert kept[1:] == [moment.strftime(backup._NAME) for moment in ahead[1:]]
    assert set(copies) < set(_names(data))
    backup.check_backup(folder / kept[0])
    assert 0 < backup.backup_figures(data)["newest"] < ahead[0].timestamp()
    assert backup.seconds_until_due(data, 3600) > 0


async def test_a_scheduled_backup_leaves_one_alone_that_somebody_writes_beside_it(data: Path) -> None:
    """What a killed process left of a scheduled one is removed."""
    await write_profiles(data, "ada")
    folder = data / "backups"
    folder.mkdir()
    leftover = folder / f".new.part-{os.getpid()}-0a1b2c3d"
    leftover.touch()
    beside: list[int] = []

    def begin_another(_left: int, _pages: int) -> None:
        if not beside:
            beside.append(0)
            _back_up_by_schedule(data)

    assert back_up(data, folder / "before-upgrade.db", begin_another) > 0
    backup.check_backup(folder / "before-upgrade.db")
    assert len(_names(data)) == 2
    assert not leftover.exists()


async def test_a_backup_that_is_moved_away_at_once_is_not_made_again_at_once(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one is due after the whole time."""
    await write_profiles(data, "ada")
    pauses: list[float | None] = []

    class Pauses(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            pauses.append(timeout)
            return len(pauses) > 2

    make = backup.back_up_by_schedule

    def move_away(folder: Path, stops: Callable[[], bool]) -> None:
        make(folder, stops)
        for file in (folder / "backups").iterdir():
            file.unlink()

    monkeypatch.setattr(backup, "back_up_by_schedule", move_away)
    backup.back_up_repeatedly(data, 3600, Pauses())
    assert pauses == [0, 3600, 3600]


async def test_a_failed_scheduled_backup_is_logged_counted_and_tried_again(data: Path) -> None:
    """The earlier backups stay; after the next success nothing counts as failed."""
    await write_profiles(data, "ada")
    in_its_way = data / "backups" / "new"
    in_its_way.parent.mkdir()
    in_its_way.write_text("somebody's notes")
    with capture_logs() as logs, scheduled_backups(data, 0.05):
        await until(lambda: backup.backup_figures(data)["failures"], "the backup fails")
        assert backup.backup_figures(data)["newest"] == 0
        in_its_way.unlink()
        await until(lambda: _names(data) and not backup.backup_figures(data)["failures"], "the next one succeeds")
    assert logs[0] == {
        "event": "backup failed", "log_level": "error", "retry_seconds": 0.05, "exc_info": None,
        "reason": f"{in_its_way} exists and is not a backup. Choose another file.",
    }  # fmt: skip


async def test_a_schedule_that_ends_gives_up_the_backup_under_way(data: Path) -> None:
    """A stopping service does not wait for it, and no part of it is left."""
    await write_profiles(data, "ada")

    class StopsDuringTheFirst(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:  # noqa: ARG002
            began, self.began = self.began, True
            return began

        def is_set(self) -> bool:
            return self.began

        began = False

    backup.back_up_repeatedly(data, 3600, StopsDuringTheFirst())
    assert list((data / "backups").iterdir()) == []


async def test_a_schedule_that_ends_gives_up_the_check_of_a_copied_backup(data: Path) -> None:
    """SQLite looks each index's entries up, which takes minutes for a large table: longer than a service may stop."""
    await write_profiles(data, *(f"user-{number}" for number in range(500)))
    copied = data / "copied.db"
    backup.copy_file(table_file(data), copied)
    asked: list[bool] = []

    def stops() -> bool:
        asked.append(True)
        return True

    with pytest.raises(Stopped):
        backup.check_backup(copied, stops=stops)
    assert len(asked) == 2, "it goes on no further"
    backup.check_backup(copied)


@pytest.mark.parametrize("hours", ["0", "-1", "1000", "nan", "daily", "inf"])
def test_absurd_hours_between_backups_are_refused(data: Path, hours: str) -> None:
    """With a correct value."""
    assert "RINGSIDE_BACKUP_HOURS is invalid" in refused_on(data, "token", "--user", "a", RINGSIDE_BACKUP_HOURS=hours)


def test_scheduled_backups_of_another_engine_are_refused(data: Path) -> None:
    """They would be of nothing."""
    other = {"RINGSIDE_DYNAMODB_URL": "aws", "RINGSIDE_SECRETS": "s" * 40, "RINGSIDE_BACKUP_HOURS": "24"}
    assert "RINGSIDE_BACKUP_HOURS is for the embedded engine" in refused_on(data, "token", "--user", "a", **other)
