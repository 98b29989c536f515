"""Random histories with every fault of the fault model, judged by the invariants; and proof that the judge can convict."""

from __future__ import annotations

from random import Random

import pytest

from exactlyonce import Outbox
from exactlyonce.protocols.outbox import draft
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.testing.guarantee import violations
from exactlyonce.testing.world import InstantClock, World
from tests.samples import ledger_queue
from tests.stateful.broken_stores import Careless, Forgetful
from tests.stateful.histories import play, troubled_world


@pytest.fixture(params=[(1, 0), (3, 1), (32, 16)], ids=str)
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many marks a ledger has before the oldest leave it, and how many stay then."""
    monkeypatch.setattr(draft, "MOST_MARKS", request.param[0])
    monkeypatch.setattr(draft, "MARKS_STAY", request.param[1])


@pytest.mark.usefixtures("size")
@pytest.mark.parametrize("seed", range(7))
async def test_nothing_is_lost_or_done_twice_whatever_happens(seed: int) -> None:
    world = troubled_world(seed)
    await play(world, (Outbox(),))
    assert violations(world.facts(), drained=True) == ()


@pytest.mark.parametrize("store", [Careless, Forgetful])
async def test_a_store_that_breaks_its_promise_is_convicted(
    store: type[MemoryStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draft, "MOST_MARKS", 1)
    monkeypatch.setattr(draft, "MARKS_STAY", 0)
    convicted = 0
    for seed in range(7):
        clock, random = InstantClock(), Random(seed)
        world = World([ledger_queue], random=random, clock=clock, store=store(clock.now))
        await play(world, (Outbox(),))
        convicted += bool(violations(world.facts(), drained=True))
    assert convicted >= 5
