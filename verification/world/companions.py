"""The model's handler where records are companions, and its judge. State and outputs contain all that the handler was given."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, cached_property, reduce
from typing import Any, Final

from exactlyonce.effects.attempt import Before, Handled, Memory
from exactlyonce.effects.companions import FindNumbered, LoadCompanions, SaveBatch
from exactlyonce.effects.effect import Step
from exactlyonce.effects.entity import Loaded
from exactlyonce.errors import HandlerFailed
from exactlyonce.protocols.resequencer.gaps import REPLAY, Rebuild, read_request
from exactlyonce.protocols.stream.replay import Missing, Replayed
from exactlyonce.records.companions import ColocatedRecord, Companion, Event, NumberedMessage, StreamEntry
from exactlyonce.records.ledger import Ledger
from exactlyonce.records.outbox import Answer, Output, Place, Sequences, digest, holds, numbered
from exactlyonce.values.envelope import Envelope, key_of, message_hash
from exactlyonce.values.frozen_json import Json
from verification.world.outbox import grown
from verification.world.scenario import ANSWER, AT, TICK, Message, Scenario, Start
from verification.world.store import Entity, Store, entity_ref, view_of, written_at
from verification.world.writes import Commit, Committed, Judge
from yieldcheck.situations import Situation

ENTITY: Final = entity_ref(0)
ABSENT: Final = Json.of({"id": ENTITY.id})
HAS_WAITED: Final = AT + timedelta(days=1000)
"""The time at which a read model is tended: by then everything has waited long enough."""
BALLAST: Final = "." * 400
"""Large enough for the way back to be shorter than a whole state."""

CHANNEL: Final = "sent1"
"""The channel of what the handler sends."""
_RECEIVER: Final = "reader/r"

UNADOPTED: Final = Json.of({"id": ENTITY.id, "ballast": BALLAST, "history": ""})


def channel_of(message: Message) -> str:
    return f"{message.source}{message.channel}"


@cache
def envelope_of(number: int, message: Message) -> Envelope:
    place = () if message.number is None else Place(channel_of(message), ENTITY.source, message.number).extensions
    time = None if message.time is None else AT + timedelta(days=message.time)
    return Envelope(message.source, f"m{number}", "test", Json("{}"), time, extensions=place)


@cache
def keys_of(messages: tuple[Message, ...]) -> tuple[str, ...]:
    return tuple(key_of(envelope_of(number, message)) for number, message in enumerate(messages))


@cache
def by_key(messages: tuple[Message, ...]) -> Mapping[str, Message]:
    return dict(zip(keys_of(messages), messages, strict=True))


def handle(
    before: Before,
    envelope: Envelope,
    *,
    messages: tuple[Message, ...],
    raising: frozenset[str] = frozenset(),
    sourced: bool = False,
    dates: bool = False,
) -> Handled:
    """Append the message to the history, and send everything that the handler was given.

    Raises:
        HandlerFailed: so it is.
    """
    key = key_of(envelope)
    if key in raising:
        raise HandlerFailed(f"The handler of {key} raised.")
    message = by_key(messages)[key]
    history: str = before.body.value["history"] if before.body is not None else ""
    if message.does == "keeps":
        kept = () if sourced else None
        outputs = (_output(key, history, before, None, dates=dates),)
        return Handled(
            _state(history), outputs, sequences=before.sequences, events=kept, answer=_answer(envelope, outputs)
        )
    sequences, place = _placed(before)
    outputs = (_output(key, history, before, place, dates=dates),)
    if message.does == "deletes":
        return Handled(ABSENT, outputs, deleted=True, sequences=sequences)
    events = (Event("handled", Json.of(key)),) if sourced else None
    answer = _answer(envelope, outputs)
    return Handled(_state(grown(history, key)), outputs, sequences=sequences, events=events, answer=answer)


def evolve(body: Json | None, events: tuple[Event, ...]) -> Json:
    history: str = body.value["history"] if body is not None else ""
    return _state(reduce(lambda before, event: grown(before, event.data.value), events, history))


@cache
def _state(history: str) -> Json:
    return Json.of({"id": ENTITY.id, "ballast": BALLAST, "history": history})


def _placed(before: Before) -> tuple[Sequences, Place | None]:
    """The numbers given out after the output, and its place; when a message is handled again, that of the first time."""
    if before.sent is not None:
        return before.sequences, before.sent[0].place
    return numbered(before.sequences, "out", _RECEIVER, CHANNEL)


def _output(key: str, history: str, before: Before, place: Place | None, *, dates: bool) -> Output:
    said = {
        "message": key,
        "on": history,
        "at": before.at.isoformat(),
        "tx": before.tx,
        "number": None if place is None else place.number,
    }
    data = Json.of(said)
    content = Envelope("out", key, "out", data, before.at).to_json() if dates else data
    return Output(id_of_output(key), "out", content, place=place)


def _answer(envelope: Envelope, outputs: tuple[Output, ...]) -> Answer | None:
    """To a request: what the output says."""
    return None if envelope.asked is None else Answer(200, (), outputs[0].envelope.text, envelope.asked)


def id_of_output(key: str) -> str:
    return f"out:{key}"


# Read model and stream are explored apart. To the read model the stream is somebody who answers every request, some time.


def is_request(output: Output) -> bool:
    """Whether an output asks a source to send something again."""
    return bool(output.envelope.value.get("type") == REPLAY)


def asked_for(scenario: Scenario, request: Output) -> tuple[str, ...]:
    """Keys of the messages that come of a request; none if it goes astray."""
    source, missing = read_request(Envelope.read(request.envelope.text))
    rebuild = scenario.strategy.on_gap
    assert isinstance(rebuild, Rebuild)  # noqa: S101
    if request.destination != rebuild.through:
        return ()
    return tuple(
        key
        for key, item in by_key(scenario.messages).items()
        if (item.source, channel_of(item)) == (source, missing.channel)
        and missing.first <= (item.number or 0) <= missing.last
    )


def missing_of(scenario: Scenario) -> Missing | None:
    """What a stream is asked to send again; None for everything."""
    return None if scenario.missing is None else scenario.chores.missing(CHANNEL, *scenario.missing)


def was_sent(scenario: Scenario, store: Store) -> bool:
    """Whether a stream has given out all the numbers that are missing. Nobody asks before."""
    sequences = (store.partition.view.ledger or Ledger()).sequences
    return scenario.missing is None or any(sequence.last >= scenario.missing[1] for sequence in sequences)


def can_go_on(scenario: Scenario, store: Store) -> bool:
    """Whether what is next in some channel is held, or to be skipped or asked for; or the read model owes something."""
    ledger = store.partition.ledger
    ready = any(holds(reception.held, reception.next) for reception in ledger.receptions)
    gap = scenario.fills_gaps and any(reception.gap_since is not None for reception in ledger.receptions)
    return ready or gap or bool(ledger.outbox)


def versions_with(effect: FindNumbered, partition: Entity, position: int) -> tuple[int, ...]:
    """The versions whose outputs have numbers that are looked for, in one view."""
    missing = Missing(effect.channel, *effect.numbers)
    entries = (item for item, _ in partition.companions(position).values() if isinstance(item, StreamEntry))
    nothing = Json("null")
    return tuple(
        sorted(
            entry.version
            for entry in entries
            if any(
                missing.includes(Output(output.id, output.destination, nothing, place=output.place))
                for output in entry.outputs
            )
        )
    )


def unsent(scenario: Scenario, situation: Situation[Start], store: Store) -> str | None:
    """What is wrong with the end of a run that sent again what was asked for: all of it has to be published by then."""
    result: Any = situation.result
    is_over = isinstance(result, Replayed) and result.following is None
    in_vain = situation.start.task == ANSWER and result is None
    if not (is_over or in_vain):
        return None
    committed = dict(store.committed)
    for key in _asked(scenario, situation, store, committed):
        if key not in store.published:
            return f"nothing_lost: {key} was to be sent again, and was never published"
    return None


def _asked(scenario: Scenario, situation: Situation[Start], store: Store, committed: dict[str, str]) -> tuple[str, ...]:
    """Keys of the messages whose outputs were asked for: those that are missing, or all that the view knew of."""
    if scenario.missing is not None:
        first, last = scenario.missing
        return tuple(key for key, text in committed.items() if first <= (Json(text).value["number"] or 0) <= last)
    loaded = next(reply for reply in reversed(situation.replies) if isinstance(reply, Loaded))
    ledger = view_of(loaded.document).ledger or Ledger()
    entries = (item for item, _ in store.partition.now.values() if isinstance(item, StreamEntry))
    return tuple(entry.message for entry in entries if entry.version <= ledger.version)


# Retention. Where no clock moves, old is what was written longer ago than anything lasts: no copy of its message can still
# arrive, no write of an attempt at it can still take effect. A document of a number may go while copies still arrive, but no
# worker is at work that saw it held. What owes or is held may be of any age.


Companions = Mapping[str, tuple[Companion, str]]


def lists(partition: Entity, past: frozenset[str], *, busy: bool) -> Iterator[tuple[str, ...]]:
    """Every list of candidates that a job may come with: id and ETag of each, one after the other.

    Args:
        past: keys of messages of which no copy may arrive any more, and no write take effect.
    """
    yield from _beginnings(partition.now, past)
    for id, (one, etag) in partition.now.items():
        record = isinstance(one, ColocatedRecord) and (one.owed is not None or one.message in past)
        if record or (isinstance(one, NumberedMessage) and (one.held is not None or not busy)):
            yield id, etag


def aged(partition: Entity, kept: timedelta, now: int) -> tuple[str, ...]:
    """The list of all that is old by a clock: id and ETag of each, oldest first.

    Args:
        now: the present, in ticks.
    """
    companions = sorted((written_at(etag), id, etag) for id, (_, etag) in partition.now.items())
    return tuple(part for (_, tick), id, etag in companions if (now - tick) * TICK >= kept for part in (id, etag))


def _beginnings(companions: Companions, past: frozenset[str]) -> Iterator[tuple[str, ...]]:
    """Every beginning of a stream that may be old: what came before something old is old as well."""
    stream = {
        item.version: (item.message, id, etag)
        for id, (item, etag) in companions.items()
        if isinstance(item, StreamEntry)
    }
    listed: tuple[str, ...] = ()
    for _, (message, id, etag) in sorted(stream.items()):
        if message not in past:
            return
        listed = (*listed, id, etag)
        yield listed


def job(scenario: Scenario, listed: tuple[str, ...], memory: Memory) -> Step[Any]:
    """Clean up, some time after the candidates were listed."""
    candidates = tuple(zip(listed[::2], listed[1::2], strict=True))
    yield from LoadCompanions(ENTITY, listed[::2])
    cleaned = yield from scenario.strategy.clean(ENTITY, candidates, memory)
    return cleaned


Rank = tuple[int, str]
"""Time and source of a message."""


def out_of_order(
    scenario: Scenario, key: str, write: SaveBatch, before: Entity, *, at: datetime, handled: Collection[str]
) -> str | None:
    """What is wrong with handling a message now."""
    messages = by_key(scenario.messages)
    mine = _rank(messages[key])
    ranks = [(channel_of(messages[item]), _rank(messages[item])) for item in handled]
    written = [*write.create, *(item for item, _ in write.replace)]
    if any(rank > mine for _, rank in ranks) is not any(
        item.late for item in _numbered(written) if item.message == key
    ):
        return f"in_order: whether {key} is late is recorded wrongly"
    if at >= HAS_WAITED:
        return None
    present = {item.message for item in (*_numbered(written), *_numbered(item for item, _ in before.now.values()))}
    ledger = before.view.ledger or Ledger()
    for channel in {reception.channel for reception in ledger.receptions} - {channel_of(messages[key])}:
        following = _next_of(scenario, channel, handled)
        if following in present:
            if _rank(messages[following]) < mine:
                return f"in_order: {key} is handled before {following}, which is there"
        elif max((rank for item, rank in ranks if item == channel), default=(-1, "")) < mine:
            return f"in_order: {key} is handled, though {channel} may still send an earlier one"
    return None


def _numbered(companions: Iterable[Companion]) -> list[NumberedMessage]:
    return [companion for companion in companions if isinstance(companion, NumberedMessage)]


def _next_of(scenario: Scenario, channel: str, handled: Collection[str]) -> str:
    """Key of the next message of a channel; empty if it has no more."""
    waiting = (key for key in keys_of(scenario.messages) if key not in handled)
    messages = by_key(scenario.messages)
    return next((key for key in waiting if channel_of(messages[key]) == channel), "")


def _rank(message: Message) -> Rank:
    return (message.time or 0, message.source)


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
        return {message_hash(key): key for key in self.keys}

    def _wrong(self, made: _Made, version: int, committed: dict[str, str], store: Store) -> str | None:
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
