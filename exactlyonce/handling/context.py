"""What a handler is given besides state and message."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random

from exactlyonce.envelope import Envelope
from exactlyonce.errors import OutputTooLarge
from exactlyonce.handling.messages import encode
from exactlyonce.handling.routes import Routes
from exactlyonce.identity import Origin
from exactlyonce.records import MAX_OUTPUT_BYTES, Output


class Context:
    """The only source of time, ids and chance, and the only way out, for a handler.

    Ids and chance derive from the message and the entity: handling the same message again gives the same again.
    Nothing that is sent here leaves before the new state is committed.
    """

    def __init__(self, origin: Origin, now: datetime, routes: Routes) -> None:
        self._origin = origin
        self._now = now
        self._routes = routes
        self._random: Random | None = None
        self._ids = 0
        self._bytes = 0
        self._outputs: list[Output] = []
        self._deleted = False

    @property
    def now(self) -> datetime:
        """Time of this attempt, in UTC. The same however often it is asked."""
        return self._now

    @property
    def random(self) -> Random:
        """Random numbers, seeded by message and entity. Not for secrets."""
        if self._random is None:
            self._random = self._origin.random()
        return self._random

    def new_id(self) -> str:
        """A new UUID; the n-th one of a message is the same in every attempt."""
        self._ids += 1
        return self._origin.new_id(self._ids - 1)

    def send(self, destination: str, message: object, *, delay: timedelta | None = None) -> None:
        """Send a message once the new state is committed.

        Args:
            destination: logical name of a queue or topic.
            message: an instance of a registered message type.
            delay: how long it stays invisible after it was published.

        Raises:
            UnknownDestination: nobody configured that name.
            OutputTooLarge: the message does not fit its queue, or all of this handler's do not fit together.
            ConfigurationError: the class of the message is not registered.
            ValueError: the delay is negative, or so long that the message would expire before it appears.
        """
        wait = delay or timedelta(0)
        if not timedelta(0) <= wait < self._routes.max_delay:
            raise ValueError(f"A delay is at least 0 and less than {self._routes.max_delay}; this one is {wait}.")
        name, data = encode(message)
        id = self._origin.output_id(len(self._outputs))
        envelope = Envelope(self._origin.entity.source, id, name, data, self._now).to_json()
        self._routes.check(destination, envelope.size)
        output = Output(id, destination, envelope, wait.total_seconds())
        total = self._bytes + output.size
        if total > MAX_OUTPUT_BYTES:
            raise OutputTooLarge(
                f"With this message all of them have {total} bytes together; one handler may send {MAX_OUTPUT_BYTES}. Send "
                "fewer, or send one message to yourself that goes on with the rest."
            )
        self._bytes = total
        self._outputs.append(output)

    def announce(self, event: object) -> None:
        """Send an event to every destination that declared its type; to none if there is none. Raises as `send` does."""
        name, _ = encode(event)
        for destination in self._routes.subscribers.get(name, ()):
            self.send(destination, event)

    def delete(self) -> None:
        """Delete the entity with this commit, whatever state the handler returns.

        A tombstone remains, so that late duplicates are still known. A later message finds the entity absent.
        """
        self._deleted = True

    @property
    def outputs(self) -> tuple[Output, ...]:
        """What was sent so far, in order."""
        return tuple(self._outputs)

    @property
    def deleted(self) -> bool:
        """Whether `delete` was called."""
        return self._deleted
