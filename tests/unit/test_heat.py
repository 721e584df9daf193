"""Which partition key the benchmark of heat names."""

from bench.heat import PROCESSES, hottest
from tests.lagging import Ledger
from tests.lagging.capacity import PartitionKey


def test_what_goes_by_the_clock_counts_in_its_busiest_second() -> None:
    """Once for each process that reads it; one process settles for all. Other keys have all their seconds, scaled."""
    voter, results = PartitionKey("", "VOTER#ada"), PartitionKey("", "RESULTS#board")
    ledger = Ledger()
    for second in range(3):
        for units in (ledger.reads, ledger.writes):
            units[results, second] = 4.0 + second
            units[voter, second] = 3.0
    assert hottest(ledger, 5, reads=True) == (results, 6.0 * PROCESSES)
    assert hottest(ledger, 6, reads=True) == (voter, 54.0)
    ledger.writes[voter, 0] = ledger.writes[voter, 1] = 0.0
    assert hottest(ledger) == (results, 6.0)
