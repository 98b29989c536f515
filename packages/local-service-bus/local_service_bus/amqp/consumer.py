"""A link by which a client receives messages, and settles them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID, uuid4

from proton import Delivery, Link

from local_service_bus.amqp.sections import DESCRIPTION, REASON, owned, write
from local_service_bus.amqp.service import Service
from local_service_bus.amqp.steps import Client, Step
from local_service_bus.amqp.wire import condition_of, transfer
from local_service_bus.broker.messages import SessionLock, Stored
from local_service_bus.broker.queue import MessageQueue
from local_service_bus.broker.refusals import NOT_ALLOWED, RefusedError, lock_lost


class Consumer:
    """A receiver of one queue, or of one session of it. It was opened by whoever made it.

    Attributes:
        session: What it holds; None where there are no sessions.
        paused: True while a delivery to it is under way slowly.
        closed: True once the link has ended, from whichever side.
    """

    def __init__(
        self, service: Service, client: Client, link: Link, queue: MessageQueue, *, session: SessionLock | None = None
    ) -> None:
        self.client = client
        self.queue = queue
        self.session = session
        self.paused = False
        self.closed = False
        self._service = service
        self._link = link
        self._deletes = link.remote_snd_settle_mode == Link.SND_SETTLED
        service.wait(queue.address, self)

    def on_closed(self) -> None:
        """Let the session go. Messages without one stay locked until their time is over, as in the service."""
        self.closed = True
        self._service.leave(self.queue.address, self)
        if self.session is not None:
            self.queue.sessions.close(self.session)

    def on_delivery(self, delivery: Delivery) -> None:
        """Settle as the client says."""
        token = getattr(delivery, "token", None)
        if token is None or not (delivery.updated and (delivery.remote_state or delivery.settled)):
            return
        del delivery.token
        self._service.perform(_Settle(self.client, delivery, self.queue, token=token))

    def serve(self) -> bool:
        """Deliver one message, if there is one and the client wants it; end if the session is lost."""
        if self.session is not None and not self.session.held:
            self.refuse(lock_lost(self.queue.address, of_session=True))
            return True
        ready = None if self.paused or self._link.credit <= 0 else self.queue.next_ready(self.session)
        if ready is None:
            return False
        self._service.perform(_Receive(self, ready.content.message_id))
        return True

    def rest(self) -> None:
        """Give credit back to a client that wants it back."""
        if self._link.drain_mode and self._link.credit > 0 and not self.paused:
            self._link.drained()

    def take(self) -> Stored | None:
        """The next message, locked or removed as the client wants it; None if there is none, or nobody to have it."""
        if self.closed or (self.session is not None and not self.session.held):
            return None
        return self.queue.take(self.session) if self._deletes else self.queue.receive(self.session)

    def send(self, stored: Stored) -> None:
        """Hand a message out."""
        token = stored.token or uuid4()  # A message that is removed already needs a tag all the same.
        delivery = transfer(self._link, token.bytes_le, write(stored))
        if self._deletes:
            delivery.settle()
        else:
            delivery.token = token

    def refuse(self, refusal: RefusedError) -> None:
        """End the link with an error."""
        self.on_closed()
        self._link.condition = condition_of(refusal)
        self._link.close()


class _Receive(Step):
    def __init__(self, consumer: Consumer, message_id: str | None) -> None:
        super().__init__(consumer.client, "receive", consumer.queue.address, message_ids=(message_id,))
        self._consumer = consumer
        self._stored: Stored | None = None
        self._is_short = False
        consumer.paused = True

    def run(self) -> None:
        self._consumer.paused = False
        super().run()
        if self._is_short and self._stored is not None and self._stored.token is not None:
            if self._stored.session is not None:
                self._consumer.queue.sessions.lose(self._stored.session)
            else:
                self._consumer.queue.lose_lock(self._stored.token)

    def act(self) -> None:
        self._stored = self._consumer.take()

    def answer(self, refusal: RefusedError | None) -> None:
        self._consumer.paused = False
        if refusal is not None:
            self._consumer.refuse(refusal)
        elif self._stored is not None:
            self._consumer.send(self._stored)

    def lose_lock(self) -> None:
        self._is_short = True

    def repeat(self) -> None:
        if self._stored is not None:
            self._consumer.queue.repeat(self._stored)


class _Settle(Step):
    def __init__(self, client: Client, delivery: Delivery, queue: MessageQueue, *, token: UUID) -> None:
        stored = queue.find(token)
        ids = (stored.content.message_id,) if stored else ()
        super().__init__(client, _operation(delivery), queue.address, message_ids=ids)
        self._delivery = delivery
        self._queue = queue
        self._token = token
        self._stored = stored

    def act(self) -> None:
        if self.operation == "dead_letter":
            told = _told(self._delivery)
            self._queue.dead_letter(self._token, told.pop(REASON, None), told.pop(DESCRIPTION, None), told)
        else:
            settle(self._queue, self.operation, self._token, owned(self._delivery.remote.annotations or {}))

    def answer(self, refusal: RefusedError | None) -> None:
        delivery = self._delivery
        if refusal is not None:
            delivery.local.condition = condition_of(refusal)
            delivery.update(Delivery.REJECTED)
        else:
            delivery.local.failed = delivery.remote.failed
            delivery.local.undeliverable = delivery.remote.undeliverable
            delivery.update(delivery.remote_state or Delivery.RELEASED)
        delivery.settle()

    def lose_lock(self) -> None:
        lose_lock(self._queue, self._token)

    def repeat(self) -> None:
        if self._stored is not None:
            self._queue.repeat(self._stored)


def settle(queue: MessageQueue, operation: str, token: UUID, changed: Mapping[Any, Any]) -> None:
    """Settle without a reason.

    Args:
        changed: Application properties that a message has from now on that is abandoned or deferred.

    Raises:
        RefusedError: lock lost.
    """
    properties = {str(name): value for name, value in changed.items()}
    ways: dict[str, Callable[[], None]] = {
        "complete": lambda: queue.complete(token),
        "abandon": lambda: queue.abandon(token, properties),
        "defer": lambda: queue.defer(token, properties),
        "release": lambda: queue.release(token),
    }
    if operation not in ways:
        raise RefusedError(NOT_ALLOWED, f"{queue.address}: a message is settled by {', '.join(ways)}, not {operation}.")
    ways[operation]()


def lose_lock(queue: MessageQueue, token: UUID) -> None:
    """End the lock of a message, or of its session."""
    stored = queue.find(token)
    if stored is not None and stored.session is not None:
        queue.sessions.lose(stored.session)
    else:
        queue.lose_lock(token)


def _operation(delivery: Delivery) -> str:
    """What an outcome of AMQP means to the service."""
    state = delivery.remote_state
    if state == Delivery.ACCEPTED:
        return "complete"
    if state == Delivery.REJECTED:
        return "dead_letter"
    if (
        state == Delivery.MODIFIED
    ):  # Whether the delivery failed is not looked at: JavaScript abandons without saying so.
        return "defer" if delivery.remote.undeliverable else "abandon"
    return "release"


def _told(delivery: Delivery) -> dict[str, Any]:
    """What a client says with a rejection: reason, description, and application properties."""
    condition = delivery.remote.condition
    info = condition.info if condition is not None and isinstance(condition.info, dict) else {}
    return {str(name): owned(value) for name, value in info.items()}
