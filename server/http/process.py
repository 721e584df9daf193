"""A process that serves: its garbage collector, its threads, and how a worker ends.

By default the collector looks for cycles whenever 700 more containers have been made than freed: in the middle of
answering a page, where there are no cycles. And every so often it looks through all objects, including schema and code,
which stay. So the objects of the start are frozen, and the collector looks at the rest less often, but not so rarely
that a look takes long: checking a document leaves some thousand objects in cycles, and nobody is answered meanwhile.

New documents are checked and compiled in a thread, and by default the event loop waits up to 5 ms for a thread each
time it has something to do. With a fiftieth of that, a request meanwhile takes a millisecond longer, not tens.
docs/decisions/compiled-execution.md has the figures of both.

A parent that is stopped stops its workers. One that is killed cannot, and its engine ends with it: the workers would
keep the port, and could answer nothing. So each waits for the end of a pipe that only the parent holds open, and then
stops as if it had been told to. What that takes is bounded: closing the services waits for an engine that is gone.
"""

import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
from multiprocessing.process import BaseProcess

import structlog

THRESHOLDS = (2_000, 10, 10)
SWITCH_SECONDS = 0.0001
GRACE_SECONDS = 20
"""How long a process that stops waits for its requests. A worker without a parent waits so long for everything."""
WORKER_SECONDS = 60
"""How long a worker may take to start, or to tell its parent that it lives, before it is killed and replaced.

Many that start together on a busy machine took longer than uvicorn's five, and were killed again and again.
"""

log = structlog.get_logger("ringside.worker")


def tune_process() -> None:
    """Tune a process that is about to serve, once."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    sys.setswitchinterval(SWITCH_SECONDS)


def end_with_parent() -> None:
    """Let this process end with its parent; called before it serves. Without effect if it is no worker."""
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
