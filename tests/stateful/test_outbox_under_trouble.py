"""Random histories with every fault of the fault model, judged by the invariants; and proof that the judge can convict."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from exactlyonce import Outbox
from exactlyonce.drivers.retrying import Backoff
from exactlyonce.effects import Conflict, FindProcessed, Found, NoAnswer, Saved, SaveEntity
from exactlyonce.envelope import Envelope
from exactlyonce.errors import TryAgainLater
from exactlyonce.invariants import violations
from exactlyonce.stores.memory import MemoryStore
from exactlyonce.stores.port import Busy
from exactlyonce.stores.trouble import Fate
from exactlyonce.testing.chance import InstantClock, SeededTrouble
from exactlyonce.testing.world import World
from tests.samples import accounts, close, deposit, ledger_queue

PRESETS = {
    "default": Outbox(),
    "small window": Outbox(window=3),
    "mixed staging": Outbox(window=2, inline_limit=300),
    "transaction id": Outbox.transaction_id(),
    "embedded": Outbox.embedded(),
}
FATES = {
    Fate.LOST_BEFORE: 0.04,
    Fate.LOST_AFTER: 0.06,
    Fate.REPEATED: 0.06,
    Fate.DELAYED: 0.04,
    Fate.BUSY: 0.05,
}


async def play(world: World, strategies: tuple[Outbox, ...], *, messages: int = 60, accounts_used: int = 3) -> None:
    """Deliver every message, some of them several times and to two processes at once, with crashes; then drain."""
    random = world.random
    entity = accounts()
    envelopes = [message(random, number, accounts_used) for number in range(messages)]
    deliveries = [*envelopes, *random.choices(envelopes, k=messages // 3)]
    random.shuffle(deliveries)
    while deliveries:
        batch, deliveries = deliveries[:8], deliveries[8:]
        processes = [world.process(backoff=Backoff(tries=4)) for _ in range(2)]
        tasks = [
            asyncio.create_task(random.choice(processes).deliver(entity, envelope, random.choice(strategies)))
            for envelope in batch
        ]
        for _ in range(random.randint(0, 60)):
            await asyncio.sleep(0)
        if random.random() < 0.3:
            await random.choice(processes).crash()
        if random.random() < 0.5:
            world.store.land_delayed()
        for process in processes:
            await process.close() if random.random() < 0.5 else await process.crash()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        for envelope, result in zip(batch, results, strict=True):
            if isinstance(result, (asyncio.CancelledError, TryAgainLater)):
                deliveries.append(envelope)  # The queue delivers it again.
            else:
                assert result is None, repr(result)
    world.store.land_delayed()
    last = world.process(backoff=Backoff(tries=60))
    await asyncio.gather(*(last.deliver(entity, envelope, strategies[0]) for envelope in envelopes))
    await last.close()


def message(random: Random, number: int, accounts_used: int) -> Envelope:
    account = f"account-{random.randrange(accounts_used)}"
    if random.random() < 0.05:
        return close(f"m-{number}", account)
    return deposit(
        f"m-{number}",
        account,
        amount=random.randint(1, 9),
        answers=random.choice([0, 1, 1, 2]),
        padding="x" * random.choice([0, 0, 400]),
    )


def troubled_world(seed: int) -> World:
    random = Random(seed)
    return World(
        [ledger_queue],
        random=random,
        trouble=SeededTrouble(random, FATES, stale=0.2, lag=3),
        outcome=lambda _: random.choices([(True, True), (True, False), (False, False)], [0.92, 0.05, 0.03])[0],
    )


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("seed", range(25))
async def test_nothing_is_lost_or_done_twice_whatever_happens(preset: str, seed: int) -> None:
    world = troubled_world(seed)
    await play(world, (PRESETS[preset],))
    assert violations(world.facts(), drained=True) == ()


@pytest.mark.parametrize("seed", range(15))
async def test_presets_may_be_exchanged_while_messages_are_under_way(seed: int) -> None:
    world = troubled_world(seed)
    await play(world, tuple(PRESETS.values()))
    assert violations(world.facts(), drained=True) == ()


class Careless(MemoryStore):
    """Saves whatever the ETag says."""

    def save_entity(self, effect: SaveEntity) -> Saved | Conflict | NoAnswer | Busy:  # type: ignore[override]
        current = self._entity(effect.entity).newest(effect.entity.id)
        return super().save_entity(SaveEntity(effect.entity, effect.document, current.etag if current else None))


class Forgetful(MemoryStore):
    """Finds no record."""

    def find_processed(self, effect: FindProcessed) -> Found | NoAnswer | Busy:
        reply = super().find_processed(effect)
        return Found(frozenset(), reply.token) if isinstance(reply, Found) else reply


@pytest.mark.parametrize("store", [Careless, Forgetful])
async def test_a_store_that_breaks_its_promise_is_convicted(store: type[MemoryStore]) -> None:
    convicted = 0
    for seed in range(10):
        clock, random = InstantClock(), Random(seed)
        world = World([ledger_queue], random=random, clock=clock, store=store(clock.now))
        await play(world, (Outbox(window=2),))
        convicted += bool(violations(world.facts(), drained=True))
    assert convicted >= 8
