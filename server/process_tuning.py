"""How Python's garbage collector and threads behave in a process that serves.

By default the collector looks for cycles whenever 700 more containers have been made than freed: in the middle of
answering a page, where there are no cycles. And every so often it looks through all objects, including schema and code,
which stay. So the objects of the start are frozen, and the collector looks at the rest less often, but not so rarely
that a look takes long: checking a document leaves some thousand objects in cycles, and nobody is answered meanwhile.

New documents are checked and compiled in a thread, and by default the event loop waits up to 5 ms for a thread each
time it has something to do. With a fiftieth of that, a request meanwhile takes a millisecond longer, not tens.

docs/decisions/compiled-execution.md has the figures of both.
"""

import gc
import sys

THRESHOLDS = (2_000, 10, 10)
SWITCH_SECONDS = 0.0001


def tune_process() -> None:
    """For a process that is about to serve, once."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    sys.setswitchinterval(SWITCH_SECONDS)
