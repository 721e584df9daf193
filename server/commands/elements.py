"""`ringside elements`: the tags of the elements' script, for a page."""

from __future__ import annotations

import typer

from server import Failed
from server.commands import out
from server.settings import Settings

app = typer.Typer()


@app.command()
def elements() -> None:
    """Prints two script tags for RINGSIDE_PUBLIC_URL: the current elements, and this build of them by its digest."""
    from server.http.browser_pages import Elements  # other commands start without what serves pages

    try:
        tags = Elements().tags(Settings.load().public_url)
    except FileNotFoundError:
        raise Failed("The elements have not been built here: make pages.") from None
    for tag in tags:
        out.print(tag)
