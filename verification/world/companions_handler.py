"""The model's handler where records are companions: its state and outputs contain everything that it was given."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import cache, reduce
from typing import Final

from exactlyonce.attempt import Before, Handled
from exactlyonce.errors import HandlerFailed
from exactlyonce.records.companions import Event
from exactlyonce.records.outbox import Answer, Output, Place, Sequences, numbered
from exactlyonce.values.envelope import Envelope, key_of
from exactlyonce.values.frozen_json import Json
from verification.world.outbox_handler import grown
from verification.world.scenario import AT, Message
from verification.world.store import entity_ref

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
    """The id of the channel that carries a message."""
    return f"{message.source}{message.channel}"


@cache
def envelope_of(number: int, message: Message) -> Envelope:
    """The envelope of the message in this place of a scenario."""
    place = () if message.number is None else Place(channel_of(message), ENTITY.source, message.number).extensions
    time = None if message.time is None else AT + timedelta(days=message.time)
    return Envelope(message.source, f"m{number}", "test", Json("{}"), time, extensions=place)


@cache
def keys_of(messages: tuple[Message, ...]) -> tuple[str, ...]:
    """The keys of the messages of a scenario."""
    return tuple(key_of(envelope_of(number, message)) for number, message in enumerate(messages))


@cache
def by_key(messages: tuple[Message, ...]) -> Mapping[str, Message]:
    """The messages of a scenario by their keys."""
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

    Args:
        before, envelope: as for every handler.
        messages: of the scenario.
        raising: keys of the messages whose handler raises.
        sourced: whether the entity is event-sourced.
        dates: whether outputs carry their time.

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
    """The state after what happened."""
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
    """The id of the output of a message."""
    return f"out:{key}"
