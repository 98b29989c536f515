"""People with unique emails, in random histories with every fault: no two share one, and nothing is lost or done twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from random import Random

import pytest

from exactlyonce import Entity, Envelope, TryAgainLater
from exactlyonce.drivers.driver import Backoff
from exactlyonce.errors import UniqueKeyTaken
from exactlyonce.protocols.outbox import draft
from exactlyonce.stores.memory.store import MemoryStore, NoTrouble
from exactlyonce.testing.guarantee import violations
from exactlyonce.testing.world import InstantClock, SeededTrouble, World
from tests.asking import sweep
from tests.people import UNIQUE_KEYS, Person, leave, move, people, welcomes
from tests.samples import FATES

MOST_REFUSALS = 3
"""After so many its queue gives a message up."""


class History:
    def __init__(self, seed: int) -> None:
        self.random, clock = Random(seed), InstantClock()
        trouble = SeededTrouble(self.random, FATES, stale=0.2, lag=3)
        self.store = MemoryStore(clock.now, trouble, UNIQUE_KEYS)
        self.world = World([welcomes], random=self.random, clock=clock, store=self.store)
        self.people: Entity[Person] = people()
        self.refusals: Counter[str] = Counter()
        self.envelopes = [self._message(number) for number in range(50)]

    def _message(self, number: int) -> Envelope:
        person = self.random.choice(["ann", "bob", "cid"])
        if self.random.random() < 0.1:
            return leave(f"m-{number}", person)
        return move(f"m-{number}", person, self.random.choice("wxyz") + "@x")

    async def play(self) -> None:
        """Deliver to two processes that may crash, until every message is acknowledged or given up; once more in peace."""
        waiting = [*self.envelopes, *self.random.choices(self.envelopes, k=15)]
        self.random.shuffle(waiting)
        while waiting:
            batch, waiting = waiting[:8], waiting[8:]
            processes = [self.world.process(backoff=Backoff(tries=4)) for _ in range(2)]
            tasks = [asyncio.create_task(self.random.choice(processes).deliver(self.people, item)) for item in batch]
            for _ in range(self.random.randint(0, 60)):
                await asyncio.sleep(0)
            if self.random.random() < 0.5:
                self.store.land_delayed()
            for process in processes:
                await process.close() if self.random.random() < 0.7 else await process.crash()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            waiting += [item for item, result in zip(batch, results, strict=True) if self._comes_again(item, result)]
        self.store.land_delayed()
        self.store._trouble = NoTrouble()
        last = self.world.process()
        results = await asyncio.gather(
            *(last.deliver(self.people, envelope) for envelope in self.envelopes), return_exceptions=True
        )
        assert {type(result) for result in results} <= {type(None), UniqueKeyTaken}
        for ref in dict.fromkeys(self.people.ref_of(envelope) for envelope in self.envelopes):
            await last.run(ref, partial(sweep, ref))
        await last.close()

    def _comes_again(self, envelope: Envelope, result: object) -> bool:
        if isinstance(result, UniqueKeyTaken):
            self.refusals[envelope.id] += 1
            return self.refusals[envelope.id] < MOST_REFUSALS
        assert result is None or isinstance(result, (asyncio.CancelledError, TryAgainLater)), result
        return result is not None

    def shared(self) -> list[str | None]:
        """Emails that two documents had at the same time, ever."""
        partition = self.store.entities["person", "acme"]
        found: list[str | None] = []
        for position in range(len(partition.log) + 1):
            view = partition.view(position).values()
            emails = Counter(item.document.value.get("email") for item in view if item.document is not None)
            found += [email for email, number in emails.items() if number > 1]
        return found


@pytest.mark.parametrize("marks", [2, 32])
@pytest.mark.parametrize("seed", range(8))
async def test_nothing_is_lost_or_done_twice_and_no_two_share_a_key(
    marks: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draft, "MOST_MARKS", marks)
    monkeypatch.setattr(draft, "MARKS_STAY", marks // 2)
    history = History(seed)
    await history.play()
    assert violations(history.world.facts(), drained=True) == ()
    assert history.shared() == []
    assert history.refusals, "a history in which nothing is refused shows nothing"
    assert len(history.world.acknowledged) > len(history.envelopes) // 2
