"""One step from a state, and one answer to a worker."""

from __future__ import annotations

from typing import NamedTuple

from verification.explorers.reductions import State
from verification.world.mentions import Write
from verification.world.workers import Worker
from verification.world.writes import Answer


class Move(NamedTuple):
    """One step from a state.

    Attributes:
        state: afterwards.
        fault: whether it took a fault, so that finishing the work must not rely on it.
        violation: the property it broke.
        slot: place of the worker in the state before; -1 if none moved.
        begun: the worker as it took something to do; None if it did not.
        what: the answer it got, or what happened, for the story.
        moved: the worker afterwards.
        write: the delayed write that took effect; None if none did.
        crashed: whether the worker finished, and crashed before it acknowledged.
    """

    state: State
    fault: bool
    violation: str | None
    slot: int
    begun: Worker | None
    what: Answer | str
    moved: Worker | None = None
    write: Write | None = None
    crashed: bool = False


class Outcome(NamedTuple):
    """One answer to a worker and what the worker makes of it, as far as nothing else in the state matters."""

    answer: Answer
    worker: Worker
    violation: str | None
    ended: bool
