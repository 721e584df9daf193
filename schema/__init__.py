"""The schema, from its parts.

schema ── Query ──┬─ now, node, nodes
                  ├─ people       viewer, user
                  ├─ sign_in      by which methods people sign in
                  ├─ jobs         job
                  ├─ voting       boards, contenders, leaderboards
                  ├─ pickem       events, standings, leagues
                  ├─ comments     comments, statistics
                  ├─ vocabulary   word lists, daily words
                  ├─ api_keys     machines' keys
                  └─ journal      who did what

Mutations come from the same parts, and from `imports`, which has what an editor pastes.
"""

from datetime import datetime

import strawberry
from strawberry.schema.config import StrawberryConfig

from resolvers.requests import context
from resolvers.whole import node as node_resolvers
from schema.comments import CommentsMutation, CommentsQuery, CommentsSubscription
from schema.framework.arguments import NAMED_IN_ALL
from schema.framework.declarations import READ, SCALARS, Node, Schema, field, schema_description
from schema.imports import ImportsMutation
from schema.jobs import JobsQuery
from schema.journal import JournalMutation, JournalQuery
from schema.members import ApiKeysMutation, ApiKeysQuery, MembersMutation, SignInQuery
from schema.people import PeopleMutation, PeopleQuery
from schema.pickem import PickemMutation, PickemQuery, PickemSubscription
from schema.vocabulary import VocabularyMutation, VocabularyQuery
from schema.voting import VotingMutation, VotingQuery, VotingSubscription


@strawberry.type(description="All queries.")
class Query(
    PeopleQuery,
    SignInQuery,
    JobsQuery,
    VotingQuery,
    PickemQuery,
    CommentsQuery,
    VocabularyQuery,
    ApiKeysQuery,
    JournalQuery,
):
    now: datetime = field(context.server_time, "The server's clock, for a page that counts down.")
    node: Node | None = field(node_resolvers.node, "The object with this id.", id="An id from an earlier response.")
    nodes: list[Node | None] = field(
        node_resolvers.nodes,
        "The objects with these ids, in the same order; null for each that does not exist.",
        complexity_of_each=READ,
        ids=f"The ids. {NAMED_IN_ALL}",
    )


@strawberry.type(description="All mutations.")
class Mutation(
    PeopleMutation,
    MembersMutation,
    VotingMutation,
    PickemMutation,
    CommentsMutation,
    VocabularyMutation,
    ApiKeysMutation,
    JournalMutation,
    ImportsMutation,
):
    pass


@strawberry.type(description="All subscriptions.")
class Subscription(VotingSubscription, PickemSubscription, CommentsSubscription):
    pass


schema = Schema(
    query=Query,
    mutation=Mutation,
    subscription=Subscription,
    description=schema_description(),
    config=StrawberryConfig(auto_camel_case=True, scalar_map=SCALARS),
)
