"""Comments: their types, pages, moderation and numbers."""

from __future__ import annotations

from datetime import datetime

import strawberry

from datastore import comments as comments_store
from datastore.comments.counts import Leader
from resolvers.comments import counts, pages
from schema.connections import connection
from schema.fields import described, field
from schema.lazy import LazyUser
from schema.mutations import mutation
from schema.subscriptions import subscription
from schema.types import Node, enum, record_type

CommentStatus = comments_store.Status

enum(
    CommentStatus,
    "Whether a comment may be seen.",
    name="CommentStatus",
    PUBLISHED="Everybody sees it, and it counts.",
    PENDING="It waits for a moderator: its author and moderators see it, and it counts nowhere.",
    REJECTED="A moderator turned it down: its author and moderators see it, and it counts nowhere.",
)


@record_type(comments_store.Comment, "What a member wrote about a product, with a rating.")
class Comment(Node):
    product: strawberry.ID = described("The product's id, as the shop calls it.")
    language: str = described("The language it is written in, as a BCP 47 tag.")
    rating: int = described("One to five stars.")
    title: str | None = described("A line above the comment.")
    body: str = described("The comment as it was written: plain text, whatever it looks like. Escape it when shown.")
    author: LazyUser = field(pages.authors, "Who wrote it.")
    created_at: datetime = described("When it was posted.")
    edited_at: datetime | None = described("When its author, or a moderator, last changed it.")
    status: CommentStatus = described("Whether everybody sees it.")
    viewer_can_edit: bool = field(pages.viewer_can_edit, "Whether the viewer may edit and delete it.")
    moderation_note: str | None = field(pages.note, "A moderator's note; for its author and moderators.")
    report_reasons: list[str] | None = field(
        pages.report_reasons, "What members objected to, a reason for each of them; for moderators."
    )


CommentConnection = connection(
    Comment,
    "A page of comments, newest first.",
    edge="A comment in its list.",
    total_count=field(counts.total_count, "How many comments the whole list has, now."),
)
ModerationConnection = connection(
    Comment,
    "A page of a moderator's queue, oldest first.",
    name="Moderation",
    edge="A comment in a moderator's queue.",
)


@record_type(counts.RatingCount, "How often a rating was given.")
class RatingCount:
    rating: int = described("One to five stars.")
    count: int = described("Comments with this rating.")


@record_type(counts.LanguageCount, "How many comments are in a language.")
class LanguageCount:
    language: str = described("A BCP 47 tag.")
    count: int = described("Comments in this language.")


@record_type(counts.Statistics, "A product's comments in numbers: exact, whatever was edited or deleted.")
class CommentStatistics:
    product: strawberry.ID = described("The product's id.")
    language: str | None = described("The language that is counted alone; null for all of them.")
    total: int = described("How many comments there are.")
    average: float | None = described("The mean rating; null where there is no comment.")
    histogram: list[RatingCount] = described("Five rows, rating 5 first; those that nobody gave are 0.")
    languages: list[LanguageCount] = described("The languages that were counted, the most frequent first.")


@record_type(Leader, "A product's place among all, by its five-star comments.")
class ProductStanding:
    product: strawberry.ID = described("The product's id.")
    five_stars: int = described("How many comments gave it five stars; at most two seconds behind.")
    statistics: CommentStatistics = field(counts.statistics_of, "All of its comments in numbers, exact.")


ProductConnection = connection(
    ProductStanding,
    "A page of products, those with the most five-star comments first.",
    name="Product",
    edge="A product in its list.",
)


@strawberry.type
class CommentsQuery:
    comment: Comment | None = field(
        pages.comment, "A comment. One that is held is there for its author and moderators only.", id="Its id."
    )
    comments: CommentConnection = field(
        pages.comments_page,
        "A product's comments, newest first. What is there during a whole traversal appears exactly once.",
        product="The product's id.",
        languages="Only comments in these languages: BCP 47 tags, at most 25. An empty list is the same as none.",
        ratings="Only comments with these ratings, 1 to 5. An empty list is the same as none.",
    )
    comment_statistics: CommentStatistics = field(
        counts.comment_statistics,
        "A product's comments in numbers.",
        product="The product's id.",
        language="Count comments in this language only.",
    )
    top_products: ProductConnection = field(
        counts.top_products, "Products with five-star comments, those with the most first."
    )
    moderation_queue: ModerationConnection = field(
        pages.moderation_queue,
        "What waits for a moderator, oldest first. For moderators.",
        status="Held comments of this status; with PUBLISHED, visible ones that members have reported.",
    )


# ── mutations ──


@strawberry.type(description="The comment was posted.")
class CommentPosted:
    comment: Comment = described("The comment; PENDING if it waits for a moderator.")


@strawberry.type(description="The comment was edited.")
class CommentEdited:
    comment: Comment = described("The comment as it is now.")


@strawberry.type(description="The comment is gone; also when it was before.")
class CommentDeleted:
    id: strawberry.ID = described("The id of what is gone.")


@strawberry.type(description="The report is before the moderators.")
class CommentReported:
    comment: Comment = described("The comment; it stays visible until they decide.")


@strawberry.type(description="The decision stands.")
class CommentModerated:
    comment: Comment = described("The comment as it is now.")


@strawberry.type
class CommentsMutation:
    post_comment = mutation(
        pages.post_comment,
        "Posts a comment on a product.",
        CommentPosted,
        input_description="A new comment.",
        result_description="The new comment, or why it was not posted.",
        product="The product's id: 1 to 128 characters without '#'.",
        language="The language it is written in, as a BCP 47 tag: en, pt-BR, zh-Hant.",
        rating="One to five stars.",
        title="A line above it, up to 200 characters.",
        body="The comment, 1 to 10,000 characters.",
    )
    edit_comment = mutation(
        pages.edit_comment,
        "Edits a comment: its author, or a moderator.",
        CommentEdited,
        input_description="Changes to a comment. What is left out stays; null clears the title.",
        result_description="The changed comment, or why it was not changed.",
        comment="The comment's id.",
        language="Another language, as a BCP 47 tag.",
        rating="Another rating, 1 to 5.",
        title="Another title; null takes it away.",
        body="Another text, 1 to 10,000 characters.",
    )
    delete_comment = mutation(
        pages.delete_comment,
        "Deletes a comment: its author, or a moderator.",
        CommentDeleted,
        input_description="A comment to delete.",
        result_description="What is gone, or why it was not deleted.",
        comment="The comment's id.",
    )
    report_comment = mutation(
        pages.report_comment,
        "Brings a comment before the moderators.",
        CommentReported,
        input_description="A comment to bring before the moderators.",
        result_description="The comment, or why it was not reported.",
        comment="The comment's id.",
        reason="What is wrong with it, 1 to 500 characters.",
    )
    moderate_comment = mutation(
        pages.moderate_comment,
        "Decides about a comment. For moderators.",
        CommentModerated,
        input_description="A moderator's decision.",
        result_description="The comment, or why nothing was decided.",
        comment="The comment's id.",
        status="What it becomes. Reports about it are settled by any decision.",
        note="A note for its author, up to 500 characters.",
    )


@strawberry.type
class CommentsSubscription:
    comment_posted: Comment = subscription(
        pages.comment_posted,
        "Comments on a product as they become visible, each within about two seconds. None is missed: begin again with "
        "the last event's id (Server-Sent Events send it by themselves) or the id of the last comment received.",
        product="The product's id.",
        after="The last event's id, or the id of the comment it brought. Without it: from now on.",
    )
