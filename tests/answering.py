"""An entity that answers requests, for tests: a counter that replies with its total."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from exactlyonce import Context, Destination, Entity, Envelope, Outbox, message
from exactlyonce.effects.attempt import Strategy
from exactlyonce.values.frozen_json import Json
from tests.samples import SENT


@message("counter.add")
@dataclass
class Add:
    """Adds an amount; what it is to reply is in it, too."""

    counter: str
    amount: int = 1
    silent: bool = False
    status: int | None = None
    padding: int = 0
    failing: bool = False


@message("counter.added", event=True)
@dataclass
class Added:
    total: int


@dataclass
class Counter:
    total: int = 0


added_queue = Destination("added", receives=(Added,))


def counters(strategy: Strategy | None = None) -> Entity[Counter]:
    """A fresh entity type with its handler."""
    entity = Entity("counter", state=Counter, container="counters", strategy=strategy or Outbox())

    @entity.handles(Add, key=lambda add: add.counter)
    def add(state: Counter, given: Add, context: Context) -> Counter:
        total = state.total + given.amount
        if given.failing:
            raise RuntimeError("the handler's own fault")
        if not given.silent:
            padding = {"X-Padding": "x" * given.padding} if given.padding else {}
            headers = {"Location": f"/counters/{given.counter}", **padding}
            context.reply(Added(total), status=given.status, headers=headers)
        context.announce(Added(total))
        return Counter(total)

    return entity


def request(key: str, asked: str = "f", counter: str = "c", **more: Any) -> Envelope:
    """The message of a request."""
    data = Json.of({"counter": counter, **more})
    return Envelope("http", key, "counter.add", data, SENT, asked=asked)
