"""Planned interruptions of steps: lost replies, and kills of the process."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.effect import UNKNOWN, Busy, Effect
from exactlyonce.effects.entity import Publish, SaveEntity
from exactlyonce.effects.library import Park, Stage, WriteOnce, WritePage
from exactlyonce.errors import ConfigurationError
from exactlyonce.stores.memory.store import Fate, NoTrouble
from exactlyonce.stores.port import AsyncStore

# Lost replies of the store.


Lost = Literal["reply", "request"]
_FATES: Final[dict[Lost | None, Fate]] = {"reply": Fate.LOST_AFTER, "request": Fate.LOST_BEFORE, None: Fate.ANSWERED}


class Losses(NoTrouble):
    """Loses the planned replies, and no others.

    Attributes:
        planned: the loss of each of the next writes; None for an answered write.
    """

    def __init__(self) -> None:
        self.planned: deque[Lost | None] = deque()

    def fate(self, operation: str) -> Fate:  # noqa: ARG002
        return _FATES[self.planned.popleft()] if self.planned else Fate.ANSWERED


Reply = TypeVar("Reply")
Interruption = Literal["reply", "request", "before", "after"]
"""A step loses its reply, or its request, so that nothing is applied; or the process is killed before or after the step."""
WRITES: Final[frozenset[str]] = frozenset(
    item.__name__ for item in (SaveEntity, SaveBatch, WritePage, Stage, Park, WriteOnce)
)
"""Steps that write to the store and have replies."""
STEPS: Final = WRITES | {Publish.__name__}


@dataclass
class Planned:
    """A planned interruption of one of some effects, for an entity type or any, after a number of such steps that go on."""

    what: Interruption
    steps: frozenset[str]
    type: str | None
    skip: int = 0


class Interruptions:
    """Interrupts the planned steps, and no others. Each plan counts its own steps.

    Args:
        kill: ends the process.

    Attributes:
        planned: the interruptions still to come.
    """

    def __init__(self, kill: Callable[[], None]) -> None:
        self.planned: list[Planned] = []
        self._kill = kill

    def plan(self, what: Interruption, step: str | None, type: str | None, skip: int = 0) -> None:
        """Plan an interruption of a step, or of any write for None.

        Raises:
            ConfigurationError: there is no such step.
        """
        if step is not None and step not in STEPS:
            raise ConfigurationError(f"There is no step {step!r}; there are: {', '.join(sorted(STEPS))}.")
        self.planned.append(Planned(what, WRITES if step is None else frozenset((step,)), type, skip))

    def next(self, step: str, type: str) -> Interruption | None:
        """The interruption of a step that is about to begin; None for no interruption."""
        meant = [item for item in self.planned if step in item.steps and item.type in (None, type)]
        due = next((item for item in meant if item.skip == 0), None)
        for item in meant:
            item.skip = max(item.skip - 1, 0)
        if due is None:
            return None
        self.planned.remove(due)
        return due.what

    def kill(self) -> None:
        """End the process in the middle of its work.

        Raises:
            CancelledError: in the calling task, as in all other tasks of the process.
        """
        self._kill()
        raise asyncio.CancelledError


class InterruptedStore:
    """A store whose steps are interrupted."""

    def __init__(self, store: AsyncStore, interruptions: Interruptions) -> None:
        self._store = store
        self._interruptions = interruptions

    async def perform(self, effect: Effect[Reply]) -> Reply | Busy:
        """Perform an effect, unless a plan interrupts it."""
        entity: Any = getattr(effect, "entity", None)
        happens = None if entity is None else self._interruptions.next(type(effect).__name__, entity.type)
        if happens == "before":
            self._interruptions.kill()
        if happens == "request":
            return UNKNOWN  # type: ignore[return-value]  # Every write may have this reply.
        reply = await self._store.perform(effect)
        if happens == "after":
            self._interruptions.kill()
        return UNKNOWN if happens == "reply" else reply  # type: ignore[return-value]  # As above.
