"""How many examples a test tries: `make quick` wants fewer than the suite, and `make soak` many times more."""

import os
from typing import Final

FACTOR: Final = float(os.environ.get("RINGSIDE_TEST_EXAMPLES", "1"))
"""Times as many examples as the suite tries."""


def examples(number: int) -> int:
    """Return how many examples this run tries of so many in the suite."""
    return max(1, round(number * FACTOR))
