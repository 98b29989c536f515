"""Starting production generators, and playing them in a world without trouble."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from devtools.modelcheck.specification.replies import usual
from devtools.modelcheck.specification.stored import ENTITY, Stored
from exactlyonce import Outbox
from exactlyonce.effects import Step
from exactlyonce.envelope import Envelope
from exactlyonce.errors import HandlerFailed
from exactlyonce.frozen_json import Json
from exactlyonce.handling.attempts import Before, Finished, Handled, Memory, Work, key_of
from exactlyonce.records import Output

PRESETS: Final = {
    "Outbox()": Outbox(window=2, inline_limit=400),  # The true limits lead the same ways, later.
    "Outbox.transaction_id()": Outbox.transaction_id(),
    "Outbox.embedded()": Outbox.embedded(),
}
WIDEST: Final = 2
"""Largest bounded window among these."""

LARGE: Final = "x" * 400
"""More than any bounded inline limit among them."""


def message(id: str, *kinds: str) -> Envelope:
    """A message; kinds are `quiet` (no outputs), `large` (outputs), `fails`."""
    return Envelope("web", id, "test", Json.of(list(kinds)))


def output_id(key: str) -> str:
    """The id of the output of a message."""
    return f"out:{key}"


def handle(before: Before, envelope: Envelope) -> Handled:
    """The business code of all occasions."""
    kinds = envelope.data.value
    if "fails" in kinds:
        raise HandlerFailed(f"Message {key_of(envelope)}: the handler raised")
    handled = before.body.value["handled"] if before.body is not None else 0
    padding = LARGE if "large" in kinds else ""
    output = Output(output_id(key_of(envelope)), "out", Json.of({"on": handled, "padding": padding}))
    return Handled(Json.of({"id": "a", "handled": handled + 1}), () if "quiet" in kinds else (output,))


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
    def strategy(self) -> Outbox:
        return PRESETS[self.preset]


def attempt(strategy: Outbox, memory: Memory, *messages: Envelope) -> Start:
    """An attempt at these messages."""
    return Start(Outbox.attempt, (strategy, Work(ENTITY, messages, handle, Json('{"id":"a"}')), memory))


def marking(strategy: Outbox, memory: Memory) -> Start:
    """The marking of what a process published."""
    return Start(Outbox.mark, (strategy, ENTITY, memory))


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


def finish(start: Start, stored: Stored) -> tuple[Memory, Stored]:
    """Run an attempt, which has to finish: what the process remembers, and what is stored."""
    result, stored = play(start, stored)
    assert isinstance(result, Finished), f"without trouble an attempt came to {result}"  # noqa: S101
    return result.memory, stored


def process(strategy: Outbox, stored: Stored, *messages: Envelope) -> tuple[Memory, Stored]:
    """Process messages in one process, one after the other: what it remembers, and what is stored."""
    memory = Memory()
    for one in messages:
        memory, stored = finish(attempt(strategy, memory, one), stored)
        stored = replace(stored, acknowledged=stored.acknowledged | {key_of(one)})
    return memory, stored
