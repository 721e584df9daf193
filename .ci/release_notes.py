"""Prints the changelog's section of a release: `python3 .ci/release_notes.py v1.2.0`.

It fails if the tag is not the version of pyproject.toml, or if the changelog has no such section.
"""

import re
import sys
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]


class NotReady(Exception):
    """The release cannot be made; the message says why and what to do."""


def release_notes(tag: str, version: str, changelog: str) -> str:
    """The section of the tag's version, without its heading."""
    if tag != f"v{version}":
        raise NotReady(f"The tag is {tag}, and pyproject.toml has the version {version}. The tag must be v{version}.")
    heading = re.compile(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", re.MULTILINE)
    found = heading.search(changelog)
    if not found:
        raise NotReady(
            f"CHANGELOG.md has no section `## [{version}] - YYYY-MM-DD`. Rename [Unreleased], and begin anew."
        )
    section = re.split(r"^## ", changelog[found.end() :], maxsplit=1, flags=re.MULTILINE)[0].strip()
    if not section:
        raise NotReady(f"The changelog's section of {version} is empty.")
    return section


def main(tag: str) -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return release_notes(tag, project["version"], (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    try:
        print(main(sys.argv[1]))
    except NotReady as reason:
        sys.exit(str(reason))
