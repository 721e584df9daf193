"""What is wrong with the environment, in words for the operator."""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from server import Failed
from server.settings.fields import PREFIX, REGIONS, extra, variable

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
