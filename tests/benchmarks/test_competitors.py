"""Competitors: the one that promises something keeps it under every fault, and none does more or less than is said of it."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from benchmarks.competitors.handmade import Naive, ProcessedDocument
from benchmarks.competitors.seven_steps import SevenSteps
from benchmarks.contenders import ROUTES, Contender
from benchmarks.subjects import shooting_range
from exactlyonce import Envelope, Outbox, StoredDataError
from exactlyonce.attempt import Attempts, Memory, Strategy, Work
from exactlyonce.effects.effect import Effect
from exactlyonce.effects.entity import Loaded, LoadEntity
from exactlyonce.handling.runner import Runner
from exactlyonce.records.ledger import Ledger, read_entity
from exactlyonce.values.envelope import EntityRef, message_hash
from tests.benchmarks.in_memory import competing_operations
from tests.stateful.broken_stores import Careless
from tests.stateful.machines import Machine, a_message, entity_of, machines, messages
from tests.stateful.serial import NOTHING, Ending, MachineHistory
from tests.stateful.test_every_strategy_is_a_serial_execution import SIMPLE
from tests.unit.bookkeeping import Bookkeeper

unhurried = settings(
    database=None,
    max_examples=60,
    phases=[Phase.generate],  # To find a smaller one would take minutes.
    suppress_health_check=list(HealthCheck),
)


class OneByOne(MachineHistory):
    """No groups of messages, as the lanes of a strategy that takes one at a time make none."""

    def _any_group(self) -> tuple[str, ...]:
        return (self.waiting.pop(),)

    def perform(self, effect: Effect[Any], book: Bookkeeper) -> Any:
        competing = competing_operations(self.store)
        return competing[type(effect)](effect) if type(effect) in competing else super().perform(effect, book)

    def serially(self, ref: EntityRef) -> Ending:
        if isinstance(self.entity.strategy, Outbox):
            return super().serially(ref)
        messages = {message_hash(key): item for key, item in self.messages.items()}
        documents = (item.document for item in self.store._entity(ref).log if item.id == ref.id)
        ledgers = (read_entity(ref, document).ledger or Ledger() for document in documents)
        markers = {entry.tx: messages[entry.cause] for ledger in ledgers for entry in ledger.outbox}
        return self._after(NOTHING, ref, [(self.given[tx], item) for tx, item in markers.items()])


def history(strategy: Attempts, machine: Machine, envelopes: list[Envelope], seed: int) -> OneByOne:
    return OneByOne(Random(seed), entity_of(machine, cast("Strategy", strategy), event_sourced=False), envelopes)


@unhurried
@given(machine=machines, messages=messages, seed=st.integers(0, 2**32))
def test_what_the_seven_steps_do_is_a_serial_execution_of_the_distinct_messages(
    machine: Machine, messages: list[Envelope], seed: int
) -> None:
    played = history(SevenSteps(), machine, messages, seed)
    played.play()
    played.judge()
    assert played.could_be_processed() == []


@unhurried
@given(machine=machines, messages=messages, seed=st.integers(0, 2**32))
def test_the_seven_steps_end_as_the_library_does(machine: Machine, messages: list[Envelope], seed: int) -> None:
    endings = []
    for strategy in (SevenSteps(), Outbox()):
        played = history(strategy, machine, messages, seed)
        played.one_at_a_time()
        played.judge()
        endings.append({ref: played.ending(ref).whatever_its_attempts for ref in played.refs})
    assert endings[0] == endings[1]


def test_on_a_store_that_breaks_its_promises_the_seven_steps_are_convicted() -> None:
    many = [a_message(number, "a", 0, number) for number in range(8)]
    convicted = 0
    for seed in range(10):
        played = OneByOne(
            Random(seed), entity_of(SIMPLE, cast("Strategy", SevenSteps()), event_sourced=False), many, Careless
        )
        try:
            played.play()
            played.judge()
        except (AssertionError, StoredDataError):
            convicted += 1
    assert convicted >= 3


def attempts(strategy: Attempts, *deliveries: int | None) -> int:
    """How many shots a game counts after deliveries of one message, each until it crashes after so many effects."""
    contender = Contender("", shooting_range(cast("Strategy", strategy)))
    envelope = contender.message("game-1", 1)
    ref = contender.entity.ref_of(envelope)
    runner = Runner(contender.entity, ref, ROUTES)
    played = OneByOne(Random(0), contender.entity, [])
    played.calm()
    for effects in deliveries:
        step, reply = strategy.attempt(Work(ref, (envelope,), runner, runner.absent), Memory()), None
        with suppress(StopIteration):
            for _ in range(effects or 100):
                reply = played.perform(step.send(reply), played.books[0])
    loaded = played.store.perform(LoadEntity(ref))
    assert isinstance(loaded, Loaded)
    return 0 if loaded.document is None else int(loaded.document.value["attempts"])


@pytest.mark.parametrize(
    ("strategy", "twice", "after_a_crash"),
    [(Naive(), 2, 1), (ProcessedDocument(), 1, 0), (SevenSteps(), 1, 1)],
    ids=["naive", "processed document", "seven steps"],
)
def test_what_a_copy_does_and_what_a_crash_does(strategy: Strategy, twice: int, after_a_crash: int) -> None:
    assert attempts(strategy, None, None) == twice
    assert attempts(strategy, 2, None) == after_a_crash
