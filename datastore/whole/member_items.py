"""The items about the table itself keep nothing of a member."""

from __future__ import annotations

from datastore.people.member_items import MemberItems, of_nobody
from datastore.whole.demo import DEMO_PART
from datastore.whole.layout import LAYOUT

MEMBER_ITEMS = MemberItems(of_nobody(DEMO_PART, LAYOUT))
