"""How often Python's garbage collector looks for cycles.

By default it looks whenever 700 more containers have been made than freed: in the middle of answering a page, where
there are no cycles. And every so often it looks through all objects, including schema and code, which stay. So the
objects of the start are frozen, and the collector looks at the rest less often: 10,000 containers are some megabytes.

Documents dropped from the cache are cycles of a thousand containers each, and old by then, so only a full collection
frees them. With one for every 250,000 containers the service takes 36 MB more than after the start, and up to a fifth
of a second for a collection, with ten thousand different documents in turn. With one for every 4,000,000 it would be
167 MB and 1.5 seconds.
"""

import gc

THRESHOLDS = (10_000, 5, 5)


def tune_gc() -> None:
    """For a process that is about to serve, once."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
