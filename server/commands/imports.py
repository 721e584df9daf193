"""`ringside import`: the commands of the parts, and of the whole table, that read files."""

from __future__ import annotations

import typer

from server.commands.comments import import_comments
from server.commands.contenders import import_contenders
from server.commands.pickem import import_events
from server.commands.vocabulary import words
from server.commands.whole_table import import_all

app = typer.Typer()
imports = typer.Typer(help="Import data from files. Existing data is left alone.", no_args_is_help=True)
app.add_typer(imports, name="import")
imports.command("all")(import_all)
imports.command("events")(import_events)
imports.command("words")(words)
imports.command("contenders")(import_contenders)
imports.command("comments")(import_comments)
