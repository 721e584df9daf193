"""The Python client in examples/, run against the service as `make run` starts it."""

import subprocess
import sys

from tests.generated import ROOT
from tests.service import Service
from tests.waiting import LONGEST


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "examples/client.py", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST, check=False)


def test_the_client_reads_all_pages_and_writes(service: Service) -> None:
    """More than one page of the demo's comments, and one of its own."""
    done = run(f"{service.url}/graphql", service.token("client"))
    assert done.stderr == ""
    found, posted = done.stdout.splitlines()
    assert int(found.split()[0]) > 50
    assert posted.startswith("Posted ")


def test_the_client_shows_the_service_s_errors(service: Service) -> None:
    """A forged token is refused in words, not with a stack trace."""
    done = run(f"{service.url}/graphql", "forged")
    assert done.returncode == 1
    assert done.stderr == "The token is not a JSON Web Token.\n"
