"""The check of the table's file before the engine opens it: an empty or damaged file is refused.

SQLite notices damage only when it reads the damaged page; until then the engine would serve the rest of the table, and
take an empty file for a new one. The check reads some 400 MB a second and ends after `CHECK_SECONDS`: of a larger file
only the beginning is checked.
"""

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Final

import structlog

from server.engine.programs import EngineRefused

log = structlog.get_logger("ringside.engine")

CHECK_SECONDS: Final = 5.0
_STEPS: Final = 100_000
"""Instructions of SQLite between two looks at the clock: some milliseconds."""


def check_file(file: Path) -> None:
    """Refuse a file in which the table cannot be, with the reason. It is only read; there may be none yet."""
    if not file.exists():
        return
    if file.stat().st_size == 0:
        raise EngineRefused(
            f"{file} is empty, and a table's file never is: what it held is lost. Restore a copy of it, or delete the "
            "file to begin with an empty table."
        )
    try:
        problem = _first_problem(file)
    except sqlite3.DatabaseError as error:
        problem = str(error)
    if problem is not None:
        raise EngineRefused(
            f"{file} is damaged: {problem}. Restore a copy of it, or move it away to begin with an empty table; "
            "`sqlite3 FILE .recover` may save a part of it."
        )


def open_to_read(file: Path) -> sqlite3.Connection:
    """A connection that changes nothing, but for what a killed writer began: that is undone by its journal first."""
    mode = "rw" if file.with_name(f"{file.name}-journal").exists() else "ro"
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None)


def _first_problem(file: Path) -> str | None:
    ends = time.monotonic() + CHECK_SECONDS
    with closing(open_to_read(file)) as connection:
        connection.set_progress_handler(lambda: time.monotonic() > ends, _STEPS)
        try:
            ((result,),) = connection.execute("PRAGMA quick_check(1)")
        except sqlite3.OperationalError as error:
            if str(error) != "interrupted":
                raise
            log.info("the table's file is large: only a part of it was checked", file=str(file), seconds=CHECK_SECONDS)
            return None
    return None if result == "ok" else " ".join(str(result).split())
