"""Requests and replies as the semantics see them: values, with no HTTP about them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal, get_args

from local_cosmos.semantics import charges
from local_cosmos.semantics.errors import CODES, RefusedError, bad_request
from local_cosmos.values import JsonObject, MalformedJsonError, parse, serialise

ItemOperation = Literal[
    "create",
    "read",
    "replace",
    "upsert",
    "patch",
    "delete",
    "batch",
    "query",
    "list_items",
    "change_feed",
    "delete_partition_key",
]
"""Operations on items: what faults, latency and the request log speak of."""

ResourceOperation = Literal[
    "read_account",
    "create_database",
    "read_database",
    "list_databases",
    "delete_database",
    "create_container",
    "read_container",
    "replace_container",
    "list_containers",
    "delete_container",
    "read_ranges",
    "query_databases",
    "query_containers",
    "query_plan",
    "list_offers",
    "query_offers",
    "read_offer",
    "replace_offer",
    "list_conflicts",
    "query_conflicts",
    "name_conflict",
]
"""Operations on the account, databases and containers, and feeds of items."""

OperationKind = ItemOperation | ResourceOperation

ITEM_OPERATIONS: Final[tuple[str, ...]] = get_args(ItemOperation)
PROPERTY_READS: Final = ("read_database", "read_container")
"""What an identity without a role is refused, too."""
WRITES: Final = frozenset({"create", "replace", "upsert", "patch", "delete", "batch", "delete_partition_key"})

ConsistencyLevel = Literal["Strong", "BoundedStaleness", "Session", "ConsistentPrefix", "Eventual"]
CONSISTENCY_LEVELS: Final[tuple[ConsistencyLevel, ...]] = get_args(ConsistencyLevel)
"""The strongest first."""


@dataclass(frozen=True)
class Request:
    """One request of a client, after parsing.

    Attributes:
        database: Name (or resource id) of the database.
        container: Name (or resource id) of the container.
        partition_key: JSON array of the key's components.
        if_match: An ETag, or `*`; the same for `if_none_match`.
        if_modified_since: HTTP date at which a change feed begins.
        latest_versions: True for a change feed of latest versions.
        session_token: The versions that a read must at least see.
        consistency: What the client asks for; None for the account's level.
        minimal: True when the client wants no body for a write.
        container_rid: Resource id that the client believes the container has.
        range_id: The physical partition that a query goes to.
        low, high: Bounds of the effective partition key that a query goes to.
        page_size: Most items in a page; None for no limit of the client's.
        continuation: Where the page begins.
        atomic: False for a bulk request.
        continue_on_error: True when a bulk request goes on after an operation that failed.
        throughput: Request units per second that a new database or container shall have; 0 where it does not say.
        autoscale: True when that is the most it shall have.
        increment: By how many percent that shall rise by itself; None where the client does not say.
        offer: Id of the offer.
        quota: True when the client asks for the container's usage.
        statistics: True when it asks for that of each physical partition.
        cross_partition: True when a query may go to all physical partitions.
        query_features: What a client that asks for a query plan can do.
        query_metrics, index_metrics: True when the client asks what a query looked at, and which indexes it can use.
        base_url: Scheme, host and port that the client used, with a final slash.
    """

    operation: OperationKind
    database: str = ""
    container: str = ""
    item: str = ""
    body: bytes = b""
    partition_key: str | None = None
    if_match: str | None = None
    if_none_match: str | None = None
    if_modified_since: str | None = None
    latest_versions: bool = False
    session_token: str | None = None
    consistency: ConsistencyLevel | None = None
    minimal: bool = False
    container_rid: str | None = None
    range_id: str | None = None
    low: str | None = None
    high: str | None = None
    page_size: int | None = None
    continuation: str | None = None
    atomic: bool = True
    continue_on_error: bool = False
    throughput: int = 0
    autoscale: bool = False
    increment: int | None = None
    offer: str = ""
    quota: bool = False
    statistics: bool = False
    base_url: str = ""
    cross_partition: bool = False
    query_features: tuple[str, ...] = ()
    query_metrics: bool = False
    index_metrics: bool = False

    @cached_property
    def content(self) -> Any:
        """The parsed body.

        Raises:
            RefusedError: 400; it is not JSON.
        """
        try:
            return parse(self.body)
        except MalformedJsonError as error:
            raise bad_request(f"The body is not JSON: {error}.") from error


@dataclass(slots=True)
class Reply:
    """The service's answer; whoever makes it may fill it in.

    Attributes:
        body: JSON text; empty for none.
        substatus: Tells apart reasons of one status.
        etag: Of the item, or of the list of ranges.
        range_id, lsn: The physical partition that answered, and how far it has come.
        session_token: What the client should remember.
        content_path: `dbs/{database}/colls/{container}`.
        continuation: Where the next page begins.
        item_count: Items in the page.
        retry_after_ms: When a throttled client may try again.
        resource_usage: The container's usage, when asked for; the same for `query_metrics` and `index_metrics`.
        index_progress: How many percent of the items are indexed, with the usage of a container.
        applied: True when something was written.
    """

    status: int
    body: bytes = b""
    charge: float = 0.0
    substatus: int = 0
    etag: str | None = None
    range_id: str | None = None
    lsn: int | None = None
    session_token: str | None = None
    content_path: str | None = None
    continuation: str | None = None
    item_count: int | None = None
    retry_after_ms: int | None = None
    resource_usage: str | None = None
    index_progress: int | None = None
    query_metrics: str | None = None
    index_metrics: str | None = None
    applied: bool = field(default=False, compare=False)


def refused(refusal: RefusedError) -> Reply:
    """The reply to a refused request: `{"code", "message"}`, and `additionalErrorInfo` where there is some."""
    body = {"code": CODES.get(refusal.status, "Error"), "message": refusal.message}
    if refusal.more is not None:
        body["additionalErrorInfo"] = refusal.more
    return Reply(
        refusal.status,
        serialise(body),
        charges.refused(),
        substatus=refusal.substatus,
        retry_after_ms=refusal.retry_after_ms,
    )


def resource(document: JsonObject, status: int = 200) -> Reply:
    """A database or container."""
    return Reply(status, serialise(document), charges.refused(), etag=document.get("_etag"))


def listing(rid: str, name: str, documents: list[JsonObject]) -> Reply:
    """A list of databases, containers or ranges: `{"_rid", name: [...], "_count"}`."""
    body = serialise({"_rid": rid, name: documents, "_count": len(documents)})
    return Reply(200, body, charges.refused(), item_count=len(documents))
