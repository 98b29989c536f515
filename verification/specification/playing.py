"""Starting production generators, and playing them in a world without trouble."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from exactlyonce.attempt import Again, Before, Finished, Handle, Handled, Memory, Strategy, Work
from exactlyonce.effects.effect import Step
from exactlyonce.errors import HandlerFailed
from exactlyonce.records.blobs import Author, Blob
from exactlyonce.records.outbox import Answer, Output
from exactlyonce.records.sequences import numbered
from exactlyonce.values.envelope import Envelope, key_of
from exactlyonce.values.frozen_json import Json
from verification.specification.replies import usual
from verification.specification.settings import STRATEGIES
from verification.specification.stored import ENTITY, Stored

WHERE: Final = {"id": ENTITY.id, "key": ENTITY.partition[0]}
ABSENT: Final = Json.of(WHERE)
CHANNEL: Final = "sent1"
"""Carries numbered outputs."""


def message(id: str, *kinds: str) -> Envelope:
    """A message; kinds are `quiet` (no outputs), `numbered` and `kept` (outputs), `blob` (is written), `fails`."""
    return Envelope("web", id, "test", Json.of(list(kinds)))


def output_id(key: str) -> str:
    """The id of the output of a message."""
    return f"out:{key}"


def handle(before: Before, envelope: Envelope, *, release: str = "1") -> Handled:
    """The business code of all occasions; another release of it sends something else."""
    kinds = envelope.data.value
    if "fails" in kinds:
        raise HandlerFailed(f"Message {key_of(envelope)}: the handler raised")
    handled = before.body.value["handled"] if before.body is not None else 0
    sequences, place = before.sequences, None
    if before.sent:
        place = before.sent[0].place
    elif "numbered" in kinds:
        sequences, place = numbered(sequences, "out", "reader/r", CHANNEL)
    content = Json.of({"on": handled, "release": release})
    outputs = () if "quiet" in kinds else (Output(output_id(key_of(envelope)), "out", content, place=place),)
    blobs = (blob_of(before, envelope),) if "blob" in kinds else ()
    names = [*(before.body.value.get("blobs", []) if before.body is not None else []), *(blob.name for blob in blobs)]
    body = {**WHERE, "handled": handled + 1, **({"blobs": names} if names else {})}
    answer = None if envelope.asked is None else Answer(asked=envelope.asked)
    if "kept" in kinds:
        sent = Envelope(ENTITY.source, output_id(key_of(envelope)), "test", content)
        kept = ((before.at, Output(sent.id, "out", sent.to_json())),)
        return Handled(Json.of(body), sequences=sequences, blobs=blobs, kept=kept)
    return Handled(Json.of(body), outputs, sequences=sequences, blobs=blobs, answer=answer)


def release(before: Before, kept: Output) -> Handled:
    """Send a kept message."""
    return Handled(before.body or ABSENT, (kept,), sequences=before.sequences, cancelled=frozenset({kept.id}))


def blob_of(before: Before, envelope: Envelope) -> Blob:
    """What the handler writes apart; its state names it."""
    return Blob(f"blobs/{before.tx}", b"", "text/plain", Author(ENTITY, key_of(envelope), before.tx, before.at))


next_release: Final = partial(handle, release="2")


@dataclass(frozen=True, slots=True)
class Start:
    """How a generator is started: what `Situations` knows it by."""

    function: Callable[..., Step[Any]]
    arguments: tuple[Any, ...]

    def run(self) -> Step[Any]:
        """The production generator."""
        return self.function(*self.arguments)


@dataclass(frozen=True, slots=True)
class Occasion:
    """One start on one past.

    Attributes:
        preset: name of the preset.
        start: of the generator.
        stored: what the past left.
        delivered: messages that are delivered again unless they are acknowledged.
    """

    preset: str
    start: Start
    stored: Stored
    delivered: tuple[Envelope, ...] = ()

    @property
    def strategy(self) -> Strategy:
        return STRATEGIES[self.preset]


def work(*messages: Envelope, handler: Handle = handle) -> Work:
    """These messages, to be handled."""
    return Work(ENTITY, messages, handler, ABSENT, release=release)


def attempt(strategy: Strategy, memory: Memory, *messages: Envelope, handler: Handle = handle) -> Start:
    """An attempt at these messages."""
    return Start(type(strategy).attempt, (strategy, work(*messages, handler=handler), memory))


def play(start: Start, stored: Stored, until: Callable[[Stored], bool] = lambda _: False) -> tuple[Any, Stored]:
    """Run a generator, up to a crash right before what `until` describes: its result, None if it crashed."""
    step = start.run()
    reply: Any = None
    while True:
        try:
            effect = step.send(reply)
        except StopIteration as finished:
            return finished.value, stored
        option = usual(effect, stored)
        if until(option.stored):
            step.close()
            return None, stored
        reply, stored = option.reply, option.stored


def changes(start: Start, stored: Stored) -> Iterator[Stored]:
    """What is stored after each change that a run makes in a world without trouble."""
    step = start.run()
    reply: Any = None
    with suppress(StopIteration):
        while True:
            option = usual(step.send(reply), stored)
            if option.stored != stored:
                yield option.stored
            reply, stored = option.reply, option.stored


def finish(start: Start, stored: Stored) -> tuple[Memory, Stored]:
    """Run an attempt, which has to finish: what the process remembers, and what is stored."""
    before: Stored | None = None
    result: Any = None
    while result is None or (isinstance(result, Again) and stored != before):
        before = stored
        result, stored = play(start, stored)
    assert isinstance(result, Finished), f"without trouble an attempt came to {result}"  # noqa: S101
    return result.memory, stored


def process(strategy: Strategy, stored: Stored, *messages: Envelope) -> tuple[Memory, Stored]:
    """Process messages in one process, one after the other: what it remembers, and what is stored."""
    memory = Memory()
    for one in messages:
        memory, stored = finish(attempt(strategy, memory, one), stored)
        stored = replace(stored, acknowledged=stored.acknowledged | {key_of(one)})
    return memory, stored
