"""The real schema with records in memory: every resolver is replaced by one that draws its answer, nothing else is."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from graphql import GraphQLField, GraphQLObjectType, GraphQLSchema

from schema.framework.arguments import parse_value
from server.compiler import plan
from server.compiler.plan import DirectResolver, FieldSource, SchemaResolver, field_source
from tests.property.differential.random_values import RandomValues


class InMemorySchema:
    """A schema whose fields answer from a seed."""

    def __init__(self, schema: GraphQLSchema) -> None:
        self.schema = schema
        self.values = RandomValues(schema, 0.0)
        self._sources: dict[int, FieldSource] = {}
        self._resolvers: list[tuple[GraphQLField, Any]] = []

    @contextmanager
    def installed(self) -> Iterator[None]:
        for type_ in self.schema.type_map.values():
            if isinstance(type_, GraphQLObjectType) and not type_.name.startswith("__"):
                for name, field in type_.fields.items():
                    self._replace(type_, name, field)
        try:
            with patch.object(plan, "field_source", self._source):
                yield
        finally:
            for field, resolve in self._resolvers:
                field.resolve = resolve

    def _source(self, parent: GraphQLObjectType, name: str, field: GraphQLField, schema: GraphQLSchema) -> FieldSource:
        return self._sources.get(id(field)) or field_source(parent, name, field, schema)

    def _replace(self, type_: GraphQLObjectType, name: str, field: GraphQLField) -> None:
        source = field_source(type_, name, field, self.schema)
        if not isinstance(source, DirectResolver | SchemaResolver) or type_ is self.schema.subscription_type:
            return
        self._resolvers.append((field, field.resolve))

        def draw(record: Any) -> Any:
            seed = "root" if record is None else getattr(record, "seed", repr(record))
            return self.values.draw(field.type, seed, name)

        async def draw_later(record: Any) -> Any:
            await asyncio.sleep(0)
            return draw(record)

        is_async = source.resolution.is_async if isinstance(source, DirectResolver) else True
        field.resolve = lambda record, _, **__: (draw_later if is_async else draw)(record)
        if isinstance(source, DirectResolver):
            resolution = _resolution(source.resolution, draw, draw_later)
            self._sources[id(field)] = replace(source, resolution=resolution)


def _resolution(real: Any, draw: Any, draw_later: Any) -> Any:
    """The real resolution with another resolver, which takes any arguments."""

    def resolve(_: Any, record: Any = None, **__: Any) -> Any:
        return draw(record)

    async def resolve_later(_: Any, record: Any = None, **__: Any) -> Any:
        return await draw_later(record)

    async def resolve_batch(_: Any, records: Any, **__: Any) -> list[Any]:
        return list(await asyncio.gather(*map(draw_later, records), return_exceptions=True))

    resolver = resolve_batch if real.is_batched else resolve_later if real.is_async else resolve
    by_name = {name: replace(parameter, parse=parse_value) for name, parameter in real.parameters.by_name.items()}
    return replace(real, resolver=resolver, parameters=replace(real.parameters, window=None, by_name=by_name))
