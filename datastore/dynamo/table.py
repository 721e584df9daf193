"""The table, through which all reads and writes of the service go.

Every call waits for its turn and is paid for (see `budgets`), and is repeated until the request's deadline (see
`retries`). Simultaneous eventually consistent reads are shared (see `SharedReads`). `_pages` is the one loop here that
follows `LastEvaluatedKey`; `bulk.scan_pages` has its own, which gives out the key.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import count
from math import inf
from typing import Any, TypeVar, cast

from botocore.exceptions import BotoCoreError

from datastore.dynamo.attributes import Attribute, Item, codec_for
from datastore.dynamo.budgets import Calls, RateLimit
from datastore.dynamo.entity import (
    INVALIDATION,
    TTL,
    Entity,
    Invalidation,
    ItemKey,
    Partition,
    Slice,
    first_word,
    written_partitions,
)
from datastore.dynamo.errors import ConditionFailed, EngineUnavailable, Throttled
from datastore.dynamo.paging import LARGEST_READ, Page, PageRequest, last_read, merge
from datastore.dynamo.read_cache import ReadCache, Reads
from datastore.dynamo.retries import BATCH_READ, batches, chunks, retry
from datastore.dynamo.transport.client import open_client
from datastore.dynamo.writes import ALWAYS, Check, Delete, Expression, Put, Update, Write, absent, less

R = TypeVar("R")
T = TypeVar("T")

BATCH_WRITE = 25


@dataclass(frozen=True, slots=True)
class _Read:
    """A Query or Scan and the decoder of its items. Simultaneous reads with the same `shared` key are made once."""

    call: Callable[..., Awaitable[Mapping[str, Any]]]
    request: Mapping[str, Any]
    decode: Callable[[Sequence[Item]], Sequence[Any]]
    partition: str = ""
    shared: tuple[Any, ...] | None = None


@dataclass(frozen=True, slots=True)
class _Answer:
    """One answer of the engine: the decoded items, the number of items read, and the key to continue from."""

    items: Sequence[Any]
    read: int
    start: Item | None


@dataclass(frozen=True, slots=True)
class TableAddress:
    """What `open_table` was asked for, so that a process of its own can open the same table."""

    name: str
    url: str | None = None
    region: str | None = None
    sdk_only: bool = False


class Table:
    """One table, reached through a low-level client. Its only state is its shared reads."""

    def __init__(self, client: Any, address: TableAddress, *, consistent: bool = False) -> None:
        self.client = client
        self.address = address
        self.name = address.name
        self._consistent = consistent
        self._shared_reads = SharedReads()

    def consistent(self) -> Table:
        """The same table, with every read consistent that can be: all but those of an index."""
        return Table(self.client, self.address, consistent=True)

    async def aclose(self) -> None:
        """End the reads that are under way."""
        await self._shared_reads.close()

    # ── reading ──

    async def get(self, key: ItemKey[R], *, consistent: bool = False) -> R | None:
        consistent = consistent or self._consistent

        async def attempt() -> R | None:
            answer = await self.client.get_item(TableName=self.name, Key=key.attributes, ConsistentRead=consistent)
            item = answer.get("Item")
            return key.entity.read(item) if item else None

        if consistent:
            return await retry(attempt)
        return await self._shared_reads.read((key.entity, key.pk, key.sk), key.pk, attempt)

    async def get_many(self, keys: Sequence[ItemKey[R]], *, consistent: bool = False) -> list[R | None]:
        """One record or None for each key, in the order of the keys. A repeated key is read once."""
        distinct = {(key.pk, key.sk): key for key in keys}
        records: dict[tuple[str, str], R] = {}
        for batch in chunks((key.attributes for key in distinct.values()), BATCH_READ):
            for item in await self.read_batch(batch, consistent=consistent):
                primary_key = (item["pk"]["S"], item["sk"]["S"])
                records[primary_key] = distinct[primary_key].entity.read(item)
        return [records.get((key.pk, key.sk)) for key in keys]

    async def find_many(self, keys: Sequence[ItemKey[R]], *, consistent: bool = False) -> list[R]:
        """The records of those keys that have one, in their order."""
        return [record for record in await self.get_many(keys, consistent=consistent) if record is not None]

    async def read_batch(self, keys: Sequence[Mapping[str, Attribute]], *, consistent: bool) -> list[Item]:
        """The items of up to 100 keys, in any order; pauses before it asks again for keys that were not read."""
        consistent = consistent or self._consistent
        unprocessed: Mapping[str, Any] = {self.name: {"Keys": keys, "ConsistentRead": consistent}}
        items: list[Item] = []

        async def read() -> None:
            nonlocal unprocessed
            answer = await self.client.batch_get_item(RequestItems=unprocessed)
            items.extend(answer["Responses"].get(self.name, ()))
            unprocessed = answer.get("UnprocessedKeys") or {}
            if unprocessed:
                raise Throttled("a part of a batch was not read")

        await retry(read)
        return items

    async def query(
        self,
        partition: Partition[R],
        *entities: Entity[Any],
        limit: int,
        consistent: bool = False,
        answers: int | None = None,
    ) -> Slice[R]:
        """Up to `limit` records in the partition's order, of several entities if they are given.

        `limit` bounds what is read, and so do `answers` of the engine, each of a megabyte at most: with a filter, fewer
        may come back while more follow.
        """
        items: list[tuple[str, R]] = []
        read, start = 0, None
        pages = self._pages(self._query(partition, entities, consistent=consistent), limit=limit, answers=answers)
        async for answer in pages:
            items += answer.items
            read += answer.read
            start = answer.start
        return Slice(tuple(items), start[partition.sort_attribute]["S"] if start else None, read)

    async def iterate(
        self, partition: Partition[R], *entities: Entity[Any], consistent: bool = False, at_once: int = 200
    ) -> AsyncIterator[R]:
        """Every record of a partition, of several entities if they are given."""
        async for answer in self._pages(self._query(partition, entities, consistent=consistent), at_once):
            for _, record in answer.items:
                yield record

    async def sort_keys_in(self, index: str, partition: Partition[Any]) -> AsyncIterator[str]:
        """The sort key in an index of every item of the table's partition: consistent, as no index is.

        Without the records, this is a fifth of the work.
        """
        async for answer in self._pages(self._query(partition, (), consistent=True, only=f"{index}sk")):
            for sort in answer.items:
                yield sort

    async def page(
        self,
        partitions: Sequence[Partition[R]],
        request: PageRequest,
        *,
        limit: int | None = None,
        combine: Callable[[Sequence[R]], R | None] = last_read,
        consistent: bool = False,
    ) -> Page[R]:
        """One page of a connection: of one partition, or of several in one order (see `merge`).

        At first `limit` records are read from each partition, by default as many as the page may need.
        """
        directed = partitions if request.forward else [partition.reversed() for partition in partitions]
        rest = [partition.past(request.position) for partition in directed]
        limits = [limit or request.wanted] * len(rest)
        merged = await merge(self, rest, limits, request.wanted, combine=combine, consistent=consistent)
        return Page.cut(merged.items, request)

    async def scan(
        self,
        *entities: Entity[Any],
        at_once: int = 500,
        after: ItemKey[Any] | None = None,
        consistent: bool = False,
    ) -> AsyncIterator[Any]:
        """Every record of these entities in the table, in an arbitrary but constant order, for audits and exports.

        `after` continues an earlier scan after its last key; the item need not exist any more.
        """
        async for item in self.scan_items(at_once=at_once, after=after, consistent=consistent):
            for record in _recognised(item, entities):
                yield record

    async def scan_items(
        self, *, at_once: int = 500, after: ItemKey[Any] | None = None, consistent: bool = False
    ) -> AsyncGenerator[Item]:
        """Every item of the whole table as it is stored."""
        start = {"ExclusiveStartKey": after.attributes} if after is not None else {}
        request = {"TableName": self.name, "ConsistentRead": consistent or self._consistent, **start}
        read = _Read(self.client.scan, request, list)
        async for answer in self._pages(read, at_once):
            for item in answer.items:
                yield item

    async def _pages(
        self, read: _Read | None, at_once: int = LARGEST_READ, *, limit: int | None = None, answers: int | None = None
    ) -> AsyncIterator[_Answer]:
        """The answers to a read, until there were so many, `limit` items were read, or nothing is left."""
        if read is None:
            return
        request, left = {**read.request}, limit
        for _ in count() if answers is None else range(answers):
            request["Limit"] = at_once if left is None else min(left, at_once)
            attempt = partial(_fetch, read, dict(request))
            if read.shared is None or "ExclusiveStartKey" in request:
                answer = await retry(attempt)
            else:
                answer = await self._shared_reads.read((*read.shared, request["Limit"]), read.partition, attempt)
            yield answer
            if left is not None:
                left -= answer.read
            if answer.start is None or (left is not None and left <= 0):
                return
            request["ExclusiveStartKey"] = answer.start

    def _query(
        self, partition: Partition[Any], entities: Sequence[Entity[Any]], *, consistent: bool, only: str | None = None
    ) -> _Read | None:
        """The Query of a partition, or of `only` one attribute; None if no key lies between its bounds."""
        if partition.low is not None and partition.high is not None and partition.low > partition.high:
            return None
        consistent = consistent or self._consistent
        condition, values = _key_condition(partition)
        request: dict[str, Any] = {
            "TableName": self.name,
            "KeyConditionExpression": condition,
            "ExpressionAttributeValues": values,
            "ScanIndexForward": not partition.descending,
        }
        if partition.index is not None:
            request["IndexName"] = partition.index
        elif consistent:
            request["ConsistentRead"] = True
        if partition.filter is not ALWAYS:
            expression = Expression(partition.entity.fields, values=values)
            request["FilterExpression"] = partition.filter.render(expression)
            request["ExpressionAttributeNames"] = expression.names
        if only is not None:
            request["ProjectionExpression"] = only
        shared = None
        if not consistent:
            bounds = (partition.index, partition.pk, partition.low, partition.high, partition.descending)
            shared = (*bounds, partition.filter, only, partition.entity, *entities)
        records = partial(_sorted_records, partition.sort_attribute, partition.entity, entities)
        decode = records if only is None else partial(_texts, only)
        return _Read(self.client.query, request, decode, partition.pk, shared)

    # ── writing ──

    async def write(self, write: Put | Update | Delete) -> None:
        """One write; ConditionFailed if its condition does not hold."""
        method = f"{write.operation.lower()}_item"
        await retry(lambda: self._write_once(method, TableName=self.name, **write.parameters()))

    async def try_write(self, write: Put | Update | Delete) -> bool:
        """One write that is left out if its condition does not hold; whether it did."""
        try:
            await self.write(write)
        except ConditionFailed:
            return False
        return True

    async def put_once(self, entity: Entity[R], record: R) -> R:
        """Write a record unless its item exists; what is stored then."""
        try:
            await self.write(entity.put(record, when=absent()))
        except ConditionFailed as failed:
            return failed.stored(entity) or record
        return record

    async def write_back(self, write: Update, entity: Entity[R]) -> R:
        """One update; returns the record after it."""
        request = {"TableName": self.name, "ReturnValues": "ALL_NEW", **write.parameters()}
        answer = await retry(lambda: self._write_once("update_item", **request))
        return entity.read(answer["Attributes"])

    async def transact(self, *writes: Write) -> None:
        """All of the writes or none. ConditionFailed has the indexes of the writes whose condition did not hold."""
        if len(writes) == 1 and not isinstance(writes[0], Check):
            await self.write(writes[0])
            return

        async def attempt() -> None:  # encoded again each time: a condition may name the time of the attempt
            items = [{write.operation: {"TableName": self.name, **write.parameters()}} for write in writes]
            await self._write_once("transact_write_items", TransactItems=items)

        await retry(attempt)

    async def write_many(self, writes: Iterable[Put | Delete]) -> None:
        """Many unconditional writes, in any order. A part of them may be repeated."""
        requests = (
            {"PutRequest": {"Item": write.item}} if isinstance(write, Put) else {"DeleteRequest": {"Key": write.key}}
            for write in writes
        )
        for batch in chunks(requests, BATCH_WRITE):
            await self.write_batch(batch)

    async def clear(self, partition: Partition[Any], *entities: Entity[Any]) -> None:
        """Delete every item between the bounds of a partition of the table, of these entities if any. Repeatable."""
        entity, pk = partition.entity, partition.pk
        async for sorts in batches(self.sort_keys_in("", partition), BATCH_WRITE):
            gone = [sort for sort in sorts if not entities or any(each.recognises(pk, sort) for each in entities)]
            await self.write_many(entity.delete(ItemKey(entity, pk, sort)) for sort in gone)

    async def remove_expired(self, by: datetime) -> int:
        """Delete what has expired by then, unless it was renewed meanwhile; how many items. DynamoDB does so by itself.

        One Scan of the whole table, of which the engine returns keys alone, and a write for each item.
        """
        expression, has_expired = Expression({TTL: codec_for(int)}), less(TTL, int(by.timestamp()))
        request = {
            "TableName": self.name,
            "FilterExpression": has_expired.render(expression),
            "ExpressionAttributeNames": expression.names,
            "ExpressionAttributeValues": expression.values,
            "ProjectionExpression": "pk, sk",
        }
        removed = 0
        async for answer in self._pages(_Read(self.client.scan, request, list)):
            for key in answer.items:
                removed += await self.try_write(Delete(expression.fields, key, has_expired))
        return removed

    async def write_batch(self, requests: Sequence[Mapping[str, Any]]) -> None:
        """Up to 25 put or delete requests; pauses before it sends those again that were not carried out."""
        unprocessed: Mapping[str, Any] = {self.name: requests}

        async def write() -> None:
            nonlocal unprocessed
            answer = await self._write_once("batch_write_item", RequestItems=unprocessed)
            unprocessed = answer.get("UnprocessedItems") or {}
            if unprocessed:
                raise Throttled("a part of a batch was not written")

        await retry(write)

    async def _write_once(self, method: str, **parameters: Any) -> Any:
        try:
            return await getattr(self.client, method)(**parameters)
        finally:  # also after a failure: the write may have been applied
            self._shared_reads.invalidate(written_partitions(parameters))

    # ── the table itself ──

    async def describe(self) -> Mapping[str, Any]:
        answer = await retry(self.client.describe_table, TableName=self.name)
        return cast("Mapping[str, Any]", answer["Table"])


@asynccontextmanager
async def open_table(
    name: str, *, url: str | None = None, region: str | None = None, sdk_only: bool = False
) -> AsyncIterator[Table]:
    """The table at an engine's URL; without one, at AWS by the SDK's own chain of settings."""
    async with AsyncExitStack() as stack:
        try:
            client = await stack.enter_async_context(open_client(name, url=url, region=region, sdk_only=sdk_only))
        except BotoCoreError as error:  # such as an unknown profile
            raise EngineUnavailable(f"the AWS SDK's settings do not suffice: {error}") from error
        address = TableAddress(name, url, region, sdk_only)
        yield await stack.enter_async_context(aclosing(Table(Calls(client), address)))


async def _fetch(read: _Read, request: Mapping[str, Any]) -> _Answer:
    answer = await read.call(**request)
    items = answer["Items"]
    return _Answer(read.decode(items), int(answer.get("ScannedCount", len(items))), answer.get("LastEvaluatedKey"))


def _key_condition(partition: Partition[Any]) -> tuple[str, dict[str, Attribute]]:
    """The condition and its values. No key attribute has one of DynamoDB's reserved words as its name."""
    pk, sk, low, high = f"{partition.index or ''}pk", partition.sort_attribute, partition.low, partition.high
    condition = f"{pk} = :pk"
    values: dict[str, Attribute] = {":pk": {"S": partition.pk}}
    if low is not None:
        values[":low"] = {"S": low}
        condition += f" AND {sk} >= :low" if high is None else f" AND {sk} BETWEEN :low AND :high"
    if high is not None:
        values[":high"] = {"S": high}
        condition += f" AND {sk} <= :high" if low is None else ""
    return condition, values


