"""The elements as their script defines them."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from tests.generated import ROOT


def _defined() -> Mapping[str, Sequence[str]]:
    script = (ROOT / "elements" / "elements.ts").read_text(encoding="utf-8")
    listed = script.partition("const DEFINITIONS")[2].partition("\n};\n")[0]
    found = re.findall(r"^  '?([\w-]+)'?: \[\n +\[(.*)\],$", listed, re.MULTILINE)
    return {name: re.findall(r"'(\w+)'", attributes) for name, attributes in found}


DEFINED: Final = _defined()
"""Each element's name without its `ringside-`, and the attributes whose changes begin it anew."""
