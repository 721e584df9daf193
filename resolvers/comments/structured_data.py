"""A product's ratings as JSON-LD, which search engines read: their average, and the ten newest rated comments."""

from typing import Any, Final

from datastore.comments.planner import RATINGS, Filter
from datastore.dynamo import Window
from resolvers.comments.counts import CountsCache, Statistics
from resolvers.comments.rules import validate_product
from resolvers.comments.visibility import read_page
from resolvers.people.visibility import authors
from resolvers.requests.context import Context

_NEWEST: Final = 10
_SCALE: Final = {"worstRating": RATINGS[0], "bestRating": RATINGS[-1]}


async def product_data(ctx: Context, product: str) -> dict[str, Any] | None:
    """None for a product without rated comments; InvalidInput for what is no product's id."""
    product = validate_product(product, ("product",))
    counts = await ctx.services.get(CountsCache).exact(product)
    statistics = Statistics(product, None, counts)
    if not statistics.rated:
        return None
    rated = Filter.of(product, [], list(RATINGS))
    page = await read_page(ctx, rated, counts, Window(_NEWEST, ctx.services.seal).open(rated.scope))
    names = [author.name for author in await authors(ctx, [comment.author for comment in page.nodes])]
    return {
        "@context": "https://schema.org",
        "@type": "Product",
        "productID": product,
        "aggregateRating": {
            "@type": "AggregateRating",
            "ratingValue": round(statistics.average or 0, 2),
            "ratingCount": statistics.rated,
            **_SCALE,
        },
        "review": [
            {
                "@type": "Review",
                "author": {"@type": "Person", "name": name},
                "datePublished": comment.created_at.date().isoformat(),
                "inLanguage": comment.language,
                **({} if comment.title is None else {"name": comment.title}),
                "reviewBody": comment.body,
                "reviewRating": {"@type": "Rating", "ratingValue": comment.rating, **_SCALE},
            }
            for comment, name in zip(page.nodes, names, strict=True)
        ],
    }
