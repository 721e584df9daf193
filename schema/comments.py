"""Comments: their types, pages, moderation and numbers."""

from __future__ import annotations

from datetime import datetime

import strawberry

from datastore.changes.occurrences import Ground
from datastore.comments import records
from datastore.comments.changes import RefusedDecision
from datastore.comments.counts import Leader
from datastore.comments.hold_rules import HoldRule as StoredRule
from datastore.comments.hold_rules import HoldRules as StoredRules
from resolvers.comments import claiming, counts, holding, marking, pages, visibility, writing
from resolvers.people.challenges import Challenge as StoredChallenge
from resolvers.whole import trials
from resolvers.whole.mutations import Terms
from schema.framework.arguments import NAMED_IN_ALL, input_type
from schema.framework.declarations import (
    READ,
    Node,
    RefusalCode,
    connection,
    described,
    enum,
    field,
    mutation,
    object_type,
    record_type,
    subscription,
)
from schema.framework.lazy import LazyUser
from schema.jobs import Job

# ── types and queries ──

CommentStatus = records.Status

enum(
    CommentStatus,
    "Whether a comment is visible.",
    name="CommentStatus",
    PUBLISHED="Visible to everyone, and counted.",
    PENDING="Waiting for a moderator: visible only to its author and moderators, and not counted.",
    REJECTED="Rejected by a moderator: visible only to its author and moderators, and not counted.",
)

enum(
    Ground,
    "Why a moderator decided; a note may say more.",
    SPAM="Advertising, or the same text again and again.",
    ABUSE="An insult, a threat or harassment.",
    OFF_TOPIC="It is not about the product or event.",
    ILLEGAL="The law forbids it.",
    PERSONAL_DATA="It reveals somebody's personal data.",
    FRAUD="It deceives, or is part of a manipulation.",
    OTHER="Something else.",
)


enum(
    pages.CommentOrder,
    "The order of a product's comments.",
    NEWEST="The newest first.",
    HELPFUL="First the 500 that most members found helpful, as they were at most two seconds ago, then the newest "
    "without these. Only forwards. One that moves between two pages may show twice, or not at all.",
)


@record_type(records.Answer, "The site's own answer to a comment.")
class CommentAnswer:
    body: str = described("The answer as plain text. Escape it when you show it.")
    at: datetime = described("When it was written.")
    by: LazyUser | None = field(
        pages.answerers, "The editor who wrote it; null for an API key, and for an editor who was erased."
    )


@record_type(records.Comment, "A member's comment on a product, or a reply to one.")
class Comment(Node):
    product: strawberry.ID = described("The product's id in the shop.")
    language: str = described(
        "The language it is written in: a BCP 47 tag without region, with its script where that is not the usual one."
    )
    rating: int | None = described("One to five stars; null if it takes part in a discussion. A reply has none.")
    title: str | None = described("The comment's title.")
    body: str = described("The comment as plain text, unchanged. Escape it when you show it.")
    author: LazyUser = field(pages.authors, "Who wrote it.")
    created_at: datetime = described("When it was posted.")
    edited_at: datetime | None = described("When its author or a moderator last changed it.")
    revision: int = field(visibility.revision, "Another number after each change, answer or decision.")
    status: CommentStatus = described("Whether it is visible to everyone.")
    viewer_can_edit: bool = field(
        visibility.viewer_can_edit, "Whether the viewer may edit and delete it, unless they are suspended."
    )
    moderation_note: str | None = field(
        visibility.moderation_note, "A moderator's note; for its author and moderators."
    )
    report_reasons: list[str] | None = field(
        visibility.report_reasons, "The reasons given by members who reported it; for moderators."
    )
    held_by: str | None = field(
        visibility.held_by, "The name of the rule by which it waits for a moderator; for moderators."
    )
    removed: bool = field(
        visibility.removed,
        "Whether it is gone, or held, and stands only for its replies: then it has no text, and nobody is its author.",
    )
    verified_at: datetime | None = described(
        "When its author showed a shop's proof that they have bought the product; null without one."
    )
    helpful: int = field(marking.helpful_count, "How many members found it helpful.")
    viewer_found_helpful: bool = field(
        marking.viewer_found_helpful, "Whether the viewer found it helpful: see `markHelpful`."
    )
    answer: CommentAnswer | None = described("The site's own answer.")
    in_reply_to: Comment | None = field(
        visibility.in_reply_to,
        "What a reply answers; null for other comments, and if the answered reply is gone or held.",
    )
    in_reply_to_id: strawberry.ID | None = field(
        visibility.in_reply_to_id,
        "The id of what a reply answers, also if that is gone, without reading it; null for other comments.",
    )
    thread: strawberry.ID | None = field(
        visibility.thread,
        "The id of the comment in whose thread a reply stands, also if what it answers is gone; null for other "
        "comments.",
    )
    reply_count: int = field(visibility.reply_count, "How many replies stand in its thread.")
    replies: CommentConnection = field(
        visibility.replies,
        "The replies in its thread, oldest first: those to it, and those to its replies. A reply has none of its own. "
        "The viewer's own replies that are held follow the last one, and are not counted.",
        complexity=READ,
    )


