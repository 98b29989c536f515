"""Listings from Cosmos DB: queries over all partitions of a container, of ids and partition keys only.

No query has an ORDER BY: entities' containers are the user's, and the service refuses to order by paths without an index.
Without an index on the paths named here a listing reads the whole container, which is right and dear.
"""

from __future__ import annotations

import asyncio
import http
import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from exactlyonce.errors import ConfigurationError, TryAgainLater
from exactlyonce.records.companions import KIND
from exactlyonce.records.ledger import LEDGER, read_entity
from exactlyonce.records.library import BOOKS, Search, read_book
from exactlyonce.stores.cosmos.partition import (
    CosmosContainers,
    CosmosPartition,
    Documents,
    EntityContainer,
    from_library,
    without_system,
)
from exactlyonce.stores.cosmos.replies import FAILURES, after_query
from exactlyonce.stores.port import (
    Condition,
    ListedBook,
    ListedMessage,
    entity_named,
    listed_message,
    oldest_first,
    text_of,
)
from exactlyonce.values.envelope import EntityRef, PartitionValue
from exactlyonce.values.frozen_json import Json

_PAGE: Final = 1_000
_MOST_SEARCHES: Final = 50
"""Most books in a query."""
_log = logging.getLogger(__name__)
_OWN: Final = f'c.{LEDGER}.type IN ("", @type)'
_THERE: Final = (
    f"NOT IS_DEFINED(c.{KIND}) AND (NOT IS_DEFINED(c.{LEDGER}) OR ({_OWN} AND NOT IS_DEFINED(c.{LEDGER}.deleted)))"
)
"""Whether a document is an entity of the type, and no tombstone or companion."""
_PLAIN: Final = "c.id, c.kind, c.message, c.tx, c.version, c.at, c._ts"
_COMPANION: Final = f"c.id, c.{KIND} AS kind, c.message, c.tx, c.version, c.at, c.source, c.owing_since, c._ts"

Row = dict[str, Any]


class CosmosListing(CosmosContainers):
    """The listings. The time limit is for a page."""

    async def books(self, since: int) -> AsyncIterator[tuple[ListedBook, ...]]:
        query = "SELECT * FROM c WHERE c.kind = @kind AND c._ts >= @since AND NOT IS_DEFINED(c.ended)"
        async for rows in self._pages(self._library_container, query, {"@kind": "book", "@since": since}, (BOOKS,)):
            yield tuple(_listed_book(row) for row in rows)

    async def owing(self, type: str, searches: tuple[Search, ...]) -> AsyncIterator[tuple[tuple[EntityRef, str], ...]]:
        place = self._containers[type]
        for first in range(0, len(searches), _MOST_SEARCHES):
            condition, parameters = _asked(searches[first : first + _MOST_SEARCHES])
            query = (
                f"SELECT c.id, {_values(place)} AS place, e.tx FROM c JOIN e IN c.{LEDGER}.outbox "  # noqa: S608
                f"WHERE {_OWN} AND ({condition})"
            )
            async for rows in self._pages(place.container, query, {"@type": type, **parameters}):
                yield tuple((entity, row["tx"]) for entity, row in _named(place, rows))

    async def due(self, type: str, now: datetime) -> AsyncIterator[tuple[EntityRef, ...]]:
        place = self._containers[type]
        query = (
            f"SELECT DISTINCT c.id, {_values(place)} AS place FROM c JOIN k IN c.{LEDGER}.kept "  # noqa: S608
            f"WHERE {_OWN} AND k.due < @now"
        )
        async for rows in self._pages(place.container, query, {"@type": type, "@now": text_of(now)}):
            yield tuple(entity for entity, _ in _named(place, rows))

    async def companions(self, type: str, before: datetime) -> AsyncIterator[tuple[EntityRef, ...]]:
        place = self._containers[type]
        query = (
            "SELECT c.id, c.entity, c.owing_since FROM c "  # noqa: S608
            f"WHERE IS_DEFINED(c.{KIND}) AND c.owing_since < @before"
        )
        async for rows in self._pages(place.container, query, {"@before": text_of(before)}):
            yield oldest_first([(entity, row["owing_since"]) for entity, row in _owners(place, rows)])

    async def holding(self, type: str, before: datetime) -> AsyncIterator[tuple[EntityRef, ...]]:
        place = self._containers[type]
        parameters: dict[str, str | int] = {
            "@type": type,
            "@before": text_of(before),
            "@left_alone": int(before.timestamp()),
        }
        query = (
            f"SELECT c.id, {_values(place)} AS place FROM c JOIN r IN c.{LEDGER}.receptions "  # noqa: S608
            f"WHERE {_OWN} AND IS_DEFINED(r.held[0]) AND (r.gap_since < @before OR c._ts < @left_alone)"
        )
        async for rows in self._pages(place.container, query, parameters):
            yield oldest_first([(entity, "") for entity, _ in _named(place, rows)])

    async def bodies(
        self, type: str, condition: Condition, partition: tuple[PartitionValue, ...] | None
    ) -> AsyncIterator[tuple[tuple[EntityRef, Json], ...]]:
        place = self._containers[type]
        parameters = {"@type": type, **{f"@{name}": value for name, value in condition.parameters.items()}}
        query = f"SELECT c AS document, c.id, {_values(place)} AS place FROM c WHERE {_THERE}"  # noqa: S608
        if condition.text:
            query += f" AND ({condition.text})"
        try:
            async for rows in self._pages(place.container, query, parameters, partition):
                views = [
                    (ref, read_entity(ref, Json.of(without_system(row["document"]))))
                    for ref, row in _named(place, rows)
                ]
                yield tuple((ref, view.body) for ref, view in views if view.body is not None)
        except ConfigurationError as error:
            if getattr(error.__context__, "status_code", None) == http.HTTPStatus.BAD_REQUEST:
                raise ConfigurationError(
                    f"Cosmos DB refuses the query of {type!r} with the condition {condition.text!r}. Write it as after WHERE, "
                    "with c for the document and @name for parameters, each of which needs a value."
                ) from error
            raise

    async def parked(self) -> AsyncIterator[tuple[ListedMessage, ...]]:
        query = "SELECT c.entity, c.message, c.reason, c.at, c.place FROM c WHERE c.kind = @kind"
        async for rows in self._pages(self._library_container, query, {"@kind": "parked"}):
            yield tuple(map(listed_message, rows))

    async def belongings(self, entity: EntityRef) -> tuple[Row, ...]:
        place = self._containers[entity.type]
        apart = await self._all(entity, self._library_container, (entity.key,), f"SELECT TOP 1000 {_PLAIN} FROM c", {})  # noqa: S608
        if not place.companions:
            return apart
        query = f"SELECT TOP 1000 {_COMPANION} FROM c WHERE IS_DEFINED(c.{KIND}) AND c.entity = @entity"  # noqa: S608
        companions = await self._all(entity, place.container, entity.partition, query, {"@entity": entity.key})
        return (*apart, *companions)

    async def _all(
        self, entity: EntityRef, container: str, key: tuple[Any, ...], query: str, parameters: Mapping[str, str | int]
    ) -> tuple[Row, ...]:
        """The results of a query of a single partition."""
        reply = await CosmosPartition(self._connection, container, key, self._time_limit).query(query, parameters, None)
        if not isinstance(reply, Documents):
            raise TryAgainLater(f"What the library keeps of entity {entity} could not be read.")
        return reply.properties

    async def _pages(
        self, container: str, query: str, values: Mapping[str, Any], partition: tuple[PartitionValue, ...] | None = None
    ) -> AsyncIterator[list[Row]]:
        """The pages of a query over a single partition, or all, each within the time limit."""
        parameters: list[dict[str, object]] = [{"name": name, "value": value} for name, value in values.items()]
        try:
            place = await asyncio.wait_for(self._connection.container(container), self._time_limit)
            within: dict[str, Any] = {}
            if partition is not None:
                within["partition_key"] = partition[0] if len(partition) == 1 else list(partition)
            pages = place.query_items(query, parameters=parameters, max_item_count=_PAGE, **within).by_page()
            while True:
                page = await asyncio.wait_for(anext(pages), self._time_limit)
                yield [row async for row in page]
        except StopAsyncIteration:
            return
        except FAILURES as error:
            after_query(error)  # It raises faults that only an operator can correct.
            raise TryAgainLater(
                f"The container {container!r} could not be searched ({type(error).__name__}). What was found so far is no less "
                "true; search again for the rest."
            ) from error


