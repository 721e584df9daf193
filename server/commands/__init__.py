"""The commands, and their consoles.

`server.__main__` lists the commands and the modules they are in; a module's `app` has its commands. A module is
imported only to run one of its commands, so it imports at its top what all of them need, and in a function what one of
them needs and takes long: the schema, the audit.
"""

from functools import partial

from rich.console import Console

# What is printed has names and paths in it, which may look like markup: `[/live]` would end in a traceback.
_plain = partial(Console, highlight=False, soft_wrap=True, markup=False, emoji=False)
out = _plain()
err = _plain(stderr=True)
