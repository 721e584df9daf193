"""Statistics of many products at once."""

from typing import Any

import pytest

from tests.client import Client
from tests.comments import post
from tests.dependent_calls import dependent_calls
from tests.queries import COMMENT_STATISTICS

FIELDS = "product language total average histogram { rating count } languages { language count }"
MANY = f"""query ($products: [ID!]!, $language: String) {{
  commentStatisticsOf(products: $products, language: $language) {{ {FIELDS} }} }}"""


async def many(client: Client, *products: str, **more: Any) -> list[dict[str, Any]]:
    answer: list[dict[str, Any]] = await client.ask(MANY, products=products, **more)
    return answer


async def test_statistics_of_many_products_equal_those_of_each(client: Client) -> None:
    """In the order asked, a product named twice twice, one without comments with a total of 0; in one language too."""
    ada = client.member("ada")
    for number in range(5):
        await post(ada, f"p{number % 3}", rating=number % 5 + 1, language=("en", "de")[number % 2])
    products = ["p2", "none", "p0", "p2", "Straße 1/2", "p1"]
    for more in ({}, {"language": "de"}, {"language": "DE"}):
        rows = await many(client, *products, **more)
        assert [row["product"] for row in rows] == products
        assert rows == [await client.ask(COMMENT_STATISTICS, product=product, **more) for product in products]
    assert (rows[1]["total"], rows[1]["average"]) == (0, None)
    assert await many(client) == []


async def test_a_hundred_products_wait_for_one_call(one_client: Client) -> None:
    """All of them are read at the same time."""
    products = [f"p{number}" for number in range(100)]
    rows, rounds = await dependent_calls(one_client.services.table, many(one_client, *products))
    assert rounds == 1
    assert [row["product"] for row in rows] == products


async def test_wrong_lists_of_products_are_refused(one_client: Client) -> None:
    """More than a hundred, a product that is none, a language that is none; the path says which."""
    for products, more, path in (
        ([f"p{number}" for number in range(101)], {}, ["products"]),
        (["p", ""], {}, ["products", "1"]),
        (["p", "a#b"], {}, ["products", "1"]),
        (["p", "x" * 129], {}, ["products", "1"]),
        (["p"], {"language": "not a language"}, ["language"]),
    ):
        error = (await one_client.answer(MANY, products=products, **more))["errors"][0]
        assert error["extensions"]["code"] == "BAD_USER_INPUT"
        assert error["extensions"].get("path", path) == path
    for wrong in (None, [None], {"a": 1}):
        assert (await one_client.answer(MANY, products=wrong))["errors"]


@pytest.mark.parametrize("form", ["variable", "literal"])
async def test_statistics_of_many_products_cost_their_number(one_client: Client, form: str) -> None:
    """Seven histograms of each of a hundred products are too complex, of ten products they are not."""
    fields = " ".join(f"h{number}: histogram {{ rating count a: rating b: rating }}" for number in range(7))
    for number, code in ((10, None), (100, "BAD_USER_INPUT")):
        products = [f"p{each}" for each in range(number)]
        if form == "variable":
            query = f"query ($products: [ID!]!) {{ commentStatisticsOf(products: $products) {{ {fields} }} }}"
            answer = await one_client.answer(query, products=products)
        else:
            listed = " ".join(f'"{product}"' for product in products)
            answer = await one_client.answer(f"{{ commentStatisticsOf(products: [{listed}]) {{ {fields} }} }}")
        codes = [error["extensions"]["code"] for error in answer.get("errors", [])]
        assert codes == ([code] if code else [])
