"""The journal: who did what; and webhooks, which tell other systems."""

from datetime import date, datetime

import strawberry

from datastore.changes import occurrences as occurrence_store
from datastore.changes.occurrences import DeliveryState, Ground, Source
from datastore.journal.usage import Activity
from resolvers.journal import occurrences, usage, webhooks
from resolvers.whole import node as whole_node
from resolvers.whole.mutations import Terms
from schema.framework.declarations import (
    READ,
    Node,
    connection,
    described,
    enum,
    field,
    mutation,
    object_type,
    record_type,
)
from schema.framework.lazy import LazyUser
from schema.jobs import Job

# ── types and queries ──


enum(
    Source,
    "What an occurrence came from.",
    MEMBER="A member or a visitor.",
    API_KEY="A machine with an API key.",
    COMMAND="The command line.",
    SERVICE="The service itself, such as an event that locked at its start.",
)


@record_type(occurrence_store.Occurrence, "Something that was done, as the journal keeps it: never the content itself.")
class Occurrence(Node):
    at: datetime = described("When it was done.")
    kind: str = described("What was done: `comment.posted`, `event.locked`, …")
    source: Source = described("What did it. It stays when the actor is erased.")
    actor: strawberry.ID | None = field(
        occurrences.actor,
        "Who did it; null for visitors, commands without `--as` and the service itself. That of an erased member leads "
        "to nobody.",
    )
    actor_user: LazyUser | None = field(
        occurrences.actor_users, "The member who did it; null for an API key, an erased member, and where `actor` is."
    )
    object: strawberry.ID | None = field(
        occurrences.occurrence_object,
        "What it was done to; null for hold rules and imports of comments. Votes and subscriptions have ids here, but "
        "are not nodes. A vote's names its voter, so only admins see it, and others its board's.",
    )
    object_node: Node | None = field(
        whole_node.object_node,
        "The object itself; null if it is no node, is gone, or may not be seen by the viewer.",
        complexity=READ,
    )
    ground: Ground | None = described("The reason for a moderator's decision.")
    note: str | None = described("A moderator's note.")


OccurrenceConnection = connection(
    Occurrence, "A page of the journal, newest first.", edge="An occurrence in the journal."
)

enum(
    DeliveryState,
    "Whether an occurrence has reached a webhook.",
    WAITING="It has not been delivered yet, or will be tried again.",
    DELIVERED="The receiver has accepted it. Kept for a week.",
    DEAD="It failed for a day and was given up; `redeliver` queues it again. Kept for 30 days.",
)


@record_type(occurrence_store.Delivery, "An occurrence on its way to a webhook.")
class Delivery(Node):
    occurrence: Occurrence | None = field(
        webhooks.delivery_occurrences, "What it reports; null once that is delivered and no longer in the journal."
    )
    state: DeliveryState = described("Whether it has been delivered.")
    attempts: int = described("How many times it was sent; anew after `redeliver`.")
    last_status: int | None = described("The HTTP status of the last answer; null if there was none.")
    last_error: str | None = described("Why the last attempt failed.")
    next_at: datetime | None = described("When it will be tried again.")


DeliveryConnection = connection(Delivery, "A page of deliveries, newest first.", edge="A delivery in its list.")


@record_type(occurrence_store.Webhook, "An address that is told what happens.")
class Webhook(Node):
    url: str = described("Where messages are sent.")
    kinds: list[str] = described(
        "The kinds of occurrences that are sent to it. An empty list means all but `vote.cast` and "
        "`prediction.submitted`."
    )
    active: bool = described("False once it was removed.")
    created_at: datetime = described("When it was added.")
    deliveries: DeliveryConnection = field(
        webhooks.deliveries,
        "Its deliveries, newest first: waiting, delivered and given up.",
        state="Only those in this state.",
    )


WebhookConnection = connection(Webhook, "A page of webhooks, oldest first.", edge="A webhook in a list.")


@record_type(Activity, "What was done on one day, in UTC; up to a minute old.")
class DayActivity:
    day: date = described("The day.")
    votes: int = described("Votes that were counted, without skips.")
    comments: int = described("Comments that were posted.")
    predictions: int = described("Predictions that were submitted or replaced.")
    quizzes: int = described("Quizzes that were answered or recorded.")
    new_members: int = described("Members who came for the first time.")


