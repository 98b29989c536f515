"""Operations on one item, with their conditions, within a transaction.

Documented behaviour of conditions: replace, delete and patch with If-Match answer 412 for another version and 404 for an
absent item; an upsert with If-Match that finds no item creates it, condition or not; create ignores conditions;
If-None-Match counts for reads, and for an upsert that finds an item. A replace may give another id, a patch may not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from local_cosmos.query.errors import UnsupportedQueryError
from local_cosmos.query.execution import matches
from local_cosmos.query.parser import parse_condition
from local_cosmos.semantics import charges, patching
from local_cosmos.semantics.errors import bad_request, conflict, not_found, precondition_failed
from local_cosmos.semantics.partition_keys import PartitionKeyDefinition
from local_cosmos.semantics.transactions import Transaction, checked_id
from local_cosmos.storage.items import Item
from local_cosmos.values import JsonObject, parse

_ANY: Final = "*"


@dataclass(frozen=True, slots=True)
class ItemCommand:
    """One operation on one item, alone or in a batch.

    Attributes:
        operation: create, read, replace, upsert, patch or delete.
        item: The id; empty where the document says it.
        content: The document, or the patch.
        if_match: ETag or `*`; the same for `if_none_match`.
    """

    operation: str
    item: str = ""
    content: Any = None
    if_match: str | None = None
    if_none_match: str | None = None


@dataclass(frozen=True, slots=True)
class ItemResult:
    """What came of it: status, the item's version to show (None: nothing to show), and the charge in RU."""

    status: int
    item: Item | None
    charge: float


def perform(command: ItemCommand, transaction: Transaction, keys: PartitionKeyDefinition) -> ItemResult:
    """Perform one operation.

    Raises:
        RefusedError: It is refused; the transaction may then only be dropped.
    """
    operation = _OPERATIONS.get(command.operation)
    if operation is None:
        raise bad_request(f"The operation {command.operation!r} is not supported.")
    return operation(command, transaction, keys)


def _create(command: ItemCommand, transaction: Transaction, keys: PartitionKeyDefinition) -> ItemResult:
    document = _document(command, transaction, keys)
    item_id = checked_id(document)
    if transaction.find(item_id) is not None:
        raise conflict(item_id)
    item = transaction.write("create", document, None)
    return ItemResult(201, item, charges.insert(len(item.raw)))


def _read(command: ItemCommand, transaction: Transaction, _: PartitionKeyDefinition) -> ItemResult:
    item = _existing(command, transaction)
    if _is_version(item, command.if_none_match):
        return ItemResult(304, None, charges.refused())
    return ItemResult(200, item, charges.read(len(item.raw)))


def _upsert(command: ItemCommand, transaction: Transaction, keys: PartitionKeyDefinition) -> ItemResult:
    document = _document(command, transaction, keys)
    previous = transaction.find(checked_id(document))
    if previous is None:
        item = transaction.write("upsert", document, None)
        return ItemResult(201, item, charges.insert(len(item.raw)))
    _require_version(previous, command.if_match)
    if _is_version(previous, command.if_none_match):
        raise precondition_failed()
    item = transaction.write("upsert", document, previous)
    return ItemResult(200, item, charges.replace(len(item.raw)))


def _replace(command: ItemCommand, transaction: Transaction, keys: PartitionKeyDefinition) -> ItemResult:
    document = _document(command, transaction, keys)
    item_id = checked_id(document)
    previous = _existing(command, transaction)
    _require_version(previous, command.if_match)
    if item_id != previous.id and transaction.find(item_id) is not None:
        raise conflict(item_id)
    item = transaction.write("replace", document, previous)
    return ItemResult(200, item, charges.replace(len(item.raw)))


def _patch(command: ItemCommand, transaction: Transaction, keys: PartitionKeyDefinition) -> ItemResult:
    patch = {"operations": command.content} if isinstance(command.content, list) else command.content
    if not isinstance(patch, dict):
        raise bad_request("A patch is a list of operations, or an object with operations.")
    previous = _existing(command, transaction)
    _require_version(previous, command.if_match)
    _require_condition(previous, patch.get("condition"), transaction.now)
    document = patching.patched(parse(previous.raw), patch.get("operations"))
    if document.get("id") != previous.id or keys.of(document) != transaction.key:
        raise bad_request("A patch cannot change the id or the partition key of an item.")
    item = transaction.write("patch", document, previous)
    return ItemResult(200, item, charges.replace(len(item.raw)))


def _delete(command: ItemCommand, transaction: Transaction, _: PartitionKeyDefinition) -> ItemResult:
    item = _existing(command, transaction)
    _require_version(item, command.if_match)
    transaction.delete(item)
    return ItemResult(204, None, charges.delete(len(item.raw)))


_Operation = Callable[[ItemCommand, Transaction, PartitionKeyDefinition], ItemResult]
_OPERATIONS: Final[Mapping[str, _Operation]] = {
    "create": _create,
    "read": _read,
    "upsert": _upsert,
    "replace": _replace,
    "patch": _patch,
    "delete": _delete,
}


def _document(command: ItemCommand, transaction: Transaction, keys: PartitionKeyDefinition) -> JsonObject:
    """The document of a write, which must lie in the transaction's partition key."""
    document = command.content
    if not isinstance(document, dict):
        raise bad_request("An item is a JSON object.")
    if keys.of(document) != transaction.key:
        raise bad_request(
            "PartitionKey extracted from document doesn't match the one specified in the header.",
            1001,
        )
    return document


def _existing(command: ItemCommand, transaction: Transaction) -> Item:
    item = transaction.find(command.item)
    if item is None:
        raise not_found(command.item)
    return item


def _is_version(item: Item, etag: str | None) -> bool:
    return etag is not None and etag in (_ANY, item.etag)


def _require_version(item: Item, etag: str | None) -> None:
    if etag is not None and not _is_version(item, etag):
        raise precondition_failed()


def _require_condition(item: Item, condition: object, now: float) -> None:
    if condition is None:
        return
    try:
        holds = matches(parse_condition(str(condition)), item.document, now)
    except UnsupportedQueryError as error:
        raise bad_request(f"The patch condition: {error}") from error
    if not holds:
        raise precondition_failed()
