"""A check that hatchling runs when it builds the wheel or the source distribution: both contain the explorer.

An editable installation reads the pages from the checkout, where `make` builds them later.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = Path("server/http/pages/explorer/index.html")


class ExplorerIsBuilt(BuildHookInterface[Any]):
    """Ends the build with a message if the explorer's page is missing."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - the hook's signature
        """Is called by hatchling before it collects the files."""
        if version != "editable" and not Path(self.root, PAGE).is_file():
            self.app.abort(f"{PAGE} is missing: the explorer is part of every build. Run `make explorer` first.")
