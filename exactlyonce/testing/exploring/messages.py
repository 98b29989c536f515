"""The messages of an exploration: each has a number, and shared properties."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from itertools import count
from typing import Any, Final, NamedTuple

from exactlyonce.effects.attempt import Before, Handled, Memory, Work
from exactlyonce.effects.effect import Begin, Begun, Effect, Opened, Step
from exactlyonce.effects.entity import SaveEntity
from exactlyonce.effects.library import CloseNumbers, FindPaid, OpenNumbers
from exactlyonce.errors import ConfigurationError, ExactlyOnceError
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.messages import model_named
from exactlyonce.handling.routes import Destination, Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.records.companions import KIND
from exactlyonce.records.ledger import read_entity
from exactlyonce.records.library import read_staged
from exactlyonce.records.outbox import Kept, Output
from exactlyonce.testing.app import App
from exactlyonce.testing.exploring.answers import Answer, Answers, Documents, transaction
from exactlyonce.values.envelope import STABLE_TIME, EntityRef, Envelope, key_of, milliseconds, stable_text
from exactlyonce.values.frozen_json import Json

# Kept messages in an exploration: the sweeper may release them at any moment, as if they were due.


_WIDTH: Final = 100
"""Characters of a message in a story."""
DUE: Final = "exactlyonce.due"
"""Type of a turn of the sweeper for a kept message, which waits in no queue; the message's own type is the `subject`."""


class Released(NamedTuple):
    """The documents and the paid transactions after a turn of the sweeper, and the messages sent in it."""

    documents: Documents
    paid: frozenset[str]
    sent: tuple[Output, ...]


class KeptByEntities:
    """Knows the messages that entities keep, and sweeps the entities. Time stands still."""

    def __init__(self, entities: Mapping[str, Entity[Any]], routes: Routes, answers: Answers, now: datetime) -> None:
        self._entities = entities
        self._routes = routes
        self._answers = answers
        self._now = now
        self._kept_by = cache(_kept_by)

    def begun_by(
        self, effect: Effect[Any], documents: Documents, answer: Answer
    ) -> Iterator[tuple[Entity[Any], Envelope]]:
        """The turns of the sweeper made possible by an effect, if the answer says that the effect was applied to documents."""
        if isinstance(effect, SaveEntity) and answer.documents is not documents:
            kept = self._kept_by(effect.entity, effect.document)
            before = self._kept_by(effect.entity, documents.newest(effect.entity)) if kept else ()
            for item in kept:
                if item not in before:
                    yield self._turn(effect.entity, item, answer.documents)

    def possible(
        self, documents: Documents, has_arrived: Callable[[Output], bool]
    ) -> Iterator[tuple[Entity[Any], Envelope]]:
        """The turns of the sweeper that are possible from the start: for kept messages, and for owed outputs."""
        for ref, document in _entities_in(documents):
            for item in self._kept_by(ref, document):
                yield self._turn(ref, item, documents)
            owing = Envelope(ref.source, "owing", DUE, Json.of({"owed by": str(ref)}))
            if not all(map(has_arrived, self.released(owing, 0, documents, frozenset()).sent)):
                yield self._entities[ref.type], owing

    def released(self, envelope: Envelope, number: int, documents: Documents, paid: frozenset[str]) -> Released:
        """The result of a turn of the sweeper; its number makes its transaction ids unique."""
        ref = EntityRef.of_source(envelope.source)
        entity = self._entities[ref.type]
        runner = Runner(entity, ref, self._routes)

        def release(before: Before, kept: Output) -> Handled:
            handled = runner.release(replace(before, at=self._now), kept)
            return replace(handled, outputs=tuple(map(self._not_of_the_future, handled.outputs)))

        step: Step[Any] = entity.strategy.sweep(Work(ref, (), runner, runner.absent, release=release), Memory())
        reply: Any = None
        drawn, sent = 0, tuple[Output, ...]()
        while True:
            try:
                effect = step.send(reply)
            except StopIteration:
                return Released(documents, paid, sent)
            if isinstance(effect, (Begin, OpenNumbers)):
                names = tuple(transaction(number, item) for item in range(drawn, drawn + effect.count))
                drawn += effect.count
                # Time goes on only for the search of due messages: marks would be too old.
                due = max(envelope.time or self._now, self._now)
                reply = Begun(due, names) if isinstance(effect, Begin) else Opened(self._now, names)
            elif isinstance(effect, FindPaid):
                reply = paid.intersection(effect.transactions)
            elif isinstance(effect, CloseNumbers):
                reply, paid = None, paid.union(effect.transactions)
            else:
                answer = self._answers.to(effect, documents)[0]
                reply, documents, sent = answer.reply, answer.documents, (*sent, *answer.arrived)

    def _not_of_the_future(self, output: Output) -> Output:
        """A released message with a time no later than now: time stands still, and a future message would be refused."""
        envelope = Envelope.read(output.envelope.text)
        now = milliseconds(self._now)
        if envelope.since is None or envelope.since <= now:
            return output
        others = (extension for extension in envelope.extensions if extension[0] != STABLE_TIME)
        stated = tuple(sorted((*others, (STABLE_TIME, stable_text(now)))))
        return replace(output, envelope=replace(envelope, extensions=stated).to_json())

    def is_kept(self, turn: Envelope, documents: Documents) -> bool:
        """Whether the message of a turn is still kept; once gone, it never is again. True for a turn without a message."""
        ref = EntityRef.of_source(turn.source)
        return turn.time is None or any(item.id == turn.id for item in self._kept_by(ref, documents.newest(ref)))

    def _turn(self, ref: EntityRef, kept: Kept, documents: Documents) -> tuple[Entity[Any], Envelope]:
        said = Json.of({"due": kept.due.isoformat(), "kept by": str(ref)})
        name = _type_of(documents.staged(ref, kept.tx), kept.id)
        return self._entities[ref.type], Envelope(ref.source, kept.id, DUE, said, kept.due, subject=name)


