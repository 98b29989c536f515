"""The strategy that the page about strategies of one's own shows: hosting, drivers and stores take it as it stands there."""

from __future__ import annotations

import asyncio
import re
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random
from types import ModuleType
from typing import Any

import pytest

from exactlyonce import Context, Destination, Entity, Envelope, TryAgainLater, message
from exactlyonce.effects.attempt import Strategy
from exactlyonce.errors import HandlerFailed
from exactlyonce.records.outbox import Place
from exactlyonce.stores.memory.store import Fate
from exactlyonce.testing.world import SeededTrouble, World
from exactlyonce.values.frozen_json import Json
from tests.asking import unhandled
from tests.packaging.sources import ROOT

PAGE = ROOT / "docs/howto/own-strategy.md"


@pytest.fixture(scope="module")
def strategy() -> Strategy:
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    module = ModuleType("latest_wins")
    sys.modules[module.__name__] = module  # Dataclasses look their module up.
    exec(compile(code, str(PAGE), "exec"), module.__dict__)  # noqa: S102
    found: Strategy = module.LatestWins()
    return found


@message("probe.moved")
@dataclass
class Moved:
    probe: str
    x: int
    announces: bool = False


@dataclass
class Probe:
    seen: list[str] = field(default_factory=list)


def probes(strategy: Strategy) -> Entity[Probe]:
    kind: Entity[Probe] = Entity("probe", state=Probe, container="probes", strategy=strategy)

    @kind.handles(Moved, key=lambda moved: moved.probe)
    def moved(state: Probe, given: Moved, context: Context) -> Probe:
        if given.announces:
            context.send("screens", given)
        return Probe([*state.seen, str(given.x)])

    return kind


def at(number: int, source: str = "s", **data: Any) -> Envelope:
    content = Json.of({"probe": "p", "x": number, **data})
    return Envelope(
        source, f"m-{number}", "probe.moved", content, extensions=Place(f"from{source}", "probe/p", number).extensions
    )


@pytest.mark.parametrize("seed", range(20))
async def test_of_each_source_numbers_only_rise_whatever_goes_wrong(strategy: Strategy, seed: int) -> None:
    random = Random(seed)
    fates = dict.fromkeys((Fate.LOST_BEFORE, Fate.LOST_AFTER, Fate.REPEATED), 0.1)
    world = World([], trouble=SeededTrouble(random, fates, stale=0.3, lag=3))
    kind = probes(strategy)
    deliveries = [at(number, source) for number in range(1, 8) for source in "st"] * 2
    random.shuffle(deliveries)
    processes = [world.process() for _ in range(2)]
    for envelope in deliveries:
        for _ in range(50):
            with suppress(TryAgainLater):
                await random.choice(processes).deliver(kind, envelope)
                break
    await asyncio.gather(*(process.close() for process in processes))
    document = world.store._entity(kind.ref("p")).newest("p")
    assert document is not None
    assert document.document is not None
    ledger = document.document.value["_ledger"]
    assert {item["source"]: item["next"] for item in ledger["receptions"]} == {"s": 8, "t": 8}
    assert ledger["version"] == len(document.document.value["seen"]) <= 14


async def test_a_handler_that_sends_is_refused(strategy: Strategy) -> None:
    world = World([Destination("screens")])
    with pytest.raises(HandlerFailed, match="send nothing"):
        await world.process().deliver(probes(strategy), at(1, announces=True))


async def test_a_message_that_was_taken_or_dropped_is_processed_and_one_that_never_came_is_parked(
    strategy: Strategy,
) -> None:
    world, kind = World([]), probes(strategy)
    process, ref = world.process(), kind.ref("p")
    await process.deliver(kind, at(2))
    outcomes: dict[int, str] = {}
    for number in (1, 2, 3):
        work = unhandled(ref, at(number), absent=Json('{"id":"p"}'))
        settled = await process.run(ref, partial(strategy.settle, work, at(number), "it failed"))
        outcomes[number] = settled.outcome
        assert await process.run(ref, partial(strategy.knows, ref, at(number))) is (number < 3)
    assert outcomes == {1: "processed", 2: "processed", 3: "parked"}
