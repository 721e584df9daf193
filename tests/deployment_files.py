"""The deployment files, read."""

import json
from collections.abc import Iterator
from typing import Any

import yaml

from tests.generated import ROOT

DEPLOY = ROOT / "deploy"
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
ROLES = sorted(file.stem for file in (DEPLOY / "iam").glob("*.json"))


class _Template(yaml.SafeLoader):  # type: ignore[misc]  # yaml has no types
    """YAML with CloudFormation's short functions, read as their values."""


_Template.add_multi_constructor("!", lambda *parts: parts[-1].value)


def template(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.load((DEPLOY / name).read_text(encoding="utf-8"), _Template)
    return loaded


def policy(role: str, table: str = "arn:aws:dynamodb:REGION:ACCOUNT:table/ringside") -> dict[str, Any]:
    """The IAM policy of a role, for a table's ARN."""
    text = (DEPLOY / "iam" / f"{role}.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text.replace("arn:aws:dynamodb:REGION:ACCOUNT:table/ringside", table))
    return loaded


def resources() -> Iterator[dict[str, Any]]:
    for manifest in MANIFESTS:
        yield from yaml.safe_load_all(manifest.read_text(encoding="utf-8"))


def resource(kind: str) -> dict[str, Any]:
    return next(each for each in resources() if each["kind"] == kind)


def pod_specs() -> list[dict[str, Any]]:
    deployment = resource("Deployment")["spec"]["template"]["spec"]
    return [deployment, *(job["spec"]["jobTemplate"]["spec"]["template"]["spec"] for job in cron_jobs())]


def cron_jobs() -> list[dict[str, Any]]:
    return [each for each in resources() if each["kind"] == "CronJob"]
