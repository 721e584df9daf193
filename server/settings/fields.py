"""How a setting is declared, and the environment variable that holds it."""

import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from pydantic import Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from datastore.values.seal import MOST_SECRETS
from server import Failed

# ── fields ──

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


# ── problems ──
# What is wrong with the environment, in words for the operator.

_SET_BY_CLUSTERS = re.compile(r"(^|_)(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT|PORT_\d+_(TCP|UDP|SCTP)(_[A-Z]+)?)$")
"""What Kubernetes sets about services, such as SERVICE_HOST and PORT_8000_TCP_ADDR."""


class BadSettings(Failed):
    """Invalid settings: each line names a variable, the problem and a correct value."""


def describe_refusal(refusal: ValidationError, declared: Mapping[str, FieldInfo]) -> Iterator[str]:
    """Yield a line for each invalid variable; skip a default that depends on another, invalid setting."""
    for error in refusal.errors(include_input=False, include_url=False):
        if error["type"] != "default_factory_not_called":
            yield _describe(error, declared)


def _describe(error: ErrorDetails, declared: Mapping[str, FieldInfo]) -> str:
    """Name the variable, the problem and a correct value. The given value is never shown: it may be a secret."""
    name = str(error["loc"][0]).lower().removeprefix(PREFIX.lower())
    problem = (
        error["msg"]
        .removeprefix("Value error, ")
        .removeprefix("Input ")
        .removeprefix("String ")
        .replace("Path does", "it does")
    )
    if "pattern" in error["type"]:
        problem = "it has invalid characters or the wrong length"
    elif problem.startswith("should"):
        problem = f"it {problem}"
    also = f" (or {' or '.join(REGIONS)})" if name == "aws_region" else ""
    return f"{variable(name)}{also} is invalid: {problem}. Write {extra(declared[name], 'write')}."


def misspelt_variables(environment: Mapping[str, str], declared: Mapping[str, FieldInfo]) -> Iterator[str]:
    """Report misspelt variables. Others are allowed, such as a cluster's about a service called `ringside`."""
    names = {name.upper() for name in declared}
    for variable_name in sorted(environment):
        if variable_name.upper().startswith(PREFIX):
            name = variable_name.upper().removeprefix(PREFIX)
            fine = name in names or _SET_BY_CLUSTERS.search(name)
            similar = [] if fine else get_close_matches(name, names, n=1, cutoff=0.7)
            yield from (f"{variable_name} is not a setting. Did you mean {PREFIX}{match}?" for match in similar)


# ── secret ──
# The secret of an embedded deployment: created once, stored with its data, the same after every restart.

MIN_SECRET_LENGTH = 32
"""Characters: the length of the SHA-256 key that it becomes."""


class UnreadableSecret(Exception):
    """The file with the secret can be neither read nor created, or its content cannot be used."""


def load_or_create_secrets(folder: Path) -> list[str]:
    """The secrets in the folder's file, newest first. Creates the file if there is none."""
    path = folder / "secret"
    try:
        if not path.exists():
            _create(path)
        text = path.read_text(encoding="utf-8")
    except (IsADirectoryError, UnicodeDecodeError) as error:
        found = "not text" if isinstance(error, UnicodeDecodeError) else "a folder"
        raise UnreadableSecret(
            f"and {path} is {found}. Put the saved secret back in its place. Or delete it, and a new one is made; "
            "cookies and tokens signed before are then refused."
        ) from error
    except OSError as error:
        raise UnreadableSecret(
            f"and {path} can be neither read nor made ({error.strerror}). Let this user write to the folder, or set "
            "another RINGSIDE_DATA."
        ) from error
    stored = [secret.strip() for secret in text.split(",")]
    if any(len(secret) < MIN_SECRET_LENGTH for secret in stored):
        raise UnreadableSecret(
            f"and {path} holds a secret of fewer than {MIN_SECRET_LENGTH} characters. Delete the file, and a new one "
            "is made; cookies and tokens signed before are then refused."
        )
    if len(stored) > MOST_SECRETS:
        raise UnreadableSecret(
            f"and {path} holds more than {MOST_SECRETS} secrets. Leave the newest {MOST_SECRETS}, which come first; "
            "what the others signed is then refused."
        )
    return stored


def _create(path: Path) -> None:
    """Write the file in full before it gets its name. If another process was faster, its secret is used."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with NamedTemporaryFile("w", dir=path.parent, prefix=".secret-") as whole:  # 0600 from its first byte
        whole.write(secrets.token_urlsafe(48) + "\n")
        whole.flush()
        os.fsync(whole.fileno())
        with suppress(FileExistsError):
            os.link(whole.name, path)
