"""Every request a strategy may make of the outside world, each with the reply it gets.

A strategy is a generator that yields effects and is sent replies: `reply = yield from SaveEntity(...)`. Drivers perform them;
the model checker answers them in every possible way. Effects and replies are frozen and hashable. Adapters never raise into
a strategy: an outcome that is not known is the reply `UNKNOWN`, and a type checker makes the strategy face it.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final, Generic, Literal, TypeVar

Reply = TypeVar("Reply", covariant=True)
First = TypeVar("First")
Second = TypeVar("Second")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Effect(Generic[Reply]):
    """One request; `yield from` it to get the reply."""

    def __iter__(self) -> Generator[Effect[Any], Any, Reply]:
        reply: Reply = yield self
        return reply


Step = Generator[Effect[Any], Any, Result]
"""What a strategy is: effects out, replies in, a result at the end."""


class NoAnswer(Enum):
    """Replies that prove nothing."""

    UNKNOWN = "unknown"
    """A write that may have been applied, may still be, or may never be; a read that failed."""

    BEHIND = "behind"
    """A read whose replica had not reached the session token (404/1002). Never "absent"."""


UNKNOWN: Final = NoAnswer.UNKNOWN
BEHIND: Final = NoAnswer.BEHIND
Unknown = Literal[NoAnswer.UNKNOWN]


@dataclass(frozen=True, slots=True)
class Begun:
    """The present, by the store's time, and transaction ids that were never given out before.

    Attributes:
        at: the present.
        transactions: one for each message, in their order, and then as many more as were asked for. None for a message whose
            delivery was given back meanwhile: it comes again, or was given up, and an attempt that worked for it could commit
            what somebody else has decided about.
    """

    at: datetime
    transactions: tuple[str | None, ...]

    @property
    def given(self) -> tuple[str, ...]:
        """The transaction ids that there are."""
        return tuple(tx for tx in self.transactions if tx is not None)


@dataclass(frozen=True, slots=True)
class Begin(Effect[Begun]):
    """Ask for the time and for fresh transaction ids: the only clock and the only chance a strategy has.

    It comes after everything that an attempt reads. A message whose delivery is held then was not given up before the entity
    was loaded, so a settler that gives it up later fences off the attempt's commit.

    Attributes:
        messages: keys of the messages that are about to be handled, as they were delivered.
        more: how many transaction ids are wanted besides: for messages that the store holds, whose deliveries are over.
    """

    messages: tuple[str, ...] = ()
    more: int = 0

    @property
    def count(self) -> int:
        """How many transaction ids are asked for."""
        return len(self.messages) + self.more


@dataclass(frozen=True, slots=True)
class Together(Effect[tuple[First, Second]], Generic[First, Second]):
    """Two requests side by side; the replies come together."""

    first: Effect[First]
    second: Effect[Second]
