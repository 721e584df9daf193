"""The old layout is migrated completely and once, invalid rows are reported, and the source is not changed."""

import asyncio
import csv
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import Table, foreign_rows, open_table
from datastore.people.identities import of_address
from datastore.people.profiles import PROFILE, Profile
from datastore.values.seal import Seal
from datastore.vocabulary import lists
from datastore.vocabulary.daily import DAILY, read_daily_word
from datastore.vocabulary.lists import LIST, WordList
from datastore.vocabulary.subscriptions import (
    SUBSCRIPTION,
    CharacterSet,
    read_subscriber_count,
    read_subscriptions,
    unsubscribe,
)
from datastore.vocabulary.words import WORD, Word, WordBatch, add_words
from resolvers.people.identities import Members
from resolvers.requests.context import Services, utc_now
from resolvers.values.node_ids import node_id
from server import Failed
from server.commands.legacy import LegacySource, Migration, MigrationOptions, MigrationSummary, list_id
from tests.audits import breaches_in
from tests.client import Client
from tests.command import ringside
from tests.conftest import SECRET
from tests.engines import RunningEngine
from tests.erasing import ERASE, admin
from tests.jobs import ended
from tests.legacy_sample import Sample
from tests.sign_in import with_session

SAMPLE = Sample(lists=3, words=30, days=20, subscriptions=60)


@pytest.fixture
async def legacy(one_table: Table, default_engine: RunningEngine, tmp_path: Path) -> AsyncIterator[LegacySource]:
    """The sample in tables of its own."""
    names = [f"{one_table.name}-subscribers", f"{one_table.name}-words"]
    async with (
        open_table(names[0], url=default_engine.url) as subscriptions,
        open_table(names[1], url=default_engine.url) as past_words,
    ):
        await SAMPLE.write(subscriptions, past_words, tmp_path / "words.csv")
        yield LegacySource(subscriptions, past_words, tmp_path / "words.csv")
        for table in (subscriptions, past_words):
            await table.client.delete_table(TableName=table.name)


def services_for(table: Table) -> Services:
    return Services(table, Seal([SECRET]))


async def migrate(table: Table, legacy: LegacySource, report: Path, **options: Any) -> MigrationSummary:
    return await Migration(services_for(table), legacy, report, MigrationOptions(**options)).run()


async def all_records(table: Table) -> list[Any]:
    return [record async for record in table.scan(LIST, WORD, DAILY, SUBSCRIPTION, PROFILE, consistent=True)]


async def source_rows(legacy: LegacySource) -> list[Any]:
    tables = (legacy.subscriptions, legacy.past_words)
    return sorted(
        [orjson.dumps(row, option=orjson.OPT_SORT_KEYS) for table in tables async for row in foreign_rows(table)]
    )


async def test_everything_is_migrated_once(one_table: Table, legacy: LegacySource, tmp_path: Path) -> None:
    """Counts and contents are as in the source; a second run writes nothing; the source stays as it was."""
    before = await source_rows(legacy)
    first = await migrate(one_table, legacy, tmp_path / "report.csv")
    assert first.written == {"list": 3, "word": 90, "past word": 60, "member": 30, "subscription": 60}
    assert first.verified == {"word": 90, "past word": 60, "subscription": 60}
    after_first = await all_records(one_table)
    again = await migrate(one_table, legacy, tmp_path / "report.csv")
    assert not any(again.written.values())
    assert again.verified == first.verified
    assert await all_records(one_table) == after_first
    assert await source_rows(legacy) == before
    assert await breaches_in(services_for(one_table)) == []


