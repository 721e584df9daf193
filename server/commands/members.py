"""`ringside export member`: everything that is stored about one member."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from datastore.dynamo import BadKey, key_text
from resolvers.context import Services
from resolvers.members.exporting import file_lines
from server.commands import err
from server.commands.files import STANDARD, open_output
from server.commands.running import run_with_services
from server.failures import Failed


def export_member(
    user: Annotated[str, typer.Argument(help="The member's id.")],
    file: Annotated[Path, typer.Argument(help="The file to write; - prints.", allow_dash=True)] = STANDARD,
) -> None:
    """Exports everything that is stored about a member as lines of JSON; the first explains the others."""
    try:
        member = key_text(user)
    except BadKey:
        raise Failed(f"{user!r} is not a member's id: it is empty, or holds a # or a control character.") from None

    async def export(services: Services) -> int:
        count = 0
        with open_output(file) as target:
            async for line in file_lines(services.table, member, services.clock().isoformat()):
                target.write(line)
                count += 1
        return count

    err.print(f"{run_with_services(export)} lines.")
