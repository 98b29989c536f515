"""Competitors do no more and no less than docs/performance.md says of them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, cast

import pytest

from benchmarks.competitors.handmade import Naive, ProcessedDocument
from benchmarks.competitors.seven_steps import SevenSteps
from benchmarks.contenders import ROUTES, Contender
from benchmarks.subjects import shooting_range
from exactlyonce.effects.attempt import Attempts, Memory, Strategy, Work
from exactlyonce.effects.effect import Begin, Begun
from exactlyonce.effects.entity import PUBLISHED, Loaded, LoadEntity, Publish
from exactlyonce.handling.runner import Runner
from exactlyonce.testing.world import World
from handlers.leader_board import leader_board
from tests.benchmarks.in_memory import competing_operations


def attempts(strategy: Attempts, *deliveries: int | None) -> int:
    """How many shots a game counts after deliveries of one message, each until it crashes after so many effects."""
    contender = Contender("", shooting_range(cast("Strategy", strategy)))
    envelope = contender.message("game-1", 1)
    ref = contender.entity.ref_of(envelope)
    runner = Runner(contender.entity, ref, ROUTES)
    world = World([leader_board])
    competing = competing_operations(world.store)
    for number, effects in enumerate(deliveries):
        step = strategy.attempt(Work(ref, (envelope,), runner, runner.absent), Memory())
        reply: Any = None
        with suppress(StopIteration):
            for _ in range(effects or 100):
                effect = step.send(reply)
                match effect:
                    case Begin():
                        reply = Begun(world.clock.now(), (f"tx-{number}",))
                    case Publish():
                        reply = PUBLISHED
                    case _:
                        reply = competing.get(type(effect), world.store.perform)(effect)
    loaded = world.store.perform(LoadEntity(ref))
    assert isinstance(loaded, Loaded)
    return 0 if loaded.document is None else int(loaded.document.value["attempts"])


@pytest.mark.parametrize(
    ("strategy", "twice", "after_a_crash"),
    [(Naive(), 2, 1), (ProcessedDocument(), 1, 0), (SevenSteps(), 1, 1)],
    ids=["naive", "processed document", "seven steps"],
)
def test_a_copy_counts_only_for_the_naive_handler_and_a_crash_loses_a_message_of_the_processed_document(
    strategy: Strategy, twice: int, after_a_crash: int
) -> None:
    assert attempts(strategy, None, None) == twice
    assert attempts(strategy, 2, None) == after_a_crash
