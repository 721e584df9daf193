"""`ringside serve` with all caches disabled: the cost of reading every record again for every request.

Concurrent identical reads are still shared, and the planner's counts are read for every page.
"""

from typing import Any

from datastore.dynamo import Reads
from server.__main__ import main

_init = Reads.__init__


def _init_uncached(self: Reads[Any, Any], cache: Any, name: str, *how: Any, **kind: Any) -> None:
    _init(self, cache, name, *how, **(kind if name == "table" else {**kind, "age": 0.0, "kept": 0.0}))


if __name__ == "__main__":
    Reads.__init__ = _init_uncached  # type: ignore[method-assign]  # what this program is for
    main()
