"""Sources outside that number what they send, each to every tally in a channel of its own; some are restored from a backup."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from exactlyonce import Envelope
from exactlyonce.records.places import Place
from exactlyonce.values.identity import EntityRef

_NUMBERED: Final = (2, 4)
_ONE_IN: Final = 5
"""Of so many seeds in a row, those are of episodes with numbers."""
_RESTORED: Final = 0.1
_LOST: Final = 8
"""How far back a backup is at most: fewer messages than those of which a receiver knows the ids."""


@dataclass(slots=True)
class _Sequence:
    """What one source has sent to one tally: names of messages, by their numbers from 1."""

    channel: str
    names: list[str] = field(default_factory=list)


class Sources:
    """The sources of an episode.

    Args:
        seed: of the episode.
        messages: how many are sent in it.

    Attributes:
        many: how many sources there are; 0 if nobody numbers anything.
        channels: how many channels a tally has room for.
    """

    def __init__(self, seed: int, messages: int) -> None:
        self._random = random = Random(f"sources {seed}")
        self.many = random.choice((2, 30, messages)) if seed % _ONE_IN in _NUMBERED else 0
        self.channels = random.choice((1, 3, 64)) if self.many else 64
        self._sequences: dict[tuple[int, EntityRef], _Sequence] = {}
        self._begun = 0

    def numbered(self, name: str, entity: EntityRef, envelope: Envelope) -> Envelope:
        """A message with the next number of some source; as it was where nobody numbers anything."""
        if not self.many:
            return envelope
        source = self._random.randrange(self.many), entity
        sequence = self._sequences.get(source) or self._began(source)
        sequence.names.append(name)
        return with_place(envelope, Place(sequence.channel, entity.source, len(sequence.names)))

    def restored(self, done: Container[str]) -> tuple[EntityRef, Place] | None:
        """Restore a source now and then; return for which tally, and a place that it gives out a second time.

        Its receiver knows the message that had the place. Once somebody has noticed, the source begins another channel.

        Args:
            done: names of the messages that were processed.
        """
        if not self._sequences or self._random.random() >= _RESTORED:
            return None
        (source, entity), sequence = self._random.choice(list(self._sequences.items()))
        first = max(len(sequence.names) - _LOST, 0)
        known = [number for number, name in enumerate(sequence.names, 1) if number > first and name in done]
        if not known:
            return None
        del self._sequences[source, entity]
        return entity, Place(sequence.channel, entity.source, self._random.choice(known))

    def _began(self, source: tuple[int, EntityRef]) -> _Sequence:
        self._begun += 1
        sequence = self._sequences[source] = _Sequence(f"shop{source[0]}x{self._begun}")
        return sequence


def with_place(envelope: Envelope, place: Place) -> Envelope:
    """A message with a place."""
    return replace(envelope, extensions=place.extensions)
