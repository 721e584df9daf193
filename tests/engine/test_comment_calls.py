"""How many engine calls a request about comments waits for, one after the other."""

from math import inf
from time import monotonic

from resolvers.comments.counts import LeaderSettler
from tests.client import Client
from tests.comments import post
from tests.dependent_calls import dependent_calls
from tests.queries import COMMENT_STATISTICS, EDIT_COMMENT, POST_COMMENT

AUTHORS = "edges { node { id body author { name } } }"


def forget(client: Client) -> None:
    """Lets short-lived caches expire."""
    client.services.cache.clock = lambda: monotonic() + 60.0
    client.services.get(LeaderSettler)._swept_at = float("-inf")


async def test_a_request_waits_for_few_calls_in_a_row(one_client: Client) -> None:
    """Caches have expired: a page and its authors 2, post 1, edit 2, ranking and statistics 1, a member one more."""
    ada = one_client.member("ada")
    posted = [await post(ada, rating=number % 5 + 1) for number in range(30)]
    await one_client.ask("{ topProducts { nodes { product } } }")
    await one_client.services.get(LeaderSettler).close()  # nothing is left to settle
    one_client.services.journal.confirm(inf)  # a mutation would read webhooks that were known ten seconds ago
    given = {"product": "42", "language": "en", "rating": 4, "body": "Once more."}
    for most, client, query, variables in (
        (2, one_client, f'{{ comments(product: "42", languages: ["en"], ratings: [4, 5]) {{ {AUTHORS} }} }}', {}),
        (2, one_client, f'{{ comments(product: "42") {{ {AUTHORS} }} }}', {}),
        (2, ada, POST_COMMENT, {"input": given}),
        (3, ada, EDIT_COMMENT, {"input": {"comment": posted[0]["id"], "rating": 4}}),
        (1, one_client, "{ topProducts { nodes { product fiveStars } } }", {}),
        (1, one_client, COMMENT_STATISTICS, {"product": "42"}),
    ):
        forget(one_client)
        _, calls = await dependent_calls(one_client.services.table, client.ask(query, **variables))
        assert calls <= most, query
