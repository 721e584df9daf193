"""Every mutation of the schema is recorded in the journal, or says why not."""

import re

from datastore.changes.occurrences import ON_DEMAND, Kind
from datastore.whole.named_objects import _PLACES
from resolvers.whole.node import LOADERS
from schema import schema
from tests.journal_kinds import NOT_RECORDED, RECORDED

NAMED_NOWHERE = {"Job", "Occurrence", "Delivery"}
"""Nodes that no occurrence has as its object."""


def test_every_mutation_has_a_kind_or_a_reason() -> None:
    """A new mutation is recorded with what it changes: see `datastore/changes/occurrences.py`."""
    mutation = schema._schema.mutation_type
    assert mutation is not None
    assert RECORDED.keys() | NOT_RECORDED.keys() == mutation.fields.keys()
    assert not RECORDED.keys() & NOT_RECORDED.keys()
    assert all(RECORDED.values())
    assert all(NOT_RECORDED.values())


def test_kinds_are_written_alike() -> None:
    """`<thing>.<what happened>`: webhooks store these texts."""
    assert all(re.fullmatch(r"[a-z][A-Za-z]+\.[a-z][A-Za-z]+", kind.value) for kind in Kind)


def test_only_votes_and_predictions_wait_for_a_webhook() -> None:
    """Everything else is recorded always."""
    assert {Kind.VOTE_CAST, Kind.PREDICTION_SUBMITTED} == ON_DEMAND


def test_the_audit_knows_where_each_node_is_stored() -> None:
    """It would report each occurrence that names one of another type."""
    assert LOADERS.keys() - NAMED_NOWHERE <= _PLACES.keys()
