"""What webhooks are sent."""

from __future__ import annotations

import orjson

from datastore.changes.occurrences import Occurrence
from datastore.dynamo import iso
from resolvers.journal.occurrences import id_of
from resolvers.values.node_ids import node_id


def message(occurrence: Occurrence) -> bytes:
    """What is sent; the same bytes at every attempt, unless the member was erased meanwhile.

    Of two messages about an object, the one with the greater `sequence` is the later one, as a text.
    """
    data = {
        "id": node_id("Occurrence", occurrence.ulid),
        "at": iso(occurrence.at),
        "kind": occurrence.kind,
        "actor": id_of(occurrence.actor),
        "object": id_of(occurrence.object),
        "ground": occurrence.ground,
        "note": occurrence.note,
    }
    at = iso(occurrence.at)
    message = {"type": occurrence.kind, "timestamp": at, "occurredAt": at, "sequence": occurrence.ulid, "data": data}
    return orjson.dumps(message)
