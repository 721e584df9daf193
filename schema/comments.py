"""Comments: types, queries, mutations, the subscription."""

from __future__ import annotations

from datetime import datetime

import strawberry

from datastore import comments as records
from datastore.comments import counts
from resolvers.comments import counts as statistics
from resolvers.comments import pages as resolved
from schema.lazy import LazyUser
from schema.shapes import (
    IDEMPOTENCY_KEY,
    Connection,
    Edge,
    Node,
    answers,
    described,
    enum,
    field,
    mutation,
    shape,
    subscription,
    unset,
)

enum(
    records.Status,
    "Whether a comment may be seen.",
    name="CommentStatus",
    PUBLISHED="Everybody sees it, and it counts.",
    PENDING="It waits for a moderator: its author and moderators see it, and it counts nowhere.",
    REJECTED="A moderator turned it down: its author and moderators see it, and it counts nowhere.",
)
CommentStatus = records.Status


@shape(records.Comment, "What a member wrote about a product, with a rating.")
class Comment(Node):
    product: strawberry.ID = described("The product's id, as the shop calls it.")
    language: str = described("The language it is written in, as a BCP 47 tag.")
    rating: int = described("One to five stars.")
    title: str | None = described("A line above the comment.")
    body: str = described("The comment as it was written: plain text, whatever it looks like. Escape it when shown.")
    author: LazyUser = field(resolved.authors, "Who wrote it.")
    created_at: datetime = described("When it was posted.")
    edited_at: datetime | None = described("When its author, or a moderator, last changed it.")
    status: CommentStatus = described("Whether everybody sees it.")
    viewer_can_edit: bool = field(resolved.viewer_can_edit, "Whether the viewer may edit and delete it.")
    moderation_note: str | None = field(resolved.note, "A moderator's note; for its author and moderators.")
    report_reasons: list[str] | None = field(
        resolved.report_reasons, "What members objected to, a reason for each of them; for moderators."
    )


@strawberry.type(description="A comment in its list.")
class CommentEdge(Edge[Comment]):
    pass


@strawberry.type(description="A page of comments, newest first.")
class CommentConnection(Connection[CommentEdge, Comment]):
    total_count: int = field(statistics.total_count, "How many comments the whole list has, now.")


@strawberry.type(description="A comment in a moderator's queue.")
class ModerationEdge(Edge[Comment]):
    pass


@strawberry.type(description="A page of a moderator's queue, oldest first.")
class ModerationConnection(Connection[ModerationEdge, Comment]):
    pass


@shape(statistics.RatingCount, "How often a rating was given.")
class RatingCount:
    rating: int = described("One to five stars.")
    count: int = described("Comments with this rating.")


@shape(statistics.LanguageCount, "How many comments are in a language.")
class LanguageCount:
    language: str = described("A BCP 47 tag.")
    count: int = described("Comments in this language.")


@shape(statistics.Statistics, "A product's comments in numbers: exact, whatever was edited or deleted.")
class CommentStatistics:
    product: strawberry.ID = described("The product's id.")
    language: str | None = described("The language that is counted alone; null for all of them.")
    total: int = described("How many comments there are.")
    average: float | None = described("The mean rating; null where there is no comment.")
    histogram: list[RatingCount] = described("Five rows, rating 5 first; those that nobody gave are 0.")
    languages: list[LanguageCount] = described("The languages that were counted, the most frequent first.")


@shape(counts.Leader, "A product's place among all, by its five-star comments.")
class ProductStanding:
    product: strawberry.ID = described("The product's id.")
    five_stars: int = described("How many comments gave it five stars; at most two seconds behind.")
    statistics: CommentStatistics = field(statistics.statistics_of, "All of its comments in numbers, exact.")


@strawberry.type(description="A product in its list.")
class ProductEdge(Edge[ProductStanding]):
    pass


@strawberry.type(description="A page of products, those with the most five-star comments first.")
class ProductConnection(Connection[ProductEdge, ProductStanding]):
    pass


@strawberry.type
class CommentsQuery:
    comment: Comment | None = field(
        resolved.comment, "A comment. One that is held is there for its author and moderators only.", id="Its id."
    )
    comments: CommentConnection = field(
        resolved.comments_page,
        "A product's comments, newest first. What is there during a whole traversal appears exactly once.",
        product="The product's id.",
        languages="Only comments in these languages: BCP 47 tags, at most 25. An empty list is the same as none.",
        ratings="Only comments with these ratings, 1 to 5. An empty list is the same as none.",
    )
    comment_statistics: CommentStatistics = field(
        statistics.comment_statistics,
        "A product's comments in numbers.",
        product="The product's id.",
        language="Count comments in this language only.",
    )
    top_products: ProductConnection = field(
        statistics.top_products, "Products with five-star comments, those with the most first."
    )
    moderation_queue: ModerationConnection = field(
        resolved.moderation_queue,
        "What waits for a moderator, oldest first. For moderators.",
        status="Held comments of this status; with PUBLISHED, visible ones that members have reported.",
    )


