"""The old layout moves in: all of it, once, with a report of what has no place, and the source untouched."""

from __future__ import annotations

import csv
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from datastore import vocabulary
from datastore.dynamo import Table, foreign_rows, open_table
from datastore.people import PROFILE, Profile
from datastore.receipts import Once
from datastore.seal import Seal
from datastore.vocabulary import DAILY, LIST, SUBSCRIPTION, WORD, Batch, CharacterSet, Word, WordList
from resolvers.context import Services, utc_now
from server.audit import breaches
from server.legacy import Legacy, Migration, Moved
from server.legacy.move import list_id
from server.legacy.sample import Sample
from tests.conftest import SECRET
from tests.engines import Running

SAMPLE = Sample(lists=3, words=30, days=20, subscriptions=60)


@pytest.fixture
async def legacy(one_table: Table, default_engine: Running, tmp_path: Path) -> AsyncIterator[Legacy]:
    """The sample in tables of its own."""
    names = [f"{one_table.name}-subscribers", f"{one_table.name}-words"]
    async with (
        open_table(names[0], url=default_engine.url) as subscriptions,
        open_table(names[1], url=default_engine.url) as past_words,
    ):
        await SAMPLE.plant(subscriptions, past_words, tmp_path / "words.csv")
        yield Legacy(subscriptions, past_words, tmp_path / "words.csv")
        for table in (subscriptions, past_words):
            await table.client.delete_table(TableName=table.name)


def house_of(table: Table) -> Services:
    return Services(table, Seal([SECRET]))


async def migrate(table: Table, legacy: Legacy, report: Path, **choices: Any) -> Moved:
    return await Migration(house_of(table), legacy, report, **choices).carry_out()


async def everything(table: Table) -> list[Any]:
    return [one async for one in table.scan(LIST, WORD, DAILY, SUBSCRIPTION, PROFILE)]


async def source(legacy: Legacy) -> list[Any]:
    tables = (legacy.subscriptions, legacy.past_words)
    return sorted(
        [orjson.dumps(row, option=orjson.OPT_SORT_KEYS) for table in tables async for row in foreign_rows(table)]
    )


async def test_everything_moves_once(one_table: Table, legacy: Legacy, tmp_path: Path) -> None:
    """Counts and contents are as in the source; a second run writes nothing; the source stays as it was."""
    before = await source(legacy)
    first = await migrate(one_table, legacy, tmp_path / "report.csv")
    assert first.written == {"list": 3, "word": 90, "past word": 60, "member": 30, "subscription": 60}
    assert first.verified == {"word": 90, "past word": 60, "subscription": 60}
    there = await everything(one_table)
    again = await migrate(one_table, legacy, tmp_path / "report.csv")
    assert not any(again.written.values())
    assert again.verified == first.verified
    assert await everything(one_table) == there
    assert await source(legacy) == before
    assert [breach async for breach in breaches(house_of(one_table))] == []


