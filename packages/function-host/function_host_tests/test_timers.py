"""Timer functions run on NCRONTAB schedules in UTC."""

import asyncio
from datetime import datetime, timedelta, timezone

import azure.functions as func
import pytest

from function_host import AppError
from function_host.functions import TimerTrigger
from function_host.schedule import Schedule
from function_host.timer_listener import TimerListener

START = datetime(2026, 1, 1, 0, 0, 3, 500_000, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("expression", "due"),
    [
        ("*/5 * * * * *", "2026-01-01T00:00:05"),
        ("0 */5 * * * *", "2026-01-01T00:05:00"),
        ("*/5 * * * *", "2026-01-01T00:05:00"),
        ("0 30 9 * * Mon-Fri", "2026-01-01T09:30:00"),
        ("0 0 0 1 Feb *", "2026-02-01T00:00:00"),
        ("0 0 0 1 * 0", "2026-02-01T00:00:00"),
    ],
)
def test_a_schedule_has_seconds_first_and_wants_day_and_weekday(expression: str, due: str) -> None:
    assert Schedule(expression).next_after(START) == datetime.fromisoformat(f"{due}+00:00")


@pytest.mark.parametrize(
    "expression", ["", "* * * *", "* * * * * * *", "60 * * * * *", "@daily", "0 0 0 L * *", "00:05:00"]
)
def test_what_is_no_ncrontab_is_refused(expression: str) -> None:
    with pytest.raises(AppError, match="no NCRONTAB schedule"):
        Schedule(expression)


class World:
    """A clock that moves only while the listener waits; each wait ends a little early, as real ones do."""

    def __init__(self, stop_after: int) -> None:
        self.now = START
        self.fired: list[tuple[float, bool]] = []
        self.stop = asyncio.Event()
        self.work = timedelta(0)
        self._stop_after = stop_after

    def clock(self) -> datetime:
        return self.now

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        self.now += timedelta(seconds=max(0.0, seconds - 0.001))
        return event.is_set()

    async def call(self, request: func.TimerRequest) -> None:
        self.fired.append((round((self.now - START).total_seconds(), 1), request.past_due))
        self.now += self.work
        if len(self.fired) == self._stop_after:
            self.stop.set()

    def listener(self, *, run_on_startup: bool = False) -> TimerListener:
        trigger = TimerTrigger(Schedule("*/5 * * * * *"), run_on_startup)
        return TimerListener("tick", trigger, self.call, self.clock, self.wait)


async def test_a_timer_fires_once_at_each_occurrence() -> None:
    world = World(stop_after=3)
    await world.listener().run(world.stop)

    assert world.fired == [(1.5, False), (6.5, False), (11.5, False)]


async def test_run_on_startup_fires_before_the_first_occurrence() -> None:
    world = World(stop_after=2)
    await world.listener(run_on_startup=True).run(world.stop)

    assert world.fired == [(0.0, False), (1.5, False)]


async def test_occurrences_during_a_long_run_are_skipped() -> None:
    world = World(stop_after=2)
    world.work = timedelta(seconds=12)
    await world.listener().run(world.stop)

    assert world.fired == [(1.5, False), (16.5, False)]


async def test_a_failing_timer_fires_again(caplog: pytest.LogCaptureFixture) -> None:
    world = World(stop_after=2)
    succeed = world.call

    async def fail(request: func.TimerRequest) -> None:
        await succeed(request)
        raise ValueError

    world.call = fail  # type: ignore[method-assign]
    await world.listener().run(world.stop)

    assert len(world.fired) == 2
    assert caplog.messages == ["tick: failed"] * 2


async def test_a_caller_may_say_that_it_is_past_due() -> None:
    world = World(stop_after=1)
    await world.listener().fire(past_due=True)

    assert world.fired == [(0.0, True)]
