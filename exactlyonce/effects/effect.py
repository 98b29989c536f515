"""Effects: the requests of a strategy to the outside world, each with the type of its reply.

A strategy is a generator: effects go out, replies come in (`reply = yield from SaveEntity(...)`). Drivers perform effects;
the model checker tries every possible reply. Effects and replies are frozen and hashable. Adapters never raise into a
strategy: an unknown outcome is the reply `UNKNOWN`, and a type checker makes the strategy handle it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, ClassVar, Final, Generic, Literal, NoReturn, Protocol, TypeVar, overload

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
class Opened(Begun):
    """The present, and transactions with numbers never given out before.

    Attributes:
        secret: secret of the book; names derived from a secret cannot be guessed.
    """

    secret: str = ""

    def name_of(self, tx: str) -> str:
        """A name for writes of a transaction before its commit: as hard to guess as the secret."""
        return hashlib.sha256(f"{self.secret}{tx}".encode()).hexdigest()[:32]


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


# The port: one method, `perform`, takes an effect and returns its reply.


Answer = TypeVar("Answer")
Asked = TypeVar("Asked")
Owner = TypeVar("Owner")
_Asked = TypeVar("_Asked", covariant=True)
_Reply = TypeVar("_Reply", covariant=True)
_MARK: Final = "__performs__"


@dataclass(frozen=True, slots=True)
class Busy:
    """Throttled, or the partition is moving: certainly not applied. Drivers retry; strategies never see this reply.

    Attributes:
        retry_after: seconds to wait, as asked by the store; None if the store does not say.
    """

    retry_after: float | None = None


class Port(Protocol):
    """A port for blocking drivers."""

    def perform(self, effect: Effect[Answer]) -> Answer | Busy:
        """Perform an effect."""
        ...


class AsyncPort(Protocol):
    """A port for the async driver."""

    async def perform(self, effect: Effect[Answer]) -> Answer | Busy:
        """Perform an effect."""
        ...


class Awaited:
    """A blocking port for the async driver. Only for adapters that never wait, such as the ones in memory."""

    def __init__(self, port: Port) -> None:
        self._port = port

    async def perform(self, effect: Effect[Answer]) -> Answer | Busy:
        return self._port.perform(effect)


class _Kind(Protocol[_Asked, _Reply]):
    """A class of effects, as a type checker sees it: a call makes an effect, whose iterator returns the reply."""

    def __call__(self, *args: Any, **kwargs: Any) -> _Asked: ...
    def __iter__(this, self: Any, /) -> Generator[Any, Any, _Reply]: ...  # noqa: N805  # Of the class, not of an instance.


class performs(Generic[Asked, Answer]):  # noqa: N801  # A decorator.
    """Marks the method of an adapter that performs one kind of effect. A type checker compares the method with effect and
    reply.

    Args:
        kind: class of the effect.
    """

    def __init__(self, kind: _Kind[Asked, Answer]) -> None:
        self._kind = kind

    @overload
    def __call__(
        self, method: Callable[[Owner, Asked], Coroutine[Any, Any, Answer | Busy]]
    ) -> Callable[[Owner, Asked], Coroutine[Any, Any, Answer | Busy]]: ...
    @overload
    def __call__(self, method: Callable[[Owner, Asked], Answer | Busy]) -> Callable[[Owner, Asked], Answer | Busy]: ...
    def __call__(self, method: Callable[..., Any]) -> Callable[..., Any]:
        setattr(method, _MARK, self._kind)
        return method


class _Operations(dict[type[Effect[Any]], Callable[[Any, Any], Any]]):
    """The methods of an adapter's class, by effect."""

    def __init__(self, owner: type) -> None:
        marked = (
            (getattr(method, _MARK), name)
            for base in reversed(owner.__mro__)
            for name, method in vars(base).items()
            if hasattr(method, _MARK)
        )
        # By name, so that a subclass overrides a method as usual.
        super().__init__((kind, getattr(owner, name)) for kind, name in marked)
        self._owner = owner

    def __missing__(self, kind: type[Effect[Any]]) -> NoReturn:
        raise TypeError(
            f"{self._owner.__name__} performs no {kind.__name__}. Mark a method of it with @performs({kind.__name__}), or give "
            "the driver an adapter that performs it."
        )


class _Marked:
    operations: ClassVar[_Operations]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.operations = _Operations(cls)


class Adapter(_Marked):
    """Base of blocking adapters: performs an effect by the method marked with the effect's class.

    Attributes:
        operations: the methods, by effect.
    """

    def perform(self, effect: Effect[Answer]) -> Answer | Busy:
        """Perform an effect; TypeError if no method is marked with the effect's class."""
        reply: Answer | Busy = self.operations[type(effect)](self, effect)
        return reply


class AsyncAdapter(_Marked):
    """Base of adapters for the async driver, as `Adapter`. A method is marked with its effect:

        class MyStore(AsyncAdapter):
            @performs(LoadEntity)
            async def load_entity(self, effect: LoadEntity) -> Loaded | NoAnswer | Busy: ...

    `perform` never raises for failures of the world. An unknown outcome is `UNKNOWN`; a request that was certainly not applied,
    and may be repeated at once, is `Busy`. An exception equals a crash, and every protocol survives a crash.
    """

    def perform(self, effect: Effect[Answer]) -> Coroutine[Any, Any, Answer | Busy]:
        """Perform an effect; TypeError if no method is marked with the effect's class."""
        reply: Coroutine[Any, Any, Answer | Busy] = self.operations[type(effect)](self, effect)
        return reply
