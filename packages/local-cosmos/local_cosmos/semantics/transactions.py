"""One logical partition as one transaction sees it: what is stored, overlaid with what the transaction has written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from local_cosmos.query.demands import Demands
from local_cosmos.semantics import expiry
from local_cosmos.semantics.errors import bad_request, too_large
from local_cosmos.semantics.key_hashes import LARGEST
from local_cosmos.semantics.partition_keys import PartitionKey
from local_cosmos.semantics.resource_ids import item_rid
from local_cosmos.semantics.unique_keys import UniqueKeys
from local_cosmos.storage.items import Item
from local_cosmos.storage.memory import MemoryItemStore
from local_cosmos.values import DEEPEST, UNDEFINED, JsonObject, is_too_deep, serialise

LARGEST_ITEM: Final = 2 * 1024 * 1024
_LONGEST_ID: Final = 1023
_LONGEST_NAME: Final = 255
_LIMITS: Final = {_LONGEST_ID: 1024, _LONGEST_NAME: 255}
"""What the service's texts say of them."""
_NOT_IN_IDS: Final = frozenset("/\\?#")
_SYSTEM_PROPERTIES: Final = ("_rid", "_self", "_etag", "_attachments", "_ts", "_lsn")


@dataclass(frozen=True, slots=True)
class ItemFactory:
    """What a container gives to every new version of an item.

    Attributes:
        self_link: `dbs/{rid}/colls/{rid}/`.
        default_ttl: Of the container, in seconds; None when time to live is off.
        next_ordinal: Numbers the items of the container.
        next_write: Numbers the writes of the account; makes ETags.
    """

    container_rid: str
    self_link: str
    default_ttl: int | None
    unique_keys: UniqueKeys
    next_ordinal: Callable[[], int]
    next_write: Callable[[], int]

    def version(self, document: JsonObject, previous: Item | None, now: float) -> Item:
        """A new version of an item; system properties that the client sent are overwritten."""
        modified = int(now)
        ordinal = previous.ordinal if previous else self.next_ordinal()
        rid = item_rid(self.container_rid, ordinal)
        etag = f'"{self.next_write():08x}-0000-0000-0000-{modified:08x}0000"'
        stored = {name: value for name, value in document.items() if name not in _SYSTEM_PROPERTIES}
        stored |= {
            "_rid": rid,
            "_self": f"{self.self_link}docs/{rid}/",
            "_etag": etag,
            "_attachments": "attachments/",
            "_ts": modified,
        }
        raw = serialise(stored)
        if len(raw) > LARGEST_ITEM:
            raise too_large()
        if is_too_deep(stored, raw):  # Patches can add to what a request may have.
            raise bad_request(f"An item may be nested {DEEPEST} levels deep.")
        ttl = expiry.checked(document.get("ttl", UNDEFINED), "item")
        return Item(checked_id(document), raw, etag, modified, ordinal, ttl)


@dataclass(slots=True)
class Transaction:
    """Reads and writes within one partition key, not committed yet; drop it and nothing has happened.

    Attributes:
        changes: New version by id; None for deleted.
        log: The accepted writes in order: operation, id, new version.
    """

    key: PartitionKey
    now: float
    store: MemoryItemStore
    factory: ItemFactory
    changes: dict[str, Item | None] = field(default_factory=dict)
    log: list[tuple[str, str, Item | None]] = field(default_factory=list)

    def find(self, item_id: str) -> Item | None:
        """The newest version, unless it is deleted or expired."""
        if item_id in self.changes:
            return self.changes[item_id]
        item = self.store.find((self.key.effective, item_id))
        return None if item is None or self._is_expired(item) else item

    def write(self, operation: str, document: JsonObject, previous: Item | None) -> Item:
        """Create (`previous` is None) or replace an item, whose old id is free if it gets another.

        Raises:
            RefusedError: 400, 409 or 413; it cannot be as it is.
        """
        item = self.factory.version(document, previous, self.now)
        if previous is not None and previous.id != item.id:
            self.delete(previous)
        if self.factory.unique_keys.keys:
            self.factory.unique_keys.require_free(item.document, partial(self._others, item.id))
        self.changes[item.id] = item
        self.log.append((operation, item.id, item))
        return item

    def delete(self, item: Item) -> None:
        """Delete an item that `find` returned."""
        self.changes[item.id] = None
        self.log.append(("delete", item.id, None))

    def _others(self, item_id: str, wanted: Demands) -> Iterator[JsonObject]:
        """The documents of other items of the partition key, as of now: of those that meet the demands, and some more."""
        low, high = self.key.effective, self.key.effective + LARGEST
        path = self.store.most_selective(wanted, low, high)
        for _, item in self.store.scan(low, high) if path is None else self.store.search(path, wanted[path], low, high):
            if item.id != item_id and item.id not in self.changes and not self._is_expired(item):
                yield item.document
        for changed in self.changes.values():
            if changed is not None and changed.id != item_id:
                yield changed.document

    def _is_expired(self, item: Item) -> bool:
        return expiry.is_expired(item, self.factory.default_ttl, self.now)


def checked_name(resource: JsonObject) -> str:
    """The valid id of a database or container; refused as by `checked_id`."""
    return checked_id(resource, longest=_LONGEST_NAME)


def checked_id(document: JsonObject, longest: int = _LONGEST_ID) -> str:
    """The valid id of a document; `longest` is in bytes.

    Raises:
        RefusedError: 400; absent, empty, too long, or with a character that is not allowed.
    """
    item_id = document.get("id")
    if not isinstance(item_id, str) or not item_id or len(item_id.encode("utf-8", "replace")) > longest:
        raise bad_request(
            f"The input content is invalid because the property 'id' is missing or not valid: {item_id!r}. "
            f"Ensure to provide a unique non-empty string less than '{_LIMITS[longest]}' characters."
        )
    if not _NOT_IN_IDS.isdisjoint(item_id):
        raise bad_request(f"The id {item_id!r} contains one of the characters / \\ ? #, which are not allowed.")
    return item_id
