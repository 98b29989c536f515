"""Transactional batch: up to 100 operations on one partition key, all of them or none.

Documented behaviour: on failure the answer is 207; the operation that failed has its own status, every other one 424.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from local_cosmos.semantics import charges
from local_cosmos.semantics.errors import RefusedError, bad_request, too_large
from local_cosmos.semantics.item_operations import ItemCommand, ItemResult, perform
from local_cosmos.semantics.partition_keys import PartitionKeyDefinition
from local_cosmos.semantics.transactions import Transaction
from local_cosmos.values import JsonObject

MOST_OPERATIONS: Final = 100
LARGEST_REQUEST: Final = 2 * 1024 * 1024
_SUCCESS: Final = 200
_FAILURE: Final = 207
_FAILED_DEPENDENCY: Final = 424


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What came of a batch.

    Attributes:
        status: 200, or 207 when it failed and changed nothing.
        entries: One JSON object per operation.
        charge: Sum of the operations' charges, in RU.
    """

    status: int
    entries: list[JsonObject]
    charge: float

    @property
    def succeeded(self) -> bool:
        """Whether the batch may be committed."""
        return self.status == _SUCCESS


def commands(content: object, size: int) -> Sequence[ItemCommand]:
    """The operations of a batch.

    Args:
        size: Bytes of the body.

    Raises:
        RefusedError: 400 or 413; the batch as a whole is not acceptable.
    """
    if size > LARGEST_REQUEST:
        raise too_large()
    if not isinstance(content, list) or not content:
        raise bad_request("Batch request has no operations. A batch is a JSON array of at least one.")
    if len(content) > MOST_OPERATIONS:
        raise bad_request(
            "Batch request has more operations than what is supported. "
            f"A batch may have {MOST_OPERATIONS} operations; this one has {len(content)}."
        )
    return [_command(operation) for operation in content]


def perform_batch(
    operations: Sequence[ItemCommand], transaction: Transaction, keys: PartitionKeyDefinition
) -> BatchResult:
    """Perform the operations in order; the caller commits the transaction if the status is 200, else drops it."""
    results: list[ItemResult] = []
    try:
        for operation in operations:
            results.append(perform(operation, transaction, keys))  # noqa: PERF401  # The results before a failure count.
    except RefusedError as refusal:
        return _failed(len(operations), len(results), refusal, results)
    return BatchResult(_SUCCESS, [entry(result) for result in results], _total(results))


def _command(operation: Any) -> ItemCommand:
    if not isinstance(operation, Mapping):
        raise bad_request("An operation of a batch is a JSON object.")
    return ItemCommand(
        operation=str(operation.get("operationType")).lower(),
        item=str(operation.get("id", "")),
        content=operation.get("resourceBody"),
        if_match=operation.get("ifMatch"),
        if_none_match=operation.get("ifNoneMatch"),
    )


def entry(result: ItemResult) -> JsonObject:
    """What a reply says of an operation that was performed."""
    said: JsonObject = {"statusCode": result.status, "requestCharge": result.charge}
    if result.item is not None:
        said |= {"eTag": result.item.etag, "resourceBody": result.item.document}
    return said


def refused_entry(refusal: RefusedError) -> JsonObject:
    """What a reply says of the operation that was refused."""
    said: JsonObject = {"statusCode": refusal.status, "requestCharge": charges.refused()}
    if refusal.substatus:
        said["subStatusCode"] = refusal.substatus
    return said


def not_tried() -> JsonObject:
    """What a reply says of an operation that another one's failure has stopped."""
    return {"statusCode": _FAILED_DEPENDENCY, "requestCharge": 0.0}


def _failed(count: int, failed: int, refusal: RefusedError, before: Sequence[ItemResult]) -> BatchResult:
    entries = [not_tried() for _ in range(count)]
    entries[failed] = refused_entry(refusal)
    return BatchResult(_FAILURE, entries, _total(before, charges.refused()))


def _total(results: Sequence[ItemResult], more: float = 0.0) -> float:
    return round(more + sum(result.charge for result in results), 2)
