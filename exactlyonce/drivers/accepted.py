"""What queues took of publishing that did not succeed as a whole."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final

from exactlyonce.records.outputs import Output

_Key = tuple[str, int]  # Id and content: neither alone is enough.

MOST: Final = 100_000
"""Outputs that are remembered: some 20 MB."""
SECONDS: Final = 600.0
"""For how long: whoever publishes the rest comes within minutes."""


class Accepted:
    """Outputs that need not be sent again, by whoever publishes them next. Losing one costs a copy, never the guarantee.

    Only as long as some of those that were published with them are missing. Who publishes the same outputs later does not
    go on with it, but has a reason of their own.

    Args:
        now: seconds, from any moment on.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._seen: OrderedDict[_Key, float] = OrderedDict()

    def missing(self, outputs: tuple[Output, ...]) -> tuple[Output, ...]:
        """Those of the outputs that are not known to be accepted."""
        if not self._seen:
            return outputs  # As nearly always.
        oldest = self._now() - SECONDS
        return tuple(one for one in outputs if self._seen.get(_key(one), oldest) <= oldest)

    def note(self, outputs: Iterable[Output]) -> None:
        """Queues took these, but not all that were published with them."""
        for key in map(_key, outputs):
            self._seen.pop(key, None)  # What is noted again is the newest.
            self._seen[key] = self._now()
        while len(self._seen) > MOST:
            self._seen.popitem(last=False)

    def forget(self, outputs: Iterable[Output]) -> None:
        """All that were published together are accepted."""
        if self._seen:
            for output in outputs:
                self._seen.pop(_key(output), None)


def _key(output: Output) -> _Key:
    return output.id, hash(output)
