"""What workers may be at: how a run of production code starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from exactlyonce.attempt import Memory

NOTHING: Final = Memory()
STUMBLE, NUDGE, ANSWER = "stumble", "nudge", "answer"
EVERYTHING: Final = ("1", str(2**31))
"""First and last version of all that a stream has ever sent, and more."""


@dataclass(frozen=True, slots=True)
class Start:
    """How a run starts.

    Attributes:
        task: "attempt", or "stumble", an attempt in which handlers raise; "sweep" and "settle", as a strategy does it;
            "requeue" a parked message; "clean" up staged outputs or companions, "clean pages"; "nudge" a read model;
            "replay" what a stream has sent, or "answer" what is missing of it.
        entity: number of the entity.
        messages: numbers of the messages it is about.
        memory: what its process remembers of the entity.
        candidates: what the task is about besides messages: transactions whose staged outputs are to be cleaned up; ids of
            companions, or what pages follow, with ETags; keys of the messages whose handlers raise; first and last version to
            be sent again.
        behind: how many ticks its process's present is behind the store's.
        heard: whether its process has heard of the last change of the retention.
        tick: at which it begins, where its process trims ledgers by a retention that changes.
    """

    task: str
    entity: int
    messages: tuple[int, ...] = ()
    memory: Memory = NOTHING
    candidates: tuple[str, ...] = ()
    behind: int = 0
    heard: bool = True
    tick: int = 0
