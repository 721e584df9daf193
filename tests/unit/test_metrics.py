"""What is counted can be read, by operation, and strangers cannot make it grow."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from server.telemetry import Metrics, Outcome, shared_metrics
from server.telemetry.metrics import FOLDER_VARIABLE, MAX_NAMES, USES


def samples(text: bytes) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *(f"{key}={value}" for key, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def figures(metrics: Metrics) -> dict[tuple[str, ...], float]:
    metrics.settle()
    return samples(metrics.render()[0])


def test_a_request_is_counted_by_operation_and_outcome() -> None:
    """With its time, the capacity it took and its calls to the table."""
    metrics = Metrics()
    metrics.finished("Leaderboard", Outcome.OK, 0.004, read_units=2.5, write_units=0.0, engine_calls=2)
    metrics.finished("Leaderboard", Outcome.UNAVAILABLE, 10.0, read_units=0.5, write_units=4.0, engine_calls=1)
    found = figures(metrics)
    assert found["ringside_requests_total", "operation=Leaderboard", "outcome=ok"] == 1
    assert found["ringside_requests_total", "operation=Leaderboard", "outcome=unavailable"] == 1
    assert found["ringside_request_seconds_bucket", "le=0.005", "operation=Leaderboard"] == 1
    assert found["ringside_request_seconds_count", "operation=Leaderboard"] == 2
    assert found["ringside_capacity_units_total", "kind=read", "operation=Leaderboard"] == 3
    assert found["ringside_capacity_units_total", "kind=write", "operation=Leaderboard"] == 4
    assert found["ringside_engine_calls_total", "operation=Leaderboard"] == 3


def test_requests_in_flight_are_gauged() -> None:
    """Requests in flight and open subscriptions come and go."""
    metrics = Metrics()
    metrics.subscriptions.inc()
    metrics.count_in_flight(1)
    found = figures(metrics)
    metrics.count_in_flight(-1)
    assert (found["ringside_requests_in_flight",], found["ringside_subscriptions",]) == (1, 1)
    assert figures(metrics)["ringside_requests_in_flight",] == 0


def test_fallbacks_are_counted_by_reason() -> None:
    """To see what the compiler still has to learn."""
    metrics = Metrics()
    metrics.fell_back("subscription")
    assert figures(metrics)["ringside_fallbacks_total", "reason=subscription"] == 1


def test_loads_are_counted_by_loader_and_result() -> None:
    """What was answered since the last look is added, also when the process has made its services anew."""
    metrics = Metrics()
    loads = {("profiles", "hit"): 3, ("profiles", "miss"): 1}
    metrics.watch_loads(lambda: dict(loads))
    assert figures(metrics)["ringside_loads_total", "kind=profiles", "result=hit"] == 3
    loads["profiles", "hit"] = 5
    found = figures(metrics)
    assert found["ringside_loads_total", "kind=profiles", "result=hit"] == 5
    assert found["ringside_loads_total", "kind=profiles", "result=miss"] == 1
    metrics.watch_loads(lambda: {("profiles", "hit"): 1})
    assert figures(metrics)["ringside_loads_total", "kind=profiles", "result=hit"] == 6


def operations(metrics: Metrics) -> set[str]:
    return {
        part.removeprefix("operation=") for key in figures(metrics) for part in key if part.startswith("operation=")
    }


def test_invented_names_do_not_fill_memory() -> None:
    """The first two hundred that succeed count under their own name, the rest together; none is lost."""
    metrics = Metrics()
    for n in range(3 * MAX_NAMES):
        metrics.finished(f"Invented{n}", Outcome.OK, 0.1)
    assert len(operations(metrics)) == MAX_NAMES + 1
    assert "other" in operations(metrics)
    counted = [value for key, value in figures(metrics).items() if key[0] == "ringside_requests_total"]
    assert sum(counted) == 3 * MAX_NAMES


def test_a_name_that_never_succeeded_has_no_counter_of_its_own() -> None:
    """Rubbish is invalid, and counts as other."""
    metrics = Metrics()
    for outcome in Outcome:
        if outcome is not Outcome.OK:
            metrics.finished(f"Rubbish{outcome}", outcome, 0.1)
    metrics.finished("x" * 1000, Outcome.OK, 0.1)
    assert operations(metrics) == {"other"}


def test_known_operations_keep_their_names_among_many_invented_ones() -> None:
    """Those of trusted documents, whatever came before and however they ended."""
    metrics = Metrics(known=["Leaderboard"])
    for n in range(2 * MAX_NAMES):
        metrics.finished(f"Invented{n}", Outcome.OK, 0.1)
    metrics.finished("Leaderboard", Outcome.FAILED, 0.1)
    metrics.finished(None, Outcome.INVALID, 0.1)
    assert {"Leaderboard", "anonymous", "other"} <= operations(metrics)


def test_invented_names_do_not_hide_the_operations_of_members_and_pages() -> None:
    """A member's operation has its row at once, and one that visitors use soon takes the row of an invented one."""
    metrics = Metrics()
    for n in range(3 * MAX_NAMES):
        metrics.finished(f"Invented{n}", Outcome.OK, 0.1, engine_calls=1)
    metrics.finished("ModerationQueue", Outcome.OK, 0.1, by_member=True)
    for n in range(2 * USES):
        metrics.finished("Leaderboard", Outcome.OK if n else Outcome.ERRORS, 0.1, engine_calls=1)
        metrics.finished(f"Another{n}", Outcome.OK, 0.1)
    assert {"ModerationQueue", "Leaderboard"} <= operations(metrics)
    assert len(operations(metrics)) == MAX_NAMES + 2


