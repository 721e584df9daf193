"""`ringside audit` beside writers: no false breaches, and real ones are found all the same."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from datastore.comments.records import COMMENT
from datastore.dynamo.entity import Entity
from datastore.people.identities import IDENTITY
from datastore.people.profiles import PROFILE
from datastore.pickem.events import GATE, read_gates
from datastore.vocabulary.lists import LIST
from datastore.voting.votes import PAIR, TALLY
from resolvers.values.node_ids import parse_node_key
from server import audit
from tests.audits import breaches_in
from tests.client import Client
from tests.comments import post
from tests.season import EventEditor
from tests.vocabulary import public_list
from tests.voting import add_contenders
from tests.writers import writers

AUDITS = 2


async def suspects(client: Client) -> list[str]:
    """What a single pass finds."""
    return [suspect for part in audit.PARTS for suspect in await audit.find_suspects(client.services, part)]


async def test_writers_beside_an_audit_are_no_breaches(one_client: Client) -> None:
    """A single pass is wrong while four writers work, or this test proves nothing; the audit is not."""
    suspected: list[str] = []
    async with writers(one_client):
        for _ in range(AUDITS):
            suspected += await suspects(one_client)
            assert await breaches_in(one_client.services) == []
    assert suspected
    await one_client.services.close()
    assert await breaches_in(one_client.services) == []


async def test_real_breaches_are_reported_beside_writers(one_client: Client) -> None:
    """A comment that the indexes have lost, while others write."""
    ada = one_client.member("ada")
    await post(ada, "quiet")
    async with writers(one_client):
        await _lose_index_entry(one_client)
        found = await breaches_in(one_client.services)
    assert any(breach.startswith("comments: product quiet: the index") for breach in found), found
    assert all("quiet" in breach for breach in found), found


async def _lose_index_entry(client: Client) -> None:
    """Removes the index keys of the comment on `quiet`, as a bug would."""
    table = client.services.table
    (comment,) = [record async for record in table.scan(COMMENT, consistent=True) if record.product == "quiet"]
    keys = ", ".join(f"gsi{number}{part}" for number in (1, 2, 3) for part in ("pk", "sk"))
    await table.client.update_item(
        TableName=table.name, Key=COMMENT.item_key(comment).attributes, UpdateExpression=f"REMOVE {keys}"
    )


async def test_a_breach_is_named_once_with_its_part(one_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many passes confirm it, and however often one comes upon it."""
    passes: list[str] = []

    async def broken(_: object) -> AsyncIterator[str]:
        passes.append("pass")
        yield "people: one thing is broken"
        yield "people: one thing is broken"

    monkeypatch.setattr(audit, "PARTS", {"people": broken})
    assert await breaches_in(one_client.services) == ["people: one thing is broken"]
    assert len(passes) == audit.PASSES


async def test_a_tally_below_zero_is_found(one_client: Client) -> None:
    """Of a contender and of a pair that nobody has voted on."""
    await add_contenders(one_client, "Ada", "Bob")
    table = one_client.services.table
    await table.transact(
        TALLY.update(TALLY.at(board="main", shard=0, ordinal=1), add={"ties": -1}),
        PAIR.update(PAIR.at(board="main", shard=0, low=0, high=1), add={"low_wins": -1}),
    )
    found = await audit.find_suspects(one_client.services, "voting")
    assert "voting: main: contender 1 has -1 ties tallied and 0 voted" in found
    assert "voting: main: the pair 0, 1 has -1 low_wins tallied and 0 voted" in found


@pytest.mark.parametrize("lost", [PROFILE, IDENTITY])
async def test_a_member_whom_nothing_leads_to_any_more_is_found(one_client: Client, lost: Entity[Any]) -> None:
    """Half of a member, as a torn export may have it: who signs in finds nobody, or is somebody new."""
    await one_client.member("ada").ask("{ viewer { id } }")
    assert await audit.find_suspects(one_client.services, "people") == []
    table = one_client.services.table
    (record,) = [record async for record in table.scan(lost, consistent=True)]
    await table.write(lost.delete(lost.item_key(record)))
    (found,) = await audit.find_suspects(one_client.services, "people")
    assert found.startswith("people: the identities that lead to ada differ from those of the profile by ")


async def test_a_lost_gate_is_found(one_client: Client) -> None:
    """Whose members cannot predict, although nothing that was counted is missing."""
    table = one_client.services.table
    event, _ = await EventEditor(one_client).card(10)
    gate = next(gate for gate in await read_gates(table, parse_node_key("Event", event)) if not gate.number)
    assert await breaches_in(one_client.services) == []
    await table.write(GATE.delete(GATE.item_key(gate)))
    (found,) = await breaches_in(one_client.services)
    assert found.endswith(": it has 47 gates, and 48 belong to it: members of the others cannot predict")


async def test_a_lost_public_list_is_found(one_client: Client) -> None:
    """By its name, which no other list could get."""
    key = parse_node_key("WordList", await public_list(one_client))
    table = one_client.services.table
    assert await breaches_in(one_client.services) == []
    await table.write(LIST.delete(LIST.at(list=key)))
    (found,) = await audit.find_suspects(one_client.services, "vocabulary")
    assert found.startswith(f"vocabulary: the public list {key} and its name ")
