"""One connection: bytes in and out of proton's engine, and its events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol, cast

from proton import Collector, Connection, Link, Session, Transport

from local_service_bus.amqp.accepting import AcceptingSession
from local_service_bus.amqp.attaching import Role, attach, entity_address
from local_service_bus.amqp.frames import Frames
from local_service_bus.amqp.replies import Replies
from local_service_bus.amqp.service import Service
from local_service_bus.amqp.wire import close_with, condition_of
from local_service_bus.broker.messages import SessionLock
from local_service_bus.broker.refusals import RefusedError

CONTAINER = "local-service-bus"


class Server(Protocol):
    """Whoever has all connections."""

    service: Service

    def opened(self, connection: AmqpConnection) -> None:
        """One more."""

    def closed(self, connection: AmqpConnection) -> None:
        """One less."""

    def turn(self) -> None:
        """Something has happened: serve whoever waits, and send what there is to send."""


class AmqpConnection(asyncio.Protocol):
    """A client's connection.

    Attributes:
        alive: False as soon as nothing can be sent any more.
        authorized: True once a good token was shown.
    """

    def __init__(self, server: Server) -> None:
        self.alive = True
        self.authorized = False
        self._server = server
        self._socket: asyncio.Transport | None = None
        self._roles: dict[Link, Role] = {}
        self._frames = Frames()
        self._collector = Collector()
        self._connection = Connection()
        self._connection.collect(self._collector)
        self._engine = Transport(Transport.SERVER)
        sasl = self._engine.sasl()
        sasl.allowed_mechs("ANONYMOUS")
        self._engine.bind(self._connection)
        self._handlers: dict[str, Callable[[Any], None]] = {
            "on_connection_remote_open": self._open_connection,
            "on_connection_remote_close": lambda _: self._connection.close(),
            "on_session_remote_open": lambda event: event.session.open(),
            "on_session_remote_close": lambda event: self._close_session(event.session),
            "on_link_remote_open": lambda event: self._open_link(event.link),
            "on_link_remote_close": lambda event: self._close_link(event.link),
            "on_link_remote_detach": lambda event: self._close_link(event.link),
            "on_delivery": self._on_delivery,
        }

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The client is there."""
        self._socket = cast("asyncio.Transport", transport)
        self._server.opened(self)

    def data_received(self, data: bytes) -> None:
        """Let the engine read, and do what it has read."""
        self._server.service.pass_time()
        for piece in self._frames.cut(data):
            if not self._read(piece):
                break
        self._server.turn()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio names it.
        """The client is gone."""
        self._end()
        self._server.turn()

    def cut(self) -> None:
        """End it at once; nothing that was not sent yet goes out."""
        if self.alive and self._socket is not None:
            self._socket.abort()
        self._end()

    def detach(self, entity: str, refusal: RefusedError) -> None:
        """End its links to an entity with an error; the connection stays."""
        for link in list(self._roles):
            address = entity_address((link.remote_source if link.is_sender else link.remote_target).address)
            if address.lower() == entity.lower():
                self._roles.pop(link).on_closed()
                link.condition = condition_of(refusal)
                link.close()

    def flush(self, now: float) -> float:
        """Send what the engine has to send, heartbeats included.

        Args:
            now: Of a clock that is never set, in seconds.

        Returns:
            When to do so again at the latest; 0 for never.
        """
        self._handle_events()
        again: float = self._engine.tick(now)
        while self.alive and (pending := self._engine.pending()) > 0:
            self._write(self._engine.peek(pending))
            self._engine.pop(pending)
        if self.alive and self._engine.pending() < 0 and self._socket is not None:
            self._socket.close()
        return again

    def grant(self) -> None:
        """Whoever is at the other end has shown a good token."""
        self.authorized = True

    def replies(self, node: str, address: str | None) -> Replies | None:
        """Where replies of a node go: to the address that was given, else to the newest link of the node."""
        found = [
            role
            for link, role in self._roles.items()
            if isinstance(role, Replies) and entity_address(link.remote_source.address) == node
        ]
        named = [role for role in found if role.address == address]
        return next(reversed(named or found), None)

    def holding(self, queue_address: str, session_id: str) -> SessionLock | None:
        """The session of a queue that the client holds."""
        for role in self._roles.values():
            if isinstance(role, AcceptingSession) and role.queue.address.lower() == queue_address.lower():
                session = role.session
                if session is not None and session.held and session.session_id == session_id:
                    return session
        return None

    def _read(self, piece: bytes) -> bool:
        """Let the engine read a frame or a part of it; False if it has read enough."""
        while self.alive and piece:
            room = self._engine.capacity()
            if room <= 0:  # The engine closes the connection.
                return False
            self._engine.push(piece[:room])
            piece = piece[room:]
            self._handle_events()
        return self.alive

    def _handle_events(self) -> None:
        while self.alive and (event := self._collector.peek()) is not None:
            handler = self._handlers.get(event.type.method)
            if handler is not None:
                handler(event)
            self._collector.pop()

    def _open_connection(self, _: Any) -> None:
        self._connection.container = CONTAINER
        self._connection.open()

    def _open_link(self, link: Link) -> None:
        try:
            role = attach(self._server.service, self, link)
        except RefusedError as refusal:
            close_with(link, refusal)
            return
        if self.alive:
            self._roles[link] = role
        else:  # A fault has cut it off while it was opened.
            role.on_closed()

    def _close_link(self, link: Link) -> None:
        role = self._roles.pop(link, None)
        if role is not None:
            role.on_closed()
        link.close()

    def _close_session(self, session: Session) -> None:
        for link in [role for role in self._roles if role.session == session]:
            self._close_link(link)
        session.close()

    def _on_delivery(self, event: Any) -> None:
        role, delivery = self._roles.get(event.link), event.delivery
        if delivery.readable and getattr(delivery, "message_format", None) is None:
            delivery.message_format = self._frames.message_format()
        if role is not None:
            role.on_delivery(delivery)

    def _write(self, data: bytes | None) -> None:
        if data and self._socket is not None:
            self._socket.write(data)

    def _end(self) -> None:
        if not self.alive:
            return
        self.alive = False
        for role in self._roles.values():
            role.on_closed()
        self._roles.clear()
        self._server.closed(self)
