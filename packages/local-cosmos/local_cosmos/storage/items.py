"""Items, and how values are found in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from local_cosmos.values import JsonObject, parse_own

PropertyPath: TypeAlias = tuple[str, ...]
"""Names from the root of an item to one of its values."""

ItemKey = tuple[str, str]
"""Effective partition key, in hexadecimal digits, and id: what an item is unique by."""


IndexKey: TypeAlias = tuple[int, Any]
"""A value as indexes sort it: the rank of its type, and what compares within the type."""


class Range(NamedTuple):
    """Values of one type, both ends included: the rank of the type, and what compares within it."""

    rank: int
    low: Any
    high: Any


@dataclass(frozen=True, slots=True)
class Item:
    """One version of an item.

    Attributes:
        id: Unique within its partition key.
        raw: All properties, system properties included, as JSON text.
        etag: Quoted; new with every write.
        modified: Time of the write, in whole seconds since 1970 (`_ts`).
        ordinal: Rises with every item created in the container; the order of a scan within a partition key.
        ttl: Its own time to live in seconds, -1 for never; None when the container decides.
    """

    id: str
    raw: bytes
    etag: str
    modified: int
    ordinal: int
    ttl: int | None

    @property
    def document(self) -> JsonObject:
        """All properties, parsed anew: kept beside the text they would take more than twice its memory."""
        document: JsonObject = parse_own(self.raw)
        return document
