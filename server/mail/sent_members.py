"""Who was sent the email of a date: read and noted by the hundred, so that a run is cheap when little is due.

A note repeats the emails' own records, and is written after them. So a member in a note was sent the email; any other
member must be looked up. Only the notes of the shard that a run walks are in memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import date

from datastore import vocabulary as vocabulary_store
from datastore.people.profiles import member_shard
from datastore.vocabulary import NOTE_LIFETIME, SentNote
from resolvers.requests.context import Services

_PURPOSE = "sent email"
_SIZE = 8


class SentMembers:
    """The notes that a run reads and writes."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._shard = -1
        self._noted: dict[date, set[bytes]] = {}

    async def has(self, user: str, on: date) -> bool:
        """Whether a note says that the member was sent the email of this date."""
        if (shard := member_shard(user)) != self._shard:
            self._shard, self._noted = shard, {}
        if (noted := self._noted.get(on)) is None:
            noted = self._noted[on] = await self._read(on, shard)
        return self._hash(user) in noted

    async def _read(self, on: date, shard: int) -> set[bytes]:
        notes = await vocabulary_store.read_sent_notes(self._services.table, on, shard)
        joined = b"".join(note.members for note in notes)
        return {joined[start : start + _SIZE] for start in range(0, len(joined), _SIZE)}

    async def note(self, sent: Sequence[tuple[str, date]]) -> None:
        """Note members whose emails, each of a date, were sent."""
        grouped: defaultdict[tuple[date, int], list[bytes]] = defaultdict(list)
        for user, on in sent:
            grouped[on, member_shard(user)].append(self._hash(user))
        services = self._services
        for (on, shard), hashes in grouped.items():
            now = services.clock()
            note = SentNote(on, shard, services.ids.next(now), b"".join(hashes), now + NOTE_LIFETIME)
            await vocabulary_store.note_sent(services.table, note)

    def _hash(self, user: str) -> bytes:
        return self._services.seal.keyed_hash(_PURPOSE, user.encode(), size=_SIZE)
