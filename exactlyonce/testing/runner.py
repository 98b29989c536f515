"""Runs a handler without a store, for tests of business code."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Final, Generic, TypeVar

from exactlyonce.effects.attempt import Before
from exactlyonce.errors import NoStateReturned
from exactlyonce.handling.calls import Api, Call
from exactlyonce.handling.context import Context
from exactlyonce.handling.messages import message_type
from exactlyonce.handling.routes import Destination, Model, Routes, name_of, subscribers_of
from exactlyonce.records.outbox import MAX_OUTPUT_BYTES, Answer
from exactlyonce.values.envelope import EntityRef, Origin, message_key

NOW: Final = datetime(2026, 1, 1, tzinfo=timezone.utc)
State = TypeVar("State")
Message = TypeVar("Message")
Result = TypeVar("Result")
SentModel = TypeVar("SentModel", bound=Model)


@dataclass(frozen=True)
class Sent:
    """A message that a handler sent; `destination` is None for an announced message."""

    destination: str | None
    message: Any
    delay: timedelta | None = None
    at: datetime | None = None


@dataclass(frozen=True)
class WrittenOnce:
    """A blob that a handler wrote."""

    name: str
    content: bytes
    content_type: str
    address: str


@dataclass(frozen=True)
class Ran(Generic[Result]):
    """The result of a handler.

    Attributes:
        state: the new state; of an event-sourced entity, the events.
        sent: the sent and announced messages, in order, with messages of `at=` that the handler cancelled itself.
        deleted: whether the handler deleted the entity.
        blobs: the written blobs.
        answer: the reply; None without a reply.
        calls: the calls to other services.
        cancelled: ids of the kept messages that the handler cancelled.
    """

    state: Result
    sent: tuple[Sent, ...]
    deleted: bool
    blobs: tuple[WrittenOnce, ...] = ()
    answer: Answer | None = None
    calls: tuple[Call, ...] = ()
    cancelled: frozenset[str] = frozenset()

    @property
    def messages(self) -> tuple[Any, ...]:
        """The sent and announced messages, in order."""
        return tuple(item.message for item in self.sent)


def run(
    handler: Callable[[State, Message, Context], Result],
    state: State,
    message: Message,
    *,
    message_id: str = "m-1",
    source: str = "test",
    entity: EntityRef | None = None,
    now: datetime = NOW,
    destinations: Iterable[Destination | Api] | None = None,
    kept: Iterable[str] = (),
) -> Ran[Result]:
    """Run a handler on a state and a message. The same arguments give the same result, ids and random numbers included.

    Args:
        handler: a handler, decorated or not.
        state: the state before. It is not copied: a handler that changes the state changes the caller's.
        message: an instance of a registered message type.
        message_id, source, entity: the origin of `context.new_id()` and `context.random`.
        now: the value of `context.now`.
        destinations: the destinations of the application, and the called services; None for any.
        kept: ids of messages that the entity sent with `at=`, and that were not released.

    Raises:
        UnknownDestination: the handler sends to another destination, or announces a message that no destination receives.
        NoStateReturned: the handler returned None without deleting the entity.
    """
    context = _Recorder(
        Origin(entity or EntityRef("test", ("e-1",), "e-1"), message_key(source, message_id)),
        now,
        destinations,
        frozenset(kept),
    )
    try:
        result = handler(state, message, context)
    finally:
        context.close()
    if result is None and not context.deleted:
        raise NoStateReturned("The handler returned nothing. Return the new state, or call context.delete().")
    sent, written, called = tuple(context.sent), tuple(context.written), tuple(context.calls.values())
    return Ran(result, sent, context.deleted, written, context.answer, called, context.cancelled)


class _Recorder(Context):
    """A context with every destination or the given destinations. It records copies of sent messages and written blobs."""

    def __init__(
        self, origin: Origin, now: datetime, destinations: Iterable[Destination | Api] | None, kept: frozenset[str]
    ) -> None:
        blobs = "https://example.blob.core.windows.net/blobs"
        if destinations is None:
            routes: Routes = _Anywhere(blobs=blobs)
        else:
            queues = [item.queue if isinstance(item, Api) else item for item in destinations]
            routes = _Given({queue.name: MAX_OUTPUT_BYTES for queue in queues}, subscribers_of(queues), blobs=blobs)
        super().__init__(origin, Before(None, now, "t-1", version=1, kept=kept), routes)
        self.sent: list[Sent] = []
        self.written: list[WrittenOnce] = []

    def send(
        self,
        destination: str | Destination[SentModel],
        message: SentModel,
        *,
        delay: timedelta | None = None,
        at: datetime | None = None,
    ) -> str:
        id = super().send(destination, message, delay=delay, at=at)
        self.sent.append(Sent(name_of(destination), deepcopy(message), delay, at))
        return id

    def write_once(self, name: str, content: bytes | str, *, content_type: str = "application/octet-stream") -> str:
        address = super().write_once(name, content, content_type=content_type)
        self.written.append(WrittenOnce(name, self.blobs[-1].content, content_type, address))
        return address

    def announce(self, event: Model) -> None:
        super().announce(event)
        self.sent.append(Sent(None, deepcopy(event)))


class _Given(Routes):
    """Routes on which a reply of any type finds a destination."""

    def replies(self, then: type) -> str:
        return message_type(then).name


class _Anywhere(_Given):
    """Routes on which every destination exists and takes every message."""

    def subscribed(self, model: type) -> tuple[str, ...]:  # noqa: ARG002
        return ()

    def check(self, destination: str, size: int) -> None:
        pass
