"""What a query of the jobs would give, of documents that nobody has to store: the local Cosmos' own query engine answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from exactlyonce.records.ledger import Mark, split, written
from exactlyonce.stores.memory.store import MemoryStore
from local_cosmos.query.aggregates import selected
from local_cosmos.query.execution import given, matches
from local_cosmos.query.parser import parse_query
from local_cosmos.query.sources import Sources
from local_cosmos.values import serialise
from spark_jobs.source.port import RAW
from spark_jobs.transforms.documents import named, unnamed
from spark_jobs.transforms.schemas import LIBRARY, OF_ENTITY_CONTAINERS, OF_THE_LIBRARY, Asked, selection

_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


@dataclass(frozen=True)
class Stored:
    """A document as the service has it.

    Attributes:
        place: as the jobs call its container.
        document: with `_etag`, `_ts` and the properties of its partition key.
        paths: of the container's partition key.
    """

    place: str
    document: dict[str, Any]
    paths: tuple[str, ...] = ("/pk",)

    @property
    def asked(self) -> tuple[Asked, ...]:
        return OF_THE_LIBRARY if self.place == LIBRARY else OF_ENTITY_CONTAINERS


@cache
def _compiled(text: str) -> tuple[Any, Callable[[Any], Any]]:
    query = parse_query(text)
    return query, Sources(query, given({}, now=0)).compiler.evaluator(selected(query.selection))


def answers(text: str, found: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The JSON text of each row that a query gives of documents."""
    query, value_of = _compiled(text)
    return (serialise(value_of(item)).decode() for item in found if matches(query, item, now=0))


@cache
def _text(asked: Asked, paths: tuple[str, ...]) -> str:
    chosen = selection(asked, paths)
    return f"SELECT {', '.join(chosen.columns)} FROM c WHERE {chosen.where}"  # noqa: S608  # Both are ours.


def rows(stored: Iterable[Stored]) -> Iterator[tuple[str, str]]:
    """Place and JSON text of each row that the selections of its container give of a document."""
    for item in stored:
        for asked in item.asked:
            yield from ((item.place, raw) for raw in answers(_text(asked, item.paths), [item.document]))


def documents(raw: DataFrame, place: str) -> DataFrame:
    """The documents of rows, with all their names: `schemas.DOCUMENT`."""
    found = unnamed(raw, place)
    return found.drop("parts") if place == LIBRARY else named(found)  # Its documents hold keys.


def parsed(spark: SparkSession, found: Iterable[tuple[str, str]]) -> DataFrame:
    """The documents that these rows are: place and JSON text of each."""
    by_place: dict[str, list[tuple[str]]] = {}
    for place, raw in found:
        by_place.setdefault(place, []).append((raw,))
    frames = [documents(spark.createDataFrame(raws, RAW), place) for place, raws in by_place.items()]
    return reduce(DataFrame.unionByName, frames)


def stored_in(
    store: MemoryStore, paths: Mapping[str, tuple[str, ...]], until: Mapping[str, int] | None = None
) -> Iterator[Stored]:
    """What a memory store holds, as the service would.

    Args:
        store: to go through.
        paths: partition key paths by entity type.
        until: by place how many of the store's writes its read comes after; all, where nothing is said.
    """
    ends = until or {}
    for (type, *values), partition in store.entities.items():
        place = str(type)
        for document in documents_in(partition, keys_of(paths[place], values), ends.get(place)):
            yield Stored(place, document, paths[place])
    for key, partition in store.library.items():
        for document in documents_in(partition, {"pk": key}, ends.get(LIBRARY)):
            yield Stored(LIBRARY, document)


def keys_of(paths: Sequence[str], values: Sequence[object]) -> dict[str, object]:
    """The properties of a partition key, all at the top of the document."""
    return {path[1:]: value for path, value in zip(paths, values, strict=True)}


def documents_in(partition: Any, keys: Mapping[str, object], until: int | None = None) -> Iterator[dict[str, Any]]:
    """The documents of a partition after so many of the store's writes. A batch is seen whole or not at all."""
    position = len(partition.log)
    if until is not None:
        position = sum(int(version.etag.strip('"')) <= until for version in partition.log)
    while position in partition.within:
        position -= 1
    for item in partition.view(position).values():
        yield {**item.document.value, "id": item.id, **keys, "_etag": item.etag, "_ts": item.timestamp}


def moved(found: Iterable[tuple[str, str]], by: timedelta) -> Iterator[tuple[str, str]]:
    """The rows with all their times later.

    Args:
        found: place and JSON text of each row.
        by: how much later.
    """
    for place, raw in found:
        yield place, json.dumps(_later(json.loads(raw), by))


def _later(value: Any, by: timedelta) -> Any:
    if isinstance(value, list):
        return [_later(item, by) for item in value]
    if isinstance(value, dict):
        return {name: _moved(name, item, by) for name, item in value.items()}
    if isinstance(value, str) and _INSTANT.fullmatch(value):
        return (datetime.fromisoformat(value) + by).isoformat().replace("+00:00", "Z")
    return value


def _moved(name: str, value: Any, by: timedelta) -> Any:
    """A property of a document, later. Marks, pages and ledgers count milliseconds, entries of ledgers microseconds."""
    milliseconds = by // timedelta(milliseconds=1)
    if name == "at" and isinstance(value, int):
        return value + by // timedelta(microseconds=1)
    if name == "_ts":
        return value + milliseconds // 1000
    if name in ("begin", "until", "before", "complete") and isinstance(value, int):
        return value + milliseconds if value >= 0 else value
    if name == "marks" and value:
        marks = map(Mark.read, split(value))
        return written(mark._replace(since=mark.since + milliseconds).text for mark in marks)
    return _later(value, by)
