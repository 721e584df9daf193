"""What comments keep of a member: their comments, and their reports of other members' comments.

| wanted                | read or write                                                         | requests      |
|-----------------------|-----------------------------------------------------------------------|---------------|
| comments              | Query USER#<id> of their pointers, then BatchGetItem; both consistent | 2 for 100     |
| reports               | gsi1 MODERATION#PUBLISHED                                             | 1 a page      |
| delete a report       | GetItem, then PutItem or DeleteItem if unchanged                      | 2             |
"""

from dataclasses import dataclass, replace

from datastore.comments import records
from datastore.comments.counts import LEADER, PRODUCT_TALLY
from datastore.comments.helpful import HELPFUL, MARK
from datastore.comments.hold_rules import PLACED_RULE, RULES_REVISION
from datastore.comments.notices import DIGEST_MAIL, REPLY_MAIL, REPLY_NOTICE
from datastore.comments.reviews import REVIEW_PLACE
from datastore.comments.threads import THREAD
from datastore.comments.transfer import IMPORT_BATCH
from datastore.comments.verified import PROOF, VERIFIED
from datastore.dynamo import Table, batches, optimistic
from datastore.people.member_items import (
    COUNTED,
    PERSONAL,
    RESULT,
    STAYS,
    MemberItems,
    Records,
    in_file,
    left_out,
    of_nobody,
)

# ── member items ──

_AT_ONCE = 100
_UNSAID = {"held_by": "The name of the rule that held it, for moderators: who knows it can write around it."}


@dataclass(frozen=True, slots=True)
class OwnReport:
    """One member's part of the reports of a comment."""

    product: str
    ulid: str
    reason: str


async def _read(table: Table, user: str) -> Records:
    async for pointers in batches(records.member_pointers(table, user), _AT_ONCE):
        for comment in await records.comments_of(table, pointers, with_held=True):
            if comment is not None:
                yield records.entity_for(comment), comment
    async for reports in table.iterate(records.REPORTS.on("gsi1")):
        if user in reports.reasons:
            yield records.REPORTS, OwnReport(reports.product, reports.ulid, reports.reasons[user])


MEMBER_ITEMS = MemberItems(
    {
        records.COMMENT: in_file(
            "comment",
            "One of your comments that everybody sees. `arrivedAt`: when it was published after it had been held.",
            COUNTED,
            without=_UNSAID,
            times_in_id=("created_at", "arrived_at"),
        ),
        records.REPLY: in_file(
            "reply",
            "One of your replies that everybody sees, to the comment `replyTo` in the thread of `root`.",
            COUNTED,
            without=_UNSAID,
            times_in_id=("created_at", "arrived_at"),
        ),
        records.HELD: in_file(
            "heldComment",
            "One of your comments that waits for a moderator or was rejected.",
            STAYS,
            without=_UNSAID,
            times_in_id=("created_at", "arrived_at"),
        ),
        records.REPORTS: in_file("report", "Your report of a comment that moderators have yet to decide about.", STAYS),
        MARK: in_file("helpful", "That you found a comment helpful.", RESULT),
        REPLY_MAIL: in_file("replyMail", "That an email told you of replies to your comments."),
        REPLY_NOTICE: left_out("Replies of which you are about to be told by email.", PERSONAL),
        REVIEW_PLACE: left_out("Says which of your comments, which the file has, is your review of a product.", STAYS),
        HELPFUL: left_out("Repeats one of your comments, which the file has, for lists of helpful ones.", STAYS),
        VERIFIED: left_out("Repeats one of your comments, which the file has, for lists of verified ones.", STAYS),
        records.POINTER: left_out("Repeats what the file has: it says where a comment is.", STAYS),
        **of_nobody(DIGEST_MAIL, IMPORT_BATCH, records.LATE_ARRIVAL, LEADER, PLACED_RULE),
        **of_nobody(PRODUCT_TALLY, PROOF, RULES_REVISION, THREAD),
    },
    _read,
)


# ── erasing ──
# A member's reports of other members' comments.


async def delete_reports(table: Table, user: str) -> None:
    """Remove a member's reports that the index shows."""
    async for listed in table.iterate(records.REPORTS.on("gsi1")):
        if user in listed.reasons:
            await _delete(table, listed, user)


async def _delete(table: Table, listed: records.Reports, user: str) -> None:
    key = records.REPORTS.item_key(listed)

    async def delete(current: records.Reports | None) -> None:
        if current is None or user not in current.reasons:
            return
        left = {name: reason for name, reason in current.reasons.items() if name != user}
        after = replace(current, reasons=left, revision=current.revision + 1)
        when = current.unchanged
        await table.write(records.REPORTS.put(after, when=when) if left else records.REPORTS.delete(key, when=when))

    await optimistic(lambda: table.get(key, consistent=True), delete, idempotent=True)
