"""Every accepted write, in order: the source for oracles that do not trust anybody's bookkeeping."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeAlias

from local_cosmos.storage.items import Item
from local_cosmos.values import JsonObject


@dataclass(frozen=True, slots=True)
class AcceptedWrite:
    """One write that was applied.

    Attributes:
        sequence: 1, 2, 3, ... over the whole account.
        database, container: Where.
        operation: create, replace, upsert, patch or delete, as the client asked.
        partition_key: JSON array of the key's components.
        id: The item.
        batch: Number of the batch; None for a write on its own.
        document: The whole new version, system properties included; None for a delete.
    """

    sequence: int
    database: str
    container: str
    operation: str
    partition_key: str
    id: str
    batch: int | None
    document: JsonObject | None


_Kept: TypeAlias = tuple[AcceptedWrite, Item | None]
"""A write without its document, which is made of the item's text when somebody asks: it takes more than twice its memory."""


class History:
    """The accepted writes of an account.

    Args:
        kept: False to remember nothing, which saves memory when nobody will ask.
    """

    def __init__(self, *, kept: bool) -> None:
        self._kept = kept
        self._writes: list[_Kept] = []
        self._batches = 0

    def accept(
        self,
        database: str,
        container: str,
        partition_key: str,
        writes: Sequence[tuple[str, str, Item | None]],
        *,
        batch: bool,
    ) -> None:
        """Remember what one commit wrote: operation, id and new version of each write, in order."""
        if not self._kept:
            return
        self._batches += batch
        number = self._batches if batch else None
        for operation, item_id, item in writes:
            sequence = len(self._writes) + 1
            write = AcceptedWrite(sequence, database, container, operation, partition_key, item_id, number, None)
            self._writes.append((write, item))

    def read(
        self, database: str | None = None, container: str | None = None, after: int = 0, limit: int | None = None
    ) -> list[AcceptedWrite]:
        """At most `limit` writes after a sequence number, of one database or container if named."""
        return [
            replace(write, document=item.document) if item else write
            for write, item in islice(self._matching(database, container, after), limit)
        ]

    def _matching(self, database: str | None, container: str | None, after: int) -> Iterator[_Kept]:
        for kept in islice(self._writes, max(after, 0), None):
            if database in (None, kept[0].database) and container in (None, kept[0].container):
                yield kept
