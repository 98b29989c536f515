"""A link by which a client sends messages to a queue or topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from proton import Delivery, Endpoint, Link

from local_service_bus.amqp.frames import BATCH
from local_service_bus.amqp.sections import messages_in, read
from local_service_bus.amqp.service import Service
from local_service_bus.amqp.steps import Client, Step
from local_service_bus.amqp.wire import condition_of
from local_service_bus.broker.entrance import Entrance
from local_service_bus.broker.messages import Content
from local_service_bus.broker.refusals import TOO_LARGE, RefusedError

CREDIT: Final = 1000
"""Messages that a client may send before it waits for more."""


class Producer:
    """What a client sends goes in by an entrance."""

    def __init__(self, service: Service, client: Client, link: Link, entrance: Entrance) -> None:
        self._service = service
        self._client = client
        self._link = link
        self._entrance = entrance
        link.max_message_size = entrance.max_bytes
        link.open()
        link.flow(CREDIT)

    def on_closed(self) -> None:
        """Nothing to do: nothing is held for a sender."""

    def on_delivery(self, delivery: Delivery) -> None:
        """Take a message, or a batch, once it is there as a whole."""
        payload = received(self._link, delivery)
        if payload is None or self._link.state & Endpoint.LOCAL_CLOSED:  # What was under way when it ended is lost.
            return
        try:
            encoded = messages_in(payload) if delivery.message_format == BATCH else [payload]
            contents = [read(item) for item in encoded]
        except RefusedError as refusal:
            answer_sender(delivery, refusal)
        else:
            self._service.perform(_Send(self._client, delivery, self._link, self._entrance, contents=contents))


def received(link: Link, delivery: Delivery) -> bytes | None:
    """The payload of a transfer that is complete, with credit for another; None if there is none (yet)."""
    if delivery.aborted or (delivery.settled and not delivery.readable):
        delivery.settle()
        return None
    if not delivery.readable or delivery.partial:
        return None
    payload = link.recv(delivery.pending)
    link.advance()
    link.flow(1)
    return bytes(payload or b"")


def answer_sender(delivery: Delivery, refusal: RefusedError | None) -> None:
    """Tell a sender that its message was taken, or why not."""
    if refusal is not None:
        delivery.local.condition = condition_of(refusal)
    delivery.update(Delivery.ACCEPTED if refusal is None else Delivery.REJECTED)
    delivery.settle()


class _Send(Step):
    def __init__(
        self, client: Client, delivery: Delivery, link: Link, entrance: Entrance, *, contents: Sequence[Content]
    ) -> None:
        super().__init__(
            client, "send", entrance.address, message_ids=tuple(content.message_id for content in contents)
        )
        self._delivery = delivery
        self._link = link
        self._entrance = entrance
        self._contents = contents

    def act(self) -> None:
        self._entrance.send(self._contents)

    def answer(self, refusal: RefusedError | None) -> None:
        answer_sender(self._delivery, refusal)
        if refusal is not None and refusal.condition == TOO_LARGE:  # Then the service ends the link, too.
            self._link.condition = condition_of(refusal)
            self._link.close()

    def repeat(self) -> None:
        self._entrance.repeat(self._contents)
