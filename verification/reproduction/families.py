"""What is played differently where records are in the library, and where they are companions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from exactlyonce.attempt import Memory
from exactlyonce.effects.effect import Step
from exactlyonce.effects.entity import Loaded
from exactlyonce.errors import ExactlyOnceError
from verification.explorers.trace import Event
from verification.reproduction.correspondence import Correspondence
from verification.reproduction.reality import Documents, Reality
from verification.world.scenario import Scenario
from verification.world.store import Store


@dataclass(frozen=True, slots=True)
class Task:
    """What a process is to do.

    Attributes:
        name: as in an event.
        entity: number of the entity.
        messages: numbers of the messages.
        candidates: what else it is about, as in `tasks.Start`.
        records: key and ETag of records to be forgotten.
    """

    name: str
    entity: int
    messages: tuple[int, ...] = ()
    candidates: tuple[str, ...] = ()
    records: tuple[tuple[str, str], ...] = ()


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

    def task(self, event: Event, before: Store, documents: Documents) -> Task:
        """What a process begins with a step.

        Args:
            event: the step.
            before: what the model held before it.
            documents: what reality holds.
        """
        ...

    def step(self, task: Task, memory: Memory) -> Step[Any]:
        """The production generator that does a task."""
        ...

    def following(self, task: Task, result: Any) -> Task | None:
        """What a process does after a run came to this: the same again, or a rest of it; None if it is done."""
        ...

    def time(self, task: Task, loaded: Loaded) -> datetime:
        """The present of an attempt that has loaded this, by the model."""
        ...

    def position(self, event: Event, entity: int, before: Store) -> int | None:
        """The position in the model's log that a read saw; None for the newest."""
        ...

    def etags(self, store: Store) -> Iterator[tuple[str, str]]:
        """Id and ETag of what the model holds in the containers of entities."""
        ...

    def differences(self, reality: Reality, documents: Documents, store: Store) -> Iterator[str]:
        """Where reality holds something else than the model."""
        ...

    def fallen(self, reality: Reality, deeds: Sequence[Deeds]) -> frozenset[str]:
        """The names of the properties that do not hold in reality."""
        ...
