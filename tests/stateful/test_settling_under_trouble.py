"""Sweeper, poison settler, requeuing and clean-up in the middle of processing, effect by effect, with every fault of the fault
model; judged by the invariants, which also convict a settler and a clean-up that leave their fence out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from random import Random
from typing import Any

import pytest

from exactlyonce import Outbox
from exactlyonce.drivers.operations import store_operations
from exactlyonce.effects import (
    PUBLISHED,
    UNKNOWN,
    Begin,
    Begun,
    DeleteParked,
    DeleteStaged,
    Effect,
    LoadParked,
    LoadStaged,
    Park,
    Publish,
    Step,
    Together,
)
from exactlyonce.handling.attempts import Again, Memory, Work, key_of
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.running import Runner
from exactlyonce.invariants import violations
from exactlyonce.stores.memory import MemoryStore
from exactlyonce.stores.trouble import Fate
from exactlyonce.strategies import retention, settling
from exactlyonce.strategies.retention import clean_staged
from exactlyonce.strategies.settling import requeue, settle, sweep
from exactlyonce.testing.chance import SeededTrouble
from exactlyonce.testing.world import World
from tests.samples import accounts, deposit, ledger_queue

ACCOUNTS = accounts()
ENTITY = ACCOUNTS.ref("a")
ABSENT = ACCOUNTS.shape.tombstone(ENTITY)
MESSAGES = {key_of(message): message for message in (deposit(f"m-{number}") for number in range(1, 5))}
STRATEGIES = {"inline": Outbox(window=1), "staged": Outbox.transaction_id(), "wide": Outbox(window=3, inline_limit=0)}
FATES = {Fate.LOST_BEFORE: 0.05, Fate.LOST_AFTER: 0.05, Fate.REPEATED: 0.05, Fate.DELAYED: 0.1}
NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)
PEACE = SeededTrouble(Random(0), {})


@dataclass(eq=False)
class Job:
    """A generator under way, and what happens when it ends: with its result, or with None if its process crashed."""

    step: Step[Any]
    ended: Callable[[Any], None]
    about: str = ""
    reply: Any = None


class History:
    """One random history of one entity. `queue`, `poison` and `parked` say where copies of messages are known to be."""

    def __init__(self, seed: int, strategy: Outbox) -> None:
        self.random = Random(seed)
        self.strategy = strategy
        self.store = MemoryStore(lambda: NOW, SeededTrouble(self.random, FATES, stale=0.3, lag=3))
        self.world = World([ledger_queue], store=self.store)
        self.operations = store_operations(self.store)
        self.queue = [key for key in MESSAGES for _ in range(self.random.randint(1, 2))]
        self.poison: list[str] = []
        self.parked: set[str] = set()
        self.alone_when_parked: set[str] = set()
        self.told: list[str] = []
        self.jobs: list[Job] = []

    def play(self, steps: int = 400) -> list[str]:
        """Everything at once, then in peace to the end; what is wrong with it."""
        begin = [self.deliver, self.deliver, self.settle, self.sweep, self.clean, self.send_again]
        for _ in range(steps):
            if len(self.jobs) < 3:
                self.random.choice(begin)()
            if not self.jobs:
                continue
            job = self.random.choice(self.jobs)
            if self.random.random() < 0.03:
                self.end(job, None)
            else:
                self.go(job)
            if self.random.random() < 0.05:
                self.store.land_delayed()
        self.finish()
        return [*self.told, *map(str, violations(self.world.facts(), drained=True)), *self.garbage()]

    def finish(self) -> None:
        self.store._trouble = PEACE
        self.store.land_delayed()
        self.run_out()
        self.parked |= self.in_parking()
        while self.queue or self.poison or self.parked:
            for begin in (self.deliver, self.settle, self.send_again):
                begin()
                self.run_out()
        for begin in (self.sweep, self.clean):
            begin()
            self.run_out()

    def deliver(self) -> None:
        if not self.queue:
            return
        key = self.queue.pop(self.random.randrange(len(self.queue)))

        def ended(result: Any) -> None:
            if result is not None and not isinstance(result, Again):
                self.acknowledge(key)
            else:
                self.random.choice([self.queue, self.queue, self.poison]).append(key)

        work = Work(ENTITY, (MESSAGES[key],), Runner(ACCOUNTS, ENTITY, Routes({"receipts": 10_000})))
        self.jobs.append(Job(self.strategy.attempt(work, Memory()), ended, key))

    def settle(self) -> None:
        if not self.poison:
            return
        key = self.poison.pop()
        alone = self.alone(key)

        def ended(result: Any) -> None:
            if result is None or isinstance(result, Again):
                self.poison.append(key)
            elif result.outcome == "processed":
                self.acknowledge(key)
            else:
                self.parked.add(key)
                if alone:
                    self.alone_when_parked.add(key)

        self.jobs.append(Job(settle(ENTITY, MESSAGES[key], "it always fails", ABSENT, Memory()), ended, key))

    def send_again(self) -> None:
        if not self.parked:
            return
        key = self.parked.pop()
        if key in self.alone_when_parked and key in self.committed():
            self.told.append(
                f"{key} was parked, though it was processed, or an attempt under way could still process it"
            )
        self.alone_when_parked.discard(key)

        def ended(result: Any) -> None:
            if result is None or isinstance(result, Again) or result.outcome == "not parked":
                self.parked |= {key} & self.in_parking()

        self.jobs.append(Job(requeue(ENTITY, key, "accounts", timedelta(days=7), Memory()), ended, key))

    def sweep(self) -> None:
        self.jobs.append(Job(sweep(ENTITY, Memory()), lambda _: None))

    def clean(self) -> None:
        candidates = tuple(id.removeprefix("staged:") for id in self.documents("staged:"))
        self.jobs.append(Job(clean_staged(ENTITY, candidates, ABSENT, Memory()), lambda _: None))

    def acknowledge(self, key: str) -> None:
        self.world.acknowledged.add((ENTITY.key, key))

    def alone(self, key: str) -> bool:
        """Whether there is no other copy of the message, nor will be before it is parked, so that nobody can process it."""
        elsewhere = [*self.queue, *self.poison, *self.parked, *(job.about for job in self.jobs)]
        return key not in elsewhere

    def committed(self) -> set[str]:
        return {commit.message for commit in self.world.facts().commits}

    def in_parking(self) -> set[str]:
        return {id.removeprefix("parked:") for id in self.documents("parked:")}

    def documents(self, kind: str) -> list[str]:
        library = self.store._library(ENTITY)
        return [id for id in library.ids(len(library.log)) if id.startswith(kind) and library.newest(id)]

    def garbage(self) -> list[str]:
        """Staged documents that no entry names, and parked messages, at the end."""
        entity = self.store._entity(ENTITY).newest(ENTITY.id)
        text = entity.document.text if entity is not None and entity.document is not None else ""
        staged = [id for id in self.documents("staged:") if f'"{id.removeprefix("staged:")}"' not in text]
        return [f"{id} is left over" for id in (*staged, *self.documents("parked:"))]

    def run_out(self) -> None:
        while self.jobs:
            self.go(self.jobs[0])

    def go(self, job: Job) -> None:
        try:
            effect = job.step.send(job.reply)
        except StopIteration as finished:
            self.end(job, finished.value)
            return
        job.reply = self.perform(effect)

    def end(self, job: Job, result: Any) -> None:
        self.jobs.remove(job)
        job.ended(result)

    def perform(self, effect: Effect[Any]) -> Any:
        match effect:
            case Together():
                return self.perform(effect.first), self.perform(effect.second)
            case Begin(count=wanted):
                return Begun(NOW, tuple(f"{self.random.getrandbits(64):016x}" for _ in range(wanted)))
            case Publish(outputs=outputs):
                return self.publish(outputs)
            case _:
                return self.operations[type(effect)](effect)

    def publish(self, outputs: Any) -> Any:
        arrived, known = (True, True)
        if self.store._trouble is not PEACE:
            arrived, known = self.random.choices([(True, True), (True, False), (False, False)], [0.9, 0.05, 0.05])[0]
        if arrived:
            for output in outputs:
                if output.destination == "accounts":
                    self.queue.append(next(key for key, one in MESSAGES.items() if one.to_json() == output.envelope))
                else:
                    self.world.transport.queues[output.destination].append(output)
        return PUBLISHED if known else UNKNOWN


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("seed", range(40))
def test_everything_is_done_once_and_nothing_is_left_whoever_finishes_it(name: str, seed: int) -> None:
    assert History(seed, STRATEGIES[name]).play() == []


def unfenced(_entity: Any, view: Any, _absent: Any) -> Step[Memory | Again]:
    yield from Begin(0)
    memory: Memory = view.memory
    return memory


@pytest.mark.parametrize(("module", "strategy"), [(settling, "inline"), (retention, "staged")])
def test_without_its_fence_it_is_convicted(module: Any, strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "fence", unfenced)
    assert any(History(seed, STRATEGIES[strategy]).play() for seed in range(100))


def test_the_histories_are_eventful() -> None:
    performed: set[type[Effect[Any]]] = set()

    class Watching(History):
        def perform(self, effect: Effect[Any]) -> Any:
            performed.add(type(effect))
            return super().perform(effect)

    for seed in range(20):
        Watching(seed, STRATEGIES["staged"]).play()
    assert {LoadStaged, DeleteStaged, Park, LoadParked, DeleteParked} <= performed
