"""The items that a query has to look at: found by an index where that spares most of them, else all of the keys it covers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from local_cosmos.query.continuations import AfterRow, AtResult
from local_cosmos.query.demands import demands
from local_cosmos.query.sources import StoredItem
from local_cosmos.query.tree import And, Call, Path, Query
from local_cosmos.semantics.container import Container
from local_cosmos.semantics.coverage import Part
from local_cosmos.semantics.indexing import ALWAYS, Sorted
from local_cosmos.storage.index import key_of
from local_cosmos.storage.items import PropertyPath


class Candidates(NamedTuple):
    """What a query looks at.

    Attributes:
        query: Itself, without the items that its ORDER BY leaves out.
        items: In the order of the store, or sorted.
        are_sorted: Whether they are in the order that ORDER BY asks for.
    """

    query: Query
    items: Iterator[StoredItem]
    are_sorted: bool


def candidates(
    container: Container,
    parts: list[Part],
    query: Query,
    parameters: Mapping[str, Any],
    begin: AfterRow | AtResult | None,
    *,
    computed: frozenset[str],
) -> Candidates:
    """What a page of a query looks at.

    Args:
        begin: Where the page begins; None at the beginning.
        computed: Names of computed properties that the query speaks of; there are no indexes of them.

    Raises:
        RefusedError: 400; there is no index for its order.
    """
    query, sorted_by = _as_indexed(container, query, computed)
    wanted = {path: ranges for path, ranges in demands(query, parameters).items() if path[0] not in computed}
    after = begin if isinstance(begin, AfterRow) else None
    if sorted_by is not None and len(parts) == 1 and (after is None or after.values):
        (part,) = parts
        spared = container.store.most_selective(wanted, part.low, part.high)
        if spared is None and not container.store.is_small(part.low, part.high):
            first = None if after is None else key_of(after.values[0])
            walk = container.store.walk(
                sorted_by, part.low, part.high, part.lsn, descending=query.order[0].descending, begin=first
            )
            return Candidates(query, _visible(container, walk), are_sorted=True)
    start = after.place[0] if after is not None and not query.order else ""
    return Candidates(query, _visible(container, _found(container, parts, wanted, start)), are_sorted=False)


def order_of(query: Query) -> tuple[Sorted, ...]:
    """The parts of ORDER BY with paths as indexing policies write them; none where it sorts by anything but the item's."""
    if any(part.expression.alias != query.item for part in query.order):
        return ()
    return tuple((_names(part.expression), part.descending) for part in query.order)


def _names(path: Path) -> PropertyPath:
    return tuple(step if isinstance(step, str) else "[]" for step in path.steps)


def _found(
    container: Container, parts: list[Part], wanted: Mapping[PropertyPath, Any], start: str
) -> Iterator[StoredItem]:
    store = container.store
    for part in parts:
        low = max(part.low, start)
        path = store.most_selective(wanted, low, part.high)
        if path is None:
            yield from store.scan(low, part.high, part.lsn)
        else:
            yield from store.search(path, wanted[path], low, part.high, part.lsn)


def _visible(container: Container, items: Iterator[StoredItem]) -> Iterator[StoredItem]:
    return ((effective, item) for effective, item in items if not container.is_expired(item))


def _as_indexed(container: Container, query: Query, computed: frozenset[str]) -> tuple[Query, PropertyPath | None]:
    """The query without the items that its ORDER BY leaves out; and the one path whose index has exactly the others."""
    order = order_of(query)
    if not order:
        return query, None
    paths = [part.expression for part in query.order]
    has_index = all(isinstance(step, str) for step in paths[0].steps) and order[0][0][0] not in computed
    for path in (path for path, _ in order if path[0] in computed):
        container.definition.indexing.require_named(path)
    if not container.definition.indexing.leaves_out(order):
        return query, order[0][0] if len(order) == 1 and order[0][0] in ALWAYS else None
    is_there = Call("IS_DEFINED", (paths[0],))
    where = is_there if query.where is None else And((query.where, is_there))
    return replace(query, where=where), order[0][0] if has_index else None