async def test_invalid_rows_are_reported(one_table: Table, legacy: LegacySource, tmp_path: Path) -> None:
    """Every invalid row of the sample, each with its reason; the others are migrated."""
    summary = await migrate(one_table, legacy, tmp_path / "report.csv")
    with (tmp_path / "report.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert not summary.complete
    assert len(rows) == sum(summary.rejected.values()) == SAMPLE.bad_rows
    reasons = {(row["kind"], row["list"], row["key"]): row["reason"] for row in rows}
    assert "email address" in reasons["subscription", "L0", "nobody"]
    assert "no such list" in reasons["subscription", "none", "a@example.org"]
    assert "yyyy-mm-dd" in reasons["past word", "L0", "2020-02-30"]
    assert "no such word" in reasons["past word", "L0", "2020-01-01"]


async def test_what_looks_like_a_formula_is_a_text_in_the_report(
    one_table: Table, legacy: LegacySource, tmp_path: Path
) -> None:
    """A spreadsheet would compute it, and anybody could give an address to the old system."""
    for start in "=+-@":
        await subscribe(legacy, f'{start}HYPERLINK("https://example.com")', "2022-01-01")
    await migrate(one_table, legacy, tmp_path / "report.csv")
    with (tmp_path / "report.csv").open(encoding="utf-8") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert sum("HYPERLINK" in cell for cell in cells) == 4
    assert [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))] == []


async def test_contents_equal_the_source(one_table: Table, legacy: LegacySource, tmp_path: Path) -> None:
    """The texts of a word, the word of a day, the character set, state and beginning of a subscription."""
    await migrate(one_table, legacy, tmp_path / "report.csv")
    word_list = await lists.read_list(one_table, list_id("L1"))
    assert word_list is not None
    assert (word_list.name, word_list.level, word_list.public) == ("Old list 1", 1, True)
    assert word_list.word_count == 30
    daily = await read_daily_word(one_table, list_id("L1"), SAMPLE.last_day - timedelta(days=7))
    assert daily is not None
    assert (daily.word.term, daily.word.definition) == (SAMPLE.word(1, 7), "meaning 7")
    users = {profile.email: profile.user async for profile in one_table.scan(PROFILE)}
    subscriptions = {
        (subscription.user, subscription.list): subscription async for subscription in one_table.scan(SUBSCRIPTION)
    }
    for item in SAMPLE.subscription_items():
        user = users.get(item["SubscriberEmail"]["S"])
        if user is not None and item["ListId"]["S"].startswith("L"):
            subscription = subscriptions[user, list_id(item["ListId"]["S"])]
            assert subscription.active == (item["Status"]["S"] == "subscribed")
            assert subscription.character_set.value == item["CharacterSet"]["S"].upper()
            assert str(subscription.since.date()) == item["DateSubscribed"]["S"]


async def test_a_dry_run_writes_nothing(one_table: Table, legacy: LegacySource, tmp_path: Path) -> None:
    """It counts and reports the same rows as the run that then writes."""
    dry = await migrate(one_table, legacy, tmp_path / "dry.csv", dry_run=True)
    assert await all_records(one_table) == []
    summary = await migrate(one_table, legacy, tmp_path / "report.csv")
    assert dry.written == summary.written
    assert (tmp_path / "dry.csv").read_text() == (tmp_path / "report.csv").read_text()


async def test_known_members_keep_their_ids(one_table: Table, legacy: LegacySource, tmp_path: Path) -> None:
    """Found in the operator's file, then by the address of a profile; without new members, other rows are rejected."""
    now = utc_now()
    await one_table.write(PROFILE.put(Profile("ada", "Ada", now, email="Reader1@example.org")))
    await one_table.write(PROFILE.put(Profile("zoe", "Zoe", now)))
    users = {"reader0@example.org": node_id("User", "zoe")}
    summary = await migrate(one_table, legacy, tmp_path / "report.csv", users=users, create_members=False)
    assert len(await read_subscriptions(one_table, "ada")) == 2
    assert len(await read_subscriptions(one_table, "zoe")) == 2
    assert summary.rejected["subscription"] == 60 - 4 + 2
    assert "member" not in {kind for kind, number in summary.written.items() if number}


