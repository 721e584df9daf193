"""The solver of challenges that pages load: it finds the number that the service hid."""

import hashlib
import json
import random
import secrets
import subprocess
import sysconfig
from pathlib import Path

import pytest

from resolvers.people.challenges import MOST
from tests.generated import ROOT

SOLVER = ROOT / "server" / "http" / "pages" / "sign-in" / "challenge.js"
NODE = Path(sysconfig.get_path("scripts")) / "node"
RUN = """
import { readFileSync } from 'node:fs';
const { solve } = await import('data:text/javascript,' + encodeURIComponent(readFileSync(process.argv[1], 'utf8')));
for (const each of JSON.parse(readFileSync(0, 'utf8'))) {
  console.log(await solve(each).catch((error) => error.message));
}
"""


def hidden(number: int) -> dict[str, str]:
    salt = secrets.token_hex(12)
    return {"token": f"t{number}", "salt": salt, "target": hashlib.sha256(f"{salt}{number}".encode()).hexdigest()}


@pytest.mark.skipif(not NODE.exists(), reason="node is not here: make test")
@pytest.mark.slow
def test_the_solver_finds_the_number() -> None:
    """The first and the last one too; a number beyond is none."""
    numbers = [0, 9, 10, 99_999, 100_000, MOST - 1, *random.sample(range(MOST), 10)]
    challenges = [hidden(number) for number in (*numbers, MOST)]
    command = [str(NODE), "--input-type=module", "-e", RUN, str(SOLVER)]
    ran = subprocess.run(command, input=json.dumps(challenges), capture_output=True, text=True, timeout=300, check=True)
    assert ran.stdout.splitlines() == [*(f"t{n}:{n}" for n in numbers), "no number solves this challenge"]


def test_the_solver_is_small() -> None:
    """Pages load it when they are asked for a proof of work, and not before."""
    assert SOLVER.stat().st_size <= 8192
