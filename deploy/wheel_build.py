"""A check that hatchling runs when it builds the wheel or the source distribution: both contain the built pages.

An editable installation reads the pages from the checkout, where `make` builds them later.
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGES = Path("server/http/pages")
BUILT = {"explorer": "index.html", "elements": "documents.json", "admin": "admin.*.js"}


class PagesAreBuilt(BuildHookInterface[Any]):
    """Ends the build with a message if the explorer, the elements or the admin pages are missing."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - the hook's signature
        """Is called by hatchling before it collects the files."""
        for folder, name in BUILT.items():
            if version != "editable" and not any(Path(self.root, PAGES, folder).glob(name)):
                self.app.abort(
                    f"{PAGES / folder / name} is missing: the pages are part of every build. Run `make pages` first."
                )
