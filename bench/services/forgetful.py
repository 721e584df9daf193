"""`ringside serve` with all caches disabled: the cost of reading every record again for every request.

Concurrent identical reads are still shared, and the planner's counts are read for every page.
"""

from __future__ import annotations

from typing import Any

from resolvers.loading import loader as kept
from server.__main__ import main

_made = kept.Kept.__init__


def _forgetting(self: kept.Kept[Any, Any], read: Any, **options: Any) -> None:
    _made(self, read, **{**options, "seconds": -1.0})


if __name__ == "__main__":
    kept.Kept.__init__ = _forgetting  # type: ignore[method-assign]
    main()
