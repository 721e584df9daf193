"""The packages that tests need from npm, in tests/node."""

import os
import sysconfig
from pathlib import Path
from typing import Final

import pytest

from tests.command import ROOT

FOLDER: Final = ROOT / "tests" / "node"


def node_with(package: str) -> str:
    """Node's path. Without node or the package the test is skipped; with CI=true it fails."""
    node = Path(sysconfig.get_path("scripts")) / "node"
    if not node.exists() or not (FOLDER / "node_modules" / package).is_dir():
        missing = f"{package} is not here: npm ci --prefix tests/node"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return str(node)