async def test_an_old_list_can_continue_in_an_existing_one(
    one_table: Table, legacy: LegacySource, tmp_path: Path
) -> None:
    """Its words are added after the existing ones; its daily words and subscriptions belong to that list."""
    services, now = services_for(one_table), utc_now()
    unit = UnitOfWork("test", None, "", now)
    existing = WordList(services.ids.next(now), "New list", public=True, created_at=now)
    await lists.create_list(one_table, existing, unit)
    known = (
        Word(existing.list, 0, "新", "new"),
        Word(existing.list, 0, SAMPLE.word(0, 3), "meaning 3", None, "pinyin 3"),
    )
    await add_words(one_table, existing.list, WordBatch("batch", known, 10), unit)
    summary = await migrate(one_table, legacy, tmp_path / "report.csv", lists={"L0": existing.list})
    assert (summary.written["word"], summary.existing["word"], summary.written["list"]) == (89, 1, 2)
    daily = await read_daily_word(one_table, existing.list, SAMPLE.last_day - timedelta(days=3))
    assert daily is not None
    assert daily.word.ordinal == 1
    assert await read_subscriber_count(one_table, existing.list) > 0
    assert await breaches_in(services) == []


async def test_no_old_list_continues_in_a_private_one(one_table: Table, legacy: LegacySource, tmp_path: Path) -> None:
    """Its subscribers would never get a word of it: it is sent to its owner alone."""
    services, now = services_for(one_table), utc_now()
    own = WordList(services.ids.next(now), "My list", public=False, created_at=now, owner=with_session("ada"))
    await lists.create_list(one_table, own, UnitOfWork.unkeyed(now))
    summary = await migrate(one_table, legacy, tmp_path / "report.csv", lists={"L0": own.list})
    with (tmp_path / "report.csv").open(encoding="utf-8") as file:
        reasons = {row["reason"] for row in csv.DictReader(file) if (row["kind"], row["list"]) == ("word", "L0")}
    assert any("the list is private" in reason for reason in reasons), reasons
    assert (summary.written["list"], summary.verified["word"]) == (2, 2 * SAMPLE.words)
    assert await read_subscriber_count(one_table, own.list) == 0
    assert [daily async for daily in one_table.scan(DAILY, consistent=True) if daily.list == own.list] == []


@pytest.mark.parametrize("dry_run", [True, False])
async def test_a_list_whose_name_is_taken_is_reported_and_the_others_are_migrated(
    one_table: Table, legacy: LegacySource, tmp_path: Path, *, dry_run: bool
) -> None:
    """By a list that was made here, or by another old one; the report says what to do."""
    services = services_for(one_table)
    made = WordList(services.ids.next(utc_now()), "old LIST 1", public=True, created_at=utc_now())
    await lists.create_list(one_table, made, UnitOfWork.unkeyed(utc_now()))
    text = legacy.words.read_text(encoding="utf-8").replace("Old list 2", "Old list 0")
    legacy.words.write_text(text, encoding="utf-8")
    summary = await migrate(one_table, legacy, tmp_path / "report.csv", dry_run=dry_run)
    with (tmp_path / "report.csv").open(encoding="utf-8") as file:
        reasons = {row["list"]: row["reason"] for row in csv.DictReader(file) if row["kind"] == "word"}
    assert [reasons[old].partition(":")[0] for old in ("L1", "L2")] == [
        "another list has the name Old list 1",
        "another list has the name Old list 0",
    ]
    assert (summary.written["list"], summary.rejected["word"]) == (1, 2 * SAMPLE.words + 1)


async def test_no_text_of_a_words_row_is_lost(one_table: Table, legacy: LegacySource, tmp_path: Path) -> None:
    """A definition with a comma that is not in quotation marks would end there, and nobody would notice."""
    with legacy.words.open("a", encoding="utf-8") as file:
        file.write("L0,Old list 0,1,是的,,shì de,yes, of course\n")
    await migrate(one_table, legacy, tmp_path / "report.csv")
    with (tmp_path / "report.csv").open(encoding="utf-8") as file:
        reasons = {row["key"].partition(": ")[2]: row["reason"] for row in csv.DictReader(file)}
    assert reasons["是的"] == "it has more cells than there are columns: put a text with commas in quotation marks"
    assert "是的" not in {word.term async for word in one_table.scan(WORD)}


