"""What may be delivered next, in order."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from local_service_bus.broker.messages import Stored


class Ready:
    """Messages that wait for a receiver: one line for each session, or a single one, None.

    Messages that are locked, deferred or gone meanwhile are dropped when somebody looks.

    Args:
        messages: All messages of the queue by sequence number, as they are at any time.
    """

    def __init__(self, messages: dict[int, Stored]) -> None:
        self._messages = messages
        self._lines: dict[str | None, list[int]] = {}

    def add(self, line: str | None, stored: Stored) -> None:
        """A message waits; it takes its place by its number."""
        heapq.heappush(self._lines.setdefault(line, []), stored.sequence_number)

    def first(self, line: str | None) -> Stored | None:
        """The first one of a line; None if nobody waits there."""
        numbers = self._lines.get(line, [])
        while numbers:
            stored = self._messages.get(numbers[0])
            if stored is not None and stored.state == "active" and stored.token is None:
                return stored
            heapq.heappop(numbers)
        self._lines.pop(line, None)
        return None

    def pop(self, line: str | None) -> Stored | None:
        """Take the first one out of a line."""
        stored = self.first(line)
        if stored is not None:
            heapq.heappop(self._lines[line])
        return stored

    def firsts(self) -> Iterator[tuple[str, Stored]]:
        """The first one of each session."""
        for line in list(self._lines):
            if line is not None and (stored := self.first(line)) is not None:
                yield line, stored
