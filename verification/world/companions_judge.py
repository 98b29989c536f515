"""The same where records are companions: commits, outputs, acknowledgements, and what is left undone."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from exactlyonce.attempt import Before
from exactlyonce.effects.companions import SaveBatch
from exactlyonce.records.companions import ColocatedRecord, NumberedMessage, StreamEntry
from exactlyonce.records.ledger import Ledger
from exactlyonce.records.outbox import Output, Sequences, digest, holds
from exactlyonce.values.envelope import message_hash
from exactlyonce.values.frozen_json import Json
from verification.world.companions_handler import ENTITY, by_key, channel_of, envelope_of, handle, id_of_output
from verification.world.judge import Commit, Committed, Judge
from verification.world.order import out_of_order
from verification.world.scenario import Message
from verification.world.store import Entity, Store, view_of

OVERWRITTEN = "serial_execution: what is stored is not what handling these messages one after the other gives"


@dataclass(frozen=True, slots=True)
class Point:
    """What a handler starts from."""

    body: Json | None
    sequences: Sequences


class CompanionsJudge(Judge):
    """Judges what happens in one scenario whose records are companions. `committed` has what each message's output says."""

    def commit(self, write: Commit, before: Entity, after: Entity, store: Store) -> tuple[Committed, str | None]:
        """What is committed after a batch was applied, and what is wrong with it.

        The messages that it commits are handled again, one after the other, on what was stored: that has to give what is now.
        """
        committed = dict(store.committed)
        loaded, saved = before.view, after.view
        old, new = loaded.ledger or Ledger(), saved.ledger or Ledger()
        point = Point(loaded.body, old.sequences)
        violation = None
        entries = self._entries(old, new, write)
        for number, entry in enumerate(entries):
            wrong = self._wrong(entry, old.version + number + 1, committed, store)
            if self.scenario.ordered and isinstance(write, SaveBatch):
                wrong = wrong or out_of_order(
                    self.scenario, entry.message, write, before, at=entry.at, handled=committed
                )
            messages = self.scenario.messages
            place = self.keys.index(entry.message)
            envelope = envelope_of(place, messages[place])
            given = Before(point.body, entry.at, entry.tx, point.sequences)
            dates = self.scenario.ages is not None
            handled = handle(given, envelope, messages=messages, sourced=self.scenario.sourced, dates=dates)
            if not entry.owes(handled.outputs):
                wrong = wrong or f"serial_execution: {entry.message} was not handled on the state that it follows"
            violation = violation or wrong
            committed.setdefault(entry.message, handled.outputs[0].envelope.text)
            point = Point(None if handled.deleted else handled.body, handled.sequences)
        if (saved.body, new.sequences, new.version) != (point.body, point.sequences, old.version + len(entries)):
            violation = violation or OVERWRITTEN
        return frozenset(committed.items()), violation or (_wrong_held(after) if new.receptions else None)

    def outputs(self, outputs: tuple[Output, ...], store: Store) -> str | None:
        """What is wrong with publishing these outputs."""
        committed = dict(store.committed)
        for output in outputs:
            sent, text = output.envelope.value, output.envelope.text
            sent = sent.get("data", sent)
            key, number = sent["message"], None if output.place is None else output.place.number
            if self.scenario.protocol == "resequencer" and number is None:
                number = sent["number"]
            if key not in committed:
                if self.scenario.traceless and self._may_be_traceless(output, store):
                    continue
                return f"no_ghost_output: {key} is published, but was never committed"
            if (output.id, number, text) != (id_of_output(key), sent["number"], committed[key]):
                if key in store.published:
                    return f"at_most_one_output: {key} is published again as something else"
                return f"consistent_state_and_output: another output of {key} is published than was committed"
        return None

    def lost(self, key: str, store: Store) -> str | None:
        """What is wrong with acknowledging this message. One that is held, or owed by a read model, is for others to finish."""
        if key in store.parked or key in store.published | store.overdue:
            return None
        taken = _is_held(key, store) or _is_owed(key, store) or self._is_skipped(key, store)
        if self.scenario.protocol == "resequencer" and taken:
            return None
        if any(key == committed for committed, _ in store.committed):
            return f"nothing_lost: {key} is acknowledged, but its output was never published"
        return f"nothing_lost: {key} is acknowledged, but was never committed"

    def rivals(self, key: str) -> tuple[str, ...]:
        """Other messages that have the number of this one, in the same channel: only one of them may be handled."""
        messages = by_key(self.scenario.messages)
        place = _place(messages[key])
        return tuple(item for item, message in messages.items() if item != key and place and _place(message) == place)

    def left_undone(self, store: Store, but: Container[str] = ()) -> str | None:
        """What is wrong if nobody is at work any more and no delivery is left, but for messages that need not be done."""
        committed = {key for key, _ in store.committed}
        for key in self.keys:
            if key in but or (self.scenario.requests and key not in committed):
                continue
            done = key in store.parked or (
                (key in committed or self.scenario.traceless) and key in store.published | store.overdue
            )
            others = any(rival in committed and rival in store.published for rival in self.rivals(key))
            if not done and not others and not self._is_skipped(key, store) and not self._waits_for_parked(key, store):
                what = "its output was never published" if key in committed else "it was never committed"
                return f"nothing_lost: all is acknowledged, {key} too, but {what}"
        documents = (item for item, _ in store.partition.now.values())
        held = (
            document.message
            for document in documents
            if isinstance(document, NumberedMessage) and document.held is not None
        )
        for message in held:
            if message is not None and not self._waits_for_parked(message, store):
                return f"no_garbage: all is done, but {message} is still held"
        return None

    def _entries(self, old: Ledger, new: Ledger, write: Commit) -> list[_Made]:
        """The messages that a batch commits, in their order."""
        if not isinstance(write, SaveBatch):
            return []
        written = (*write.create, *(item for item, _ in write.replace))
        records = (item for item in written if isinstance(item, ColocatedRecord | StreamEntry))
        made = [_Made(record.message, record.tx, record.version, record.at, record.digest) for record in records]
        known = {(entry.cause, entry.tx) for entry in old.outbox}
        fresh = (entry for entry in new.outbox if (entry.cause, entry.tx) not in known)
        for version, entry in enumerate(fresh, old.version + 1):
            outputs = tuple(entry.owed_outputs(ENTITY, new.to, new.sequences))
            made.append(_Made(self._by_hash[entry.cause], entry.tx, version, entry.at, outputs))
        return sorted(made, key=lambda item: item.version)

    @cached_property
    def _by_hash(self) -> dict[str, str]:
        """Keys of messages by their hashes."""
        return {message_hash(key): key for key in self.keys}

    def _wrong(self, made: _Made, version: int, committed: dict[str, str], store: Store) -> str | None:
        """What is wrong with committing a message as this version."""
        key = made.message
        if key in committed:
            return f"at_most_one_state_change: {key} is committed a second time"
        message = by_key(self.scenario.messages)[key]
        if key in store.parked and message.copies == 1:
            return f"parked_is_unprocessed: {key} is committed, but it lies parked"
        if made.version != version:
            return f"serial_execution: {key} is recorded as version {made.version} and makes version {version}"
        channel = channel_of(message)
        others = (by_key(self.scenario.messages)[item] for item in committed)
        received = [other.number or 0 for other in others if channel_of(other) == channel]
        received += skipped(channel, committed, store)
        if message.number is not None and message.number != (following := max(received, default=0) + 1):
            return f"in_sequence: {key} is handled as number {message.number}, though {following} is next"
        return None

    def _is_skipped(self, key: str, store: Store) -> bool:
        message = by_key(self.scenario.messages)[key]
        return self.scenario.skips and message.number in skipped(
            channel_of(message), {key for key, _ in store.committed}, store
        )

    def _may_be_traceless(self, output: Output, store: Store) -> bool:
        """Whether a message that leaves no trace may have sent this: some state that there was was its state."""
        sent = output.envelope.value
        bodies = (view_of(version.document).body for version in store.partition.versions)
        histories = {"" if body is None else body.value["history"] for body in bodies}
        return by_key(self.scenario.messages)[sent["message"]].does == "keeps" and sent["on"] in histories

    def _waits_for_parked(self, key: str, store: Store) -> bool:
        """Whether a message that precedes this one in its channel lies parked."""
        messages = by_key(self.scenario.messages)
        waiting = messages[key]
        return any(
            channel_of(messages[item]) == channel_of(waiting) and (messages[item].number or 0) < (waiting.number or 0)
            for item in store.parked
        )


