"""What the resequencer computes without asking the world: from a read model and messages to what is to be committed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Final

from exactlyonce.attempt import Before, Handled, Work
from exactlyonce.errors import DamagedDocument, EntityTooLarge, ExactlyOnceError, InvalidMessage, TryAgainLater
from exactlyonce.protocols.steps.batch import BATCH_BYTES
from exactlyonce.protocols.steps.load import View, since_of_outputs
from exactlyonce.records.blobs import Blob
from exactlyonce.records.companions import Companion, NumberedMessage, id_of
from exactlyonce.records.ledger import MAX_DOCUMENT_BYTES, Ledger, entity_document
from exactlyonce.records.library import Opened
from exactlyonce.records.outbox import OutboxEntry, Output, pending
from exactlyonce.records.sequences import Place, Reception, from_number, holds, place_of, with_number
from exactlyonce.values.envelope import EntityRef, Envelope, key_of, message_hash
from exactlyonce.values.frozen_json import Json, shape_json

# Positions in channels, and those that make no sense.


Position = tuple[str, int]
"""A channel, and a number in it."""
Known = Mapping[Position, tuple[NumberedMessage, str]]
"""Documents of numbers, each with its ETag."""

FARTHEST_AHEAD: Final = 100_000
"""A number so far above the next one is taken for a mistake of its sender."""


def require_sense(entity: EntityRef, envelope: Envelope, place: Place, reception: Reception, *, timed: bool) -> None:
    """Refuse a place that a message for this read model cannot have.

    Args:
        entity: the read model.
        envelope: the message.
        place: of the message.
        reception: how far its channel is received.
        timed: whether it needs a time, to be brought into one order with others.

    Raises:
        InvalidMessage: it cannot have it.
    """
    about = f"Message {key_of(envelope)} for read model {entity}"
    if envelope.source != reception.source:
        raise InvalidMessage(
            f"{about} comes in channel {place.channel}, which is of {reception.source}. It was not held. Correct the sender."
        )
    if timed and envelope.time is None:
        raise InvalidMessage(f"{about} has no time, by which messages of several sources are brought into one order.")
    if place.number >= reception.next + FARTHEST_AHEAD:
        raise InvalidMessage(
            f"{about} has the number {place.number}, but {reception.next} is next: more than {FARTHEST_AHEAD} ahead. It was "
            "not held. Correct the sender; or, where that many messages are lost, rebuild the read model."
        )


def two_with_one_number(entity: EntityRef, envelope: Envelope, position: Position, other: str | None) -> InvalidMessage:
    """The error of a message whose number another one has."""
    channel, number = position
    return InvalidMessage(
        f"Message {key_of(envelope)} for read model {entity} has the number {number} in channel {channel} of "
        f"{envelope.source}, which message {other} has. It was not handled. Was the source restored from a backup, so that it "
        "gives out numbers a second time? Then give the read model a new key, and rebuild it."
    )


def held_and_gone(entity: EntityRef, position: Position) -> DamagedDocument:
    """The error of a message that a read model holds, where there is no document that does."""
    channel, number = position
    return DamagedDocument(
        f"Read model {entity} holds number {number} of channel {channel}, but the document that should hold the message is "
        "gone. Nothing was changed. Restore it from a backup, or rebuild the read model."
    )


# One order for the messages of several sources: by their time, then by their source, each channel's own order kept.
#
# A source that is silent may still send an earlier message, so the earliest one waits until every source has passed its time,
# or until it has waited long enough. A message that comes too late is handled late, and reported.


_LONG_AGO: Final = datetime.min.replace(tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True)
class Head:
    """The next message of a channel, and since when it is there."""

    envelope: Envelope
    since: datetime


def earliest(
    heads: Mapping[str, Head], receptions: Iterable[Reception], at: datetime, max_wait: timedelta
) -> str | None:
    """The channel whose next message is to be handled; None if all have to wait.

    Args:
        heads: the next message of each channel that has one.
        receptions: of all channels known.
        at: the present.
        max_wait: how long a message waits, at most.
    """
    # One without a time was held before there was an order by time.
    timed = [(one.envelope.time or _LONG_AGO, one.envelope.source, channel) for channel, one in heads.items()]
    if not timed:
        return None
    first = min(timed)
    silent = (one for one in receptions if one.channel not in heads)
    # One that has passed just this time may send more of it: a handler's messages all have the time of their attempt.
    if all(one.passed is not None and (one.passed, one.source, one.channel) > first for one in silent):
        return first[2]
    # The message that has waited longest decides: earlier ones of other sources would keep it waiting for ever.
    return first[2] if at - min(head.since for head in heads.values()) >= max_wait else None


def is_late(envelope: Envelope, receptions: Iterable[Reception]) -> bool:
    """Whether a message that should have come after this one was handled already."""
    handled = ((one.passed, one.source) for one in receptions if one.passed is not None)
    return envelope.time is not None and any(before > (envelope.time, envelope.source) for before in handled)


def later(passed: datetime | None, time: datetime | None) -> datetime | None:
    """The later of two times, of which either may be lacking."""
    return max((one for one in (passed, time) if one is not None), default=None)


BATCH_DOCUMENTS: Final = 99
"""Most documents of numbers in one batch: the service takes 100 operations, and one is the read model."""

FRAME_BYTES: Final = 1_500
"""Most that the document of a number has besides the message that it may hold, its key and source, and the read model's."""