CommentConnection = connection(
    Comment,
    "A page of comments, in the order that its field names.",
    edge="A comment in its list.",
    total_count=(
        int,
        field(visibility.total_count, "The current number of comments in the whole list.", complexity=READ),
    ),
)
ModerationConnection = connection(
    Comment,
    "A page of a list for moderators.",
    name="Moderation",
    edge="A comment in a list for moderators.",
    waiting=(
        int,
        field(
            visibility.waiting,
            "How many comments the moderation queue has of the status that was asked for, or of PENDING ones: exact up "
            "to 1,000, then 1,001.",
            complexity=4 * READ,
        ),
    ),
)


@record_type(counts.RatingCount, "The number of comments with a rating.")
class RatingCount:
    rating: int = described("One to five stars.")
    count: int = described("Comments with this rating.")


@record_type(counts.LanguageCount, "The number of comments in a language.")
class LanguageCount:
    language: str = described("Its BCP 47 tag, such as en or zh-Hant.")
    count: int = described("Comments in this language.")


@record_type(counts.Statistics, "Statistics of a product's comments. They stay exact through edits and deletions.")
class CommentStatistics:
    product: strawberry.ID = described("The product's id.")
    language: str | None = described("The only language counted; null for all languages.")
    total: int = described("The number of comments, without replies.")
    rated: int = described("The number of comments with a rating.")
    replies: int = described("The number of replies.")
    average: float | None = described("The mean rating; null if no comment has one.")
    histogram: list[RatingCount] = described("Five rows, rating 5 first, including those with count 0.")
    languages: list[LanguageCount] = described("The counted languages, most frequent first.")
    verified: int = described("The number of comments with a shop's proof, without replies.")
    verified_histogram: list[RatingCount] = described("The histogram of these alone.")


@record_type(Leader, "A product's place by its five-star comments.")
class ProductStanding:
    product: strawberry.ID = described("The product's id.")
    five_stars: int = described("The number of five-star comments; at most two seconds old.")
    statistics: CommentStatistics = field(
        counts.leader_statistics, "Exact statistics of all its comments.", complexity=READ
    )


ProductConnection = connection(
    ProductStanding,
    "A page of products by their number of five-star comments, most first.",
    name="Product",
    edge="A product in its list.",
)


@record_type(StoredChallenge, "A number from 0 to 249,999 is to be found, by trying.")
class Challenge:
    token: str = described("What the solution begins with; a colon and the number follow.")
    salt: str = described("The letters before the number.")
    target: str = described("The SHA-256 of the salt and the number's digits, in hexadecimal letters.")
    expires_at: datetime = described("Until when it is good.")


@record_type(StoredRule, "A comment that meets all conditions of a rule waits for a moderator.")
class HoldRule:
    name: str = described("Its name, which moderators see.")
    language: str | None = described("The comment is in this language.")
    words: list[str] = described("The comment has one of these words; none if any text will do.")
    links: int | None = described("The comment has more links than this.")
    first_comments: int | None = described("Fewer of the author's comments than this are published.")
    per_hour: int | None = described("The author has posted more comments than this within an hour.")
    guests: bool = described("The author is a guest.")


