"""Sample data in the old layout, to test and measure the migration with: two tables and a CSV file.

Some rows are invalid on purpose, one for each reason that the migration reports.
"""

import csv
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from datastore.dynamo import Table
from datastore.dynamo.retries import retry

_CHARACTERS = "天地人山水火木金土日月星春夏秋冬东南西北中大小上下左右前后"


@dataclass(frozen=True, slots=True)
class Sample:
    """Its size: lists with words, days of history for each list, subscriptions. The same seed gives the same data."""

    lists: int = 3
    words: int = 40
    days: int = 30
    subscriptions: int = 100
    last_day: date = date(2026, 10, 31)
    bad: bool = True
    seed: int = 1

    def word(self, list_number: int, position: int) -> str:
        digits = []
        number = list_number * self.words + position
        for _ in range(4):
            number, digit = divmod(number, len(_CHARACTERS))
            digits.append(_CHARACTERS[digit])
        return "".join(digits)

    def word_rows(self) -> Iterator[list[str]]:
        yield ["ListId", "ListName", "Level", "Simplified", "Traditional", "Pinyin", "Definition"]
        for list_number in range(self.lists):
            for position in range(self.words):
                word = self.word(list_number, position)
                level = str(min(list_number, 100))
                yield [
                    f"L{list_number}",
                    f"Old list {list_number}",
                    level,
                    word,
                    "",
                    f"pinyin {position}",
                    f"meaning {position}",
                ]
        if self.bad:
            yield ["L0", "Old list 0", "1", "", "", "", "a word without characters"]

    def day_items(self) -> Iterator[dict[str, Any]]:
        for list_number in range(self.lists):
            for days_ago in range(self.days):
                word = {"S": self.word(list_number, days_ago % self.words)}
                shaped = word if days_ago % 2 else {"M": {"Simplified": word, "Pinyin": {"S": f"pinyin {days_ago}"}}}
                day = self.last_day - timedelta(days=days_ago)
                yield {"ListId": {"S": f"L{list_number}"}, "Date": {"S": str(day)}, "Word": shaped}
        if self.bad:
            yield {"ListId": {"S": "L0"}, "Date": {"S": "2020-02-30"}, "Word": {"S": self.word(0, 0)}}
            yield {"ListId": {"S": "L0"}, "Date": {"S": "2020-01-01"}, "Word": {"S": "not in the file"}}

    def subscription_items(self) -> Iterator[dict[str, Any]]:
        chance = random.Random(self.seed)
        for number in range(self.subscriptions):
            list_number = number % self.lists
            yield {
                "ListId": {"S": f"L{list_number}"},
                "SubscriberEmail": {"S": f"reader{number // min(2, self.lists)}@example.org"},
                "CharacterSet": {"S": chance.choice(["simplified", "traditional"])},
                "Status": {"S": "unsubscribed" if chance.random() < 0.1 else "subscribed"},
                "DateSubscribed": {"S": str(date(2021, 1, 1) + timedelta(days=number % 1000))},
            }
        if self.bad:
            yield {"ListId": {"S": "L0"}, "SubscriberEmail": {"S": "nobody"}, "DateSubscribed": {"S": "2021-01-01"}}
            yield {
                "ListId": {"S": "none"},
                "SubscriberEmail": {"S": "a@example.org"},
                "DateSubscribed": {"S": "2021-01-01"},
            }

    @property
    def bad_rows(self) -> int:
        return 5 if self.bad else 0

    async def write(self, subscriptions: Table, past_words: Table, words: Path) -> None:
        """Create and fill both tables and the file."""
        with words.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(self.word_rows())
        await create_foreign_table(subscriptions, "ListId", "SubscriberEmail")
        await create_foreign_table(past_words, "ListId", "Date")
        await _write_items(subscriptions, self.subscription_items())
        await _write_items(past_words, self.day_items())


async def create_foreign_table(table: Table, partition: str, sort: str) -> None:
    """Create a table with these keys, which are not those of Ringside's own."""
    keys = ((partition, "HASH"), (sort, "RANGE"))
    await table.client.create_table(
        TableName=table.name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name, _ in keys],
    )


async def _write_items(table: Table, items: Iterable[Mapping[str, Any]]) -> None:
    requests = ({"PutRequest": {"Item": item}} for item in items)
    while batch := list(islice(requests, 25)):
        unprocessed: Mapping[str, Any] = {table.name: batch}
        while unprocessed:
            answer = await retry(table.client.batch_write_item, RequestItems=unprocessed)
            unprocessed = answer.get("UnprocessedItems") or {}
