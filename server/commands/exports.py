"""`ringside export`: the commands of the parts, and of the whole table, that write files."""

from __future__ import annotations

import typer

from server.commands.comments import export_comments
from server.commands.members import export_member
from server.commands.pickem import export_events
from server.commands.voting import export_votes
from server.commands.whole_table import export_all

app = typer.Typer()
exports = typer.Typer(help="Export data to files.", no_args_is_help=True)
app.add_typer(exports, name="export")
exports.command("all")(export_all)
exports.command("member")(export_member)
exports.command("events")(export_events)
exports.command("votes")(export_votes)
exports.command("comments")(export_comments)