def _texts(attribute: str, items: Sequence[Item]) -> list[str]:
    return [item[attribute]["S"] for item in items]


def _sorted_records(
    attribute: str, entity: Entity[Any], entities: Sequence[Entity[Any]], items: Sequence[Item]
) -> list[tuple[str, Any]]:
    """The sort keys and records of items: of the partition's entity, or of several if they are given."""
    if not entities:
        read = entity.read
        return [(item[attribute]["S"], read(item)) for item in items]
    return [(item[attribute]["S"], record) for item in items for record in _recognised(item, entities)]


def _recognised(item: Item, entities: Sequence[Entity[Any]]) -> Iterator[Any]:
    """The item's record, if it is of one of the entities."""
    pk, sk = item["pk"]["S"], item["sk"]["S"]
    for entity in entities:
        if entity.recognises(pk, sk):
            yield entity.read(item)
            return


# ── shared reads ──
# Eventually consistent reads of the table, shared by simultaneous requests through a `ReadCache`.
#
# A write of this process forgets what it may have changed. So sharing hides no acknowledged write of this process; the
# engine itself may still be behind. Consistent reads are not shared here: those have kinds of their own.
#
# One attempt is shared, not its retries: each request repeats a failed attempt until its own deadline, so no request
# fails because another one ran out of time. The transport's timeouts bound an attempt, and its units are metered for
# the request that began it. A shared answer must not be changed.
#
# Equal reads begin at most four times a second, after a burst of ten, and once after a write of this process. In
# between, requests get the last answer, at most a quarter of a second old; an index may be further behind. So a page
# that everybody asks for leaves its partition room, whose 3,000 read units a second all processes share.