def test_operations_in_use_keep_their_rows() -> None:
    """However many names are invented meanwhile."""
    metrics = Metrics()
    for n in range(MAX_NAMES):
        for _ in range(3 * USES):
            metrics.finished(f"Used{n}", Outcome.OK, 0.1)
    before = operations(metrics)
    for n in range(20 * MAX_NAMES):
        metrics.finished(f"Invented{n % (2 * MAX_NAMES)}", Outcome.OK, 0.1)
    assert before <= operations(metrics)


def test_two_applications_in_one_process_count_separately() -> None:
    """Each has a registry of its own."""
    one, other = Metrics(), Metrics()
    one.finished("Leaderboard", Outcome.OK, 0.1)
    assert "Leaderboard" in operations(one)
    assert operations(other) == set()


def test_a_client_chooses_the_format_of_the_metrics() -> None:
    """Prometheus's text, or OpenMetrics on request."""
    metrics = Metrics()
    assert metrics.render()[1].startswith("text/plain")
    body, content_type = metrics.render("application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")
    assert metrics.render("application/openmetrics-text;version=x")[1].startswith("text/plain")


WORKER = """
import os, sys
from server.telemetry import Metrics, Outcome
metrics = Metrics()
metrics.finished("Leaderboard", Outcome.OK, 0.1, read_units=1.5, engine_calls=1)
metrics.count_in_flight(1)
print("ready", flush=True)
sys.stdin.readline()
sys.stdout.write(metrics.render()[0].decode())
"""


def worker() -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.slow
def test_workers_answer_for_each_other_and_the_killed_are_in_flight_no_more() -> None:
    """Any worker's /metrics shows the sum; what a killed one had counted stays, what it was doing does not."""
    with shared_metrics() as folder:
        survivor, victim = worker(), worker()
        victim.kill()
        victim.communicate()
        text, _ = survivor.communicate("\n")
    found = samples(text.encode())
    assert found["ringside_requests_total", "operation=Leaderboard", "outcome=ok"] == 2
    assert found["ringside_capacity_units_total", "kind=read", "operation=Leaderboard"] == 3
    assert found["ringside_requests_in_flight",] == 1
    assert not folder.exists()
    assert FOLDER_VARIABLE not in os.environ


def test_a_folder_of_the_operators_is_emptied_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Yesterday's figures would be added to today's."""
    folder = tmp_path / "figures"
    monkeypatch.setenv(FOLDER_VARIABLE, str(folder))
    for _ in range(2):
        with shared_metrics() as found:
            assert found == folder
            assert list(folder.iterdir()) == []
            (folder / "counter_1.db").touch()
    assert folder.exists()
    assert os.environ[FOLDER_VARIABLE] == str(folder)
