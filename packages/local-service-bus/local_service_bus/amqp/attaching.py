"""What a link is for, by the address that its client names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from proton import Delivery, Link

from local_service_bus.amqp.accepting import SESSION_FILTER, AcceptingSession
from local_service_bus.amqp.consumer import Consumer
from local_service_bus.amqp.management import manage, put_token
from local_service_bus.amqp.producer import Producer
from local_service_bus.amqp.replies import Replies, Requests
from local_service_bus.amqp.service import Service
from local_service_bus.broker.messages import SessionLock
from local_service_bus.broker.queue import MessageQueue
from local_service_bus.broker.refusals import (
    NOT_ALLOWED,
    UNAUTHORIZED,
    RefusedError,
)

TOKENS: Final = "$cbs"
MANAGEMENT: Final = "/$management"


class Role(Protocol):
    """What becomes of a link."""

    def on_delivery(self, delivery: Delivery) -> None:
        """Something came, or was settled."""

    def on_closed(self) -> None:
        """The client is gone."""


class Desk(Protocol):
    """The connection, as far as links need it."""

    alive: bool
    authorized: bool

    def cut(self) -> None:
        """End it at once."""

    def grant(self) -> None:
        """Whoever is at the other end has shown a good token."""

    def replies(self, node: str, address: str | None) -> Replies | None:
        """Where replies of a node go, if the client has opened a link for them."""

    def holding(self, queue_address: str, session_id: str) -> SessionLock | None:
        """The session of a queue that the client holds."""


def attach(service: Service, desk: Desk, link: Link) -> Role:
    """Open a link as its client wants it.

    Raises:
        RefusedError: if there is no such entity, no good token was shown, or a session was not asked for properly.
    """
    link.source.copy(link.remote_source)
    link.target.copy(link.remote_target)
    link.snd_settle_mode = link.remote_snd_settle_mode
    link.rcv_settle_mode = link.remote_rcv_settle_mode
    address = entity_address((link.remote_source if link.is_sender else link.remote_target).address)
    if not desk.authorized and address != TOKENS:
        raise RefusedError(UNAUTHORIZED, f"No good token was put for {address!r}; ask for one at {TOKENS} first.")
    if address == TOKENS or address.lower().endswith(MANAGEMENT):
        if link.is_sender:
            return Replies(link)
        return Requests(link, partial(desk.replies, address), _handler(service, desk, address))
    if link.is_receiver:
        return Producer(service, desk, link, service.broker.entrance(address))
    return _consumer(service, desk, link, service.broker.queue(address))


def entity_address(written: str | None) -> str:
    """An address without scheme and host, whether it was written with them or not."""
    text = written or ""
    return urlsplit(text).path.strip("/") if "://" in text else text.strip("/")


def _handler(service: Service, desk: Desk, address: str) -> Callable[[Any], None]:
    if address == TOKENS:
        return partial(put_token, service.shared_key, desk.grant)
    entity = address[: -len(MANAGEMENT)]
    return partial(manage, service, desk, entity, partial(desk.holding, entity))


def _consumer(service: Service, desk: Desk, link: Link, queue: MessageQueue) -> Role:
    filters = _filters(link)
    session_filter = filters.get(SESSION_FILTER)
    if (SESSION_FILTER in filters) != queue.has_sessions:
        wanted = "has sessions; accept one" if queue.has_sessions else "has no sessions; receive without one"
        raise RefusedError(NOT_ALLOWED, f"{queue.address} {wanted}.")
    if not queue.has_sessions:
        link.open()
        return Consumer(service, desk, link, queue)
    accepting = AcceptingSession(service, desk, link, queue, session_filter)
    service.perform(accepting.step)
    return accepting


def _filters(link: Link) -> dict[str, Any]:
    filters = link.remote_source.filter
    filters.rewind()
    found = filters.get_object() if filters.next() else None
    return {str(name): value for name, value in (found or {}).items()}
