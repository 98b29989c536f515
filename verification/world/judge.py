"""What every judge of a scenario has to say. There is one for the outbox, and one where records are companions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Sequence

from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.entity import SaveEntity
from exactlyonce.records.outbox import Output
from verification.world.scenario import Scenario
from verification.world.store import Entity, Store

Committed = frozenset[tuple[str, str]]
"""Key of each message that was committed, and what its output says of that."""
Commit = SaveBatch | SaveEntity


class Judge(ABC):
    """Judges what happens in one scenario. A violation begins with the name of the property that fell; None if none did.

    Args:
        scenario: that is explored.
        keys: of its messages.
    """

    def __init__(self, scenario: Scenario, keys: Sequence[str]) -> None:
        self.scenario = scenario
        self.keys = tuple(keys)
        numbered = zip(keys, scenario.copies, strict=True)
        self._single = frozenset(key for key, copies in numbered if copies == 1 and keys.count(key) == 1)

    def alone(self, store: Store) -> frozenset[str]:
        """Keys of messages of which there is one copy, and never was another: parked or processed is settled for good."""
        return self._single - store.requeued - store.copied

    @abstractmethod
    def commit(self, write: Commit, before: Entity, after: Entity, store: Store) -> tuple[Committed, str | None]:
        """What is committed once a write has taken effect, and the violation."""

    @abstractmethod
    def outputs(self, outputs: tuple[Output, ...], store: Store) -> str | None:
        """The violation in publishing these outputs."""

    @abstractmethod
    def lost(self, key: str, store: Store) -> str | None:
        """The violation in acknowledging a message."""

    @abstractmethod
    def left_undone(self, store: Store, but: Container[str] = ()) -> str | None:
        """The violation if nobody is at work any more and no delivery is left, but for messages that need not be done."""

    def first_lost(self, keys: Iterable[str], store: Store) -> str | None:
        """The violation in acknowledging these messages."""
        return next((wrong for key in keys if (wrong := self.lost(key, store)) is not None), None)

    def rivals(self, key: str) -> tuple[str, ...]:  # noqa: ARG002
        """Other messages that have the number of this one, in the same channel: only one of them may be handled."""
        return ()
