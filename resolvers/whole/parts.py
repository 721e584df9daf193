"""The parts, and what each does with one member's data. Pick'Em comes first, since it has to finish what it began."""

from __future__ import annotations

from collections.abc import Sequence

from datastore.whole import member_items
from resolvers.comments import member_data as comments
from resolvers.journal import member_data as journal
from resolvers.members import member_data as members
from resolvers.people.member_data import MemberData
from resolvers.pickem import member_data as pickem
from resolvers.vocabulary import member_data as vocabulary
from resolvers.voting import member_data as voting

PARTS: Sequence[MemberData] = (
    pickem.MEMBER_DATA,
    voting.MEMBER_DATA,
    comments.MEMBER_DATA,
    vocabulary.MEMBER_DATA,
    members.MEMBER_DATA,
    journal.MEMBER_DATA,
    MemberData(member_items.MEMBER_ITEMS),
)