@record_type(usage.Operation, "What an operation has taken; up to a minute old.")
class OperationFigures:
    name: str = described("The operation's name; `anonymous` if it has none, `other` for rare ones.")
    requests: int = described("How often it was asked for.")
    refusals: int = described("How many of these were refused, or answered with an error.")
    units: float = described("Read and write units of the table.")
    dollars: float = described("What the units cost with on-demand capacity in us-east-1.")


@strawberry.type
class JournalQuery:
    webhooks: WebhookConnection = field(webhooks.webhooks, "All webhooks, oldest first. For admins.")
    journal: OccurrenceConnection = field(
        occurrences.journal,
        "Who did what, newest first. For moderators. It is kept for `RINGSIDE_JOURNAL_DAYS`. An occurrence that exists "
        "during a whole traversal appears exactly once. With `actor` or `object`, the newest may be missing for a "
        "moment.",
        actor="Only what this member did: the id of a User.",
        object="Only what was done to the object with this id.",
    )
    activity: list[DayActivity] = field(
        usage.activity,
        "How much was done on each of at most 92 days, the first one first. For editors.",
        from_="The first day.",
        to="The last day.",
    )
    operations: list[OperationFigures] = field(
        usage.operations,
        "What each operation has taken in the hours that begin at or after `from` and before `to`, at most 31 days, "
        "the dearest one first. For admins.",
        from_="The beginning.",
        to="The end.",
    )


# ── mutations ──


@strawberry.type
class JournalMutation:
    add_webhook = mutation(
        webhooks.add_webhook,
        "Adds a webhook: an address that is told what happens, at least once, in no particular order. For admins.",
        object_type(
            "WebhookAdded",
            "The webhook was added.",
            webhook=(Webhook, "The webhook. It receives what happens from ten seconds after it was added."),
            secret=(
                str,
                (
                    "The secret that signs its messages, in the format of Standard Webhooks. It is not shown again, "
                    "but to a repeat with its idempotency key."
                ),
            ),
        ),
        terms=Terms(recent=True),
        input_description="A new webhook.",
        result_description="The webhook with its secret, or why it was not added.",
        url="Where to send messages: https:// and a public address, without a user or password.",
        kinds="The kinds of occurrences to send. An empty list means all but `vote.cast` and "
        "`prediction.submitted`, which must be named.",
    )
    remove_webhook = mutation(
        webhooks.remove_webhook,
        "Removes a webhook and its waiting deliveries. For admins.",
        object_type(
            "WebhookRemoved",
            "The webhook was removed. From ten seconds after that nothing is sent to it any more.",
            deleted_id=(strawberry.ID, "The removed webhook's id."),
        ),
        terms=Terms(recent=True),
        input_description="A webhook to remove.",
        result_description="The removed webhook's id, or why it was not removed.",
        webhook="The webhook's id.",
    )
    rotate_webhook_secret = mutation(
        webhooks.rotate_webhook_secret,
        "Gives a webhook a new secret. Each old one signs for another day; at most four do, and a further rotation "
        "answers CONFLICT. For admins.",
        object_type(
            "WebhookSecretRotated",
            "The webhook has a new secret.",
            webhook=(Webhook, "The webhook."),
            secret=(str, "The new secret. For a day the old one signs too."),
        ),
        terms=Terms(recent=True),
        input_description="A webhook to give a new secret.",
        result_description="The webhook with its new secret, or why it keeps the old one.",
        webhook="The webhook's id.",
    )
    redeliver = mutation(
        webhooks.redeliver,
        "Redelivers to a webhook what occurred since a given time: what the journal still has, and what was given up. "
        "For admins.",
        object_type("Redelivery", "Occurrences are delivered again.", job=(Job, "The job that queues them again.")),
        input_description="What to deliver again.",
        result_description="The job, or why nothing is delivered again.",
        webhook="The webhook's id.",
        since="The time of the first occurrence to deliver again.",
    )
