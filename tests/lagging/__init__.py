"""An engine that behaves like DynamoDB where no local engine does: indexes lag, partitions fill, calls take time."""

from tests.lagging.capacity import Ledger, Limits
from tests.lagging.engine import LaggingEngine
from tests.lagging.replica import Lag

__all__ = ["Lag", "LaggingEngine", "Ledger", "Limits"]
