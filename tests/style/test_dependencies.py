"""What pyproject.toml asks for: everything imported, bounded where internals are used; and what the audit reports."""

import ast
import importlib.metadata
import json
import re
import runpy
import sys
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.generated import ROOT
from tests.lock_files import locked

PACKAGES = ("server", "schema", "resolvers", "datastore")
INTERNALS = {
    "aiobotocore",
    "botocore",
    "graphql-core",
    "langcodes",
    "prometheus-client",
    "strawberry-graphql",
    "uvicorn",
}
# Only for the fallback engine; only for type checkers.
OPTIONAL = {"moto", "flask", "flask-cors", "werkzeug"}
STUBS = {"_typeshed"}
AUDIT = runpy.run_path(str(ROOT / ".ci" / "audit_dependencies.py"))


def declared() -> dict[str, Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements = map(Requirement, project["dependencies"])
    return {canonicalize_name(requirement.name): requirement for requirement in requirements}


def imported() -> Iterator[str]:
    """The top-level modules that the service imports, of other packages."""
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                match node:
                    case ast.Import(names=names):
                        yield from (name.name.partition(".")[0] for name in names)
                    case ast.ImportFrom(module=str(module), level=0):
                        yield module.partition(".")[0]


def test_every_imported_package_is_asked_for_by_name() -> None:
    """Not found by chance, because another package needs it today."""
    distributions = importlib.metadata.packages_distributions()
    others = set(imported()) - set(PACKAGES) - sys.stdlib_module_names - STUBS
    missing = {
        module: found
        for module in others
        if not (found := {canonicalize_name(name) for name in distributions.get(module, ())})
        & (declared().keys() | OPTIONAL)
    }
    assert missing == {"pydantic_core": {"pydantic-core"}}, "pydantic pins it to one version"


def test_packages_whose_internals_are_used_are_bounded_at_their_next_minor_version() -> None:
    """So an upgrade takes no version whose internals may have changed; the decision's table lists the same packages."""
    for name in INTERNALS:
        (upper,) = (Version(part.version) for part in declared()[name].specifier if part.operator == "<")
        (pin,) = (Requirement(text).specifier for text in locked("requirements.lock")[name])
        major, minor = Version(str(pin).removeprefix("==")).release[:2]
        assert upper.release == (major, minor + 1), name
    text = (ROOT / "docs/decisions/dependencies.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([a-z, -]+) \|", text.partition("## Upper bounds")[2], re.MULTILINE)
    assert {name for row in rows[1:] for name in row.split(", ")} == INTERNALS


def test_the_aioboto3_that_is_asked_for_has_that_aiobotocore() -> None:
    """aioboto3 pins it exactly, so both bounds move together."""
    needs = map(Requirement, importlib.metadata.requires("aioboto3") or ())
    (pinned,) = (str(need.specifier).removeprefix("==") for need in needs if need.name == "aiobotocore")
    assert declared()["aiobotocore"].specifier.contains(pinned)


def answers(report: object, errors: str = "") -> Any:
    """An auditing tool that prints this."""
    return lambda _command: (report if isinstance(report, str) else json.dumps(report), errors)


SOUND: Mapping[str, Any] = {"name": "orjson", "version": "3.13.0", "vulns": []}


def test_an_audit_without_findings_ends_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    python = AUDIT["audit_python"]("requirements.lock", answers({"dependencies": [SOUND]}))
    npm = AUDIT["audit_npm"]("explorer", answers({"vulnerabilities": {}}))
    assert AUDIT["report"]([python, npm]) == 0
    assert capsys.readouterr().out.count("no known vulnerabilities") == 2


def test_a_vulnerability_ends_with_1_and_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """With the version that has the fix, also if other packages could not be checked."""
    found = {"name": "orjson", "version": "3.1.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3.2"]}]}
    python = AUDIT["audit_python"]("requirements.lock", answers({"dependencies": [found]}))
    via = [{"title": "Prototype pollution"}, "another"]
    report = {"vulnerabilities": {"vite": {"range": "<9", "severity": "high", "via": via}}}
    npm = AUDIT["audit_npm"]("explorer", answers(report))
    unchecked = AUDIT["audit_npm"]("tests/node", answers("", "no answer"))
    assert AUDIT["report"]([python, npm, unchecked]) == 1
    said = capsys.readouterr().out
    assert "requirements.lock: VULNERABLE: orjson 3.1.0: PYSEC-1, fixed in 3.2" in said
    assert "explorer/package-lock.json: VULNERABLE: vite <9, high: Prototype pollution; another" in said
    assert "tests/node/package-lock.json: NOT CHECKED: all packages: no answer" in said


@pytest.mark.parametrize(
    ("audit", "lock", "answer"),
    [
        # As pip-audit 2.10 prints it with exit code 0 where a mirror does not have PyPI's data.
        ("audit_python", "requirements.lock", {"dependencies": [{"name": "yarl", "skip_reason": "not found on PyPI"}]}),
        ("audit_python", "requirements.lock", ""),
        ("audit_npm", "explorer", {"message": "405 Method Not Allowed", "error": {"summary": ""}}),
        ("audit_npm", "explorer", "<html>"),
    ],
)
def test_an_audit_whose_source_does_not_answer_ends_with_2_and_says_so(
    audit: str, lock: str, answer: object, capsys: pytest.CaptureFixture[str]
) -> None:
    """It does not look like an audit that found nothing."""
    assert AUDIT["report"]([AUDIT[audit](lock, answers(answer, "it is away"))]) == 2
    said = capsys.readouterr().out
    assert "NOT CHECKED" in said
    assert "no known vulnerabilities" not in said
