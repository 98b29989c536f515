"""`benchmarks.cpu` lets the engine do the work of a busy entity, and measures a part of the whole time."""

from __future__ import annotations

from benchmarks.cpu import Engine, Load, over_memory, peak, spend_in_memory


def test_an_attempt_asks_for_what_a_busy_entity_needs() -> None:
    one_by_one = Engine(Load(1, 1))
    one_by_one.spend(16)
    assert (
        one_by_one.spend(32)[1] == 32 * 5 + 1
    )  # Learn what is paid, open a number, save, publish, close it; write a page.
    grouped = Engine(Load(16, 0))
    grouped.spend(3 * 16)
    assert grouped.spend(32)[1] == 2 * 4 + 1  # Learn what is paid, open numbers, save, close them; write a page.


async def test_the_library_processes_every_message_and_stand_ins_take_a_part_of_the_time() -> None:
    assert await over_memory(20) > 0
    everything, others = await spend_in_memory(20)
    assert 0 < others < everything


async def test_a_message_needs_memory_while_it_is_processed() -> None:
    assert 1_000 < await peak(5) < 1_000_000
