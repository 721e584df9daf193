"""The settings as the guide and `ringside serve --help` list them."""

from collections.abc import Iterator

from server.settings.declaration import Settings
from server.settings.fields import extra, variable


def settings_table() -> str:
    """Return the guide's table, in Markdown."""
    rows = (f"| `{name}` | {meaning} | {default} |" for name, meaning, default in _described())
    return "\n".join(["| variable | meaning | default |", "|---|---|---|", *rows])


def settings_help() -> str:
    """Return the part of `ringside serve --help` about the environment: a paragraph for each variable."""
    return "\n\n".join(
        f"{name}: {meaning}" + (f" Default: {default}." if default else "")
        for name, meaning, default in ((name, m.replace("`", ""), d.replace("`", "")) for name, m, d in _described())
    )


def _described() -> Iterator[tuple[str, str, str]]:
    for name, field in Settings.model_fields.items():
        yield variable(name), field.description or "", extra(field, "shown") or _shown(field.default)


def _shown(default: object) -> str:
    match default:
        case None | ():
            return ""
        case bool():
            return f"`{str(default).lower()}`"
        case float():
            return f"`{default:g}`"
    return f"`{default}`"
