"""How many functions of ours a page of comments takes from socket to socket, as `bench.functions` counts them."""

from __future__ import annotations

import subprocess
import sys

MAX_FUNCTIONS = 100


def test_a_page_of_comments_takes_at_most_a_hundred_functions() -> None:
    """The service runs in a process of its own, since counting sets the profiler of a thread."""
    counted = subprocess.run([sys.executable, "-m", "bench.functions"], capture_output=True, text=True, check=True)
    rows = {line[:20].strip(): line[20:].split() for line in counted.stdout.splitlines()}
    assert 50 < int(rows["together"][1]) <= MAX_FUNCTIONS, counted.stdout
