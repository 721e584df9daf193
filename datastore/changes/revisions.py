"""How often each thing was changed that every process keeps whole: one item, so that nothing else is read in vain.

| wanted           | read or write                                      | requests                  |
|------------------|----------------------------------------------------|---------------------------|
| what has changed | GetItem REVISIONS, consistent                      | 1, each process every 5 s |
| say so           | an update of that item in the change's transaction | 0 more                    |
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from datastore.dynamo import Table
from datastore.dynamo.entity import Entity, Key
from datastore.dynamo.writes import ALWAYS, Update, absent, where

Watched: TypeAlias = Literal["rights", "hold_rules", "webhooks"]


@dataclass(frozen=True, slots=True)
class Revisions:
    rights: int = 0
    """Suspensions and roles."""
    hold_rules: int = 0
    webhooks: int = 0


REVISIONS = Entity(Revisions, Key("REVISIONS", "REVISIONS"))


async def read_revisions(table: Table) -> Revisions:
    return await table.get(REVISIONS.at(), consistent=True) or Revisions()


def changed(watched: Watched, seen: Revisions | None = None) -> Update:
    """The write that says so; on the condition that nobody has changed it since, if that was `seen`."""
    when = ALWAYS
    if seen is not None:
        number = getattr(seen, watched)
        when = where(**{watched: number}) if number else absent(watched)
    return REVISIONS.update(REVISIONS.at(), add={watched: 1}, when=when)
