"""Random histories with every fault of the fault model, judged by the invariants; and proof that the judge can convict."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pytest

from exactlyonce import Outbox
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.testing.chance import InstantClock
from exactlyonce.testing.guarantee import violations
from exactlyonce.testing.world import World
from tests.samples import ledger_queue
from tests.stateful.broken_stores import Careless, Forgetful
from tests.stateful.histories import play, troubled_world

PRESETS = {
    "default": Outbox(),
    "small window": Outbox(window=3),
    "mixed staging": Outbox(window=2, inline_limit=300),
    "transaction id": Outbox.transaction_id(),
    "embedded": Outbox.embedded(),
}


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("seed", range(7))
async def test_nothing_is_lost_or_done_twice_whatever_happens(preset: str, seed: int) -> None:
    world = troubled_world(seed)
    await play(world, (PRESETS[preset],))
    assert violations(world.facts(), drained=True) == ()


@pytest.mark.parametrize("seed", range(7))
async def test_presets_may_be_exchanged_while_messages_are_under_way(seed: int) -> None:
    world = troubled_world(seed)
    await play(world, tuple(PRESETS.values()))
    assert violations(world.facts(), drained=True) == ()


@dataclass(frozen=True, slots=True)
class InPairs(Outbox):
    """Takes as many messages at once as its window holds.

    A commit that leaves messages for another attempt relies on the store to know the first ones then: one that forgets them
    would let them in again without end.
    """

    @property
    def group_limit(self) -> int:
        return 2


@pytest.mark.parametrize("store", [Careless, Forgetful])
async def test_a_store_that_breaks_its_promise_is_convicted(store: type[MemoryStore]) -> None:
    convicted = 0
    for seed in range(7):
        clock, random = InstantClock(), Random(seed)
        world = World([ledger_queue], random=random, clock=clock, store=store(clock.now))
        await play(world, (InPairs(window=2),))
        convicted += bool(violations(world.facts(), drained=True))
    assert convicted >= 5