def _kept_by(ref: EntityRef, document: Json | None) -> tuple[Kept, ...]:
    ledger = read_entity(ref, document).ledger
    return () if ledger is None else ledger.kept


def paid_in(documents: Documents, has_arrived: Callable[[Output], bool]) -> frozenset[str]:
    """The transactions in outboxes whose outputs have all reached their queues."""
    ledgers = ((ref, read_entity(ref, document).ledger) for ref, document in _entities_in(documents))
    return frozenset(
        entry.tx
        for ref, ledger in ledgers
        if ledger is not None
        for entry in ledger.outbox
        if all(map(has_arrived, entry.owed_outputs(ref, ledger.to, ledger.sequences)))
    )


def _entities_in(documents: Documents) -> Iterator[tuple[EntityRef, Json]]:
    """The existing entities, with the newest versions of their documents."""
    for (kind, key), log, *_ in documents.partitions:
        for id in dict.fromkeys(item.id for item in log) if kind == "entities" else ():
            ref = EntityRef(key[0], tuple(key[1:]), id)
            document = documents.newest(ref)
            if document is not None and KIND not in document.value:
                yield ref, document


def _type_of(staged: Json | None, id: str) -> str | None:
    """The type of a message in a staged document; None for a deleted document."""
    outputs = () if staged is None else read_staged(staged.value).outputs
    return next((Envelope.read(output.envelope.text).type for output in outputs if output.id == id), None)


Partition = tuple[str, ...]
"""Type and partition key of an entity: deliveries for different partitions never meet in the store."""


class LeftOut(NamedTuple):
    """Names of the message types, and of the entity types, whose messages are not delivered."""

    messages: frozenset[str] = frozenset()
    entities: frozenset[str] = frozenset()


class Waiting(NamedTuple):
    """A waiting message: its queue, the type whose handlers take it, and the envelope."""

    destination: str
    entity: Entity[Any]
    envelope: Envelope


@dataclass(frozen=True)
class Sent:
    """A message, wherever it is.

    Attributes:
        destination: the queue; the name of the entity type for a message in no queue.
        envelope: the message as it travels.
        entity: the type whose handlers take the message; None if there is none.
        shown: the words for stories.
        kind: name of the message's type.
        text: the envelope on the wire.
        is_turn: whether this is not a message, but the sweeper's turn for a kept message.
        later: the types of the delayed messages in the chain up to this message.
        taken: whether the message is delivered: an entity type takes it, and it is not left out.
        left_out: whether the message is left out, although an entity type takes it.
        beyond: whether the message is beyond the limit of releases.
        partition: partition of the entity; None without an entity.
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


def waiting_in(app: App, messages: Iterable[tuple[str | Destination | Entity[Any], object]]) -> list[Waiting]:
    """The messages that wait at the start: those of the application and those of the test."""
    waiting: list[Waiting] = []
    numbers = count(1)
    for item in app.host.unprocessed:
        if item.entity is None:
            waiting += replies_to(app, item.destination, item.envelope)[:1]
        else:
            waiting.append(Waiting(item.destination, item.entity, item.envelope))
    for to, message in messages:
        name = to if isinstance(to, str) else to.name
        # A source of its own: the ids differ from all ids of the test.
        waiting.append(Waiting(name, app.taker(to), app.envelope(message, f"explored-{next(numbers)}", "explore")))
    return waiting


def replies_to(app: App, destination: str, envelope: Envelope) -> tuple[Waiting, ...]:
    """The possible replies to a message in a queue, most likely first; none unless the message is a call."""
    if destination not in app.host.apis:
        return ()
    replies = app.host.loop.run(app.host.replies(destination, envelope))
    takers = app.host.takers
    return tuple(
        Waiting(reply.destination, takers[reply.destination], Envelope.read(reply.envelope.text))
        for reply in replies
        if reply.destination in takers
    )


class Messages:
    """All messages so far."""

    def __init__(self, app: App, left_out: LeftOut, releases: int) -> None:
        self._app = app
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
        """Numbers of the possible replies to a message, most likely first; none unless the message is a call."""
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
            destination, entity, envelope: the message, its queue and its entity type.
            cause: number of the message whose handler sent it; None for a message from the start.
            later: whether the message is delayed.

        Raises:
            ConfigurationError: the data of the message is in a blob.
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
            replies = replies_to(self._app, destination, envelope)
            self._replied[number] = tuple(self.number(*reply, number) for reply in replies)
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
            _shortened(repr(self._app.read(envelope))),
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
    except ExactlyOnceError:  # The delivery will fail with the same error.
        return None
    return (ref.type, *map(repr, ref.partition))


def _shortened(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
