"""`ringside elements`: the tags of the elements' script, for a page."""

import typer

from server.commands import out
from server.settings import Settings

app = typer.Typer()


@app.command()
def elements() -> None:
    """Prints two script tags for RINGSIDE_PUBLIC_URL: the current elements, and this build of them by its digest."""
    from server.http.browser_pages import Elements  # other commands start without what serves pages

    for tag in Elements().tags(Settings.load().public_url):
        out.print(tag)