async def test_a_phrase_is_found_by_its_day_whatever_its_spaces_are(
    one_table: Table, legacy: LegacySource, tmp_path: Path
) -> None:
    """A word has single spaces here; the old file and table may both write those of Chinese characters."""
    phrase, day = "你　好  吗", date(2020, 1, 2)
    with legacy.words.open("a", encoding="utf-8") as file:
        file.write(f"L0,Old list 0,1,{phrase},,,How are you?\n")
    item = {"ListId": {"S": "L0"}, "Date": {"S": str(day)}, "Word": {"S": phrase}}
    await legacy.past_words.client.put_item(TableName=legacy.past_words.name, Item=item)
    summary = await migrate(one_table, legacy, tmp_path / "report.csv")
    daily = await read_daily_word(one_table, list_id("L0"), day)
    assert daily is not None
    assert daily.word.term == "你 好 吗"
    assert summary.verified["past word"] == SAMPLE.lists * SAMPLE.days + 1


async def test_a_quotation_mark_that_is_never_closed_swallows_no_words(
    one_table: Table, legacy: LegacySource, tmp_path: Path
) -> None:
    """The rows after it would be a part of its text."""
    with legacy.words.open("a", encoding="utf-8") as file:
        file.write('L0,Old list 0,1,是的,,shì de,"yes\nL0,Old list 0,1,不是,,bú shì,no\n')
    with pytest.raises(Failed, match="cannot be read as CSV"):
        await migrate(one_table, legacy, tmp_path / "report.csv")
    assert await all_records(one_table) == []


async def test_two_migrations_at_once_add_each_word_once(
    one_table: Table, legacy: LegacySource, tmp_path: Path
) -> None:
    """One that finds that the other has added words meanwhile stops; run again, it finds all words in their places."""
    reports = tmp_path / "one.csv", tmp_path / "two.csv"
    ended = await asyncio.gather(*(migrate(one_table, legacy, report) for report in reports), return_exceptions=True)
    assert all(isinstance(one, MigrationSummary) or "Run this again" in str(one) for one in ended), ended
    again = await migrate(one_table, legacy, tmp_path / "report.csv")
    assert again.verified["word"] == again.rows["word"] - again.rejected["word"]
    words = [(word.list, word.content) async for word in one_table.scan(WORD)]
    assert len(words) == len(set(words)) == 90


async def test_decisions_made_in_the_new_table_stay(one_table: Table, legacy: LegacySource, tmp_path: Path) -> None:
    """A later run overwrites neither a subscription that was ended nor a word that was drawn."""
    first = await migrate(one_table, legacy, tmp_path / "report.csv")
    active = next(iter([subscription async for subscription in one_table.scan(SUBSCRIPTION) if subscription.active]))
    unit = UnitOfWork(active.user, None, "", utc_now())
    await unsubscribe(one_table, active.user, active.list, active.character_set, unit)
    daily = await read_daily_word(one_table, list_id("L0"), SAMPLE.last_day)
    assert daily is not None
    other = replace(daily, word=replace(daily.word, ordinal=3, term="另外"))
    await one_table.write(DAILY.put(other))
    again = await migrate(one_table, legacy, tmp_path / "report.csv")
    assert not any(again.written.values())
    subscriptions = await read_subscriptions(one_table, active.user)
    assert replace(active, active=False) in subscriptions
    assert await read_daily_word(one_table, list_id("L0"), SAMPLE.last_day) == other
    assert again.rejected["past word"] == first.rejected["past word"] + 1


async def test_whoever_was_erased_is_not_migrated_again(
    one_client: Client, legacy: LegacySource, tmp_path: Path
) -> None:
    """Neither a member who had signed in by an address of the old table, nor a reader whom an earlier run brought."""
    table, services = one_client.services.table, one_client.services
    await services.get(Members).make(of_address("reader0@example.org"))
    await migrate(table, legacy, tmp_path / "first.csv")
    users = {profile.email: profile.user async for profile in table.scan(PROFILE)}
    for email in ("reader0@example.org", "reader1@example.org"):
        erased = await admin(one_client).ask(
            ERASE, input={"user": node_id("User", users[email]), "contributions": "REMOVE"}
        )
        assert (await ended(admin(one_client), erased["job"]["id"]))["state"] == "DONE"
    again = await migrate(table, legacy, tmp_path / "report.csv")
    assert not any(again.written.values())
    with (tmp_path / "report.csv").open(encoding="utf-8") as file:
        reasons = {row["key"]: row["reason"] for row in csv.DictReader(file)}
    assert ["erased" in reasons.get(f"reader{number}@example.org", "") for number in range(3)] == [True, True, False]
    owners = {each.user for each in [each async for each in table.scan(SUBSCRIPTION)]}
    assert owners.isdisjoint({users["reader0@example.org"], users["reader1@example.org"]})


