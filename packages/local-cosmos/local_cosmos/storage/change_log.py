"""Which items were written when, so that a page of a change feed does not look at all of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from local_cosmos.storage.items import ItemKey

Bounds: TypeAlias = tuple[str, str]
"""Of the effective keys of a feed, the end exclusive. All of them lie in one physical partition."""
Write: TypeAlias = tuple[int, ItemKey]
"""An LSN, and an item that was written under it."""

_MOST_LOGS: Final = 16
_GROWTH: Final = 2
"""A log is made anew, without writes that others replaced, when it has grown to so many times its length."""
_SHORT: Final = 1_000
"""Writes that are not worth it."""


@dataclass(slots=True)
class _Log:
    """Writes in the order of their LSNs."""

    lsns: list[int]
    items: list[ItemKey]
    most: int

    @classmethod
    def of(cls, writes: Iterable[Write]) -> _Log:
        ordered = sorted(writes, key=lambda write: write[0])
        return cls([lsn for lsn, _ in ordered], [key for _, key in ordered], max(_SHORT, _GROWTH * len(ordered)))

    def follows(self, lsn: int) -> bool:
        """Whether a write may be appended."""
        return len(self.lsns) < self.most and (not self.lsns or self.lsns[-1] <= lsn)


@dataclass(slots=True)
class ChangeLogs:
    """The logs of one container: each feed that is read gets one."""

    _logs: dict[Bounds, _Log] = field(default_factory=dict)

    def add(self, key: ItemKey, lsn: int) -> None:
        """An item was written."""
        for bounds, log in list(self._logs.items()):
            low, high = bounds
            if low <= key[0] < high:
                if log.follows(lsn):
                    log.lsns.append(lsn)
                    log.items.append(key)
                else:
                    del self._logs[bounds]

    def since(self, bounds: Bounds, after: int, writes: Callable[[], Iterable[Write]]) -> Iterator[Write]:
        """The writes after an LSN, in order; some of them may have been replaced.

        Args:
            bounds: Of the feed.
            after: The LSN.
            writes: Gives all versions within the bounds, in any order.
        """
        log = self._logs.get(bounds)
        if log is None:
            if len(self._logs) >= _MOST_LOGS:
                del self._logs[next(iter(self._logs))]
            log = self._logs[bounds] = _Log.of(writes())
        for number in range(bisect_right(log.lsns, after), len(log.lsns)):
            yield log.lsns[number], log.items[number]
