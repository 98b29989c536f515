"""What a query has looked at, and which indexes it can use. It holds no times: these would be those of the machine."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from local_cosmos.query.demands import demands
from local_cosmos.query.execution import Page
from local_cosmos.query.sources import StoredItem
from local_cosmos.query.tree import Query
from local_cosmos.semantics.indexing import Indexing, Sorted
from local_cosmos.storage.items import PropertyPath
from local_cosmos.values import JsonObject, serialise


class Looked:
    """The items that a query looks at, counted."""

    def __init__(self, items: Iterable[StoredItem]) -> None:
        self._items = items
        self._count = self._bytes = 0

    def __iter__(self) -> Iterator[StoredItem]:
        for effective, item in self._items:
            self._count += 1
            self._bytes += len(item.raw)
            yield effective, item

    def metrics(self, page: Page) -> str:
        """The `x-ms-documentdb-query-metrics` of a page."""
        retrieved = self._count if page.retrieves else 0
        figures = {
            "retrievedDocumentCount": retrieved,
            "retrievedDocumentSize": self._bytes if page.retrieves else 0,
            "outputDocumentCount": len(page.rows),
            "outputDocumentSize": sum(map(len, page.rows)),
            "indexUtilizationRatio": f"{min(1.0, len(page.rows) / retrieved) if retrieved else 1.0:.2f}",
        }
        return ";".join(f"{name}={value}" for name, value in figures.items())


def index_metrics(
    query: Query,
    order: Sequence[Sorted],
    parameters: Mapping[str, Any],
    indexing: Indexing,
    keys: Sequence[PropertyPath] = (),
) -> str:
    """The `x-ms-cosmos-index-utilization` of a query: by the policy of the container, whatever found the items here.

    Args:
        keys: Paths of the partition key that the request names.
    """
    paths = dict.fromkeys([*keys, *demands(query, parameters), *(path for path, _ in order[:1])])
    indexes = {
        "UtilizedSingleIndexes": [_single(path) for path in paths if indexing.has(path)],
        "PotentialSingleIndexes": [_single(path) for path in paths if not indexing.has(path)],
        "UtilizedCompositeIndexes": [_composite(order)] if len(order) > 1 else [],
        "PotentialCompositeIndexes": [],
    }
    return base64.b64encode(serialise(indexes)).decode("ascii")


def _single(path: PropertyPath) -> JsonObject:
    return {
        "FilterExpression": "",
        "IndexSpec": f"/{'/'.join(path)}/?",
        "FilterPreciseSet": True,
        "IndexPreciseSet": True,
        "IndexImpactScore": "High",
    }


def _composite(order: Sequence[Sorted]) -> JsonObject:
    specs = [f"/{'/'.join(path)} {'DESC' if descending else 'ASC'}" for path, descending in order]
    return {"IndexSpecs": specs, "IndexPreciseSet": True, "IndexImpactScore": "High"}