def _asked(searches: tuple[Search, ...]) -> tuple[str, dict[str, str]]:
    """The condition on an entry for its searched transaction, and the values of its parameters."""
    conditions: list[str] = []
    parameters: dict[str, str] = {}
    for number, search in enumerate(searches):
        if search.range is not None:
            parameters[f"@after{number}"], parameters[f"@before{number}"] = search.range
            conditions.append(f"(e.tx > @after{number} AND e.tx < @before{number})")
        parameters |= {f"@tx{number}_{place}": tx for place, tx in enumerate(search.transactions)}
    if names := [name for name in parameters if name.startswith("@tx")]:
        conditions.append(f"e.tx IN ({', '.join(names)})")
    return " OR ".join(conditions), parameters


def _listed_book(row: Row) -> ListedBook:
    book = read_book(from_library(row))
    return ListedBook(book, row["_etag"], book.written or row["_ts"])


def _values(place: EntityContainer) -> str:
    """The values of the partition key, as an array, whatever names the paths have."""
    quoted = ("".join(f'["{name}"]' for name in path[1:].split("/")) for path in place.paths)
    return f"[{', '.join(f'c{item}' for item in quoted)}]"


def _named(place: EntityContainer, rows: Iterable[Row]) -> Iterator[tuple[EntityRef, Row]]:
    """The entities named by rows. The service knows doubles only: 1.0 and 1 are equal."""
    for row in rows:
        values = [int(item) if isinstance(item, float) and item.is_integer() else item for item in row["place"]]
        if len(values) == len(place.paths):
            yield EntityRef(place.type, tuple(values), row["id"]), row
        else:
            _log.warning("document %r in %r lacks a value of its partition key", row["id"], place.container)


def _owners(place: EntityContainer, rows: Iterable[Row]) -> Iterator[tuple[EntityRef, Row]]:
    """The entities of this type named by records. The container is the user's, so rows may name no entity."""
    for row in rows:
        entity = _owner(row)
        if entity is None:
            _log.warning("document %r in %r names no entity", row["id"], place.container)
        elif entity.type == place.type:
            yield entity, row


def _owner(row: Row) -> EntityRef | None:
    try:
        return entity_named(row["entity"])
    except (KeyError, TypeError, ValueError):
        return None
