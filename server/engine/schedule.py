"""Scheduled backups of the embedded engine's table, into `backups/` in the data folder.

The process that runs the engine makes them, in a thread. The newest `KEPT` are kept. Their names tell when each was
made, so a restart of the service neither repeats nor skips one. Those with a moment yet to come, from a clock that was
ahead, count as the oldest; files with other names stay. A failure is logged and counted in a file beside them,
from which any process that serves the metrics reads it; the next attempt comes after `RETRY_SECONDS`.
"""

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

import structlog

from server.engine.backup import BackupFailed, back_up

log = structlog.get_logger("ringside.backup")

KEPT: Final = 7
RETRY_SECONDS: Final = 600.0
_NAME: Final = "ringside-%Y%m%dT%H%M%SZ.db"
_PATTERN: Final = "ringside-*Z.db"
_FAILURES: Final = "failures"


class _Stopped(Exception):
    """The service stops while a backup is being made."""


class BackupSchedule:
    """Makes a backup every `seconds`, from the start of the block to its end."""

    def __init__(self, data: Path, seconds: float) -> None:
        self._data = data
        self._folder = data / "backups"
        self._seconds = seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="backups", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """A backup that is being made is given up."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        wait = self._seconds_until_due()
        while not self._stopping.wait(wait):
            try:
                self._back_up()
            except _Stopped:
                return
            except Exception as error:  # noqa: BLE001 - no failure may end the schedule
                self._record_failure(error)
                wait = min(RETRY_SECONDS, self._seconds)
            else:
                wait = self._seconds  # whatever has become of the file: it may have been moved away

    def _seconds_until_due(self) -> float:
        age = datetime.now(UTC).timestamp() - _newest(self._folder)
        return min(max(self._seconds - age, 0.0), self._seconds)

    def _back_up(self) -> None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        # Of a process that was killed: there is only one schedule at a time.
        for leftover in self._folder.glob(f".{_PATTERN}.part-*"):
            leftover.unlink(missing_ok=True)
        file = self._folder / datetime.now(UTC).strftime(_NAME)
        size = back_up(self._data, file, self._advance)
        others = [other for _, _, other in _oldest_first(self._folder) if other != file]
        for older in others[: 1 - KEPT]:
            older.unlink(missing_ok=True)
        (self._folder / _FAILURES).unlink(missing_ok=True)
        log.info("backup made", file=str(file), bytes=size, kept=KEPT)

    def _advance(self, _left: int, _pages: int) -> None:
        if self._stopping.is_set():
            raise _Stopped

    def _record_failure(self, error: Exception) -> None:
        expected = isinstance(error, BackupFailed | OSError)
        log.error("backup failed", reason=str(error), retry_seconds=RETRY_SECONDS, exc_info=None if expected else error)
        with suppress(OSError):  # without this file the metrics still show that there is no new backup
            (self._folder / _FAILURES).write_text(str(_failures(self._folder) + 1))


def backup_figures(data: Path) -> Mapping[str, float]:
    """For the metrics: when the newest backup was made, 0 if there is none, and the failed attempts since."""
    folder = data / "backups"
    return {"newest": _newest(folder), "failures": float(_failures(folder))}


def _failures(folder: Path) -> int:
    try:
        return int((folder / _FAILURES).read_text())
    except (OSError, ValueError):
        return 0


def _newest(folder: Path) -> float:
    """When the newest backup was made, as far as its moment has come; 0 if there is none."""
    return max((moment.timestamp() for come, moment, _ in _oldest_first(folder) if come), default=0.0)


def _oldest_first(folder: Path) -> Sequence[tuple[bool, datetime, Path]]:
    """The kept backups: whether the moment in its name has come, that moment, and the file."""
    now, found = datetime.now(UTC), []
    for file in folder.glob(_PATTERN):
        with suppress(ValueError):  # a file that somebody named in a similar way
            moment = datetime.strptime(file.name, _NAME).replace(tzinfo=UTC)
            found.append((moment <= now, moment, file))
    return sorted(found)
