"""Alerts and dashboard: they parse, they use what a running service exposes, and each alert has its runbook."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import httpx
import promql_parser
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from server.settings import Settings
from server.telemetry import Outcome
from tests.generated import ROOT
from tests.service import running_service

RULES = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yaml").read_text(encoding="utf-8"))["groups"][0]["rules"]
DASHBOARD = json.loads((ROOT / "deploy/grafana/ringside.json").read_text(encoding="utf-8"))
RUNBOOK = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
# Of Prometheus itself, which gives every metric the labels of its target.
PROMETHEUS = {"up": set[str]()}
TARGET = {"job", "instance"}
QUERY = 'query Page { comments(product: "ringside-tee") { nodes { author { name } } } }'


def panels() -> Iterator[tuple[str, str]]:
    """The titles and the expressions of the dashboard, with values for Grafana's variables."""
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            expression = target["expr"].replace("$__rate_interval", "5m")
            yield (
                f"{panel['title']} {target['refId']}",
                expression.replace("$job", "ringside").replace("$instance", ".*"),
            )


EXPRESSIONS = {**{rule["alert"]: rule["expr"] for rule in RULES}, **{f"panel: {name}": text for name, text in panels()}}


def nodes(expression: Any) -> Iterator[Any]:
    """The parts of a parsed expression."""
    yield expression
    for name in ("lhs", "rhs", "expr", "param", "vector_selector", "args"):
        below = getattr(expression, name, None)
        for each in below if isinstance(below, list) else [below]:
            if each is not None:
                yield from nodes(each)


def selectors(text: str) -> Iterator[Any]:
    return (node for node in nodes(promql_parser.parse(text)) if isinstance(node, promql_parser.VectorSelector))


@pytest.fixture(scope="module")
def exposed(demo_data: Callable[[], str]) -> Mapping[str, Mapping[str, set[str]]]:
    """Each metric of a running service, with its labels and their values, after some requests."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    variables = {"RINGSIDE_DATA": demo_data(), "RINGSIDE_BACKUP_HOURS": "24", "RINGSIDE_REQUEST_TIMEOUT": "60"}
    with running_service(variables, ["--demo"]) as service:
        for _ in range(3):
            assert "errors" not in httpx.post(f"{service.url}/graphql", json={"query": QUERY}, timeout=60).json()
        text = httpx.get(f"{service.url}/metrics", timeout=60).text
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            for name, value in sample.labels.items():
                found[sample.name][name].add(value)
            found[sample.name] |= {}
    return found


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_an_expression_uses_metrics_and_labels_that_a_running_service_exposes(
    name: str, exposed: Mapping[str, Mapping[str, set[str]]]
) -> None:
    """A renamed metric would leave an alert silent and a panel empty."""
    found = list(selectors(EXPRESSIONS[name]))
    assert found
    labels = set(TARGET)
    for selector in found:
        assert selector.name in {*exposed, *PROMETHEUS}, selector.name
        own = exposed.get(selector.name, {}).keys()
        labels |= own
        for matcher in selector.matchers.matchers:
            assert matcher.name in own | TARGET, (selector.name, matcher.name)
            if matcher.name == "outcome":
                assert set(matcher.value.split("|")) <= set(Outcome)
            if matcher.name in {"kind", "result"}:
                assert set(matcher.value.split("|")) <= {"read", "write", "hit", "miss", "wait"}
    for node in nodes(promql_parser.parse(EXPRESSIONS[name])):
        if isinstance(node, promql_parser.AggregateExpr) and node.modifier:
            assert set(node.modifier.labels) <= labels


def test_each_alert_has_a_section_in_the_runbook_and_no_section_is_left_over() -> None:
    """Under its own name, to which the alert leads."""
    sections = re.findall(r"^### (Ringside\w+)$", RUNBOOK, re.MULTILINE)
    assert sections == [rule["alert"] for rule in RULES]
    for rule in RULES:
        assert rule["annotations"]["runbook"] == f"docs/operations.md#{rule['alert'].lower()}"
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert rule["annotations"]["summary"]


def test_alerts_look_at_the_job_of_the_example() -> None:
    """An alert without the job would also fire for other services."""
    (job,) = yaml.safe_load((ROOT / "deploy/prometheus/scrape.yaml").read_text(encoding="utf-8"))["scrape_configs"]
    for rule in RULES:
        for selector in selectors(rule["expr"]):
            assert ("job", job["job_name"]) in {(matcher.name, matcher.value) for matcher in selector.matchers.matchers}


def test_thresholds_are_those_of_the_settings_and_files_that_the_comments_name() -> None:
    """Of the limit of requests, and of the pods' memory."""
    texts = {rule["alert"]: rule["expr"] for rule in RULES}
    assert f"* {Settings.model_fields['max_in_flight'].default}" in texts["RingsideNearlyFull"]
    pods = (ROOT / "deploy/kubernetes/ringside.yaml").read_text(encoding="utf-8")
    (memory,) = re.findall(r"limits: \{ memory: (\d+)Mi \}", pods)
    assert f"* {memory} * 1024 * 1024" in texts["RingsideMemoryHigh"]


def test_a_backup_is_overdue_after_twice_the_time_between_two_of_them() -> None:
    """The service exposes that time, so the alert holds for each that may be set: a number here would fire for ever."""
    (text,) = [" ".join(rule["expr"].split()) for rule in RULES if rule["alert"] == "RingsideBackupOverdue"]
    newest, period = (f'ringside_backup_{name}_seconds{{job="ringside"}}' for name in ("newest_timestamp", "period"))
    assert text == f"time() - {newest} > 2 * {period}"


def test_the_dashboards_panels_have_a_place_and_a_data_source() -> None:
    """No two overlap, and each asks the data source that the reader chose."""
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
        assert {panel["datasource"]["uid"], *(each["datasource"]["uid"] for each in panel["targets"])} == {
            "${datasource}"
        }
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    assert {each["name"] for each in DASHBOARD["templating"]["list"]} == {"datasource", "job", "instance"}
