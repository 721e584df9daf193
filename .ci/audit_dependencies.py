"""Checks the locked packages for known vulnerabilities, with pip-audit and `npm audit`.

Both ask a registry, and a mirror may not know the answer: pip-audit then skips packages and still reports that it found
nothing. So this reports three outcomes: 0 for none, 1 for vulnerabilities, 2 if some packages could not be checked.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
BIN: Final = Path(sys.executable).parent
LOCKS: Final = ("requirements-dev.lock", "bench/peers/requirements.lock")  # the first has all packages of the others
FOLDERS: Final = ("deploy/engine", "explorer", "tests/node", "bench/peers")
NONE, VULNERABLE, UNCHECKED = 0, 1, 2
Run = Callable[[Sequence[str]], tuple[str, str]]


@dataclass
class Audit:
    """What a lock's audit found, and what it could not check."""

    lock: str
    vulnerabilities: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)


def run(command: Sequence[str]) -> tuple[str, str]:
    """Return a command's output and error output. Exit codes do not tell a vulnerability from a failure."""
    environment = {**os.environ, "NODE_USE_SYSTEM_CA": "1", "PATH": f"{BIN}:{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return done.stdout, done.stderr


def audit_python(lock: str, run: Run = run) -> Audit:
    audit = Audit(lock)
    options = ("--require-hashes", "--disable-pip", "--format", "json", "--progress-spinner", "off")
    output, errors = run(("pip-audit", "-r", lock, *options))
    report = _json(output)
    if "dependencies" not in report:
        audit.unchecked.append(f"all packages: {_last_line(errors)}")
        return audit
    for package in report["dependencies"]:
        if reason := package.get("skip_reason"):
            audit.unchecked.append(f"{package['name']}: {reason}")
        for found in package.get("vulns", ()):
            fixed = ", ".join(found.get("fix_versions", ())) or "no version yet"
            audit.vulnerabilities.append(f"{package['name']} {package['version']}: {found['id']}, fixed in {fixed}")
    return audit


def audit_npm(folder: str, run: Run = run) -> Audit:
    audit = Audit(f"{folder}/package-lock.json")
    output, errors = run(("npm", "audit", "--package-lock-only", "--json", "--prefix", folder))
    report = _json(output)
    if "vulnerabilities" not in report:
        audit.unchecked.append(f"all packages: {report.get('message') or _last_line(errors)}")
        return audit
    for name, found in report["vulnerabilities"].items():
        causes = "; ".join(cause["title"] if isinstance(cause, dict) else str(cause) for cause in found["via"])
        audit.vulnerabilities.append(f"{name} {found['range']}, {found['severity']}: {causes}")
    return audit


def _json(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it gave no reason"])[-1]


def report(audits: Sequence[Audit]) -> int:
    """Print what the audits say and return the exit code."""
    for audit in audits:
        if audit.unchecked:
            more = f" and {len(audit.unchecked) - 1} more" if len(audit.unchecked) > 1 else ""
            print(f"{audit.lock}: NOT CHECKED: {audit.unchecked[0]}{more}")
        for vulnerability in audit.vulnerabilities:
            print(f"{audit.lock}: VULNERABLE: {vulnerability}")
        if not (audit.unchecked or audit.vulnerabilities):
            print(f"{audit.lock}: no known vulnerabilities")
    if any(audit.vulnerabilities for audit in audits):
        print("\nTake newer versions with `make lock ARGS=--upgrade`, or say in the lock's commit why they do no harm.")
        return VULNERABLE
    if any(audit.unchecked for audit in audits):
        print("\nThis says nothing about the packages that were not checked: their registry did not answer for them.")
        return UNCHECKED
    return NONE


if __name__ == "__main__":
    sys.exit(report([*map(audit_python, LOCKS), *map(audit_npm, FOLDERS)]))
