"""The real schema with records in memory: every resolver is replaced by one that draws its answer, nothing else is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from graphql import GraphQLField, GraphQLObjectType, GraphQLSchema

from schema.fields import Resolution
from server.compiler import plan
from server.compiler.fields import ANYTHING, RESOLVER, Source, source_of
from tests.property.differential.values import Values


class InMemory:
    """A schema whose fields answer from a seed."""

    def __init__(self, schema: GraphQLSchema) -> None:
        self.schema = schema
        self.values = Values(schema, 0.0)
        self._sources: dict[int, Source] = {}
        self._real: list[tuple[GraphQLField, Any]] = []

    @contextmanager
    def installed(self) -> Iterator[None]:
        for type_ in self.schema.type_map.values():
            if isinstance(type_, GraphQLObjectType) and not type_.name.startswith("__"):
                for name, field in type_.fields.items():
                    self._replace(type_, name, field)
        known = plan.source_of
        plan.source_of = lambda parent, name, field, schema: (  # type: ignore[assignment]
            self._sources.get(id(field)) or source_of(parent, name, field, schema)
        )
        try:
            yield
        finally:
            plan.source_of = known
            for field, resolve in self._real:
                field.resolve = resolve

    def _replace(self, type_: GraphQLObjectType, name: str, field: GraphQLField) -> None:
        source = source_of(type_, name, field, self.schema)
        if source.kind not in (RESOLVER, ANYTHING) or type_ is self.schema.subscription_type:
            return
        self._real.append((field, field.resolve))
        resolution = source.resolution

        def drawn(record: Any) -> Any:
            seed = "root" if record is None else getattr(record, "seed", repr(record))
            return self.values.of(field.type, seed, name)

        async def later(record: Any) -> Any:
            await asyncio.sleep(0)
            return drawn(record)

        is_async = resolution.is_async if resolution else True
        field.resolve = lambda record, _, **__: (later if is_async else drawn)(record)
        if resolution is not None:
            self._sources[id(field)] = replace(source, resolution=self._resolution(resolution, drawn, later))

    def _resolution(self, real: Resolution, drawn: Any, later: Any) -> Resolution:
        def at_once(_: Any, record: Any = None, **__: Any) -> Any:
            return drawn(record)

        async def awaited(_: Any, record: Any = None, **__: Any) -> Any:
            return await later(record)

        async def together(_: Any, records: Any, **__: Any) -> list[Any]:
            return list(await asyncio.gather(*map(later, records), return_exceptions=True))

        resolver = together if real.is_together else awaited if real.is_async else at_once
        return replace(real, resolver=resolver, parameters=replace(real.parameters, window=None, nodes={}))
