"""Random histories of accounts with every fault of the fault model, for any strategy."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from random import Random

from exactlyonce import Entity
from exactlyonce.attempt import Strategy
from exactlyonce.drivers.retry import Backoff
from exactlyonce.errors import TryAgainLater
from exactlyonce.stores.memory.partitions import Fate, NoTrouble
from exactlyonce.testing.world import SeededTrouble, World
from exactlyonce.values.envelope import STABLE_TIME, Envelope, milliseconds, stable_text
from tests.asking import sweep
from tests.samples import SENT, Account, accounts, close, deposit, ledger_queue

FATES = {
    Fate.LOST_BEFORE: 0.04,
    Fate.LOST_AFTER: 0.06,
    Fate.REPEATED: 0.06,
    Fate.DELAYED: 0.04,
    Fate.BUSY: 0.05,
}


async def play(world: World, strategies: Sequence[Strategy], *, messages: int = 60, accounts_used: int = 3) -> None:
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
            elif result is not None:
                raise result
    await drain(world, strategies[0], entity, envelopes)


async def drain(world: World, strategy: Strategy, entity: Entity[Account], envelopes: Sequence[Envelope]) -> None:
    """Let everything be finished that is under way."""
    world.store.land_delayed()
    last = world.process(backoff=Backoff(tries=60))
    await asyncio.gather(*(last.deliver(entity, envelope, strategy) for envelope in envelopes))
    await last.close()
    world.store._trouble = NoTrouble()  # Dropping what was published is best effort, and the rest is the sweeper's.
    for ref in dict.fromkeys(entity.ref_of(envelope) for envelope in envelopes):
        await last.run(ref, partial(sweep, ref, by=strategy.name))


def message(random: Random, number: int, accounts_used: int) -> Envelope:
    account = f"account-{random.randrange(accounts_used)}"
    if random.random() < 0.05:
        return close(f"m-{number}", account)
    stable = ((STABLE_TIME, stable_text(milliseconds(SENT) + random.randrange(10_000))),)
    sent = deposit(
        f"m-{number}",
        account,
        amount=random.randint(1, 9),
        answers=random.choice([0, 1, 1, 2]),
        padding="x" * random.choice([0, 0, 400]),
    )
    return replace(sent, extensions=stable if random.random() < 0.5 else ())


def troubled_world(seed: int) -> World:
    random = Random(seed)
    return World(
        [ledger_queue],
        random=random,
        trouble=SeededTrouble(random, FATES, stale=0.2, lag=3),
        outcome=lambda _: random.choices([(True, True), (True, False), (False, False)], [0.92, 0.05, 0.03])[0],
    )
