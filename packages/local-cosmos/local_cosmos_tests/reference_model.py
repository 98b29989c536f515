"""What a container does, written down once more and as plainly as possible: a dictionary and the documented tables."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Key: TypeAlias = str | int
Place: TypeAlias = tuple[Key, str]
Condition: TypeAlias = Literal["none", "current", "stale", "any"]
Document: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Operation:
    """One operation on one item: patches have `content["operations"]` and perhaps `content["above"]`, see `_patch`."""

    name: Literal["create", "read", "replace", "upsert", "patch", "delete"]
    id: str
    content: Document = field(default_factory=dict)
    condition: Condition = "none"


@dataclass
class Entry:
    """The newest version of an item."""

    document: Document
    written: int
    etag: str = "not known yet"


class RefusedByModel(Exception):
    """The status of a refusal."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass
class Model:
    """The container. `now` is in whole seconds; items may expire, none does by default (`defaultTtl` is -1).

    `unique` is the property that is its unique key, if it has one.
    """

    now: int
    unique: str | None = None
    entries: dict[Place, Entry] = field(default_factory=dict)

    def visible(self, key: Key, item: str) -> Entry | None:
        entry = self.entries.get((key, item))
        ttl = entry.document.get("ttl", -1) if entry else -1
        expired = entry and ttl != -1 and entry.written + ttl <= self.now
        return None if expired else entry

    def documents(self, keep: Callable[[Document], bool] = lambda _: True, key: Any = ...) -> list[Document]:
        places = [place for place in self.entries if key in (..., place[0]) and self.visible(*place)]
        return [self.entries[place].document for place in places if keep(self.entries[place].document)]

    def perform(self, key: Key, operation: Operation) -> int:
        """Apply one operation; the status."""
        try:
            return self._perform(key, operation, touched=set())
        except RefusedByModel as refusal:
            return refusal.status

    def batch(self, key: Key, operations: Sequence[Operation]) -> list[int]:
        """Apply all operations or none; the statuses."""
        before, touched = dict(self.entries), set[str]()
        statuses: list[int] = []
        try:
            for operation in operations:
                statuses.append(self._perform(key, operation, touched))
                if operation.name != "read":
                    touched.add(operation.id)
        except RefusedByModel as refusal:
            self.entries = before
            failed = len(statuses)
            return [refusal.status if n == failed else 424 for n in range(len(operations))]
        return statuses

    def _perform(self, key: Key, operation: Operation, touched: set[str]) -> int:
        entry = self.visible(key, operation.id)
        if operation.name == "create" and entry:
            raise RefusedByModel(409)
        if operation.name in {"read", "replace", "patch", "delete"} and not entry:
            raise RefusedByModel(404)
        # An ETag from before a batch is stale once the batch itself has written the item.
        stale = operation.condition == "stale" or (operation.condition == "current" and operation.id in touched)
        if entry and stale and operation.name not in {"create", "read"}:
            raise RefusedByModel(412)
        if operation.name == "read":
            return 200
        if operation.name == "delete":
            del self.entries[key, operation.id]
            return 204
        document = operation.content
        if operation.name == "patch" and entry:
            document = _patch(copy.deepcopy(entry.document), operation.content)
        self._require_unique(key, operation.id, document)
        self.entries[key, operation.id] = Entry(document, self.now)
        return 200 if entry else 201

    def _require_unique(self, key: Key, item: str, document: Document) -> None:
        if self.unique is None:
            return
        value = document.get(self.unique)
        if isinstance(value, list):
            raise RefusedByModel(400)
        others = (other.get(self.unique) for other in self.documents(lambda other: other["id"] != item, key))
        if any(value == other and isinstance(value, bool) == isinstance(other, bool) for other in others):
            raise RefusedByModel(409)


def _patch(document: Document, patch: Document) -> Document:
    if "above" in patch and not (is_number(document.get("n")) and document["n"] > patch["above"]):
        raise RefusedByModel(412)
    for operation in patch["operations"]:
        name, value = operation["path"][1:], operation.get("value")
        if operation["op"] in {"replace", "remove"} and name not in document:
            raise RefusedByModel(400)
        if operation["op"] == "incr" and not is_number(document.get(name, 0)):
            raise RefusedByModel(400)
        if operation["op"] == "remove":
            del document[name]
        else:
            document[name] = document.get(name, 0) + value if operation["op"] == "incr" else value
    return document


def is_number(value: object) -> bool:
    """Whether a JSON value is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)
