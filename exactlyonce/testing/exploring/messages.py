"""The messages of an exploration: each has a number, and what it is that they have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from exactlyonce.attempt import key_of
from exactlyonce.errors import ConfigurationError, ExactlyOnceError
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.messages import model_named
from exactlyonce.testing.exploring.kept_messages import DUE
from exactlyonce.values.envelope import Envelope

Partition = tuple[str, ...]
"""Type and partition key of an entity: deliveries for different ones meet nowhere in the store."""


class LeftOut(NamedTuple):
    """Names of the message types, and of the entity types, whose messages are not delivered."""

    messages: frozenset[str] = frozenset()
    entities: frozenset[str] = frozenset()


class Waiting(NamedTuple):
    """A message that waits: its queue, the type whose handlers take it, and the message."""

    destination: str
    entity: Entity[Any]
    envelope: Envelope


@dataclass(frozen=True)
class Sent:
    """A message, wherever it is.

    Attributes:
        destination: its queue; the name of the entity type for one that is in no queue.
        envelope: as it travels.
        entity: the type whose handlers take it; None if nobody here does.
        shown: for stories.
        kind: name of its type.
        text: the envelope on the wire.
        is_turn: whether it is no message, but the sweeper's turn for one that is kept.
        later: the types of the messages that came later than they were sent, in the chain that led to this one.
        taken: whether it is delivered: somebody here takes it, and it is not left out.
        left_out: whether it is left out, though somebody here takes it.
        beyond: whether it would be one release too many.
        partition: of its entity; None if it has none.
    """

    destination: str
    envelope: Envelope
    entity: Entity[Any] | None
    shown: str
    kind: str
    text: str
    is_turn: bool
    later: tuple[str, ...]
    taken: bool
    left_out: bool
    beyond: bool
    partition: Partition | None


class Messages:
    """All messages met so far.

    Args:
        show: gives the words for a message.
        replies: gives the replies that a message in a queue may get, most likely first; none for one that is no call.
        left_out: the message types, and the entity types, whose messages are not delivered.
        releases: how often in a chain of messages one of a type may come later than it was sent.
    """

    def __init__(
        self,
        show: Callable[[Envelope], str],
        replies: Callable[[str, Envelope], tuple[Waiting, ...]],
        left_out: LeftOut,
        releases: int,
    ) -> None:
        self._show = show
        self._replies = replies
        self._left_out = left_out
        self._releases = releases
        self._numbers: dict[tuple[str, Envelope], int] = {}
        self._replied: list[tuple[int, ...]] = []
        self._sent: list[Sent] = []

    def __getitem__(self, number: int) -> Sent:
        return self._sent[number]

    def __iter__(self) -> Iterator[Sent]:
        return iter(self._sent)

    def replies_to(self, number: int) -> tuple[int, ...]:
        """Numbers of the replies that a message may get, most likely first; none for one that is no call."""
        return self._replied[number]

    def number(
        self,
        destination: str,
        entity: Entity[Any] | None,
        envelope: Envelope,
        cause: int | None = None,
        *,
        later: bool = False,
    ) -> int:
        """The number of a message.

        Args:
            destination, entity, envelope: of the message.
            cause: number of the message whose handler sent it; None if it was there before.
            later: whether it comes later than it was sent.

        Raises:
            ConfigurationError: its data is in a blob.
        """
        number = self._numbers.get((destination, envelope))
        if number is None:
            if envelope.reference is not None:
                raise ConfigurationError(
                    f"Message {key_of(envelope)} is too large for its queue. `explore` takes none whose data is in a blob: let "
                    "the handlers send less in this test."
                )
            number = self._numbers[destination, envelope] = len(self._sent)
            self._sent.append(self._made(destination, entity, envelope, cause, later=later))
            self._replied.append(())
            replies = self._replies(destination, envelope)
            self._replied[number] = tuple(self.number(*one, number) for one in replies)
        return number

    def _made(
        self, destination: str, entity: Entity[Any] | None, envelope: Envelope, cause: int | None, *, later: bool
    ) -> Sent:
        is_turn = envelope.type == DUE
        type = envelope.subject or DUE if is_turn else envelope.type
        chain = () if cause is None else self._sent[cause].later
        later = later or (is_turn and envelope.subject is not None)
        if later:
            chain = (*chain, type)
        left_out = type in self._left_out.messages or (
            not is_turn and entity is not None and entity.name in self._left_out.entities
        )
        return Sent(
            destination,
            envelope,
            entity,
            self._show(envelope),
            _named(type),
            envelope.to_json().text,
            is_turn,
            chain,
            entity is not None and not left_out,
            entity is not None and left_out,
            later and chain.count(type) > self._releases,
            None if entity is None else _partition(entity, envelope, is_turn=is_turn),
        )


def _named(type: str) -> str:
    model = model_named(type)
    return type if model is None else model.__name__


def _partition(entity: Entity[Any], envelope: Envelope, *, is_turn: bool) -> Partition | None:
    if is_turn:
        return None
    try:
        ref = entity.ref_of(envelope)
    except ExactlyOnceError:  # Its delivery will say so.
        return None
    return (ref.type, *map(repr, ref.partition))
