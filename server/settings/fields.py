"""How a setting is declared, and the environment variable that holds it."""

from typing import Any

from pydantic import Field
from pydantic.fields import FieldInfo

PREFIX = "RINGSIDE_"
REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")


def setting(meaning: str, *, write: str, default: Any = None, shown: str = "", **more: Any) -> Any:
    """Declare a setting: `write` completes "Write …" in an error, `shown` describes a default that is not constant."""
    if "default_factory" not in more:
        more["default"] = default
    return Field(description=meaning, json_schema_extra={"write": write, "shown": shown}, **more)


def extra(field: FieldInfo, key: str) -> str:
    extra = field.json_schema_extra
    return str(extra[key]) if isinstance(extra, dict) else ""


def variable(field: str) -> str:
    """Return the environment variable of a setting."""
    return f"{PREFIX}{field.upper()}"
