"""Random histories of the protocols whose records are companions; and proof that the judge can convict."""

from __future__ import annotations

from functools import partial
from random import Random

import pytest

from exactlyonce import Colocated, StoredDataError, VersionStream
from exactlyonce.attempt import Strategy
from exactlyonce.records.outbox import Output
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.testing.guarantee import violations
from exactlyonce.testing.world import InstantClock, World
from tests.samples import ledger_queue
from tests.stateful.broken_stores import Careless, Hasty, Hoarding, Torn
from tests.stateful.histories import play, troubled_world

STRATEGIES: dict[str, Strategy] = {
    "co-located": Colocated(),
    "stream of whole states": VersionStream(snapshot_every=1),
    "stream with a whole state every 3": VersionStream(snapshot_every=3),
    "stream": VersionStream(),
}
STREAMS = [strategy for strategy in STRATEGIES.values() if isinstance(strategy, VersionStream)]


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("seed", range(5))
async def test_nothing_is_lost_or_done_twice_whatever_happens(name: str, seed: int) -> None:
    world = troubled_world(seed)
    await play(world, (STRATEGIES[name],))
    assert violations(world.facts(), drained=True) == ()


@pytest.mark.parametrize("seed", range(3))
async def test_the_distance_of_whole_states_may_be_changed_while_messages_are_under_way(seed: int) -> None:
    world = troubled_world(seed)
    await play(world, STREAMS)
    assert violations(world.facts(), drained=True) == ()


def often_lost(random: Random, _output: Output) -> tuple[bool, bool]:
    return random.choices([(True, True), (False, False)], [0.98, 0.02])[0]


BREAKS: dict[str, tuple[type[MemoryStore], Strategy, set[str]]] = {
    "co-located, careless": (
        Careless,
        Colocated(),
        {"at_most_one_state_change", "versions_are_distinct"},
    ),
    "stream, careless": (Careless, VersionStream(), {"a document is refused"}),
    "co-located, torn": (Torn, Colocated(), {"nothing_lost"}),
    "stream, torn": (Torn, VersionStream(snapshot_every=3), {"a document is refused"}),
    "co-located, hasty": (Hasty, Colocated(), {"nothing_lost"}),
    "co-located, hoarding": (Hoarding, Colocated(), {"termination"}),
}


@pytest.mark.parametrize("name", BREAKS)
async def test_a_store_that_breaks_its_promise_is_convicted(name: str) -> None:
    store, strategy, crimes = BREAKS[name]
    convicted: set[str] = set()
    for seed in range(3):
        clock, random = InstantClock(), Random(seed)
        world = World(
            [ledger_queue], random=random, clock=clock, store=store(clock.now), outcome=partial(often_lost, random)
        )
        try:
            await play(world, (strategy,))
        except StoredDataError:
            convicted.add("a document is refused")
        convicted |= {violation.property for violation in violations(world.facts(), drained=True)}
    assert crimes <= convicted
