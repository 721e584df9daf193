"""The lock files of the Python packages, read."""

import re

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.generated import ROOT

PINNED = re.compile(r"^([\w.\[\]-]+==[^\\\n]+?) *((?:\\\n +--hash=sha256:[0-9a-f]{64} ?)+)$", re.MULTILINE)


def locked(name: str) -> dict[str, set[str]]:
    """Each package's pins: more than one where they depend on the Python."""
    text = (ROOT / name).read_text(encoding="utf-8")
    found: dict[str, set[str]] = {}
    for pin, _ in PINNED.findall(text):
        requirement = Requirement(pin)
        found.setdefault(canonicalize_name(requirement.name), set()).add(pin.strip())
    assert sum(map(len, found.values())) == sum(not line.startswith(" ") for line in text.splitlines())
    return found
