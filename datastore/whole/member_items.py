"""The items about the table itself keep nothing of a member."""

from __future__ import annotations

from datastore.demo import DEMO_PART
from datastore.layout import LAYOUT
from datastore.member_items import MemberItems, of_nobody

MEMBER_ITEMS = MemberItems(of_nobody(DEMO_PART, LAYOUT))
