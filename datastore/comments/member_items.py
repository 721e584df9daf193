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
from datastore.dynamo import Table, optimistic
from datastore.dynamo.entity import Partition
from datastore.people import member_items

# ── member items ──

_AT_ONCE = 100
_STAYS = member_items.Policies(
    member_items.ErasurePolicy.DELETED, member_items.ErasurePolicy.KEPT, member_items.ErasurePolicy.KEPT
)  # unless the member is removed


@dataclass(frozen=True, slots=True)
class OwnReport:
    """One member's part of the reports of a comment."""

    product: str
    ulid: str
    reason: str


async def _read(table: Table, user: str) -> member_items.Records:
    rest: Partition[records.Pointer] | None = records.POINTER.on(author=user).newest_first()
    while rest is not None:
        some = await table.query(rest, limit=_AT_ONCE, consistent=True)
        for comment in await records.comments_of(table, some.records, with_held=True):
            if comment is not None:
                yield records.entity_for(comment), comment
        rest = rest.past(some.last) if some.last else None
    async for reports in table.iterate(records.REPORTS.on("gsi1")):
        if user in reports.reasons:
            yield records.REPORTS, OwnReport(reports.product, reports.ulid, reports.reasons[user])


MEMBER_ITEMS = member_items.MemberItems(
    {
        records.COMMENT: member_items.in_file(
            "comment",
            "One of your comments that everybody sees. `arrivedAt`: when it was published after it had been held.",
            member_items.Policies(
                member_items.ErasurePolicy.DELETED, member_items.ErasurePolicy.KEPT, member_items.ErasurePolicy.REJECTED
            ),
            times_in_id=("created_at", "arrived_at"),
        ),
        records.REPLY: member_items.in_file(
            "reply",
            "One of your replies that everybody sees, to the comment `replyTo` in the thread of `root`.",
            member_items.Policies(
                member_items.ErasurePolicy.DELETED, member_items.ErasurePolicy.KEPT, member_items.ErasurePolicy.REJECTED
            ),
            times_in_id=("created_at", "arrived_at"),
        ),
        records.HELD: member_items.in_file(
            "heldComment",
            "One of your comments that waits for a moderator or was rejected.",
            _STAYS,
            times_in_id=("created_at", "arrived_at"),
        ),
        records.REPORTS: member_items.in_file(
            "report",
            "Your report of a comment that moderators have yet to decide about.",
            _STAYS,
        ),
        MARK: member_items.in_file("helpful", "That you found a comment helpful.", _STAYS),
        REPLY_MAIL: member_items.in_file("replyMail", "That an email told you of replies to your comments."),
        REPLY_NOTICE: member_items.left_out(
            "Replies of which you are about to be told by email.", member_items.PERSONAL
        ),
        REVIEW_PLACE: member_items.left_out(
            "Says which of your comments, which the file has, is your review of a product.", _STAYS
        ),
        HELPFUL: member_items.left_out(
            "Repeats one of your comments, which the file has, for lists of helpful ones.", _STAYS
        ),
        VERIFIED: member_items.left_out(
            "Repeats one of your comments, which the file has, for lists of verified ones.", _STAYS
        ),
        records.POINTER: member_items.left_out("Repeats what the file has: it says where a comment is.", _STAYS),
        **member_items.of_nobody(
            DIGEST_MAIL,
            IMPORT_BATCH,
            records.LATE_ARRIVAL,
            LEADER,
            PLACED_RULE,
            PRODUCT_TALLY,
            PROOF,
            RULES_REVISION,
            THREAD,
        ),
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
