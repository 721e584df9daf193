"""The table: every read and write of the service goes through here.

| method         | DynamoDB                | followed up here                                    |
|----------------|-------------------------|-----------------------------------------------------|
| get            | GetItem                 |                                                     |
| get_many       | BatchGetItem, by 100    | UnprocessedKeys                                     |
| slice          | Query                   | pages cut short at 1 MB                             |
| walk           | Query                   | all of a partition, page by page, in flat memory    |
| sorts          | Query                   | the sort keys alone, page by page                   |
| collection     | Query                   | one item collection of several entities             |
| stroll         | Query                   | the same, page by page, in flat memory              |
| page           | Query                   | one connection page: the window, cursors            |
| write          | Put/Update/DeleteItem   | conditions                                          |
| transact       | TransactWriteItems      | conflicts, also mixed with failed conditions        |
| write_many     | BatchWriteItem, by 25   | UnprocessedItems                                    |
| scan           | Scan                    | the whole table, for audit and export               |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from datastore.dynamo import capacity
from datastore.dynamo.conditions import Expression
from datastore.dynamo.errors import Throttled
from datastore.dynamo.invalidation import written_partitions
from datastore.dynamo.paging import Page
from datastore.dynamo.retries import persist
from datastore.dynamo.shared_reads import SharedReads
from datastore.dynamo.transport.signing import OPERATIONS, WRITES, request_body
from datastore.dynamo.writes import Check, Delete, Put, Update

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence

    from datastore.dynamo.attributes import Attribute, Item
    from datastore.dynamo.entity import Entity, ItemKey, Partition
    from datastore.dynamo.paging import Window
    from datastore.dynamo.writes import Write

R = TypeVar("R")

BATCH_READ = 100
BATCH_WRITE = 25
LARGEST_LIMIT = 1000
_OPERATIONS = {Put: "put_item", Update: "update_item", Delete: "delete_item"}


@dataclass(frozen=True, slots=True)
class Slice(Generic[R]):
    """Consecutive records of a partition; `more` says whether others may follow. `read` counts filtered ones too."""

    records: tuple[R, ...]
    more: bool
    last: str | None
    read: int


class Table:
    """One table behind a low-level client. Holds no state of its own but the reads that are under way."""

    def __init__(self, client: Any, name: str) -> None:
        self.client = client
        self.name = name
        self._shared_reads = SharedReads()

    async def aclose(self) -> None:
        """End the reads that are under way."""
        await self._shared_reads.close()

    # ── reading ──

    async def get(self, key: ItemKey[R], *, consistent: bool = False) -> R | None:
        if consistent:
            return await persist(lambda: self._get(key, consistent=True))
        attempt = lambda: self._get(key, consistent=False)  # noqa: E731 - for one use
        return await self._shared_reads.read((key.entity, key.pk, key.sk), key.pk, attempt)

    async def _get(self, key: ItemKey[R], *, consistent: bool) -> R | None:
        answer = await self._once("get_item", TableName=self.name, Key=key.attributes, ConsistentRead=consistent)
        item = answer.get("Item")
        return key.entity.read(item) if item else None

    async def get_many(self, keys: Sequence[ItemKey[R]], *, consistent: bool = False) -> list[R | None]:
        """One record or None for each key, in the order of the keys. A key given twice is read once."""
        places = {(key.pk, key.sk): key for key in keys}
        found: dict[tuple[str, str], R] = {}
        distinct = list(places.values())
        for start in range(0, len(distinct), BATCH_READ):
            wanted = [key.attributes for key in distinct[start : start + BATCH_READ]]
            async for item in self._batch_read(wanted, consistent=consistent):
                place = (item["pk"]["S"], item["sk"]["S"])
                found[place] = places[place].entity.read(item)
        return [found.get((key.pk, key.sk)) for key in keys]

    async def _batch_read(self, wanted: Sequence[Mapping[str, Attribute]], *, consistent: bool) -> AsyncIterator[Item]:
        request: Mapping[str, Any] = {self.name: {"Keys": wanted, "ConsistentRead": consistent}}

        async def read() -> Any:
            answer = await self._once("batch_get_item", RequestItems=request)
            if not answer["Responses"].get(self.name) and answer.get("UnprocessedKeys"):
                message = "no key of a batch was read"
                raise Throttled(message)
            return answer

        while request:
            answer = await persist(read)
            for item in answer["Responses"].get(self.name, ()):
                yield item
            request = answer.get("UnprocessedKeys") or {}

    async def slice(self, partition: Partition[R], limit: int, *, consistent: bool = False) -> Slice[R]:
        """Up to `limit` records in the partition's order.

        `limit` bounds what is read: with a filter, fewer may come back while more follow. Answers that the engine
        cuts short at 1 MB are followed up.
        """
        records: list[R] = []
        start: Item | None = None
        read, last = 0, None
        while not partition.empty:
            answer = await self._query(partition, min(limit - read, LARGEST_LIMIT), start, consistent=consistent)
            read += int(answer.get("ScannedCount", len(answer["Items"])))
            records += _records(answer, partition.entity)
            start = answer.get("LastEvaluatedKey")
            last = start[f"{partition.index or ''}sk"]["S"] if start else None
            if start is None or read >= limit:
                break
        return Slice(tuple(records), start is not None, last, read)

    async def walk(self, partition: Partition[R], *, consistent: bool = False, by: int = 200) -> AsyncIterator[R]:
        """Every record of a partition, in flat memory."""
        start: Item | None = None
        while not partition.empty:
            answer = await self._query(partition, by, start, consistent=consistent)
            for item in answer["Items"]:
                yield partition.entity.read(item)
            start = answer.get("LastEvaluatedKey")
            if start is None:
                return

    async def sorts(self, partition: Partition[Any]) -> AsyncIterator[str]:
        """Every sort key of a partition and nothing else of its records: a fifth of the work of reading them."""
        start: Item | None = None
        attribute = f"{partition.index or ''}sk"
        while not partition.empty:
            answer = await self._query(partition, LARGEST_LIMIT, start, consistent=False, show=attribute)
            for item in answer["Items"]:
                yield item[attribute]["S"]
            start = answer.get("LastEvaluatedKey")
            if start is None:
                return

    async def collection(
        self, partition: Partition[Any], *entities: Entity[Any], consistent: bool = False, limit: int | None = None
    ) -> list[Any]:
        """The records of one item collection, each read by the entity that recognises its key; others are left out.

        `limit` bounds how many are read.
        """
        items = self._items(partition, LARGEST_LIMIT, consistent=consistent, limit=limit)
        return [record async for item in items for record in _recognised(item, entities)]

    async def collection_up_to(
        self, most: int, partition: Partition[Any], *entities: Entity[Any], consistent: bool = False
    ) -> list[Any] | None:
        """The same in one Query; None when there are more items than that, or more than an answer's 1 MB."""
        answer = await self._query(partition, most, None, consistent=consistent)
        if answer.get("LastEvaluatedKey"):
            return None
        return [record for item in answer["Items"] for record in _recognised(item, entities)]

    async def stroll(
        self, partition: Partition[Any], *entities: Entity[Any], consistent: bool = False, by: int = 200
    ) -> AsyncIterator[Any]:
        """As `walk`, through a partition that several entities share; what none of them recognises is left out."""
        async for item in self._items(partition, by, consistent=consistent):
            for record in _recognised(item, entities):
                yield record

    async def _items(
        self, partition: Partition[Any], by: int, *, consistent: bool, limit: int | None = None
    ) -> AsyncIterator[Item]:
        start: Item | None = None
        left = limit
        while True:
            answer = await self._query(partition, by if left is None else min(by, left), start, consistent=consistent)
            for item in answer["Items"]:
                yield item
            start = answer.get("LastEvaluatedKey")
            if left is not None:
                left -= len(answer["Items"])
            if start is None or (left is not None and left <= 0):
                return

    async def page(self, partition: Partition[R], window: Window, scope: str, *, consistent: bool = False) -> Page[R]:
        """One page of a connection: a partition seen through a window, its cursors bound to `scope`."""
        position = window.position(scope)
        seen = partition if window.forward else partition.turned()
        found = await self.slice(seen.past(position), window.size + 1, consistent=consistent)
        return Page.cut(found.records, window, scope, partition.sort_of)

    async def _query(
        self, partition: Partition[Any], limit: int, start: Item | None, *, consistent: bool, show: str | None = None
    ) -> Any:
        into = Expression(partition.entity)
        prefix = partition.index or ""
        condition = f"{into.name(prefix + 'pk')} = {into.attribute({'S': partition.pk})}"
        low, high = partition.low, partition.high
        if low is not None or high is not None:
            sort = into.name(prefix + "sk")
            bounds = [into.attribute({"S": bound}) for bound in (low, high) if bound is not None]
            if low is None or high is None:
                condition += f" AND {sort} {'<=' if low is None else '>='} {bounds[0]}"
            else:
                condition += f" AND {sort} BETWEEN {bounds[0]} AND {bounds[1]}"
        request: dict[str, Any] = {"Limit": limit, "ScanIndexForward": not partition.descending}
        if only := partition.only.spell(into):
            request["FilterExpression"] = only
        if show is not None:
            request["ProjectionExpression"] = into.name(show)
        if partition.index is not None:
            request["IndexName"] = partition.index
        elif consistent:
            request["ConsistentRead"] = True
        if start is not None:
            request["ExclusiveStartKey"] = start
        request.update(TableName=self.name, KeyConditionExpression=condition, **into.parameters())
        if consistent or start is not None:
            return await self._call("query", **request)
        attempt = lambda: self._once("query", **request)  # noqa: E731 - for one use
        return await self._shared_reads.read(request_body(request), partition.pk, attempt)

    async def scan(
        self, *entities: Entity[Any], by: int = 500, after: ItemKey[Any] | None = None
    ) -> AsyncIterator[Any]:
        """Every record of these entities in the whole table, in no order but always the same. For audits and exports.

        `after` goes on behind a place where a scan was before; its item need not be there any more.
        """
        start: Item | None = after.attributes if after is not None else None
        while True:
            request = {"ExclusiveStartKey": start} if start else {}
            answer = await self._call("scan", TableName=self.name, Limit=by, **request)
            for item in answer["Items"]:
                for record in _recognised(item, entities):
                    yield record
            start = answer.get("LastEvaluatedKey")
            if start is None:
                return

    # ── writing ──

    async def write(self, write: Put | Update | Delete) -> None:
        """One write; ConditionFailed if its condition does not hold."""
        method = _OPERATIONS[type(write)]
        # Encoded anew for each attempt: a condition on the time must hold when it is sent, not when it was first tried.
        await persist(lambda: self._once(method, TableName=self.name, **write.parameters()))

    async def write_back(self, write: Update, kind: Entity[R]) -> R:
        """One update, answered with the record as it is afterwards."""
        answer = await self._call("update_item", TableName=self.name, ReturnValues="ALL_NEW", **write.parameters())
        return kind.read(answer["Attributes"])

    async def transact(self, *writes: Write) -> None:
        """All of the writes or none. ConditionFailed names the places of those whose condition did not hold."""
        if len(writes) == 1 and not isinstance(writes[0], Check):
            await self.write(writes[0])
            return

        async def attempt() -> None:
            items = [{write.operation: {"TableName": self.name, **write.parameters()}} for write in writes]
            await self._once("transact_write_items", TransactItems=items)

        await persist(attempt)

    async def write_many(self, writes: Iterable[Put | Delete]) -> None:
        """Many unconditional writes, no order among them. Repeating a part of them must do no harm."""
        batch: list[Mapping[str, Any]] = []
        for write in writes:
            batch.append(
                {"PutRequest": {"Item": write.item}}
                if isinstance(write, Put)
                else {"DeleteRequest": {"Key": write.key.attributes}}
            )
            if len(batch) == BATCH_WRITE:
                await self._batch_write(batch)
                batch = []
        if batch:
            await self._batch_write(batch)

    async def _batch_write(self, batch: Sequence[Mapping[str, Any]]) -> None:
        left: Mapping[str, Any] = {self.name: batch}

        async def write() -> None:
            nonlocal left
            answer = await self._once("batch_write_item", RequestItems=left)
            left = answer.get("UnprocessedItems") or {}
            if left:
                message = "a part of a batch was not written"
                raise Throttled(message)

        await persist(write)

    # ── the table itself ──

    async def describe(self) -> Mapping[str, Any]:
        answer = await self._call("describe_table", TableName=self.name)
        return cast("Mapping[str, Any]", answer["Table"])

    async def _call(self, method: str, **parameters: Any) -> Any:
        return await persist(lambda: self._once(method, **parameters))

    async def _once(self, method: str, **parameters: Any) -> Any:
        operation = OPERATIONS.get(method)
        if operation is None:
            return await getattr(self.client, method)(**parameters)
        parameters["ReturnConsumedCapacity"] = "TOTAL"
        try:
            answer = await getattr(self.client, method)(**parameters)
        finally:
            if operation in WRITES:  # also when it failed: it may have been applied
                self._shared_reads.invalidate(written_partitions(parameters))
        capacity.record(operation, answer)
        return answer


def _recognised(item: Item, entities: Sequence[Entity[Any]]) -> Iterator[Any]:
    """The item's record, if it is of one of the entities."""
    pk, sk = item["pk"]["S"], item["sk"]["S"]
    for entity in entities:
        if entity.recognises(pk, sk):
            yield entity.read(item)
            return


def _records(answer: dict[Any, Any], entity: Entity[R]) -> list[R]:
    """The records of an answer, made once however many share it."""
    made: list[R] | None = answer.get(entity)
    if made is None:
        made = answer[entity] = [entity.read(item) for item in answer["Items"]]
    return made
