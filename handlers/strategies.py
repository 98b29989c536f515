"""The strategies that the sample can run on. The handlers are the same on all of them."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from exactlyonce import Colocated, ConfigurationError, Entity, Outbox, Rebuild, Resequencer, VersionStream

Writing = Outbox | Colocated | VersionStream

STRATEGIES: Final[Mapping[str, Writing]] = {
    "outbox": Outbox(),
    "colocated": Colocated(),
    "stream": VersionStream(),
}


def writing(name: str) -> Writing:
    """The strategy of this name, for entities that handle messages as they come."""
    if name not in STRATEGIES:
        raise ConfigurationError(f"STRATEGY is {name!r}; it has to be one of {', '.join(STRATEGIES)}.")
    return STRATEGIES[name]


def reading(ranges: Entity[Any]) -> Resequencer:
    """The strategy of a read model that these entities feed: a source that keeps a stream is asked for what was lost."""
    if not isinstance(ranges.strategy, VersionStream):
        return Resequencer()
    rebuild = Rebuild(of=ranges, through="shooting-range")
    return Resequencer(gap_timeout=timedelta(seconds=5), on_gap=rebuild)
