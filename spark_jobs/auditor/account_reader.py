"""The reads of an audit: of all documents, of changes, or of chosen entities.

Entities are read before the library's container: the pages that a ledger names, and the book of a transaction, were written
before the ledger. So a page or book that is absent then is missing, or the replica lags.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import reduce
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.
from pyspark.sql.types import StringType, StructField, StructType

from exactlyonce.records.library import BOOKS
from spark_jobs.report.contents import ReadResult
from spark_jobs.source.port import Made, Query, literal, shown_units
from spark_jobs.spark.frames import PARSED_OF_A_TASK, gathered, kept, packed, suited
from spark_jobs.transforms.documents import named, unnamed
from spark_jobs.transforms.schemas import DOCUMENT, LIBRARY, OF_ENTITY_CONTAINERS, OF_THE_LIBRARY, Asked, selection
from spark_jobs.work import Work

CHOSEN_AT_ONCE: Final = 200_000
"""Bytes of the values in one query; the service takes 512 KiB of text, of which the rest of the query needs little."""

_FEW, _MANY = 1_000, 1_000_000
"""Rows that a read is planned for before it is known how many there are."""

_ENTITY: Final = StructType([StructField("entity", StringType())])

Condition = Callable[[Asked], str]
"""A condition of the query language for each `schemas.Asked`; empty for all documents."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The entities and documents that a read is confined to.

    Attributes:
        ids: ids of documents that name no entity.
    """

    entities: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()

    def conditions(self) -> Iterator[Condition]:
        """Conditions that together let through the chosen documents, and further documents with the same ids."""
        for some in _batches(self.entities):
            yield _about(some)
        for some in _batches(self.ids):
            yield lambda _, some=some: _is_in('c["id"]', some)  # type: ignore[misc]


@dataclass(frozen=True, slots=True)
class DocumentsRead:
    """Documents that were read.

    Attributes:
        documents: `schemas.DOCUMENT`, or some columns of it.
        rows: number of rows read.
    """

    documents: DataFrame
    rows: int


@dataclass
class AccountReader:
    """Reads for an audit, and keeps account of it."""

    work: Work
    reads: list[ReadResult] = field(default_factory=list)

    def everything(self, purpose: str) -> DocumentsRead:
        """All documents: `schemas.DOCUMENT`.

        Raises:
            AccountError, ConfigurationError: as `Source.read`.
        """
        return self._documents(purpose, [lambda _: ""], expected=_MANY)

    def changed(self, purpose: str, since: int) -> DocumentsRead:
        """`entity, id` of documents written at this second of the service or later. Raises as `everything`."""
        return self._documents(purpose, [lambda _: f'c["_ts"] >= {since}'], columns=("entity", "id"))

    def chosen(self, purpose: str, chosen: Chosen) -> DocumentsRead:
        """All documents of chosen entities, all books, and the chosen documents that name no entity. Raises as `everything`."""
        wanted = self.work.spark.createDataFrame([(entity,) for entity in chosen.entities], _ENTITY)

        def only_chosen(found: DataFrame) -> DataFrame:
            others = found.where(F.col("entity").isNull() | (F.col("entity") == BOOKS))
            return found.join(F.broadcast(wanted), "entity", "left_semi").unionByName(others)

        return self._documents(purpose, list(chosen.conditions()) or [lambda _: "false"], only_chosen)

    def _documents(
        self,
        purpose: str,
        conditions: Sequence[Condition],
        part: Callable[[DataFrame], DataFrame] = lambda found: found,
        columns: Iterable[str] = DOCUMENT.fieldNames(),
        expected: int = _FEW,
    ) -> DocumentsRead:
        """Read the containers one after the other, then keep a part of their documents: rules read it many times.

        Args:
            purpose: of the read, for the operator.
            conditions: of the query language; a document is read if a condition holds.
            part: the documents to keep.
            columns: of `schemas.DOCUMENT`, to keep.
            expected: about how many rows.
        """
        places = [
            _Place(item.container, item.type, item.partition_key, OF_ENTITY_CONTAINERS) for item in self.work.job.places
        ]
        places.append(_Place(self.work.job.library, LIBRARY, (), OF_THE_LIBRARY))
        with ExitStack() as reads:
            with suited(self.work.spark, expected):
                raw = [(place, reads.enter_context(self._read(purpose, place, conditions))) for place in places]
            rows = sum(made.number for _, made in raw)
            self.work.progress.begin(f"{purpose}, documents")
            repeated = self.work.source.repeats or len(conditions) > 1  # A document may fulfil two of them.
            with suited(self.work.spark, rows):  # All in one plan: to plan takes longer than to make a few thousand.
                found = [
                    unnamed(packed(made.rows, made.number, PARSED_OF_A_TASK), place.name, repeated=repeated)
                    for place, made in raw
                ]
                every = reduce(DataFrame.unionByName, found).select(*columns, "parts")
                documents_read = kept(gathered(part(every), rows))
                if documents_read.where(F.col("parts").isNotNull()).isEmpty():
                    documents_read = documents_read.drop("parts")
                else:
                    documents_read = kept(part(named(documents_read)))
        self.work.progress.done("made")
        return DocumentsRead(documents_read, rows)

    def _read(self, purpose: str, place: _Place, conditions: Sequence[Condition]) -> Made:
        """Read a container now."""
        self.work.progress.begin(f"{purpose}, {place.container}")
        begun = self.work.clock()
        made = self.work.source.read(*place.queries(conditions))
        rows, charge = made.number, made.spent.units
        self.reads.append(ReadResult(place.container, purpose, rows, charge, self.work.clock() - begun))
        self.work.progress.done(f"{rows:,} documents, {shown_units(charge)}")
        return made


@dataclass(frozen=True, slots=True)
class _Place:
    """A container, its name in `schemas.DOCUMENT`, and its selections."""

    container: str
    name: str
    partition_key: tuple[str, ...]
    asked: tuple[Asked, ...]

    def queries(self, conditions: Sequence[Condition]) -> Iterator[Query]:
        for asked in self.asked:
            wanted = selection(asked, self.partition_key)
            yield from (
                Query.of(self.container, wanted.columns, wanted.where, condition(asked)) for condition in conditions
            )


def _about(entities: tuple[str, ...]) -> Condition:
    """Lets through the documents about these entities."""
    ids = tuple(id for id in map(_id_of, entities) if id is not None)
    conditions = {
        "library": _is_in('c["pk"]', (*entities, BOOKS)),
        "companions": _is_in('c["entity"]', entities),
        "entities": _is_in('c["id"]', ids),
    }
    return lambda asked: conditions[asked]


def _id_of(entity: str) -> str | None:
    """The id of an entity's document; None if this is no key of an entity: damaged documents may hold anything."""
    try:
        parts = json.loads(entity)
    except ValueError:
        return None
    return str(parts[-1]) if isinstance(parts, list) and parts else None


def _is_in(expression: str, values: tuple[str, ...]) -> str:
    return f"{expression} IN ({', '.join(map(literal, values))})" if values else "false"


def _batches(values: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The values in runs, each short enough for a query."""
    batch: list[str] = []
    size = 0
    for value in values:
        size += len(literal(value)) + 2
        if batch and size > CHOSEN_AT_ONCE:
            yield tuple(batch)
            batch, size = [], len(literal(value)) + 2
        batch.append(value)
    if batch:
        yield tuple(batch)
