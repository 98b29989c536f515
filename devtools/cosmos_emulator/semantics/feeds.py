"""Queries and lists of items: which keys they cover, what each partition's replica has seen, and the page they give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from devtools.cosmos_emulator.query.errors import UnsupportedQueryError
from devtools.cosmos_emulator.query.execution import Row, run
from devtools.cosmos_emulator.query.parser import parse_query
from devtools.cosmos_emulator.query.tree import Everything, Query
from devtools.cosmos_emulator.semantics import charges
from devtools.cosmos_emulator.semantics.container import Container
from devtools.cosmos_emulator.semantics.errors import bad_request
from devtools.cosmos_emulator.semantics.partition_keys import LARGEST, SMALLEST
from devtools.cosmos_emulator.semantics.ranges import PhysicalPartition
from devtools.cosmos_emulator.semantics.requests import Reply, Request
from devtools.cosmos_emulator.semantics.sessions import token

_DEFAULT_PAGE: Final = 100
_NO_LIMIT: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class _Part:
    """What a feed reads of one physical partition: keys from `low` to `high`, as of an LSN."""

    partition: PhysicalPartition
    low: str
    high: str
    lsn: int


def answer_query(container: Container, request: Request) -> Reply:
    """One page of a query.

    Raises:
        RefusedError: 400; not supported, or it would cross partitions without being allowed to.
    """
    content = request.content
    if not isinstance(content, Mapping) or not isinstance(content.get("query"), str):
        raise bad_request("A query is an object with the text in 'query'.")
    try:
        query = parse_query(content["query"])
        return _page(container, request, query, _parameters(content.get("parameters")))
    except UnsupportedQueryError as error:
        raise bad_request(str(error)) from error


def list_items(container: Container, request: Request) -> Reply:
    """One page of all items."""
    try:
        return _page(container, request, Query(Everything(), "c"), {})
    except UnsupportedQueryError as error:
        raise bad_request(str(error)) from error


def _page(container: Container, request: Request, query: Query, parameters: Mapping[str, Any]) -> Reply:
    parts = _parts(container, request)
    page = run(query, parameters, _rows(container, parts), _page_size(request), request.continuation)
    prefix = b'{"_rid":"%s","Documents":[' % container.rid.encode("ascii")
    body = prefix + b",".join(page.rows) + b'],"_count":%d}' % len(page.rows)
    seen = [(part.partition, min(part.lsn, part.partition.lsn)) for part in parts]
    only = seen[0] if len(seen) == 1 else None
    return Reply(
        200,
        body,
        charges.query(sum(map(len, page.rows))),
        range_id=only[0].id if only else None,
        lsn=only[1] if only else None,
        session_token=token(seen),
        content_path=container.path,
        continuation=page.continuation,
        item_count=len(page.rows),
    )


def _rows(container: Container, parts: list[_Part]) -> Iterator[Row]:
    for part in parts:
        for effective, item in container.store.scan(part.low, part.high, part.lsn):
            if not container.is_expired(item):
                yield effective, item


def _parts(container: Container, request: Request) -> list[_Part]:
    low, high = _bounds(container, request)
    partitions = container.partitions.overlapping(low, high)
    alone = len(partitions) == 1
    return [
        _Part(
            partition,
            max(low, partition.low),
            min(high, partition.high),
            container.snapshot(request, partition, alone=alone),
        )
        for partition in partitions
    ]


def _bounds(container: Container, request: Request) -> tuple[str, str]:
    """The effective keys that a feed covers, the end exclusive."""
    if request.partition_key is not None:
        key = container.definition.keys.read(request.partition_key, prefix=True)
        return key.effective, key.effective + LARGEST
    low, high = request.low or SMALLEST, request.high or LARGEST
    if request.range_id is not None:
        partition = container.partitions.named(request.range_id)
        return max(low, partition.low), min(high, partition.high)
    if request.operation == "query" and not request.cross_partition:
        raise bad_request("Cross partition query is required but disabled: name a partition key or enable it.")
    return low, high


def _page_size(request: Request) -> int:
    if request.page_size is None:
        return _DEFAULT_PAGE
    return request.page_size if request.page_size > 0 else _NO_LIMIT


def _parameters(parameters: object) -> dict[str, Any]:
    if parameters is None:
        return {}
    if not isinstance(parameters, list) or not all(isinstance(p, dict) and "name" in p for p in parameters):
        raise bad_request("The parameters of a query are a list of objects with name and value.")
    return {str(parameter["name"]): parameter.get("value") for parameter in parameters}
