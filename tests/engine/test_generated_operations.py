"""What a scanner sends: every operation of the schema with generated values, against the running service."""

from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.core.result import Ok

from tests.examples import examples
from tests.service import Service
from tests.waiting import LONGEST


def test_no_generated_operation_breaks_the_service(service: Service) -> None:
    """Data or a readable refusal for each of them; never a server fault, never INTERNAL."""
    token = service.token("scanner", "--role", "editor", "--role", "moderator")
    schema = schemathesis.graphql.from_url(f"{service.url}/graphql", timeout=LONGEST)
    for found in schema.get_all_operations():
        assert isinstance(found, Ok)
        _tried(found.ok(), {"Authorization": f"Bearer {token}"})


def _tried(operation: Any, headers: dict[str, str]) -> None:
    @settings(
        max_examples=examples(3),
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def tried(case: Any) -> None:
        response = case.call(headers=headers, timeout=LONGEST)
        assert response.status_code < 500, response.text
        codes = [error.get("extensions", {}).get("code") for error in response.json().get("errors", ())]
        assert "INTERNAL" not in codes, (case.body, response.text)

    tried()
