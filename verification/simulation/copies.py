"""How many copies of each message there are: waiting, under way, or in a poison queue.

While the only copy of a message is looked into, nothing else can process that message.
"""

from __future__ import annotations

from collections import Counter


class Copies:
    """Counted by the queues. A parked message is no copy until it is requeued."""

    def __init__(self) -> None:
        self._there: Counter[str] = Counter()
        self._seen: Counter[str] = Counter()

    def appear(self, name: str) -> None:
        """A copy was put into a queue."""
        self._there[name] += 1
        self._seen[name] += 1

    def end(self, name: str) -> None:
        """A copy left its queue for good."""
        self._there[name] -= 1

    def exist(self, name: str) -> bool:
        """Whether there is any."""
        return self._there[name] > 0

    def only(self, name: str) -> int | None:
        """A number that distinguishes the only copy from all later ones; None if there are others, too."""
        return self._seen[name] if self._there[name] == 1 else None

    def is_only(self, name: str, copy: int) -> bool:
        """Whether that copy is still the only one, or was the last."""
        return self._seen[name] == copy