async def subscribe(legacy: LegacySource, email: str, since: str) -> None:
    """Adds a row to the old subscriptions."""
    item = {"ListId": {"S": "L0"}, "SubscriberEmail": {"S": email}, "DateSubscribed": {"S": since}}
    await legacy.subscriptions.client.put_item(TableName=legacy.subscriptions.name, Item=item)


async def test_addresses_that_differ_in_more_than_case_are_two_members(
    one_table: Table, legacy: LegacySource, tmp_path: Path
) -> None:
    """weiß@… and weiss@… may be two people, whether profiles or the operator's file name one of them."""
    await one_table.write(PROFILE.put(Profile("weiss", "Weiss", utc_now(), email="weiss@example.org")))
    await subscribe(legacy, "weiß@example.org", "2022-01-01")
    await subscribe(legacy, "groß@example.org", "2022-01-01")
    await migrate(one_table, legacy, tmp_path / "report.csv", users={"GROSS@example.org": "gross"})
    owners = {each.user for each in [each async for each in one_table.scan(SUBSCRIPTION)]}
    assert owners.isdisjoint({"weiss", "gross"})
    profiles = [profile async for profile in one_table.scan(PROFILE) if profile.user in owners]
    assert {"weiß@example.org", "groß@example.org"} <= {profile.email for profile in profiles}


async def test_a_moment_before_the_first_year_is_reported(
    one_table: Table, legacy: LegacySource, tmp_path: Path
) -> None:
    """As .NET writes a date that was never set, in a time zone east of Greenwich; so is one after the last year."""
    moments = {"low@example.org": "0001-01-01T00:00:00+01:00", "high@example.org": "9999-12-31T23:59:59-01:00"}
    for email, since in moments.items():
        await subscribe(legacy, email, since)
    await migrate(one_table, legacy, tmp_path / "report.csv")
    with (tmp_path / "report.csv").open(encoding="utf-8") as file:
        reasons = {row["key"]: row["reason"] for row in csv.DictReader(file)}
    assert [reasons[email] for email in moments] == ["DateSubscribed is not a date"] * 2


async def test_one_address_in_two_spellings_is_one_member(
    one_table: Table, legacy: LegacySource, tmp_path: Path
) -> None:
    """Case and a domain's two forms mean the same mailbox; the second row for the same subscription is reported."""
    spellings = {"Twice@bücher.example", "twice@xn--bcher-kva.example"}
    for email in spellings:
        await subscribe(legacy, email, "2022-01-01")
    await migrate(one_table, legacy, tmp_path / "report.csv")
    profiles = [profile async for profile in one_table.scan(PROFILE)]
    [user] = [profile.user for profile in profiles if profile.email in spellings]
    [subscription] = await read_subscriptions(one_table, user)
    assert subscription.character_set is CharacterSet.SIMPLIFIED
    assert subscription.since.date() == date(2022, 1, 1)
    subscriptions = [each async for each in one_table.scan(SUBSCRIPTION)]
    subscribers = {each.user for each in subscriptions if each.active and each.list == list_id("L0")}
    assert await read_subscriber_count(one_table, list_id("L0")) == len(subscribers)


@pytest.mark.parametrize(
    ("url", "reason"),
    [("localhost:8001", "is not the engine of the old tables"), ("embedded", "Leave the option out")],
)
def test_a_source_that_is_no_engine_is_refused_with_advice(tmp_path: Path, url: str, reason: str) -> None:
    words = tmp_path / "words.csv"
    words.write_text("ListId,Simplified,Definition\n")
    done = ringside(
        "migrate", "legacy", "--subscriptions", "a", "--past-words", "b", "--words", f"{words}", "--source-url", url,
        RINGSIDE_DATA=str(tmp_path / "data"),
    )  # fmt: skip
    said = " ".join(done.stderr.split())
    assert (done.returncode, reason in said, "Traceback" in said) == (1, True, False), said
