"""The release: computes an attempt's batch from a read model and its messages, without effects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Final

from exactlyonce.effects.attempt import Before, Handled, Work
from exactlyonce.effects.effect import Opened
from exactlyonce.errors import DamagedDocument, EntityTooLarge, ExactlyOnceError, InvalidMessage, TryAgainLater
from exactlyonce.protocols.steps.batch import BATCH_BYTES
from exactlyonce.protocols.steps.load import View, since_of_outputs
from exactlyonce.records.blobs import Blob
from exactlyonce.records.companions import Companion, NumberedMessage, id_of
from exactlyonce.records.ledger import MAX_DOCUMENT_BYTES, Ledger, entity_document
from exactlyonce.records.outbox import (
    OutboxEntry,
    Output,
    Place,
    Reception,
    from_number,
    holds,
    pending,
    place_of,
    with_number,
)
from exactlyonce.values.envelope import EntityRef, Envelope, key_of, message_hash
from exactlyonce.values.frozen_json import Json, shape_json

# Positions in channels, and errors for impossible ones.


Position = tuple[str, int]
"""A channel, and a number in it."""
Documents = Mapping[Position, tuple[NumberedMessage, str]]
"""Documents of numbers, each with its ETag."""

FARTHEST_AHEAD: Final = 100_000
"""A number this far above the next is taken for a mistake of its sender."""


def require_sense(entity: EntityRef, envelope: Envelope, place: Place, reception: Reception, *, timed: bool) -> None:
    """Refuse a place that a message for this read model cannot have.

    Args:
        reception: how far the channel is received.
        timed: whether the message needs a time, to be ordered among the sources.

    Raises:
        InvalidMessage: the place is impossible.
    """
    about = f"Message {key_of(envelope)} for read model {entity}"
    if envelope.source != reception.source:
        raise InvalidMessage(
            f"{about} comes in channel {place.channel}, which belongs to {reception.source}. The message was not held. "
            "Correct the sender."
        )
    if timed and envelope.time is None:
        raise InvalidMessage(
            f"{about} has no time, but messages of several sources are ordered by time. Let the sender set time."
        )
    if place.number >= reception.next + FARTHEST_AHEAD:
        raise InvalidMessage(
            f"{about} has the number {place.number}, but {reception.next} is next: more than {FARTHEST_AHEAD} ahead. The "
            "message was not held. Correct the sender; or, if so many messages are lost, rebuild the read model."
        )


def two_with_one_number(entity: EntityRef, envelope: Envelope, position: Position, other: str | None) -> InvalidMessage:
    """The error of a message whose number belongs to another message."""
    channel, number = position
    return InvalidMessage(
        f"Message {key_of(envelope)} for read model {entity} has the number {number} in channel {channel} of "
        f"{envelope.source}, and so has message {other}. The message was not handled. If the source was restored from a "
        "backup, it gives out numbers a second time: give the read model a new key, and rebuild it."
    )


def held_and_gone(entity: EntityRef, position: Position) -> DamagedDocument:
    """The error of a held message whose document is gone."""
    channel, number = position
    return DamagedDocument(
        f"Read model {entity} holds number {number} of channel {channel}, but the document of the message is gone. "
        "Nothing was changed. Restore the document from a backup, or rebuild the read model."
    )


# One order for several sources: by time, then by source, within each channel by number. The earliest message waits until
# every source has passed its time, or for `max_wait`. A message that comes too late is handled and reported.


_LONG_AGO: Final = datetime.min.replace(tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True)
class Head:
    """The next message of a channel, with its time of arrival."""

    envelope: Envelope
    since: datetime


def earliest(
    heads: Mapping[str, Head], receptions: Iterable[Reception], at: datetime, max_wait: timedelta
) -> str | None:
    """The channel of the next message to handle; None if all have to wait.

    Args:
        heads: the next message of each channel, where present.
        max_wait: longest wait for silent sources.
    """
    # A message without a time was held before messages were ordered by time.
    timed = [(item.envelope.time or _LONG_AGO, item.envelope.source, channel) for channel, item in heads.items()]
    if not timed:
        return None
    first = min(timed)
    silent = (reception for reception in receptions if reception.channel not in heads)
    # A source that passed the same time may send more of it: a handler's messages all have the time of their attempt.
    if all(item.passed is not None and (item.passed, item.source, item.channel) > first for item in silent):
        return first[2]
    # The message that has waited longest decides: earlier ones of other sources would keep it waiting for ever.
    return first[2] if at - min(head.since for head in heads.values()) >= max_wait else None


def is_late(envelope: Envelope, receptions: Iterable[Reception]) -> bool:
    """Whether a later message in the order was already handled."""
    handled = ((reception.passed, reception.source) for reception in receptions if reception.passed is not None)
    return envelope.time is not None and any(before > (envelope.time, envelope.source) for before in handled)


def later(passed: datetime | None, time: datetime | None) -> datetime | None:
    """The later of two times; None counts as absent."""
    return max((item for item in (passed, time) if item is not None), default=None)


BATCH_DOCUMENTS: Final = 99
"""Most documents of numbers in one batch: the service takes 100 operations, one of them for the read model."""

FRAME_BYTES: Final = 1_500
"""Most bytes of a number's document besides the held message, key, source, and the read model's key."""


class Release:
    """The batch of one attempt: starts from the loaded read model, takes arrivals, then releases and holds messages.

    Args:
        work: the read model, its messages and its handler.
        max_wait: longest wait for silent sources, where all are brought into one order; else None.

    Attributes:
        arrived: messages by position; copies of one message count once.
        create, replace: documents of numbers to write; the replaced documents with their ETags.
        outputs, blobs: outputs and blobs of released messages.
        processed: keys of released messages.
        failed: error of each message not taken.
        stopped: error of each message held because its handler raised, with all that follow.
        more: whether another batch could release more.
    """

    def __init__(self, work: Work, view: View, max_wait: timedelta | None = None) -> None:
        self._work = work
        self._max_wait = max_wait
        self._ledger = view.ledger
        self._body = view.body
        self._saved = view.body or work.absent
        self._sequences = view.ledger.sequences
        self._receptions = {reception.channel: reception for reception in view.ledger.receptions}
        self._entries: list[OutboxEntry] = []
        self._to: tuple[str, ...] = ()
        self._read: dict[Position, Envelope] = {}
        self._sources: dict[str, str] = {}
        self._bytes = self._owed = 0  # Added up: to write state and entries anew for each message would take long.
        self.arrived: dict[Position, Envelope] = {}
        self.create: list[Companion] = []
        self.replace: list[tuple[Companion, str]] = []
        self.outputs: list[Output] = []
        self.blobs: list[Blob] = []
        self.processed: list[str] = []
        self.failed: dict[str, ExactlyOnceError] = {}
        self.stopped: dict[str, ExactlyOnceError] = {}
        self.more = False
        for envelope in work.messages:
            self._place(envelope)

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of the messages that arrived."""
        return tuple(key_of(item) for item in self.arrived.values())

    @property
    def wanted(self) -> tuple[Position, ...]:
        """The positions whose documents have to be read: arrivals with possible documents, and releasable messages."""
        positions = dict.fromkeys(item for item in self.arrived if self._may_be_known(item))
        # Channels take turns, the failing ones last, so that they do not take the room of the rest.
        channels = sorted(self._channels, key=lambda channel: self._reception(channel).failing is not None)
        ready = [(channel, self._reception(channel).next) for channel in channels]
        # With all sources in one order, the earliest message is among the next messages of all sources.
        room = max(BATCH_DOCUMENTS - len(self.arrived), len(positions) + len(channels) * (self._max_wait is not None))
        while (ready := [item for item in ready if item in self.arrived or self._is_held(item)]) and len(
            positions
        ) < room:
            positions.update(dict.fromkeys(item for item in ready if self._is_held(item)))
            ready = [(channel, number + 1) for channel, number in ready]
        return tuple(positions)[:room]

    @property
    def changes(self) -> bool:
        """Whether there is anything to commit."""
        changed = any(
            reception.failing != self._before(reception.channel).failing for reception in self._receptions.values()
        )
        return bool(self.create or self.replace) or changed

    @property
    def document(self) -> Json:
        """The document of the read model to commit."""
        return entity_document(self._saved, self._ledger_with(tuple(self._entries)))

    def is_behind(self, documents: Documents) -> bool:
        """Whether a held message was released after the load, so that no commit can succeed."""
        return any(document.held is None and self._is_held(place) for place, (document, _) in documents.items())

    def missing(self, wanted: Iterable[Position], documents: Documents) -> Position | None:
        """The position of a message that is held in this view but has no document; None if all are there."""
        return next((place for place in wanted if place not in documents and self._is_held(place)), None)

    def release(self, documents: Documents, begun: Opened) -> None:
        """Handle messages that follow without a gap, in each channel as far as handlers and the batch allow; hold the rest."""
        deliveries = zip(self.arrived.items(), begun.transactions, strict=False)  # The rest is for what is held.
        self.arrived = {place: item for (place, item), tx in deliveries if tx is not None}
        fresh = {place: item for place, item in self.arrived.items() if self._came_never(place, item, documents)}
        transactions = iter(begun.given)
        if self._max_wait is None:
            for channel in self._channels:
                while self._handled_next(channel, fresh, documents, begun, transactions):
                    pass
        else:
            heads = partial(self._heads, fresh, documents, begun.at)
            while (first := earliest(heads(), tuple(self._receptions.values()), begun.at, self._max_wait)) is not None:
                if not self._handled_next(first, fresh, documents, begun, transactions):
                    break
        for position, envelope in sorted(fresh.items(), key=lambda item: item[0]):
            if position[1] >= self._reception(position[0]).next:
                self._hold(position, envelope, begun)
        for channel in self._channels:
            self._note_gap(channel, begun)

    def _ledger_with(self, entries: tuple[OutboxEntry, ...]) -> Ledger:
        return replace(
            self._ledger,
            version=self._ledger.version + len(self.processed),
            to=self._to,
            outbox=entries,
            deleted=self._body is None,
            sequences=self._sequences,
            receptions=tuple(self._receptions[channel] for channel in sorted(self._receptions)),
        )

    @property
    def _channels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self._receptions, *(channel for channel, _ in self.arrived))))

    def _place(self, envelope: Envelope) -> None:
        key, entity = key_of(envelope), self._work.entity
        try:
            place = place_of(envelope, entity, f"Message {key} for read model {entity}")
            self._sources.setdefault(place.channel, envelope.source)
            require_sense(entity, envelope, place, self._reception(place.channel), timed=self._max_wait is not None)
            first = self.arrived.setdefault((place.channel, place.number), envelope)
            if key_of(first) != key:
                raise two_with_one_number(entity, envelope, (place.channel, place.number), key_of(first))
        except InvalidMessage as error:
            self.failed[key] = error

    def _came_never(self, position: Position, envelope: Envelope, documents: Documents) -> bool:
        """Distinguish a new arrival from a copy, a late arrival, and another message with the same number."""
        stored = documents.get(position)
        if not self._may_be_known(position):
            return True
        if stored is None:
            return False  # Released so long ago that clean-up has taken its document.
        document, etag = stored
        if document.message is None:
            # The number was skipped as lost, and later messages were handled, so this message is too late; the document says
            # so.
            self.replace.append((replace(document, message=key_of(envelope)), etag))
        elif document.message != key_of(envelope):
            self.failed[key_of(envelope)] = two_with_one_number(self._work.entity, envelope, position, document.message)
        return False

    def _handled_next(
        self,
        channel: str,
        fresh: Mapping[Position, Envelope],
        documents: Documents,
        begun: Opened,
        transactions: Iterator[str],
    ) -> bool:
        """Handle the next message of a sequence, if present; return whether another may follow."""
        reception = self._reception(channel)
        position = (channel, reception.next)
        held = documents.get(position) if self._is_held(position) else None
        if held is None and position not in fresh:
            # Not read, for lack of room in this batch. A failing message waits for a later arrival.
            self.more = self.more or (self._is_held(position) and reception.failing is None)
            return False
        envelope = fresh[position] if held is None else self._envelope(position, documents)
        key, tx = key_of(envelope), next(transactions)
        try:
            since = since_of_outputs(envelope.since, begun.at, self._work.send_limit)
            before = Before(self._body, begun.at, tx, self._sequences, since=since, folder=begun.name_of(tx))
            handled = self._work.handle(before, envelope)
            has_room = self._has_room(key, handled.body.size, sum(output.size for output in handled.outputs))
        except ExactlyOnceError as error:
            self.stopped[key] = error
            self._receptions[channel] = replace(reception, failing=type(error).__name__)
            return False
        if not has_room:
            self.more = True
            return False
        late = self._max_wait is not None and is_late(envelope, self._receptions.values())
        document = self._document(position, envelope, begun.at, late=late)
        if held is None:
            self.create.append(document)
        else:
            self.replace.append((document, held[1]))
        self._take(key, handled, begun.at, tx, since)
        self.blobs.extend(blob.told_by(id_of(self._work.entity, document)) for blob in handled.blobs)
        following = reception.next + 1
        passed = None if self._max_wait is None else later(reception.passed, envelope.time)
        self._receptions[channel] = replace(
            reception, next=following, held=from_number(reception.held, following), failing=None, passed=passed
        )
        return True

    def _heads(self, fresh: Mapping[Position, Envelope], documents: Documents, at: datetime) -> Mapping[str, Head]:
        """The next message of each sequence, where present, with its time of arrival."""
        heads: dict[str, Head] = {}
        for channel in self._channels:
            position = (channel, self._reception(channel).next)
            if position in fresh:
                heads[channel] = Head(fresh[position], at)
            elif self._is_held(position) and position in documents:
                heads[channel] = Head(self._envelope(position, documents), documents[position][0].at)
            elif self._is_held(position) and self._reception(channel).failing is None:
                self.more = True  # No room for it in this batch.
        return heads

    def _envelope(self, position: Position, documents: Documents) -> Envelope:
        """A held message; parsed once, since ordering by time looks at the same message again and again."""
        held = documents[position][0].held
        assert held is not None  # noqa: S101  # Callers look at what is held only.
        if position not in self._read:
            self._read[position] = Envelope.read(held.text, limit=BATCH_BYTES)
        return self._read[position]

    def _document(
        self, position: Position, envelope: Envelope, at: datetime, *, held: Json | None = None, late: bool = False
    ) -> NumberedMessage:
        """The document of a number, for a released or held message."""
        entity, (channel, number) = self._work.entity, position
        place = Place(channel, entity.source, number)
        return NumberedMessage(entity.key, place, envelope.source, key_of(envelope), at, held=held, late=late)

    def _take(self, key: str, handled: Handled, at: datetime, tx: str, since: int | None) -> None:
        """Make the result of a handler part of the commit."""
        self._body = None if handled.deleted else handled.body
        self._saved = handled.body
        self._sequences = handled.sequences
        self.processed.append(key)
        if handled.outputs:
            entity, cause = self._work.entity, message_hash(key)
            self._to = tuple(dict.fromkeys((*self._to, *(output.destination for output in handled.outputs))))
            bare = OutboxEntry(cause, tx, at, since)
            outputs = tuple(
                pending(output, place, entity, bare, to=self._to.index(output.destination), sequences=handled.sequences)
                for place, output in enumerate(handled.outputs)
            )
            entry = replace(bare, outputs=outputs)
            self._entries.append(entry)
            self._owed += shape_json(entry).size
            self.outputs.extend(handled.outputs)

    def _hold(self, position: Position, envelope: Envelope, begun: Opened) -> None:
        """Hold a message until its predecessors have come."""
        channel, number = position
        key, wire = key_of(envelope), envelope.to_json()
        try:
            if not self._has_room(key, self._saved.size, 0, size := Json.of(wire.text).size):
                told = f"Message {key} for read model {self._work.entity}:"
                if self.document.size + size > BATCH_BYTES:
                    sizes = f"the message came too early, and its {size} bytes are too many to be held"
                    raise EntityTooLarge(f"{told} {sizes}.", kept=sizes)
                raise TryAgainLater(f"{told} there is no room for it in the batch that is committed now.")
        except ExactlyOnceError as error:
            self.failed[key] = error
            return
        self.create.append(self._document(position, envelope, begun.at, held=wire))
        reception = self._reception(channel)
        self._receptions[channel] = replace(reception, held=with_number(reception.held, number))

    def _has_room(self, key: str, body: int, outputs: int, held: int = 0) -> bool:
        """Whether the batch has room for another message. Raises `EntityTooLarge` if the read model never will."""
        document = entity_document(Json("{}"), self._ledger_with(())).size + self._owed + body + outputs
        if document > MAX_DOCUMENT_BYTES:
            if self._entries:
                return False  # What they owe will be published, and gone, when the next batch is made.
            sizes = f"the read model would have {document} bytes; at most {MAX_DOCUMENT_BYTES} are allowed"
            raise EntityTooLarge(
                f"Message {key} for read model {self._work.entity}: {sizes}. Keep less in the read model.", kept=sizes
            )
        written = len(self.create) + len(self.replace)
        names = 2 * len(key.encode()) + len(self._work.entity.key.encode()) + len(self._work.entity.source)
        added = held + FRAME_BYTES + names
        if written >= BATCH_DOCUMENTS or self._bytes + added + document > BATCH_BYTES:
            return False
        self._bytes += added
        return True

    def _note_gap(self, channel: str, begun: Opened) -> None:
        """Date the gap before the first held message."""
        reception, before = self._reception(channel), self._before(channel)
        gap = bool(reception.held) and not self._is_held((channel, reception.next))
        same = before.gap_since if before.next == reception.next else None
        self._receptions[channel] = replace(reception, gap_since=(same or begun.at) if gap else None)

    def _reception(self, channel: str) -> Reception:
        """How far a sequence is received; a new sequence begins at 1."""
        return self._receptions.get(channel) or Reception(channel, self._sources.get(channel, ""))

    def _before(self, channel: str) -> Reception:
        """The reception as loaded."""
        return next(
            (reception for reception in self._ledger.receptions if reception.channel == channel), Reception(channel, "")
        )

    def _is_held(self, position: Position) -> bool:
        return holds(self._reception(position[0]).held, position[1])

    def _may_be_known(self, position: Position) -> bool:
        """Whether a document for a number may exist."""
        return position[1] < self._reception(position[0]).next or self._is_held(position)
