"""How often Python looks for cycles among what a request makes.

It looks whenever 700 more containers were made than thrown away: in the middle of one page's answer, where there are no
cycles. And every so often it looks through all there is, schema and code included, which never go. So what the start
made is set aside, and the rest is looked through less often: 10,000 containers are some megabytes at most.

Documents that the cache has dropped are cycles of a thousand containers each and old by then, so only looking through
everything finds them. At every 250,000 containers it has 36 MB more than after the start and takes a fifth of a second
at worst, with ten thousand different documents in turn; at every 4,000,000 it would be 167 MB and one and a half.
"""

import gc

BETWEEN = (10_000, 5, 5)


def set_aside() -> None:
    """For a process that is about to serve, once."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*BETWEEN)
