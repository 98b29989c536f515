"""Random business code: small pure state machines, drawn by hypothesis, as entity types of the library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from hypothesis import strategies as st

from exactlyonce import Context, Destination, Entity, EntityKey, Envelope, message
from exactlyonce.attempt import Strategy
from exactlyonce.values.envelope import STABLE_TIME, milliseconds, stable_text
from exactlyonce.values.frozen_json import Json
from tests.samples import SENT

KINDS = 3
SITUATIONS = 3


@message("machine.do")
@dataclass
class Do:
    entity: str
    kind: int
    value: Any = None


@message("machine.said")
@dataclass
class Said:
    n: int
    value: Any
    id: str
    chance: float
    filler: str
    reader: str


@message("machine.changed")
@dataclass
class Changed:
    """A property was set, or is gone."""

    name: str
    value: Any
    gone: bool = False


@message("machine.counted")
@dataclass
class Counted:
    """A message was handled."""


@dataclass
class Bag:
    n: int = 0
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Rule:
    """What a handler does with a message of one kind in one situation.

    Attributes:
        raises, deletes: whether it does so.
        sets: properties, each with its new value; None for that of the message.
        drops: properties that go.
        sends: destination and reader of each output, and the length of its padding.
    """

    raises: bool
    deletes: bool
    sets: tuple[tuple[str, Json | None], ...]
    drops: tuple[str, ...]
    sends: tuple[tuple[str, str, int], ...]


Machine = Mapping[tuple[int, int], Rule]
"""Rules by kind of message and situation, which the state decides."""

DESTINATIONS = (
    Destination("plain"),
    Destination("numbered", to="reader", entity_by=lambda said: said.reader, ordered=True),
)
LIMITS = {"plain": 10_000, "numbered": 10_000}

names = st.sampled_from(["a", "b/c", "~0", "é", ""])
atoms = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from([1.0, -0.0, 0.5, 1e300]), st.text(max_size=3)
)
values = st.one_of(atoms, st.lists(atoms, max_size=3), st.dictionaries(names, st.lists(atoms, max_size=2), max_size=2))
sends = st.sampled_from([("plain", "x", 0), ("plain", "x", 400), ("numbered", "x", 0), ("numbered", "y", 0)])
rules = st.builds(
    Rule,
    raises=st.sampled_from([False] * 7 + [True]),
    deletes=st.sampled_from([False] * 9 + [True]),
    sets=st.lists(st.tuples(names, st.one_of(st.none(), values.map(Json.of))), max_size=2).map(tuple),
    drops=st.lists(names, max_size=1).map(tuple),
    sends=st.lists(sends, max_size=3).map(tuple),
)
machines: st.SearchStrategy[Machine] = st.fixed_dictionaries(
    {(kind, situation): rules for kind in range(KINDS) for situation in range(SITUATIONS)}
)
messages: st.SearchStrategy[list[Envelope]] = st.lists(
    st.tuples(st.sampled_from("abb"), st.integers(0, KINDS - 1), values), min_size=1, max_size=8
).map(lambda drawn: [a_message(number, *item) for number, item in enumerate(drawn)])


def a_message(number: int, entity: str, kind: int, value: Any) -> Envelope:
    data = Json.of({"entity": entity, "kind": kind, "value": value})
    stable = ((STABLE_TIME, stable_text(milliseconds(SENT) + number)),) if number % 2 else ()
    return Envelope("web", f"m-{number}", "machine.do", data, SENT, extensions=stable)


def entity_of(machine: Machine, strategy: Strategy, *, event_sourced: bool = False) -> Entity[Bag]:
    """The machine as an entity type. Its entities share a logical partition."""
    entity = Entity("machine", state=Bag, container="machines", partition_key="/shelf", strategy=strategy)

    @entity.handles(Do, key=lambda given: EntityKey(given.entity, "shelf"))
    def do(state: Bag, given: Do, context: Context) -> Any:
        rule = machine[given.kind, (state.n + len(state.data)) % SITUATIONS]
        for destination, reader, filler in rule.sends:
            said = Said(state.n, given.value, context.new_id(), context.random.random(), "x" * filler, reader)
            context.send(destination, said)
        if rule.raises:
            raise RuntimeError("not in this situation")
        if rule.deletes:
            context.delete()
        events: list[Changed | Counted] = [
            *(Changed(name, given.value if value is None else value.value) for name, value in rule.sets),
            *(Changed(name, None, gone=True) for name in rule.drops),
            Counted(),
        ]
        return events if event_sourced else reduce(after, events, state)

    if event_sourced:
        entity.applies(Changed)(after)
        entity.applies(Counted)(after)
    return entity


def after(state: Bag, event: Changed | Counted) -> Bag:
    if isinstance(event, Counted):
        return Bag(state.n + 1, state.data)
    kept = {name: value for name, value in state.data.items() if name != event.name}
    return Bag(state.n, kept if event.gone else {**state.data, event.name: event.value})
