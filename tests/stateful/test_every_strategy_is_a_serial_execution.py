"""The guarantee, for random handlers, random deliveries and every strategy: what is observed is a serial execution of the
distinct messages; and with one delivery at a time it is the same for all strategies, to the letter."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from exactlyonce import Colocated, Envelope, Outbox, StoredDataError, VersionStream
from exactlyonce.attempt import Strategy
from exactlyonce.protocols.outbox import draft
from tests.stateful.broken_stores import Careless
from tests.stateful.machines import KINDS, SITUATIONS, Machine, Rule, a_message, entity_of, machines, messages
from tests.stateful.serial import MachineHistory

STRATEGIES: dict[str, tuple[Strategy, bool]] = {
    "outbox": (Outbox(), False),
    "co-located": (Colocated(), False),
    "stream of whole states": (VersionStream(snapshot_every=1), False),
    "stream with a whole state every 3": (VersionStream(snapshot_every=3), False),
    "stream": (VersionStream(), False),
    "stream of events": (VersionStream(snapshot_every=3), True),
}
"""And whether the handlers return events."""


@pytest.fixture(autouse=True, params=[(1, 0), (2, 1), (32, 16)], ids=str)
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many marks a ledger has before the oldest leave it, and how many stay then."""
    monkeypatch.setattr(draft, "MOST_MARKS", request.param[0])
    monkeypatch.setattr(draft, "MARKS_STAY", request.param[1])


unhurried = settings(database=None, suppress_health_check=list(HealthCheck))


def history(name: str, machine: Machine, messages: list[Envelope], seed: int) -> MachineHistory:
    strategy, event_sourced = STRATEGIES[name]
    entity = entity_of(machine, strategy, event_sourced=event_sourced)
    return MachineHistory(Random(seed), entity, messages)


@pytest.mark.parametrize("name", STRATEGIES)
@settings(unhurried, max_examples=20)
@given(machine=machines, messages=messages, seed=st.integers(0, 2**32))
def test_what_is_observed_is_a_serial_execution_of_the_distinct_messages(
    name: str, machine: Machine, messages: list[Envelope], seed: int
) -> None:
    played = history(name, machine, messages, seed)
    played.play()
    played.judge()
    assert played.could_be_processed() == []


@settings(unhurried, max_examples=10, phases=[Phase.generate])  # To find a smaller one would take minutes.
@given(machine=machines, messages=messages, seed=st.integers(0, 2**32))
def test_with_one_delivery_at_a_time_all_strategies_end_the_same_to_the_letter(
    machine: Machine, messages: list[Envelope], seed: int
) -> None:
    first = None
    for name in STRATEGIES:
        played = history(name, machine, messages, seed)
        played.one_at_a_time()
        played.judge()
        endings = {ref: played.ending(ref).whatever_its_attempts for ref in played.refs}
        first = first or endings
        assert endings == first, name


PLAIN = Rule(raises=False, deletes=False, sets=(("a", None),), drops=(), sends=(("numbered", "x", 0),))
SIMPLE: Machine = {(kind, situation): PLAIN for kind in range(KINDS) for situation in range(SITUATIONS)}


@pytest.mark.parametrize("name", STRATEGIES)
def test_with_a_store_that_breaks_its_promises_it_is_none(name: str) -> None:
    strategy, event_sourced = STRATEGIES[name]
    entity = entity_of(SIMPLE, strategy, event_sourced=event_sourced)
    many = [a_message(number, "a", 0, number) for number in range(8)]
    convicted = 0
    for seed in range(10):
        played = MachineHistory(Random(seed), entity, many, Careless)
        try:
            played.play()
            played.judge()
        except (AssertionError, StoredDataError):
            convicted += 1
    assert convicted >= 3