@dataclass(frozen=True, slots=True)
class _Made:
    """What a batch says of one message that it commits."""

    message: str
    tx: str
    version: int
    at: datetime
    said: str | tuple[Output, ...]

    def owes(self, outputs: tuple[Output, ...]) -> bool:
        """Whether these are its outputs, or those that its digest is of."""
        if isinstance(self.said, str):
            return self.said == digest(outputs)
        return [*map(_in_short, self.said)] == [*map(_in_short, outputs)]


def _in_short(output: Output) -> tuple[str, str]:
    """What an outbox keeps of an output. Its place is in its envelope, which is the number that the model's outputs say."""
    return output.id, output.envelope.text


def skipped(channel: str, committed: Container[str], store: Store) -> list[int]:
    """The numbers of a channel that were given up on, those included whose messages came too late."""
    documents = (item for item, _ in store.partition.now.values() if isinstance(item, NumberedMessage))
    given_up = (
        document
        for document in documents
        if document.held is None and (document.message is None or document.message not in committed)
    )
    return [item.number for item in given_up if item.channel == channel]


def _wrong_held(partition: Entity) -> str | None:
    """What is wrong with what a read model holds: ledger and documents have to say the same."""
    ledger = partition.ledger
    receptions = {reception.channel: reception for reception in ledger.receptions}
    documents = [item for item, _ in partition.now.values() if isinstance(item, NumberedMessage)]
    held = {(document.channel, document.number) for document in documents if document.held is not None}
    for channel, number in sorted(held):
        if channel not in receptions or not holds(receptions[channel].held, number):
            return f"no_garbage: number {number} of {channel} is held, and the read model does not know"
    reported = {
        (reception.channel, number)
        for reception in ledger.receptions
        for first, last in reception.held
        for number in range(first, last + 1)
    }
    for channel, number in sorted(reported - held):
        return f"nothing_lost: number {number} of {channel} is said to be held, and is not"
    for channel, number in sorted(reported):
        if number < receptions[channel].next:
            return f"no_garbage: number {number} of {channel} is held, and {receptions[channel].next} is next"
    return None


def _is_held(key: str, store: Store) -> bool:
    documents = (item for item, _ in store.partition.now.values())
    return any(
        isinstance(document, NumberedMessage) and document.message == key and document.held is not None
        for document in documents
    )


def _is_owed(key: str, store: Store) -> bool:
    ledger = store.partition.ledger
    return any(entry.cause == message_hash(key) for entry in ledger.outbox)


def _place(message: Message) -> tuple[str, int] | None:
    return None if message.number is None else (channel_of(message), message.number)
