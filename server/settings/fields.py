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


def number(
    meaning: str, *, default: float | None, within: tuple[float, float], unit: str = "a whole number", shown: str = ""
) -> Any:
    """Declare a setting that is a number between two others; it is a whole one if its default is."""
    low, high = within
    finite = {} if isinstance(default, int) else {"allow_inf_nan": False}
    return setting(
        meaning, write=f"{unit} from {low} to {high}", default=default, shown=shown, ge=low, le=high, **finite
    )


def extra(field: FieldInfo, key: str) -> str:
    extra = field.json_schema_extra
    return str(extra[key]) if isinstance(extra, dict) else ""


def variable(field: str) -> str:
    """Return the environment variable of a setting."""
    return f"{PREFIX}{field.upper()}"
