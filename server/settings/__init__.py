"""The operator's settings, read once from the environment and frozen.

A setting is declared once, in `declaration`. `--help`, the guide's table and the error messages are generated from
that declaration.
"""

from server.settings.declaration import Settings, settings_help, settings_table
from server.settings.fields import PREFIX, BadSettings, variable
from server.settings.values import AWS, Format, Introspection, Level, Log, is_embedded, is_near

__all__ = [
    "AWS",
    "PREFIX",
    "BadSettings",
    "Format",
    "Introspection",
    "Level",
    "Log",
    "Settings",
    "is_embedded",
    "is_near",
    "settings_help",
    "settings_table",
    "variable",
]
