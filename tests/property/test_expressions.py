"""Nothing that a client sends is part of an expression's text: it is a placeholder's value, whatever it says.

The embedded engine's releases before 1.3.0 end when an expression has a character of several bytes outside a string
(GHSA-gwhp-7jch-7xj6).
"""

import re
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from datastore.dynamo.writes import absent, among, less, more, present, where
from datastore.jobs.jobs import JOB, Job

TEXT = re.compile(r"[A-Za-z0-9_#:.,=<> ()]*")
NOW = datetime(2026, 11, 25, tzinfo=UTC)


def expressions(parameters: dict[str, Any]) -> list[str]:
    texts = [text for name, text in parameters.items() if name.endswith("Expression")]
    return [*texts, *parameters.get("ExpressionAttributeNames", {}), *parameters.get("ExpressionAttributeValues", {})]


@given(st.text(), st.text(), st.dictionaries(st.text(), st.text(), max_size=3))
def test_texts_of_clients_are_values_of_placeholders(one: str, other: str, given_: dict[str, str]) -> None:
    job = Job("01JD0000000000000000000000", one, other, NOW, input=given_)
    conditions = (
        where(kind=one, message=other, input=given_),
        (less("kind", one) | more("kind", other)) & absent("message"),
        among("kind", one, other) | present(),
    )
    for when in conditions:
        for write in (
            JOB.put(job, when=when),
            JOB.update_with_indexes(job, "kind", "starter", "input", when=when),
            JOB.update(JOB.item_key(job), values={"kind": one, "input": given_, "message": None}, when=when),
            JOB.delete(JOB.item_key(job), when=when),
            JOB.check(JOB.item_key(job), when),
        ):
            found = expressions(write.parameters())
            assert found
            assert all(TEXT.fullmatch(text) for text in found)