@record_type(
    StoredRules,
    "The site's rules that hold comments. The first rule whose conditions are all met holds one. Comments of "
    "moderators, editors and admins are never held.",
)
class HoldRules:
    rules: list[HoldRule] = described("In the order in which they are tried.", most_objects=holding.MOST_RULES)
    revision: int = described("How often they were set; `setHoldRules` takes it.")


@record_type(visibility.ShownHeld, "A comment that rules would have held.")
class HeldComment:
    comment: Comment = described("The comment.")
    held_by: str = described("The name of the rule.")


input_type(
    holding.HoldRuleInput,
    "HoldRuleInput",
    "A rule that holds comments. It has at least one condition, and a comment has to meet all of them.",
    name=f"Its name, which moderators see: 1 to {holding.LONGEST_NAME} characters.",
    language="The comment is in this language: a BCP 47 tag.",
    words=f"The comment has one of these words: at most {holding.MOST_WORDS} of {holding.LONGEST_WORD} letters. Whole "
    "words, without case, accents, invisible characters and look-alike letters.",
    links=f"The comment has more links than this: 0 to {holding.MOST_LINKS}.",
    first_comments=f"Fewer of the author's comments than this are published: 1 to {holding.MOST_FIRST_COMMENTS}.",
    per_hour=f"The author has posted more comments than this within an hour: 0 to {holding.MOST_PER_HOUR:,}.",
    guests="The author is a guest.",
)


@strawberry.type
class CommentsOfUser:
    """What comments add to a member."""

    comments: CommentConnection = field(
        visibility.member_comments,
        "The member's comments, newest first: published ones, and all of them for the member and for moderators.",
        complexity=2 * READ,
    )


@strawberry.type
class CommentsQuery:
    comment: Comment | None = field(
        visibility.comment, "A comment. Only its author and moderators can see one that is held.", id="Its id."
    )
    comments: CommentConnection = field(
        pages.comments_page,
        "A product's comments, newest first. A comment that exists during a whole traversal appears exactly once. Only "
        "a page with a filter may miss one, if it was posted or edited a moment ago. A page of the newest, without any "
        "filter, shows where a comment with replies was `removed`; `totalCount` leaves these out.",
        product="The product's id.",
        languages="Only comments in these languages: BCP 47 tags, at most 25. An empty list is the same as none. "
        "A region makes no difference: en-US finds en.",
        ratings="Only comments with these ratings, 1 to 5; all five leave out those without a rating. An empty list is "
        "the same as none.",
        verified="Only comments with a shop's proof, or with false only those without one. Where nearly all have one, "
        "a page of those without may be short: go on with its cursor.",
        order="The newest first, or the most helpful; these only with `first` and `after`.",
    )
    comment_statistics: CommentStatistics = field(
        counts.comment_statistics,
        "Statistics of a product's comments.",
        product="The product's id.",
        language="Count comments in this language only.",
    )
    comment_statistics_of: list[CommentStatistics] = field(
        counts.comment_statistics_of,
        "Statistics of many products, in the order asked, in one batch. A product without comments has a total of 0.",
        complexity_of_each=READ,
        products=f"The products' ids. A product that is named twice is answered twice. {NAMED_IN_ALL}",
        language="Count comments in this language only.",
    )
    top_products: ProductConnection = field(
        counts.top_products, "Products by their number of five-star comments, most first."
    )
    latest_comments: ModerationConnection = field(
        pages.latest_comments,
        "The whole site's comments, newest first. For moderators.",
        status="Only comments of this status.",
    )
    challenge: Challenge | None = field(
        writing.challenge,
        "A proof of work for `signInAsGuest` or `postComment`; null where none is asked of the viewer. It is good for "
        "ten minutes, once, for this member or this visitor's network.",
        complexity=READ,
    )
    hold_rules: HoldRules = field(holding.hold_rules, "The rules that hold comments. For moderators.")
    preview_hold_rules: list[HeldComment] = field(
        trials.preview_hold_rules,
        "Which of the site's latest comments these rules would have held when they were posted, newest first. For "
        "moderators.",
        complexity=20 * READ,
        most_objects=trials.MOST_PREVIEWED,
        rules="The rules to try.",
        of=f"How many of the latest comments: at most {trials.MOST_PREVIEWED}.",
    )
    moderation_queue: ModerationConnection = field(
        writing.moderation_queue,
        "Comments waiting for a moderator, oldest first. For moderators.",
        status="Held comments of this status; with PUBLISHED, visible ones that members have reported.",
    )


