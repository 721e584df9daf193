"""`ringside serve` with all caches disabled: the cost of reading every record again for every request.

Concurrent identical reads are still shared, and the planner's counts are read for every page.
"""

from __future__ import annotations

from typing import Any

from resolvers.loading.loader import Loader
from server.__main__ import main

_init = Loader.__init__


def _init_uncached(self: Loader[Any, Any], read: Any, **options: Any) -> None:
    _init(self, read, **({**options, "ttl": -1.0} if "ttl" in options else options))


if __name__ == "__main__":
    Loader.__init__ = _init_uncached  # type: ignore[method-assign]  # what this program is for
    main()
