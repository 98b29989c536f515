"""Queries and lists of items: which keys they cover, what each partition's replica has seen, and the page they give."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from local_cosmos.query.continuations import read
from local_cosmos.query.demands import demands, partition_key_of
from local_cosmos.query.errors import UnsupportedQueryError
from local_cosmos.query.execution import Page, given, run
from local_cosmos.query.parser import parse_query
from local_cosmos.query.plan import is_needed, plan
from local_cosmos.query.sources import StoredItem
from local_cosmos.query.tree import Everything, Query
from local_cosmos.semantics import charges
from local_cosmos.semantics.candidates import candidates, order_of
from local_cosmos.semantics.container import Container
from local_cosmos.semantics.coverage import covered, page_size, seen
from local_cosmos.semantics.errors import RefusedError, bad_request
from local_cosmos.semantics.indexing import Indexing, Sorted
from local_cosmos.semantics.requests import Reply, Request, listing
from local_cosmos.storage.items import Item, PropertyPath
from local_cosmos.values import JsonObject, serialise

_NEEDS_PLAN: Final = 1004


def answer_query(container: Container, request: Request) -> Reply:
    """One page of a query.

    Raises:
        RefusedError: 400; not supported, or it would cross partitions without being allowed to. With 1004: the client must
            ask for a plan and merge the answers of the partitions itself, as the service's gateway does not.
    """
    try:
        query, parameters = _parsed(request)
        return _page(container, _routed(container, request, query, parameters), query, parameters)
    except UnsupportedQueryError as error:
        raise bad_request(str(error)) from error


def answer_plan(container: Container, request: Request) -> Reply:
    """The plan of a query over several physical partitions.

    Raises:
        RefusedError: 400; the query is not supported, or the client cannot merge the answers.
    """
    try:
        query, parameters = _parsed(request)
        content = plan(query, parameters, request.query_features)
    except UnsupportedQueryError as error:
        raise bad_request(str(error)) from error
    return Reply(200, serialise(content), charges.query(0), content_path=container.path)


def answer_resources(documents: Iterable[JsonObject], name: str, rid: str, request: Request) -> Reply:
    """One page of a query of databases or containers.

    Args:
        name: What the list of results is called.
        rid: Of the database that has them; empty for databases.

    Raises:
        RefusedError: 400; the query is not supported.
    """
    items = (("", Item("", serialise(item), "", 0, number, None)) for number, item in enumerate(documents))
    try:
        query, parameters = _parsed(request)
        page = run(query, given(parameters, now=0), items, page_size(request), read(request.continuation))
    except UnsupportedQueryError as error:
        raise bad_request(str(error)) from error
    body = b'{"_rid":"%s","%s":[%s],"_count":%d}' % (rid.encode(), name.encode(), b",".join(page.rows), len(page.rows))
    return Reply(200, body, charges.query(len(body)), continuation=page.continuation, item_count=len(page.rows))


def answer_listed(request: Request, rid: str, name: str, documents: list[JsonObject]) -> Reply:
    """All of some resources, or those that a query asks for (see `answer_resources`)."""
    if request.operation in ("query_databases", "query_containers", "query_offers", "query_conflicts"):
        return answer_resources(documents, name, rid, request)
    return listing(rid, name, documents)


def list_items(container: Container, request: Request) -> Reply:
    """One page of all items."""
    try:
        return _page(container, request, Query(Everything()), {})
    except UnsupportedQueryError as error:
        raise bad_request(str(error)) from error


def _page(container: Container, request: Request, query: Query, parameters: Mapping[str, Any]) -> Reply:
    parts = covered(container, request)
    if len(parts) > 1 and request.partition_key is None and is_needed(query):
        raise _needs_plan()
    computed, now = container.definition.computed, container.surroundings.clock.now()
    names = computed.mentioned(request.body.decode("utf-8", "replace")) if computed.queries else frozenset()
    inputs = given(parameters, now, computed.completing(names, now))
    begin = read(request.continuation)
    as_indexed, items, are_sorted = candidates(container, parts, query, parameters, begin, computed=names)
    looked = Looked(items)
    page = run(as_indexed, inputs, looked, page_size(request), begin, are_sorted=are_sorted)
    prefix = b'{"_rid":"%s","Documents":[' % container.rid.encode("ascii")
    body = prefix + b",".join(page.rows) + b'],"_count":%d}' % len(page.rows)
    reply = Reply(
        200,
        body,
        charges.query(sum(map(len, page.rows))),
        continuation=page.continuation,
        item_count=len(page.rows),
    )
    if request.query_metrics:
        reply.query_metrics = looked.metrics(page)
    if request.index_metrics:
        keys = container.definition.keys.paths if request.partition_key is not None else ()
        reply.index_metrics = index_metrics(query, order_of(query), parameters, container.definition.indexing, keys)
    return seen(container, parts, reply)


def _routed(container: Container, request: Request, query: Query, parameters: Mapping[str, Any]) -> Request:
    """The request with the partition key that its WHERE names, where it names none and may not cross partitions."""
    if request.partition_key is not None or request.range_id is not None or request.cross_partition:
        return request
    key = partition_key_of(query, parameters, container.definition.keys.paths)
    return request if key is None else replace(request, partition_key=serialise(key).decode())


def _needs_plan() -> RefusedError:
    """Without more information @azure/cosmos would not ask for a plan."""
    text = "The provided cross partition query can not be directly served by the gateway."
    return RefusedError(400, text, _NEEDS_PLAN, more="{}")


def _parsed(request: Request) -> tuple[Query, dict[str, Any]]:
    content = request.content
    if not isinstance(content, Mapping) or not isinstance(content.get("query"), str):
        raise bad_request("A query is an object with the text in 'query'.")
    return parse_query(content["query"]), _parameters(content.get("parameters"))


def _parameters(parameters: object) -> dict[str, Any]:
    if parameters is None:
        return {}
    if not isinstance(parameters, list) or not all(isinstance(p, dict) and "name" in p for p in parameters):
        raise bad_request("The parameters of a query are a list of objects with name and value.")
    return {str(parameter["name"]): parameter.get("value") for parameter in parameters}


class Looked:
    """The items that a query looks at, counted. No times: these would be those of the machine."""

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