# ── mutations ──


@record_type(RefusedDecision, "Why one of many comments was not decided.")
class RefusedComment:
    id: strawberry.ID = described("The id that was given.")
    code: RefusalCode = described("The reason, for programs.")
    message: str = described("The reason, for people.")


@strawberry.type
class CommentsMutation:
    post_comment = mutation(
        writing.post_comment,
        "Posts a comment on a product, or a reply to one.",
        object_type(
            "CommentPosted",
            "The comment was posted.",
            comment=(Comment, "The comment; PENDING if it waits for a moderator."),
        ),
        show=visibility.show_answer,
        terms=Terms(guests="comments"),
        input_description="A new comment.",
        result_description="The new comment, or why it was not posted.",
        product="The product's id: 1 to 128 characters without '#'.",
        language="The language it is written in, as a BCP 47 tag. Its region is dropped, so a browser's "
        "`navigator.language` will do: en-US becomes en, zh-TW becomes zh-Hant.",
        rating="One to five stars; none for a discussion, and for a reply.",
        title="The title, up to 200 characters.",
        body="The comment, 1 to 10,000 characters.",
        in_reply_to="The comment or reply that this one answers. It stands in the same thread.",
        solution="The solution of a `challenge`, where one is asked of the viewer: its token, a colon and the number.",
        proof="A shop's proof that the viewer has bought the product: a token of at most 4,096 characters, which the "
        "shop has signed. It counts for one comment.",
    )
    edit_comment = mutation(
        writing.edit_comment,
        "Edits a comment. For its author and moderators.",
        object_type("CommentEdited", "The comment was edited.", comment=(Comment, "The comment as it is now.")),
        show=visibility.show_answer,
        terms=Terms(guests=True),
        input_description="Changes to a comment. Omitted fields stay as they are; null clears the title or the rating.",
        result_description="The changed comment, or why it was not changed.",
        comment="The comment's id.",
        language="A new language, as a BCP 47 tag.",
        rating="A new rating, 1 to 5; null takes the stars away.",
        title="A new title; null removes it.",
        body="A new text, 1 to 10,000 characters.",
    )
    delete_comment = mutation(
        writing.delete_comment,
        "Deletes a comment. For its author and moderators.",
        object_type(
            "CommentDeleted",
            "The comment no longer exists. Deleting it again returns the same result.",
            deleted_id=(strawberry.ID, "The deleted comment's id."),
        ),
        terms=Terms(guests=True),
        input_description="A comment to delete.",
        result_description="The deleted comment's id, or why it was not deleted.",
        comment="The comment's id.",
    )
    report_comment = mutation(
        writing.report_comment,
        "Reports a comment to the moderators.",
        object_type(
            "CommentReported",
            "The comment was reported to the moderators.",
            comment=(Comment, "The comment; it stays visible until they decide."),
        ),
        show=visibility.show_answer,
        input_description="A comment to report to the moderators.",
        result_description="The comment, or why it was not reported.",
        comment="The comment's id.",
        reason="What is wrong with it, 1 to 500 characters.",
    )
    mark_helpful = mutation(
        marking.mark_helpful,
        "Says that somebody else's comment is helpful, or takes that back. A member counts once.",
        object_type("CommentMarked", "The mark was stored.", comment=(Comment, "The comment as it is now.")),
        show=visibility.show_answer,
        input_description="Whether a comment is helpful.",
        result_description="The comment, or why it was not marked.",
        comment="The comment's id. It is not one's own, and no reply.",
        helpful="Whether it is helpful; false takes the mark back.",
    )
    answer_comment = mutation(
        writing.answer_comment,
        "Answers a comment in the site's name. For editors.",
        object_type("CommentAnswered", "The answer was stored.", comment=(Comment, "The comment as it is now.")),
        show=visibility.show_answer,
        input_description="The site's answer to a comment.",
        result_description="The comment, or why it was not answered.",
        comment="The comment's id.",
        body="The answer, up to 10,000 characters. It replaces one that is there; an empty one removes it.",
        revision="The revision that the editor saw: with another one, nothing is changed (CONFLICT).",
    )
    claim_comments = mutation(
        claiming.claim_comments,
        "Gives the viewer what was imported from another system under an address that they have confirmed, by which "
        "they may sign in from then on.",
        object_type("CommentsClaimed", "The comments are being claimed.", job=(Job, "The job that does it.")),
        terms=Terms(recent=True),
        input_description="A claim of one's own imported comments.",
        result_description="The job, or why there is none.",
    )
    moderate_comment = mutation(
        writing.moderate_comment,
        "Decides about a comment. For moderators.",
        object_type("CommentModerated", "The decision was recorded.", comment=(Comment, "The comment as it is now.")),
        show=visibility.show_answer,
        input_description="A moderator's decision.",
        result_description="The comment, or why the decision was not recorded.",
        comment="The comment's id.",
        status="The new status. Any decision clears the comment's reports.",
        note="A note for its author, 1 to 500 characters.",
        ground="The reason for the decision; for the journal.",
        revision="The revision that the moderator saw: with another one, nothing is changed (CONFLICT).",
    )
    moderate_comments = mutation(
        writing.moderate_comments,
        "Decides about many comments in the same way, each by itself. For moderators.",
        object_type(
            "CommentsModerated",
            "What was decided. A comment that could not be decided leaves the others as they are.",
            comments=(
                list[Comment],
                described("The comments that were decided, as they are now.", most_objects=writing.MOST_DECIDED),
            ),
            refused=(
                list[RefusedComment],
                described("The comments that were not decided, and why.", most_objects=writing.MOST_DECIDED),
            ),
        ),
        show=visibility.show_decisions,
        input_description="A moderator's decision about many comments.",
        result_description="What was decided, or why nothing was.",
        complexity=writing.MOST_DECIDED * READ,
        comments=f"The comments' ids, at most {writing.MOST_DECIDED}.",
        status="The new status of all of them. Any decision clears a comment's reports.",
        note="A note for their authors, 1 to 500 characters.",
        ground="The reason for the decision; for the journal.",
        revisions="The revisions that the moderator saw, in the order of `comments`: one with another is refused.",
    )
    set_hold_rules = mutation(
        holding.set_hold_rules,
        "Replaces the rules that hold comments. For admins.",
        object_type(
            "HoldRulesSet",
            "The rules were set. Every process holds comments by them within ten seconds.",
            rules=(HoldRules, "The rules as they are now."),
        ),
        show=holding.show_rules,
        input_description="All rules that hold comments.",
        result_description="The rules, or why they were not set.",
        rules=f"The rules, in the order in which they are tried: at most {holding.MOST_RULES}.",
        revision="The revision of the rules that you have read. Another one is CONFLICT.",
    )


@strawberry.type
class CommentsSubscription:
    comment_posted: Comment = subscription(
        pages.comment_posted,
        "Comments on a product and the replies to them, which have a `thread`, each time they become visible, within "
        "about two seconds. One that is published again after it was held comes again: replace it by its `id`. To "
        "neither miss nor repeat any after a disconnect, resume with the last event's id (clients of Server-Sent "
        "Events send it as `Last-Event-ID`, which overrides `after`; over a WebSocket it is the event's "
        "`extensions.eventId`). It names the last 256 comments sent: only an older one that was still being written "
        "may be missed. A comment's id names no others: what became visible out of chronological order may be missed, "
        "or sent again.",
        product="The product's id.",
        after="The last event's id, or a comment's, to resume with later comments; or a moment, such as the `now` of "
        "the answer with the page. Without it, the stream starts now.",
    )
