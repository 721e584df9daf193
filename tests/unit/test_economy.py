"""What the benchmark of economy counts."""

from bench.economy import Module, expiring

SAMPLE = """
class Cached(NamedTuple):
    viewer: str
    until: float

seen: dict[str, float] = {}
names: dict[str, str] = {}

class Tokens:
    def __init__(self):
        self.cached: BoundedDict[bytes, Cached] = BoundedDict(9)
        self.read: BoundedDict[bytes, tuple[float, str]] = BoundedDict(9)

def parse():
    qualities: dict[str, float] = {}
"""


def test_containers_that_expire_are_those_of_modules_and_instances_whose_values_have_a_moment() -> None:
    """Be it the value, or part of a tuple, with names or without; those of a call are gone when it ends."""
    assert expiring({"m": Module("m", SAMPLE)}) == ["m:6", "m:11", "m:12"]
