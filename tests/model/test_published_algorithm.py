"""The published algorithm in the zoo: each of its faults has a shortest story, and with all repairs none is left."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest

from exactlyonce import Outbox
from exactlyonce.effects.attempt import Again, Attempts, Before, Handled, Memory, Work
from exactlyonce.effects.effect import Begin, Begun, Effect, Opened
from exactlyonce.effects.entity import PUBLISHED, Publish, SaveEntity
from exactlyonce.effects.library import CloseNumbers, FindPaid, OpenNumbers
from exactlyonce.records.outbox import Output
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.values.envelope import EntityRef, Envelope
from exactlyonce.values.frozen_json import Json
from tests.model.searches import assert_holds
from verification.checker.search import explore
from verification.published.algorithm import AS_PUBLISHED, REPAIRED, WHATEVER, Deletion, PublishedAlgorithm, Repairs
from verification.published.faults import FAULTS, PAGE, Fault, playing, with_stories
from verification.world.scenario import Budget, Scenario

ENTITY = EntityRef("account", ("a",), "a")
AT = datetime(2026, 1, 1, tzinfo=timezone.utc)


class QuietWorld:
    """A store without faults and without company, which counts the requests that it gets."""

    def __init__(self) -> None:
        self._store = MemoryStore(lambda: AT)
        self._requests = 0
        self._transactions = 0

    def requests_of(self, strategy: Attempts, number: int) -> int:
        """How many requests a message takes, those of an attempt that is made in vain among them."""
        before, memory = self._requests, Memory()
        while True:
            step, reply = strategy.attempt(_work(number), memory), None
            try:
                while True:
                    reply = self._reply(step.send(reply))
            except StopIteration as end:
                memory = end.value.memory
                if not isinstance(end.value, Again):
                    return self._requests - before

    def crashes_after_commit(self, strategy: Attempts, number: int) -> None:
        """A process takes a message, and is gone right after its first save."""
        step = strategy.attempt(_work(number), Memory())
        effect: Effect[Any] = next(step)
        while not isinstance(effect, SaveEntity):
            effect = step.send(self._reply(effect))
        self._reply(effect)
        step.close()

    def _reply(self, effect: Effect[Any]) -> Any:
        match effect:
            case Begin():
                return Begun(AT, self._fresh(effect.count))
            case OpenNumbers():
                return Opened(AT, self._fresh(effect.count))
            case FindPaid():
                return frozenset(effect.transactions)
            case CloseNumbers():
                return None
            case Publish():
                return PUBLISHED
            case SaveEntity(etag=etag) if etag == WHATEVER:  # Only an absent entity is saved like that.
                effect = replace(effect, etag=None)
        self._requests += 1
        return self._store.perform(effect)

    def _fresh(self, count: int) -> tuple[str, ...]:
        self._transactions += count
        return tuple(f"t{number}" for number in range(self._transactions - count, self._transactions))


def _work(number: int) -> Work:
    return Work(ENTITY, (Envelope("web", f"m{number}", "test", Json("{}")),), _handle, Json('{"id":"a"}'))


def _handle(before: Before, envelope: Envelope) -> Handled:
    count = 0 if before.body is None else before.body.value["handled"]
    output = Output(f"out:{envelope.id}", "out", Json.of({"on": count}))
    return Handled(Json.of({"id": "a", "handled": count + 1}), (output,))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_each_fault_has_a_shortest_story(fault: Fault) -> None:
    report = explore(fault.scenario_with(fault.repairs))
    assert report.violation is not None
    assert report.violation.startswith(fault.falls), report.violation
    assert len(report.story) == fault.steps


REPAIRS = {(fault.scenario, fault.ends): fault for fault in FAULTS}


@pytest.mark.parametrize("fault", REPAIRS.values(), ids=lambda fault: fault.name)
def test_its_repair_ends_it(fault: Fault) -> None:
    assert_holds(fault.scenario_with(fault.ends))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_algorithm_as_published_falls_wherever_one_of_its_faults_shows(fault: Fault) -> None:
    # A second message, since the first save of an entity, which has no condition, cannot end in a conflict.
    scenario = replace(fault.scenario, copies=(*fault.scenario.copies, 1))
    assert explore(playing(scenario, AS_PUBLISHED)).violation is not None


def test_an_update_is_lost_without_any_failure() -> None:
    report = explore(playing(Scenario("two messages, each delivered once", (1, 1)), AS_PUBLISHED))
    assert report.violation is not None
    assert "a commit was overwritten by one that did not know of it" in report.violation


@pytest.mark.parametrize(
    ("copies", "budget"),
    [((2,), Budget(crashes=1)), ((2,), Budget(unknown=1)), ((2,), Budget(repeated=1)), ((2,), Budget(stale=1))],
    ids=str,
)
def test_repaired_it_holds(copies: tuple[int, ...], budget: Budget) -> None:
    assert_holds(playing(Scenario("repaired", copies, budget=budget), REPAIRED))


@pytest.mark.parametrize(
    ("repairs", "quiet", "finishing"),
    [
        (AS_PUBLISHED, 8, 17),
        (replace(AS_PUBLISHED, conditional_create=True), 8, 17),
        (replace(AS_PUBLISHED, deletion=Deletion.NEVER), 8, 16),
        (replace(AS_PUBLISHED, staged_token=True), 8, 17),
        (replace(AS_PUBLISHED, record_token=True), 8, 17),
        (replace(AS_PUBLISHED, record_again=True), 8, 17),
        (replace(AS_PUBLISHED, fresh_etag=True), 8, 12),
        (REPAIRED, 8, 12),
    ],
)
def test_no_repair_costs_a_store_operation(repairs: Repairs, quiet: int, finishing: int) -> None:
    strategy, world = PublishedAlgorithm(repairs), QuietWorld()
    world.requests_of(strategy, 0)
    assert world.requests_of(strategy, 1) == quiet
    world.crashes_after_commit(strategy, 2)
    assert world.requests_of(strategy, 3) == finishing


def test_what_the_shipped_outbox_takes_for_the_same() -> None:
    world = QuietWorld()
    assert [world.requests_of(Outbox(), number) for number in range(3)] == [3, 2, 2]


def test_the_page_has_the_stories_as_they_are() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_stories(page) == page, "To write them anew: python -m verification.published.faults"
