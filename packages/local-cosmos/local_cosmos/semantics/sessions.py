"""Session tokens: `{range}:{version}#{lsn}`, several joined by commas.

A token is the least version a read must see. It belongs to a physical partition: one that speaks only of other partitions
cannot be satisfied.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from local_cosmos.semantics.errors import bad_request, session_not_available
from local_cosmos.semantics.ranges import PhysicalPartition


class SessionToken:
    """What a client has seen so far.

    Args:
        text: The header; None or empty when the client sent none.

    Raises:
        RefusedError: 400; malformed.
    """

    def __init__(self, text: str | None) -> None:
        self._lsns = dict(_segment(segment) for segment in text.split(",")) if text else {}

    def required(self, partition: PhysicalPartition, *, alone: bool) -> int | None:
        """The least LSN that a read of this partition must see; None for any.

        Args:
            alone: The request reads no other partition, so that the token must speak of this one.

        Raises:
            RefusedError: 404/1002; no replica can have what the token asks for.
        """
        if not self._lsns:
            return None
        lsns = [self._lsns[range_id] for range_id in (partition.id, *partition.parents) if range_id in self._lsns]
        required = max(lsns, default=None)
        unknown = required is None and alone
        if unknown or (required is not None and required > partition.lsn):
            raise session_not_available()
        return required


def token(seen: Iterable[tuple[PhysicalPartition, int]]) -> str:
    """The token of a reply: what of each partition has been seen."""
    return ",".join(f"{partition.id}:-1#{lsn}" for partition, lsn in seen)


def _segment(text: str) -> tuple[str, int]:
    range_id, _, vector = text.partition(":")
    _, *progress = vector.split("#")
    if not range_id or not progress or not re.fullmatch(r"[0-9]{1,18}", progress[0]):
        raise bad_request(f"The session token {text!r} is not valid.")
    return range_id, int(progress[0])
