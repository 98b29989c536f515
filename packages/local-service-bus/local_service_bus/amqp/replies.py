"""Requests and replies over a pair of links: how `$cbs` and `$management` are spoken to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from proton import Delivery, Link, Message, ProtonException, int32

from local_service_bus.amqp.producer import CREDIT, answer_sender, received
from local_service_bus.amqp.sections import owned
from local_service_bus.amqp.wire import transfer
from local_service_bus.broker.refusals import (
    ARGUMENT_ERROR,
    MESSAGE_LOCK_LOST,
    MESSAGE_NOT_FOUND,
    NOT_FOUND,
    SERVER_BUSY,
    SESSION_CANNOT_BE_LOCKED,
    SESSION_LOCK_LOST,
    UNAUTHORIZED,
    RefusedError,
)

OK: Final = 200
ACCEPTED: Final = 202
NO_CONTENT: Final = 204
BAD_REQUEST: Final = 400
_STATUSES: Final = {
    UNAUTHORIZED: 401,
    MESSAGE_NOT_FOUND: 404,
    NOT_FOUND: 404,
    MESSAGE_LOCK_LOST: 410,
    SESSION_CANNOT_BE_LOCKED: 410,
    SESSION_LOCK_LOST: 410,
    SERVER_BUSY: 503,
}


def status_of(refusal: RefusedError) -> int:
    """The status that tells a refusal."""
    return _STATUSES.get(refusal.condition, BAD_REQUEST)


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asks for.

    Attributes:
        operation: Its name, as the client writes it.
        properties: The application properties.
        body: In proton's types.
        reply: Takes application properties and body of the reply.
    """

    operation: str
    properties: Mapping[str, Any]
    body: Any
    reply: Callable[[Mapping[str, Any], Any], None]


class Replies:
    """The link by which a client gets replies."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._sent = 0
        link.open()

    def on_closed(self) -> None:
        """Nothing to do: whoever wants no replies gets none."""

    def on_delivery(self, delivery: Delivery) -> None:
        """The client has the reply."""
        if delivery.updated:
            delivery.settle()

    def send(self, message: Message) -> None:
        """Send a reply."""
        self._sent += 1
        transfer(self._link, self._sent.to_bytes(8, "big"), message.encode()).settle()

    @property
    def address(self) -> str | None:
        """Where the client said that it is."""
        address: str | None = self._link.remote_target.address
        return address


class Requests:
    """The link by which a client sends requests.

    Args:
        replies: Finds the link for the replies, by the address that a request gives.
    """

    def __init__(
        self, link: Link, replies: Callable[[str | None], Replies | None], handle: Callable[[Request], None]
    ) -> None:
        self._link = link
        self._replies = replies
        self._handle = handle
        link.open()
        link.flow(CREDIT)

    def on_closed(self) -> None:
        """Nothing to do: requests are done as they come."""

    def on_delivery(self, delivery: Delivery) -> None:
        """Take a request once it is there as a whole; its reply goes another way."""
        payload = received(self._link, delivery)
        if payload is None:
            return
        message = Message()
        try:
            message.decode(payload)
        except ProtonException as error:
            answer_sender(delivery, RefusedError(ARGUMENT_ERROR, f"This is no request: {error}."))
            return
        answer_sender(delivery, None)
        properties = dict(owned(message.properties) or {})

        def reply(told: Mapping[str, Any], body: Any) -> None:
            replies = self._replies(message.reply_to)
            if replies is not None:
                replies.send(Message(body=body, properties=dict(told), correlation_id=message.id))

        self._handle(Request(str(properties.get("operation", "")), properties, owned(message.body), reply))


def status(code: int, text: str) -> dict[str, Any]:
    """The application properties of a reply, in both spellings that clients look for."""
    return {
        "statusCode": int32(code),
        "statusDescription": text,
        "status-code": int32(code),
        "status-description": text,
    }
