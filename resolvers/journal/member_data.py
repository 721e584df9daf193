"""Erasing a member from the journal."""

from __future__ import annotations

from datastore import journal as journal_store
from datastore.journal.member_items import MEMBER_ITEMS
from resolvers.people.member_data import Erasure, MemberData


async def _erase_listed(erasure: Erasure) -> None:
    await journal_store.forget_member(erasure.table, erasure.user)


MEMBER_DATA = MemberData(MEMBER_ITEMS, erase_listed=_erase_listed)
