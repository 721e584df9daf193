"""How a worker of `ringside serve --workers` ends: with its parent, even if that is killed.

A parent that is stopped stops its workers. One that is killed cannot, and its engine ends with it: the workers would
keep the port, and could answer nothing. So each waits for the end of a pipe that only the parent holds open, and then
stops as if it had been told to. What that takes is bounded: closing the services waits for an engine that is gone.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from multiprocessing.process import BaseProcess

import structlog

GRACE_SECONDS = 20
"""How long a process that stops waits for requests; a worker without a parent, for everything."""

log = structlog.get_logger("ringside.worker")


def end_with_parent() -> None:
    """From now on this process ends with its parent; called before it serves. Without effect if it is no worker."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    if not parent.is_alive():
        sys.exit("The parent process has ended, and this worker ends too.")
    threading.Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: BaseProcess) -> None:
    parent.join()
    log.warning("the parent process has ended, and this worker ends too", parent=parent.pid)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os._exit(1)
