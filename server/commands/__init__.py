"""The commands, and their consoles.

`server.__main__` lists the commands and the modules they are in; a module's `app` has its commands. A module is
imported only to run one of its commands, so it imports at its top what all of them need, and in a function what one of
them needs and takes long: the schema, the audit.
"""

import re
from contextvars import ContextVar
from functools import partial
from typing import Any

from rich.console import Console

operator: ContextVar[str | None] = ContextVar("operator", default=None)
"""The id of the member who runs the command, as `ringside --as` gives it."""
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""All but tabs and line ends; and the halves of characters that stand for bytes which are no text."""


class _Console(Console):
    """Shows control characters as escapes: texts of files and of members must not control the operator's terminal."""

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*(_visible(each) if isinstance(each, str) else each for each in objects), **options)


def _visible(text: str) -> str:
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


# What is printed has names and paths in it, which may look like markup: `[/live]` would end in a traceback.
_plain = partial(_Console, highlight=False, soft_wrap=True, markup=False, emoji=False)
out = _plain()
err = _plain(stderr=True)
