"""The asker: processes a message without a queue, and returns its committed answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from exactlyonce.errors import ConfigurationError, InvalidMessage, KeyReused
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.messages import encode
from exactlyonce.hosting.deliveries.receiver import Receiver
from exactlyonce.values.envelope import MAX_ATTRIBUTE_LENGTH, Envelope, unfit
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import MAX_SOURCE_LENGTH, message_key

MOST_ASKED: Final = 128
"""Most characters of a fingerprint, which is stored with every answer."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The committed answer to a request.

    Attributes:
        status: status code of HTTP.
        headers: names and values.
        body: JSON; None for none.
        replayed: whether the request had been carried out before.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    body: str | None
    replayed: bool


@dataclass(frozen=True, slots=True)
class Request:
    """The identity of a request.

    Attributes:
        key: the caller's id of it.
        fingerprint: of what was sent, the same in every retry.
        source: the caller.
        time: when it came about, the same in every retry; None for the present.

    Raises:
        ValueError: one of them cannot be.
    """

    key: str
    fingerprint: str
    source: str
    time: datetime | None

    def __post_init__(self) -> None:
        for name, text, longest in (
            ("key", self.key, MAX_ATTRIBUTE_LENGTH),
            ("source", self.source, MAX_SOURCE_LENGTH),
        ):
            if (why := unfit(text, longest)) is not None:
                raise ValueError(f"The {name} of a request {why}.")
        if not 0 < len(self.fingerprint) <= MOST_ASKED:
            raise ValueError(f"The fingerprint of a request has 1 to {MOST_ASKED} characters.")
        if self.time is not None and self.time.utcoffset() is None:
            raise ValueError("The time of a request has no time zone. Give it one.")


@dataclass(frozen=True)
class Asker:
    """Asks entities.

    Attributes:
        receiver: processes the messages, in the lanes of those that come by queues.
        ready: awaited before the present is asked for.
        now: the present, by the store's time.
    """

    receiver: Receiver
    ready: Callable[[], Awaitable[None]]
    now: Callable[[], datetime]

    async def ask(self, entity: Entity[Any], message: object, request: Request) -> Answered:
        """As `ExactlyOnce.ask`, which documents it."""
        name, data = encoded(message)
        await self.ready()
        time = request.time or self.now()
        envelope = Envelope(request.source, request.key, name, data, time, asked=request.fingerprint)
        processed = await self.receiver.ask(envelope, entity)
        answer = processed.answer
        # The committed request may be another one than this, even where both shared the commit.
        if answer is None or not answer.is_to(request.fingerprint):
            about = message_key(request.source, request.key)
            raise KeyReused(f"Request {about} differs from the one that had its key. It changed nothing.")
        return Answered(answer.status, answer.headers, answer.body, processed.before)


def encoded(message: object) -> tuple[str, Json]:
    """As `encode`; a message that no JSON can be is `InvalidMessage`, too."""
    try:
        return encode(message)
    except ValueError as error:
        raise InvalidMessage(
            f"The {type(message).__name__} has a value that JSON does not have, such as NaN."
        ) from error


def require_answers(entity: Entity[Any]) -> None:
    """Raise `ConfigurationError` unless the entity's strategy keeps answers."""
    if not entity.strategy.answers:
        raise ConfigurationError(
            f"{entity} cannot answer requests: Outbox(), Colocated() and VersionStream() keep answers. Give it one of them, or "
            "send the message to its queue."
        )