class Release:
    """What one attempt is to commit: it begins with what was loaded, takes what arrived, and then makes the batch.

    Args:
        work: the read model, its messages and its handler.
        view: the read model as it was loaded.
        max_wait: how long a message waits for sources that are silent, where all are brought into one order; else None.

    Attributes:
        arrived: messages by their positions; copies of one message count once.
        create, replace: documents of numbers to write; those to replace with the ETags they have.
        outputs, blobs: what released messages sent, and what they wrote.
        processed: keys of released messages.
        failed: error of each message that is not taken.
        stopped: error of each message whose handler raised, so that it stays held, with all that follow.
        more: whether more could be released, in another batch.
    """

    def __init__(self, work: Work, view: View, max_wait: timedelta | None = None) -> None:
        self._work = work
        self._max_wait = max_wait
        self._ledger = view.ledger
        self._body = view.body
        self._saved = view.body or work.absent
        self._sequences = view.ledger.sequences
        self._receptions = {one.channel: one for one in view.ledger.receptions}
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
        return tuple(key_of(one) for one in self.arrived.values())

    @property
    def wanted(self) -> tuple[Position, ...]:
        """The positions whose documents have to be read: of arrivals that may be known, and of what can be released."""
        positions = dict.fromkeys(one for one in self.arrived if self._may_be_known(one))
        # One of each channel at a time, and those whose handlers raised last: they do not take the room of the others.
        channels = sorted(self._channels, key=lambda channel: self._reception(channel).failing is not None)
        ready = [(channel, self._reception(channel).next) for channel in channels]
        # With all sources in one order, the earliest message is among the next messages of all sources.
        room = max(BATCH_DOCUMENTS - len(self.arrived), len(positions) + len(channels) * (self._max_wait is not None))
        while (ready := [one for one in ready if one in self.arrived or self._is_held(one)]) and len(positions) < room:
            positions.update(dict.fromkeys(one for one in ready if self._is_held(one)))
            ready = [(channel, number + 1) for channel, number in ready]
        return tuple(positions)[:room]

    @property
    def changes(self) -> bool:
        """Whether there is anything to commit."""
        changed = any(one.failing != self._before(one.channel).failing for one in self._receptions.values())
        return bool(self.create or self.replace) or changed

    @property
    def document(self) -> Json:
        """The document of the read model to commit."""
        return entity_document(self._saved, self._ledger_with(tuple(self._entries)))

    def is_behind(self, known: Known) -> bool:
        """Whether a message that the read model holds was released since it was loaded, so that no commit can succeed."""
        return any(document.held is None and self._is_held(place) for place, (document, _) in known.items())

    def missing(self, wanted: Iterable[Position], known: Known) -> Position | None:
        """The position of a message that this view of the read model holds, and no document does; None if there is none."""
        return next((place for place in wanted if place not in known and self._is_held(place)), None)

    def release(self, known: Known, begun: Opened) -> None:
        """Handle what follows without a gap, in each channel as far as handlers and the batch allow; hold the others."""
        deliveries = zip(self.arrived.items(), begun.transactions, strict=False)  # The rest is for what is held.
        self.arrived = {place: one for (place, one), tx in deliveries if tx is not None}
        fresh = {place: one for place, one in self.arrived.items() if self._came_never(place, one, known)}
        transactions = iter(begun.given)
        if self._max_wait is None:
            for channel in self._channels:
                while self._handled_next(channel, fresh, known, begun, transactions):
                    pass
        else:
            heads = partial(self._heads, fresh, known, begun.at)
            while (first := earliest(heads(), tuple(self._receptions.values()), begun.at, self._max_wait)) is not None:
                if not self._handled_next(first, fresh, known, begun, transactions):
                    break
        for position, envelope in sorted(fresh.items(), key=lambda one: one[0]):
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

    def _came_never(self, position: Position, envelope: Envelope, known: Known) -> bool:
        """Distinguish a new arrival from a copy, from one that is too late, and from another message with its number."""
        found = known.get(position)
        if not self._may_be_known(position):
            return True
        if found is None:
            return False  # Released so long ago that clean-up has taken its document.
        document, etag = found
        if document.message is None:
            # It was skipped, since it seemed lost. Later messages were handled, so it is too late; its document says so.
            self.replace.append((replace(document, message=key_of(envelope)), etag))
        elif document.message != key_of(envelope):
            self.failed[key_of(envelope)] = two_with_one_number(self._work.entity, envelope, position, document.message)
        return False

    def _handled_next(
        self, channel: str, fresh: Mapping[Position, Envelope], known: Known, begun: Opened, transactions: Iterator[str]
    ) -> bool:
        """Handle the next message of a sequence, if it is there; return whether there may be another."""
        reception = self._reception(channel)
        position = (channel, reception.next)
        held = known.get(position) if self._is_held(position) else None
        if held is None and position not in fresh:
            # It was not read: no room for it in this batch. One whose handler raised waits for a later arrival.
            self.more = self.more or (self._is_held(position) and reception.failing is None)
            return False
        envelope = fresh[position] if held is None else self._envelope(position, known)
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

    def _heads(self, fresh: Mapping[Position, Envelope], known: Known, at: datetime) -> Mapping[str, Head]:
        """The next message of each sequence that is there, and since when."""
        heads: dict[str, Head] = {}
        for channel in self._channels:
            position = (channel, self._reception(channel).next)
            if position in fresh:
                heads[channel] = Head(fresh[position], at)
            elif self._is_held(position) and position in known:
                heads[channel] = Head(self._envelope(position, known), known[position][0].at)
            elif self._is_held(position) and self._reception(channel).failing is None:
                self.more = True  # No room for it in this batch.
        return heads

    def _envelope(self, position: Position, known: Known) -> Envelope:
        """A held message. Where all are brought into one order, it is looked at again for each that is handled before."""
        held = known[position][0].held
        assert held is not None  # noqa: S101  # Callers look at what is held only.
        if position not in self._read:
            self._read[position] = Envelope.read(held.text, limit=BATCH_BYTES)
        return self._read[position]

    def _document(
        self, position: Position, envelope: Envelope, at: datetime, *, held: Json | None = None, late: bool = False
    ) -> NumberedMessage:
        """The document of a number, for a message that is released or held."""
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
        """Keep a message until those before it have come."""
        channel, number = position
        key, wire = key_of(envelope), envelope.to_json()
        try:
            if not self._has_room(key, self._saved.size, 0, size := Json.of(wire.text).size):
                told = f"Message {key} for read model {self._work.entity}:"
                if self.document.size + size > BATCH_BYTES:
                    sizes = f"it has {size} bytes and came too early, and is too large to be held"
                    raise EntityTooLarge(f"{told} {sizes}.", kept=sizes)
                raise TryAgainLater(f"{told} there is no room for it in the batch that is committed now.")
        except ExactlyOnceError as error:
            self.failed[key] = error
            return
        self.create.append(self._document(position, envelope, begun.at, held=wire))
        reception = self._reception(channel)
        self._receptions[channel] = replace(reception, held=with_number(reception.held, number))

    def _has_room(self, key: str, body: int, outputs: int, held: int = 0) -> bool:
        """Whether the batch has room for one more message. Raises `EntityTooLarge` if the read model never will."""
        document = entity_document(Json("{}"), self._ledger_with(())).size + self._owed + body + outputs
        if document > MAX_DOCUMENT_BYTES:
            if self._entries:
                return False  # What they owe will be published, and gone, when the next batch is made.
            sizes = f"the read model would have {document} bytes; at most {MAX_DOCUMENT_BYTES} are allowed"
            raise EntityTooLarge(
                f"Message {key} for read model {self._work.entity}: {sizes}. Keep less in it.", kept=sizes
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
        """How far a sequence is received; one of which nothing came begins at 1."""
        return self._receptions.get(channel) or Reception(channel, self._sources.get(channel, ""))

    def _before(self, channel: str) -> Reception:
        """The same, as it was loaded."""
        return next((one for one in self._ledger.receptions if one.channel == channel), Reception(channel, ""))

    def _is_held(self, position: Position) -> bool:
        return holds(self._reception(position[0]).held, position[1])

    def _may_be_known(self, position: Position) -> bool:
        """Whether there may be a document for a number."""
        return position[1] < self._reception(position[0]).next or self._is_held(position)
