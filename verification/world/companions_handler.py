"""The model's handler where records are companions: its state and outputs contain everything that it was given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import cache, reduce
from typing import Any, Final

from exactlyonce.attempt import Before, Handled, Memory
from exactlyonce.effects.companions import FindNumbered, LoadCompanions
from exactlyonce.effects.effect import Step
from exactlyonce.effects.entity import Loaded
from exactlyonce.errors import HandlerFailed
from exactlyonce.protocols.resequencer.gaps import REPLAY, Rebuild, read_request
from exactlyonce.protocols.stream.replay import Missing, Replayed
from exactlyonce.records.companions import ColocatedRecord, Companion, Event, NumberedMessage, StreamEntry
from exactlyonce.records.ledger import Ledger
from exactlyonce.records.outbox import Answer, Output
from exactlyonce.records.sequences import Place, Sequences, holds, numbered
from exactlyonce.values.envelope import Envelope, key_of
from exactlyonce.values.frozen_json import Json
from verification.world.outbox_handler import grown
from verification.world.scenario import ANSWER, AT, TICK, Message, Scenario, Start
from verification.world.store import Entity, Store, entity_ref, view_of, written_at
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
