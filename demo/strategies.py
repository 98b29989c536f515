"""The strategies that the demo can run on. The handlers are the same on all of them."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from exactlyonce import Colocated, Entity, Outbox, Rebuild, Resequencer, VersionStream

STRATEGIES: Final[Mapping[str, Outbox | Colocated | VersionStream]] = {
    "outbox": Outbox(),
    "colocated": Colocated(),
    "stream": VersionStream(),
}
"""Those of entities that handle messages as they come."""


def reading(ranges: Entity[Any]) -> Resequencer:
    """The strategy of a read model that these entities feed: a source that keeps a stream is asked for what was lost."""
    if not isinstance(ranges.strategy, VersionStream):
        return Resequencer()
    rebuild = Rebuild(of=ranges, through="shooting-range")
    return Resequencer(gap_timeout=timedelta(seconds=5), on_gap=rebuild)
