"""Effects: the requests of a strategy to the outside world, each with the type of its reply.

A strategy is a generator: effects go out, replies come in (`reply = yield from SaveEntity(...)`). Drivers perform effects;
the model checker tries every possible reply. Effects and replies are frozen and hashable. Adapters never raise into a
strategy: an unknown outcome is the reply `UNKNOWN`, and a type checker makes the strategy handle it.
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
    """One request; `yield from effect` returns the reply."""

    def __iter__(self) -> Generator[Effect[Any], Any, Reply]:
        reply: Reply = yield self
        return reply


Step = Generator[Effect[Any], Any, Result]
"""A strategy at work: yields effects, takes replies, returns a result."""


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
    """The present, by the store's time, and transaction ids never given out before.

    Attributes:
        at: the present.
        transactions: one for each message, in order, then as many more as requested. None if the delivery has ended: the
            message is redelivered or settled elsewhere, so this attempt must not commit it.
    """

    at: datetime
    transactions: tuple[str | None, ...]

    @property
    def given(self) -> tuple[str, ...]:
        """The transaction ids, without None."""
        return tuple(tx for tx in self.transactions if tx is not None)


@dataclass(frozen=True, slots=True)
class Begin(Effect[Begun]):
    """Ask for the time and for fresh transaction ids: a strategy's only clock and only source of chance.

    Comes after all reads of an attempt. If a message's delivery is still held then, nobody had given up the message before
    the entity was loaded. So a settler giving up the message later fences off the attempt's commit.

    Attributes:
        messages: keys of the messages about to be handled, as delivered.
        more: further transaction ids: for stored messages, whose deliveries have ended.
    """

    messages: tuple[str, ...] = ()
    more: int = 0

    @property
    def count(self) -> int:
        """Number of transaction ids requested."""
        return len(self.messages) + self.more


@dataclass(frozen=True, slots=True)
class Together(Effect[tuple[First, Second]], Generic[First, Second]):
    """Two requests side by side; both replies arrive together."""

    first: Effect[First]
    second: Effect[Second]
