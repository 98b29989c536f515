"""Without an SDK no telemetry is called or loaded, and the store gets the same requests."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider

from exactlyonce import Colocated, Outbox, VersionStream
from exactlyonce.drivers.observer import Observer, ObserverSlot
from exactlyonce.effects.attempt import Strategy
from exactlyonce.effects.effect import Busy, Effect, Reply
from exactlyonce.hosting.accounts.port import observer_of_this_process
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.telemetry import opentelemetry as telemetry
from exactlyonce.testing.world import InstantClock, ManualClock, World
from tests.packaging.sources import ROOT
from tests.samples import accounts, deposit, ledger_queue
from tests.unit.telemetry.observed import Observed

STRATEGIES: list[Strategy] = [Outbox(), Colocated(), VersionStream()]
TRACE = (("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),)


class Listing(MemoryStore):
    """A store that lists what it is asked."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.asked: list[Effect[Any]] = []

    def perform(self, effect: Effect[Reply]) -> Reply | Busy:
        self.asked.append(effect)
        return super().perform(effect)


async def asked(strategy: Strategy, *, observed: bool) -> tuple[list[Effect[Any]], list[str]]:
    """What the store is asked, and what is published, with an observer or without one."""
    clock = InstantClock()
    store = Listing(clock.now)
    world = World([ledger_queue], clock=clock, store=store)
    observer = Observed(clock).telemetry if observed else None
    process = world.process(observer=observer)
    for number in (1, 2, 3, 1, 3):
        await process.deliver(accounts(strategy), deposit(f"m-{number}").with_trace(TRACE))
    await process.close()
    return store.asked, [output.envelope.text for output in world.published]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: repr(strategy)[:30])
async def test_the_store_is_asked_the_same_and_the_same_is_published(strategy: Strategy) -> None:
    off, on = await asked(strategy, observed=False), await asked(strategy, observed=True)
    assert off == on
    assert len(off[0]) > 8
    assert all(TRACE[0][1] in text for text in off[1])


async def called(*, observed: bool) -> set[str]:
    """The functions of telemetry that are called for one message."""
    world = World([ledger_queue])
    process = world.process(observer=Observed(world.clock).telemetry if observed else None)
    names: set[str] = set()

    def note(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and ("opentelemetry" in code.co_filename or "exactlyonce/telemetry" in code.co_filename):
            names.add(code.co_name)

    sys.setprofile(note)
    try:
        await process.deliver(accounts(), deposit("m-1"))
        await process.close()
    finally:
        sys.setprofile(None)
    return names


async def test_without_an_observer_no_function_of_telemetry_is_called() -> None:
    assert await called(observed=False) == set()
    assert {"perform", "start_span", "add"} <= await called(observed=True)


def printed(code: str) -> str:
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


def test_everything_works_where_the_api_is_not_installed() -> None:
    code = (
        "import asyncio, importlib.abc, sys\n"
        "class Absent(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'opentelemetry':\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "from exactlyonce.hosting.accounts.port import observer_of_this_process\n"
        "from exactlyonce.testing.world import World\n"
        "from tests.samples import accounts, deposit, ledger_queue\n"
        "async def main():\n"
        "    world = World([ledger_queue])\n"
        "    process = world.process()\n"
        "    process._driver.observer_slot.look(lambda: observer_of_this_process(world.clock.now))\n"
        "    await process.deliver(accounts(), deposit('m-1'))\n"
        "    await process.close()\n"
        "    print(len(world.published))\n"
        "asyncio.run(main())\n"
    )
    assert printed(code) == "1"


def test_the_apis_own_providers_are_no_sdk() -> None:
    assert telemetry.configured(ManualClock().now) is None


@pytest.mark.parametrize("configured", ["trace", "metrics"])
def test_an_sdk_for_either_signal_is_found_with_the_first_message(
    monkeypatch: pytest.MonkeyPatch, configured: str
) -> None:
    if configured == "trace":
        monkeypatch.setattr(trace, "get_tracer_provider", lambda: TracerProvider(shutdown_on_exit=False))
    else:
        monkeypatch.setattr(metrics, "get_meter_provider", lambda: MeterProvider(shutdown_on_exit=False))
    slot = ObserverSlot()
    slot.look(found)
    assert isinstance(slot.observer, telemetry.Telemetry)


def test_an_observer_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    monkeypatch.setattr(telemetry, "configured", lambda _: looked.append("looked"))
    slot = ObserverSlot()
    slot.look(found)
    slot.look(found)
    assert looked == ["looked"]
    given = ObserverSlot(Observed(ManualClock()).telemetry)
    given.look(found)
    assert looked == ["looked"]


def found() -> Observer | None:
    return observer_of_this_process(ManualClock().now)


async def test_without_an_observer_nothing_is_reported() -> None:
    slot = ObserverSlot()
    slot.charged(1.0)
    with slot.sending("queue", "web/m-1") as extensions:
        assert extensions == ()
    observer: Observer | None = slot.observer
    assert observer is None
