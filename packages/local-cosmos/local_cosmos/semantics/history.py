"""Every accepted write, in order: the source for oracles that do not trust anybody's bookkeeping."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

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


class _Write(NamedTuple):
    """A write as it is kept: with the text of its item, since a parsed document takes more than twice its memory."""

    database: str
    container: str
    operation: str
    partition_key: str
    id: str
    batch: int | None
    item: Item | None

    def accepted(self, sequence: int) -> AcceptedWrite:
        """The write with its parsed document."""
        return AcceptedWrite(sequence, *self[:-1], self.item.document if self.item else None)


class History:
    """The accepted writes of an account.

    Args:
        kept: False to remember nothing, which saves memory when nobody will ask.
    """

    def __init__(self, *, kept: bool) -> None:
        self._kept = kept
        self._writes: list[_Write] = []
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
            self._writes.append(_Write(database, container, operation, partition_key, item_id, number, item))

    def read(
        self, database: str | None = None, container: str | None = None, after: int = 0, limit: int | None = None
    ) -> list[AcceptedWrite]:
        """At most `limit` writes after a sequence number, of one database or container if named."""
        return list(islice(self._matching(database, container, max(after, 0)), limit))

    def _matching(self, database: str | None, container: str | None, after: int) -> Iterator[AcceptedWrite]:
        for sequence, write in enumerate(islice(self._writes, after, None), start=after + 1):
            if database in (None, write.database) and container in (None, write.container):
                yield write.accepted(sequence)
