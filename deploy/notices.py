"""Appends the licences of the Python packages in a folder to those of the explorer's npm packages.

    python deploy/notices.py FOLDER server/http/pages/explorer/licenses.md

The Dockerfile runs this on the service's packages before it builds the wheel. So the image has the notices of all that
it ships, and the service shows them at /explorer/licenses.txt. The texts are those that the packages install.
"""

import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Final

HEADING: Final = "\n# Licenses of the service's Python packages\n"
NAMES: Final = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "AUTHORS")
UNKNOWN: Final = "the package does not say"


def notices(folder: Path) -> str:
    """Each package with its version, what it declares, and its texts."""
    found = {each.metadata["Name"].lower(): each for each in distributions(path=[str(folder)])}
    return HEADING + "".join(_notice(found[name]) for name in sorted(found))


def _notice(package: Distribution) -> str:
    title = f"\n## {package.metadata['Name']} - {package.version} ({declared(package)})\n"
    return title + "".join(f"\n{text.strip()}\n" for text in _texts(package))


def declared(package: Distribution) -> str:
    """The licence in the package's metadata, whose format has three generations."""
    metadata = package.metadata
    classifiers = [each.rpartition(" :: ")[2] for each in metadata.get_all("Classifier") or () if "License ::" in each]
    named = metadata.get("License-Expression") or metadata.get("License") or ", ".join(classifiers)
    return named.strip().splitlines()[0] if named and named.strip() else UNKNOWN


def _texts(package: Distribution) -> Iterator[str]:
    """The files with licences and notices in the package's metadata, each text once."""
    seen = set()
    for file in sorted(package.files or (), key=str):
        if ".dist-info" in file.parts[0] and file.name.upper().startswith(NAMES):
            text = Path(str(package.locate_file(file))).read_text(encoding="utf-8", errors="replace")
            if text not in seen:
                seen.add(text)
                yield text


if __name__ == "__main__":
    with Path(sys.argv[2]).open("a", encoding="utf-8") as file:
        file.write(notices(Path(sys.argv[1])))
