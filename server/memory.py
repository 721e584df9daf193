"""How often Python looks for cycles among what a request makes.

It looks whenever 700 more containers were made than thrown away: in the middle of one page's answer, where there are no
cycles. And every so often it looks through all there is, schema and code included, which never go. So what the start
made is set aside, and the rest is looked through less often: 10,000 containers are some megabytes at most.
"""

from __future__ import annotations

import gc

BETWEEN = (10_000, 20, 20)


def set_aside() -> None:
    """For a process that is about to serve, once."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*BETWEEN)
