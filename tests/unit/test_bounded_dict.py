"""A bounded dictionary forgets what was set the longest ago."""

from datastore.dynamo import BoundedDict


def test_the_oldest_entry_is_forgotten() -> None:
    """Beyond the bound; setting an entry again renews it, and reading it does not."""
    numbers: BoundedDict[str, int] = BoundedDict(2)
    numbers["a"] = 1
    numbers["b"] = 2
    numbers["a"] = 3
    assert numbers["b"] == 2
    numbers["c"] = 4
    assert dict(numbers) == {"a": 3, "c": 4}


def test_an_entry_that_is_there_already_is_not_renewed_by_a_default() -> None:
    """A default is set, and counts, only where there is none."""
    numbers: BoundedDict[str, int] = BoundedDict(2)
    assert [numbers.setdefault(name, number) for number, name in enumerate("abac")] == [0, 1, 0, 3]
    assert dict(numbers) == {"b": 1, "c": 3}