async def test_what_has_no_place_is_reported(one_table: Table, legacy: Legacy, tmp_path: Path) -> None:
    """Every bad row of the sample, each with its reason; the rest moves all the same."""
    moved = await migrate(one_table, legacy, tmp_path / "report.csv")
    with (tmp_path / "report.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert not moved.complete
    assert len(rows) == sum(moved.left.values()) == SAMPLE.bad_rows
    reasons = {(row["kind"], row["list"], row["key"]): row["reason"] for row in rows}
    assert "e-mail address" in reasons["subscription", "L0", "nobody"]
    assert "no such list" in reasons["subscription", "none", "a@example.org"]
    assert "yyyy-mm-dd" in reasons["past word", "L0", "2020-02-30"]
    assert "no such word" in reasons["past word", "L0", "2020-01-01"]


async def test_contents_are_the_sources(one_table: Table, legacy: Legacy, tmp_path: Path) -> None:
    """A word's texts, a day's word, a subscription's set, state and beginning."""
    await migrate(one_table, legacy, tmp_path / "report.csv")
    found = await vocabulary.word_list(one_table, list_id("L1"))
    assert found is not None
    assert (found.name, found.level, found.public, found.word_count) == ("Old list 1", 1, True, 30)
    daily = await vocabulary.stored(one_table, list_id("L1"), SAMPLE.last_day - timedelta(days=7))
    assert daily is not None
    assert (daily.word.simplified, daily.word.definition) == (SAMPLE.word(1, 7), "meaning 7")
    profiles = {one.email: one.user async for one in one_table.scan(PROFILE)}
    for item in SAMPLE.subscription_items():
        user = profiles.get(item["SubscriberEmail"]["S"])
        if user is not None and item["ListId"]["S"].startswith("L"):
            kept = [
                one
                for one in await vocabulary.subscriptions(one_table, user)
                if one.list == list_id(item["ListId"]["S"])
            ]
            assert kept[0].active == (item["Status"]["S"] == "subscribed")
            assert kept[0].character_set.value == item["CharacterSet"]["S"].upper()
            assert str(kept[0].since.date()) == item["DateSubscribed"]["S"]


async def test_a_dry_run_writes_nothing(one_table: Table, legacy: Legacy, tmp_path: Path) -> None:
    """It says what would be written, the same as the run then writes, and reports the same rows."""
    dry = await migrate(one_table, legacy, tmp_path / "dry.csv", dry=True)
    assert await everything(one_table) == []
    moved = await migrate(one_table, legacy, tmp_path / "report.csv")
    assert dry.written == moved.written
    assert (tmp_path / "dry.csv").read_text() == (tmp_path / "report.csv").read_text()


async def test_known_members_keep_their_ids(one_table: Table, legacy: Legacy, tmp_path: Path) -> None:
    """By the operator's file, then by the address of a profile; with known ones only, others are left."""
    now = utc_now()
    await one_table.write(PROFILE.put(Profile("ada", "Ada", now, email="Reader1@example.org")))
    users = {"reader0@example.org": "zoe"}
    moved = await migrate(one_table, legacy, tmp_path / "report.csv", users=users, strangers=False)
    assert len(await vocabulary.subscriptions(one_table, "ada")) == 2
    assert len(await vocabulary.subscriptions(one_table, "zoe")) == 2
    assert moved.left["subscription"] == 60 - 4 + 2
    assert "member" not in {kind for kind, number in moved.written.items() if number}


async def test_an_old_list_may_go_on_in_a_new_one(one_table: Table, legacy: Legacy, tmp_path: Path) -> None:
    """Its words are added behind those that are there, its days and subscriptions follow it."""
    services, now = house_of(one_table), utc_now()
    once = Once("test", None, "", now)
    made = WordList(services.ids.next(now), "New list", public=True, created_at=now)
    await vocabulary.create_list(one_table, made, once)
    known = (Word(made.list, 0, "新", "new"), Word(made.list, 0, SAMPLE.word(0, 3), "meaning 3", None, "pinyin 3"))
    await vocabulary.add_words(one_table, made.list, Batch("batch", known, 10), once)
    moved = await migrate(one_table, legacy, tmp_path / "report.csv", lists={"L0": made.list})
    assert (moved.written["word"], moved.there["word"], moved.written["list"]) == (89, 1, 2)
    daily = await vocabulary.stored(one_table, made.list, SAMPLE.last_day - timedelta(days=3))
    assert daily is not None
    assert daily.word.ordinal == 1
    assert await vocabulary.subscriber_count(one_table, made.list) > 0
    assert [breach async for breach in breaches(services)] == []


async def test_decisions_made_here_stay(one_table: Table, legacy: Legacy, tmp_path: Path) -> None:
    """A subscription ended, and a word drawn, in the new table are not overwritten by a later run."""
    first = await migrate(one_table, legacy, tmp_path / "report.csv")
    active = next([one async for one in one_table.scan(SUBSCRIPTION) if one.active].__iter__())
    once = Once(active.user, None, "", utc_now())
    await vocabulary.unsubscribe(one_table, active.user, active.list, active.character_set, once)
    daily = await vocabulary.stored(one_table, list_id("L0"), SAMPLE.last_day)
    assert daily is not None
    other = replace(daily, word=replace(daily.word, ordinal=3, simplified="另外"))
    await one_table.write(DAILY.put(other))
    again = await migrate(one_table, legacy, tmp_path / "report.csv")
    assert not any(again.written.values())
    kept = {(one.list, one.character_set): one.active for one in await vocabulary.subscriptions(one_table, active.user)}
    assert kept[active.list, active.character_set] is False
    assert await vocabulary.stored(one_table, list_id("L0"), SAMPLE.last_day) == other
    assert again.left["past word"] == first.left["past word"] + 1


async def test_one_address_in_two_spellings_is_one_member(one_table: Table, legacy: Legacy, tmp_path: Path) -> None:
    """Upper and lower case name one mailbox; the second row for the same subscription is reported."""
    for email in ("Twice@example.org", "twice@example.org"):
        item = {"ListId": {"S": "L0"}, "SubscriberEmail": {"S": email}, "DateSubscribed": {"S": "2022-01-01"}}
        await legacy.subscriptions.client.put_item(TableName=legacy.subscriptions.name, Item=item)
    await migrate(one_table, legacy, tmp_path / "report.csv")
    found = [one async for one in one_table.scan(PROFILE) if one.email and one.email.casefold() == "twice@example.org"]
    assert len(found) == 1
    kept = await vocabulary.subscriptions(one_table, found[0].user)
    assert [(one.character_set, one.since.date()) for one in kept] == [(CharacterSet.SIMPLIFIED, date(2022, 1, 1))]
    assert await vocabulary.subscriber_count(one_table, list_id("L0")) == len(
        {one.user async for one in one_table.scan(SUBSCRIPTION) if one.active and one.list == list_id("L0")}
    )