INTERVAL = 0.25
"""Seconds between equal reads, after a burst of them."""
BURST = 10
_MOST = 1_000
"""Answers of a quarter of a second under one first word."""


class _SharedRead:
    """A read and how it is made. Equal keys mean equal reads; they are long, so their hash is computed once."""

    __slots__ = ("attempt", "hash", "key")

    def __init__(self, key: Hashable, attempt: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        self.key = key
        self.attempt = attempt
        self.hash = hash(key)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SharedRead) and self.key == other.key


class SharedReads:
    """The reads of one table, by the first word of their partition."""

    def __init__(
        self, invalidation: Invalidation = INVALIDATION, *, burst: int = BURST, interval: float = INTERVAL
    ) -> None:
        self._cache = ReadCache()
        self._invalidation = invalidation
        self._interval = interval
        self._kinds: dict[str, Reads[_SharedRead, Any]] = {}
        self._begun = RateLimit(burst, burst * interval)

    async def read(self, key: Hashable, partition: str, attempt: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The answer to an attempt for this key, repeated until the deadline; of many equal ones, the last answer."""
        word = first_word(partition)
        kind = self._kinds.get(word)
        if kind is None:
            kind = self._kinds[word] = self._cache.each("table", self._attempt, kept=self._interval, most=_MOST)
        read = _SharedRead((partition, key), attempt)
        too_often = self._begun.wait(read.hash, self._cache.clock())
        answer: Any = kind.known(read, self._interval) if too_often else None
        if answer is None:
            answer = await retry(kind.attempt, read, inf)  # it joins one that is under way
        else:
            await asyncio.sleep(0)  # so that a caller that reads in a loop lets others run
        return cast("T", answer)

    async def _attempt(self, read: _SharedRead) -> Any:
        self._begun.hit(read.hash, self._cache.clock())
        return await read.attempt()

    def invalidate(self, partitions: Iterator[str]) -> None:
        """After a write under these partition keys, later reads get no answer that may have missed it."""
        for partition in partitions:
            words = self._invalidation.words(first_word(partition))
            for word in self._kinds if words is None else words:
                if word in self._kinds:
                    self._kinds[word].forget_all()

    async def close(self) -> None:
        await self._cache.close()
