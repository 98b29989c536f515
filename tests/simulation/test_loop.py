"""Virtual time: it jumps, it is shown, and it ends."""

from __future__ import annotations

import asyncio

import pytest

from exactlyonce.testing.loop import START, Interrupted, Overdue, VirtualClock, VirtualLoop

YEAR = 365 * 24 * 3600.0


def new_loop(limit: int = 1000) -> VirtualLoop:
    return VirtualLoop(limit)  # type: ignore[abstract]  # It has no I/O.


def test_a_year_passes_in_no_time() -> None:
    loop = new_loop()
    clock = VirtualClock(loop)
    task = loop.create_task(clock.sleep(YEAR))
    loop.run_until_idle(YEAR)
    assert task.done()
    assert (clock.now() - START).total_seconds() == YEAR


def test_who_sleeps_less_wakes_first_and_ties_keep_their_order() -> None:
    loop = new_loop()
    woken: list[str] = []

    async def doze(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        woken.append(name)

    for name, seconds in (("late", 2.0), ("early", 1.0), ("also early", 1.0)):
        loop.create_task(doze(name, seconds))
    loop.run_until_idle(10.0)
    assert woken == ["early", "also early", "late"]


def test_a_cancelled_timer_does_not_go_off() -> None:
    loop = new_loop()
    rung: list[int] = []
    loop.call_later(1.0, rung.append, 1).cancel()
    loop.run_until_idle(10.0)
    assert rung == []
    assert loop.time() == 0.0


def test_what_is_planned_for_after_the_deadline_is_overdue() -> None:
    loop = new_loop()
    loop.call_later(11.0, int)
    with pytest.raises(Overdue, match="later than the deadline"):
        loop.run_until_idle(10.0)


def test_what_goes_on_and_on_is_overdue() -> None:
    loop = new_loop(limit=100)

    def again() -> None:
        loop.call_later(0.0, again)

    again()
    with pytest.raises(Overdue, match="on and on"):
        loop.run_until_idle(10.0)


def test_it_ends_where_there_is_no_need_to_go_on() -> None:
    loop = new_loop()
    rung: list[float] = []
    for at in (1.0, 2.0, 3.0):
        loop.call_later(at, rung.append, at)
    with pytest.raises(Interrupted):
        loop.run_until_idle(10.0, unless=lambda: len(rung) == 2)
    assert rung == [1.0, 2.0]


def test_sets_of_tasks_have_the_order_of_their_making() -> None:
    loop = new_loop()
    tasks = [loop.create_task(asyncio.sleep(0)) for _ in range(100)]
    assert list({*tasks[50:], *tasks[:50]}) == tasks
    loop.run_until_idle(1.0)
