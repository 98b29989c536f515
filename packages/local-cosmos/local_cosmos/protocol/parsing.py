"""From HTTP to a request: the operation is told by verb, path and a few headers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import unquote

from local_cosmos.semantics.errors import RefusedError, bad_request
from local_cosmos.semantics.requests import CONSISTENCY_LEVELS, ConsistencyLevel, OperationKind, Request
from local_cosmos.values import MalformedJsonError, parse

_COLLECTIONS: Final[Mapping[tuple[str, str], OperationKind]] = {
    ("GET", "dbs"): "list_databases",
    ("POST", "dbs"): "create_database",
    ("GET", "colls"): "list_containers",
    ("POST", "colls"): "create_container",
    ("GET", "pkranges"): "read_ranges",
    ("GET", "docs"): "list_items",
    ("POST", "docs"): "create",
    ("GET", "offers"): "list_offers",
    ("POST", "offers"): "query_offers",
    ("GET", "conflicts"): "list_conflicts",
    ("POST", "conflicts"): "query_conflicts",
}
_SINGLE: Final[Mapping[tuple[str, str], OperationKind]] = {
    ("GET", "dbs"): "read_database",
    ("DELETE", "dbs"): "delete_database",
    ("GET", "colls"): "read_container",
    ("PUT", "colls"): "replace_container",
    ("DELETE", "colls"): "delete_container",
    ("GET", "docs"): "read",
    ("PUT", "docs"): "replace",
    ("PATCH", "docs"): "patch",
    ("DELETE", "docs"): "delete",
    ("GET", "offers"): "read_offer",
    ("PUT", "offers"): "replace_offer",
    ("GET", "conflicts"): "name_conflict",
    ("DELETE", "conflicts"): "name_conflict",
}
_OF_A_PARTITION_KEY: Final = ("operations", "partitionkeydelete")
_QUERY_TYPE: Final = "application/query+json"
"""The type of the body of every query. Beside it some clients say `x-ms-documentdb-isquery`, others `x-ms-documentdb-query`."""

_POSTS: Final[Mapping[str, OperationKind]] = {
    "x-ms-cosmos-is-query-plan-request": "query_plan",
    "x-ms-cosmos-is-batch-request": "batch",
    "x-ms-documentdb-is-upsert": "upsert",
}
"""What a POST of documents means when a header is true; without any, it creates an item, unless its body is a query."""

_UNSUPPORTED: Final[Mapping[str, str]] = {
    "x-ms-documentdb-pre-trigger-include": "triggers",
    "x-ms-documentdb-post-trigger-include": "triggers",
    "x-ms-indexing-directive": "items that are left out of the index",
}
"""Headers that would change what the service does, and what they ask for."""

_HIERARCHY: Final = ("dbs", "colls", "docs")


def segments(path: str) -> list[str]:
    """The segments of a raw path, percent-decoded."""
    decoded = unquote if "%" in path else str
    return [decoded(segment) for segment in path.partition("?")[0].split("/") if segment]


def parse_request(
    verb: str, path: Sequence[str], headers: Mapping[str, str], body: bytes = b"", base_url: str = ""
) -> Request:
    """The request of a client.

    Args:
        path: The path's segments, percent-decoded.
        headers: Looked up without regard to case.
        base_url: Scheme, host and port that the client used, with a final slash.

    Raises:
        RefusedError: 400, 404 or 405; no such operation.
    """
    operation = _operation(verb, path, headers)
    for header, what in _UNSUPPORTED.items():
        if headers.get(header, "Default") not in ("Default", "Include"):
            raise bad_request(f"This emulator does not support {what}: {header}.")
    offer = path[1] if operation in ("read_offer", "replace_offer") else ""
    names = ["" if offer else name for name in (*path[1::2], "", "", "")]
    settings = headers.get("x-ms-cosmos-offer-autopilot-settings")
    autoscale, increment = _autoscale(settings) if settings else (None, None)
    return Request(
        operation=operation,
        database=names[0],
        container=names[1],
        item=names[2],
        body=body,
        partition_key=headers.get("x-ms-documentdb-partitionkey"),
        if_match=headers.get("If-Match"),
        if_none_match=headers.get("If-None-Match"),
        if_modified_since=headers.get("If-Modified-Since"),
        latest_versions=headers.get("A-IM", "").lower() == "incremental feed",
        session_token=headers.get("x-ms-session-token"),
        consistency=_consistency(headers),
        minimal="return=minimal" in headers.get("Prefer", ""),
        container_rid=headers.get("x-ms-cosmos-intended-collection-rid"),
        range_id=headers.get("x-ms-documentdb-partitionkeyrangeid"),
        low=headers.get("x-ms-start-epk"),
        high=headers.get("x-ms-end-epk"),
        page_size=_integer(headers, "x-ms-max-item-count"),
        continuation=headers.get("x-ms-continuation") or None,
        atomic=not _is_false(headers, "x-ms-cosmos-batch-atomic"),
        continue_on_error=_is_true(headers, "x-ms-cosmos-batch-continue-on-error"),
        throughput=autoscale or _integer(headers, "x-ms-offer-throughput") or 0,
        autoscale=settings is not None,
        increment=increment,
        offer=offer,
        quota=_is_true(headers, "x-ms-documentdb-populatequotainfo"),
        statistics=_is_true(headers, "x-ms-documentdb-populatepartitionstatistics"),
        base_url=base_url,
        cross_partition=_is_true(headers, "x-ms-documentdb-query-enablecrosspartition"),
        query_features=_listed(headers, "x-ms-cosmos-supported-query-features"),
        query_metrics=_is_true(headers, "x-ms-documentdb-populatequerymetrics"),
        index_metrics=_is_true(headers, "x-ms-cosmos-populateindexmetrics"),
    )


def _operation(verb: str, path: Sequence[str], headers: Mapping[str, str]) -> OperationKind:
    if not path:
        if verb == "GET":
            return "read_account"
        raise RefusedError(405, f"{verb} on the account is not supported.")
    if tuple(path[4:]) == _OF_A_PARTITION_KEY and (verb, *path[:4:2]) == ("POST", "dbs", "colls"):
        return "delete_partition_key"
    kind = _kind(path)
    table = _COLLECTIONS if len(path) % 2 else _SINGLE
    operation = table.get((verb, kind))
    if operation is None:
        raise RefusedError(405, f"{verb} on {kind!r} is not supported by this emulator.")
    return _refined(operation, headers)


def _kind(path: Sequence[str]) -> str:
    """The type of the resource that a path names: dbs, colls, docs, pkranges or conflicts."""
    kinds = tuple(path[::2])
    if kinds == ("offers",):
        return "offers"
    if kinds != (*_HIERARCHY[: len(kinds) - 1], kinds[-1]) or kinds[-1] not in (*_HIERARCHY, "pkranges", "conflicts"):
        raise RefusedError(404, f"There is no resource at /{'/'.join(path)} in this emulator.")
    return kinds[-1]


def _refined(operation: OperationKind, headers: Mapping[str, str]) -> OperationKind:
    """POST and GET on a list mean several things; headers tell them apart."""
    if operation == "list_items" and "A-IM" in headers:
        return "change_feed"
    if operation == "create_database" and _has_query(headers):
        return "query_databases"
    if operation == "create_container" and _has_query(headers):
        return "query_containers"
    if operation == "create":
        unmarked: OperationKind = "query" if _has_query(headers) else "create"
        return next((meant for header, meant in _POSTS.items() if _is_true(headers, header)), unmarked)
    return operation


def _has_query(headers: Mapping[str, str]) -> bool:
    return headers.get("Content-Type", "").partition(";")[0].strip().lower() == _QUERY_TYPE


def _consistency(headers: Mapping[str, str]) -> ConsistencyLevel | None:
    asked = headers.get("x-ms-consistency-level")
    if asked is None:
        return None
    for level in CONSISTENCY_LEVELS:
        if level == asked:
            return level
    raise bad_request(f"The consistency level {asked!r} does not exist.")


def _autoscale(text: str) -> tuple[int, int | None]:
    """The maximum, and by how many percent it rises by itself; None where the client does not say."""
    try:
        settings = parse(text)
        policy = settings.get("autoUpgradePolicy")
        return int(settings["maxThroughput"]), int(policy["throughputPolicy"]["incrementPercent"]) if policy else None
    except (MalformedJsonError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise bad_request(f"The autoscale settings {text!r} are not valid.") from error


def _integer(headers: Mapping[str, str], name: str) -> int | None:
    text = headers.get(name)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError as error:
        raise bad_request(f"The header {name} is not a number: {text!r}.") from error


def _listed(headers: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in headers.get(name, "").split(","))


def _is_true(headers: Mapping[str, str], name: str) -> bool:
    return headers.get(name, "").lower() == "true"


def _is_false(headers: Mapping[str, str], name: str) -> bool:
    return headers.get(name, "").lower() == "false"