@strawberry.input(description="A new comment.")
class PostCommentInput:
    product: strawberry.ID = described("The product's id: 1 to 128 characters without '#'.")
    language: str = described("The language it is written in, as a BCP 47 tag: en, pt-BR, zh-Hant.")
    rating: int = described("One to five stars.")
    title: str | None = unset("A line above it, up to 200 characters.")
    body: str = described("The comment, 1 to 10,000 characters.")
    idempotency_key: str | None = unset(IDEMPOTENCY_KEY)


@strawberry.type(description="The comment was posted.")
class CommentPosted:
    comment: Comment = described("The comment; PENDING if it waits for a moderator.")


@strawberry.input(description="Changes to a comment. What is left out stays; null clears the title.")
class EditCommentInput:
    comment: strawberry.ID = described("The comment's id.")
    language: str | None = unset("Another language, as a BCP 47 tag.")
    rating: int | None = unset("Another rating, 1 to 5.")
    title: str | None = unset("Another title; null takes it away.")
    body: str | None = unset("Another text, 1 to 10,000 characters.")
    idempotency_key: str | None = unset(IDEMPOTENCY_KEY)


@strawberry.type(description="The comment was edited.")
class CommentEdited:
    comment: Comment = described("The comment as it is now.")


@strawberry.input(description="A comment to delete.")
class DeleteCommentInput:
    comment: strawberry.ID = described("The comment's id.")
    idempotency_key: str | None = unset(IDEMPOTENCY_KEY)


@strawberry.type(description="The comment is gone; also when it was before.")
class CommentDeleted:
    id: strawberry.ID = described("The id of what is gone.")


@strawberry.input(description="A comment to bring before the moderators.")
class ReportCommentInput:
    comment: strawberry.ID = described("The comment's id.")
    reason: str = described("What is wrong with it, 1 to 500 characters.")
    idempotency_key: str | None = unset(IDEMPOTENCY_KEY)


@strawberry.type(description="The report is before the moderators.")
class CommentReported:
    comment: Comment = described("The comment; it stays visible until they decide.")


@strawberry.input(description="A moderator's decision.")
class ModerateCommentInput:
    comment: strawberry.ID = described("The comment's id.")
    status: CommentStatus = described("What it becomes. Reports about it are settled by any decision.")
    note: str | None = unset("A note for its author, up to 500 characters.")
    idempotency_key: str | None = unset(IDEMPOTENCY_KEY)


@strawberry.type(description="The decision stands.")
class CommentModerated:
    comment: Comment = described("The comment as it is now.")


PostCommentResult = answers("PostCommentResult", CommentPosted, "The new comment, or why it was not posted.")
EditCommentResult = answers("EditCommentResult", CommentEdited, "The changed comment, or why it was not changed.")
DeleteCommentResult = answers("DeleteCommentResult", CommentDeleted, "What is gone, or why it was not deleted.")
ReportCommentResult = answers("ReportCommentResult", CommentReported, "The comment, or why it was not reported.")
ModerateCommentResult = answers("ModerateCommentResult", CommentModerated, "The comment, or why nothing was decided.")


@strawberry.type
class CommentsMutation:
    post_comment: PostCommentResult = mutation(
        resolved.post_comment, PostCommentInput, CommentPosted, "Posts a comment on a product."
    )
    edit_comment: EditCommentResult = mutation(
        resolved.edit_comment, EditCommentInput, CommentEdited, "Edits a comment: its author, or a moderator."
    )
    delete_comment: DeleteCommentResult = mutation(
        resolved.delete_comment, DeleteCommentInput, CommentDeleted, "Deletes a comment: its author, or a moderator."
    )
    report_comment: ReportCommentResult = mutation(
        resolved.report_comment, ReportCommentInput, CommentReported, "Brings a comment before the moderators."
    )
    moderate_comment: ModerateCommentResult = mutation(
        resolved.moderate_comment, ModerateCommentInput, CommentModerated, "Decides about a comment. For moderators."
    )


@strawberry.type
class CommentsSubscription:
    comment_posted: Comment = subscription(
        resolved.comment_posted,
        "Comments on a product as they become visible, each within about two seconds. None is missed: begin again with "
        "the last event's id (Server-Sent Events send it by themselves) or the id of the last comment received.",
        product="The product's id.",
        after="The last event's id, or the id of the comment it brought. Without it: from now on.",
    )
