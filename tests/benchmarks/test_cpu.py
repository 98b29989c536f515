"""The benchmark of CPU time: what it lets the library do, what it takes for whose time, and what it reports."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.cpu import LOADS, Engine, Load, Stopwatch, World, missed_targets, over_memory, peak, spend_in_memory
from benchmarks.targets import cpu_targets, missed
from exactlyonce.attempt import Again, Memory


def measured(median: float) -> dict[str, Any]:
    return {"median": median, "middle half": [median, median]}


def result(own: float = 0.4, engine: float = 25_000) -> dict[str, Any]:
    return {
        "library": {"own": measured(own)},
        "engine": {load.name: {"messages": measured(engine), "effects": measured(5_000)} for load in LOADS},
    }


def test_an_attempt_asks_for_what_a_busy_entity_needs() -> None:
    one_by_one = Engine(Load(1, 1))
    one_by_one.spend(16)
    assert (
        one_by_one.spend(32)[1] == 32 * 5 + 1
    )  # Learn what is paid, open a number, save, publish, close it; write a page.
    grouped = Engine(Load(16, 0))
    grouped.spend(3 * 16)
    assert grouped.spend(32)[1] == 2 * 4 + 1  # Learn what is paid, open numbers, save, close them; write a page.


def test_the_world_takes_no_attempt_that_did_not_finish() -> None:
    def unfinished() -> Any:
        yield from ()
        return Again(Memory(), "nothing went right")

    with pytest.raises(RuntimeError, match="nothing went right"):
        World().run(unfinished())


async def test_the_library_processes_every_message_and_stand_ins_take_a_part_of_the_time() -> None:
    assert await over_memory(20) > 0
    everything, others = await spend_in_memory(20)
    assert 0 < others < everything


async def test_a_stopwatch_changes_nothing_but_its_time() -> None:
    watch = Stopwatch()

    async def doubled(number: int) -> int:
        return sum(number for _ in range(2)) if number else int("no number")

    assert await watch.on(doubled)(21) == 42
    spent = watch.spent
    assert spent > 0
    with pytest.raises(ValueError, match="invalid literal"):
        await watch.on(doubled)(0)
    assert watch.spent > spent


async def test_a_message_needs_memory_while_it_is_processed() -> None:
    assert 1_000 < await peak(5) < 1_000_000


def test_a_missed_target_is_reported() -> None:
    assert list(missed_targets(result())) == []
    (sentence,) = missed_targets(result(own=0.5))
    assert sentence == "The library takes 0.5 ms of CPU time per message; it should be less than 0.5 ms."
    (sentence,) = missed_targets(result(engine=20_000))
    assert sentence.startswith("The engine processes 20,000 messages per second (16 in a commit, one output each)")


def test_more_cpu_time_than_the_naive_handler_takes_is_reported() -> None:
    def with_the_sdk(ours: float) -> dict[str, Any]:
        return {"with the Cosmos SDK": measured(ours), "naive with the Cosmos SDK": measured(2.0)}

    assert list(missed(cpu_targets(with_the_sdk(2.0)))) == []
    (sentence,) = missed(cpu_targets(with_the_sdk(2.1)))
    assert sentence.endswith("times the naive handler's: 1.05; at most 1 is wanted.")
