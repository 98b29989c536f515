"""What is played differently where marks lie in pages, and where records are companions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from exactlyonce.effects.effect import Step
from exactlyonce.errors import ExactlyOnceError
from verification.explorers.trace import Event
from verification.reproduction.correspondence import Correspondence
from verification.reproduction.reality import Documents, Place, Reality
from verification.world.scenario import Scenario
from verification.world.store import Store
from verification.world.tasks import Start


class Versioned(NamedTuple):
    """A document of which the model knows the version.

    Attributes:
        name: of the document among all of its container.
        container, place: where it is in reality.
        etag: that the model gives it.
    """

    name: str
    container: str
    place: Place
    etag: str


@dataclass
class Deeds:
    """What a process came to.

    Attributes:
        begun: names of its tasks.
        acknowledged: number of the entity and of the message, of every delivery that is done with.
        failed: key and error of messages that failed for good.
        raised: what ended its tasks.
        sent_again: versions, from the first on, up to which it has sent a stream again.
    """

    begun: list[str] = field(default_factory=list)
    acknowledged: list[tuple[int, int]] = field(default_factory=list)
    failed: list[tuple[str, ExactlyOnceError]] = field(default_factory=list)
    raised: list[Exception] = field(default_factory=list)
    sent_again: list[int] = field(default_factory=list)


class Family(Protocol):
    """Plays scenarios of one kind."""

    @property
    def scenario(self) -> Scenario:
        """What is played."""
        ...

    @property
    def names(self) -> Correspondence:
        """What stands for what."""
        ...

    def start(self, event: Event, documents: Documents) -> Start:
        """What a process begins with a step, with the names of reality.

        Args:
            event: the step.
            documents: what reality holds.
        """
        ...

    def step(self, start: Start) -> Step[Any]:
        """The production generator that does a task."""
        ...

    def following(self, start: Start, result: Any) -> Start | None:
        """What a process does after a run came to this: the same again, or a rest of it; None if it is done."""
        ...

    def time(self, start: Start, event: Event, store: Store) -> datetime | None:
        """The present of a process that is told the reply of a step, by the model; None if it stays as it was."""
        ...

    def position(self, event: Event, entity: int, before: Store) -> int | None:
        """The position in the model's log that a read saw; None for the newest.

        Raises:
            TornViewError: no view that the service can show has what it found.
        """
        ...

    def versions(self, store: Store) -> Iterator[Versioned]:
        """What the model holds, as far as it knows the versions."""
        ...

    def differences(self, reality: Reality, documents: Documents, store: Store) -> Iterator[str]:
        """Where reality holds something else than the model."""
        ...

    def fallen(self, reality: Reality, deeds: Sequence[Deeds]) -> frozenset[str]:
        """The names of the properties that do not hold in reality."""
        ...
