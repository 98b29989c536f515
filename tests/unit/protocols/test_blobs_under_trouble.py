"""Attempts that write blobs, and clean-up amid them, effect by effect, with every fault; judged by what is there."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any

import pytest

from exactlyonce import Outbox
from exactlyonce.effects.attempt import Again, Memory, Strategy, Work
from exactlyonce.effects.companions import LoadCompanions
from exactlyonce.effects.effect import UNKNOWN, Begin, Effect, Step
from exactlyonce.effects.entity import LoadEntity
from exactlyonce.effects.library import KEPT, DeleteBlobs, FindBlobs, OpenNumbers, WriteOnce
from exactlyonce.protocols.colocated import Colocated
from exactlyonce.protocols.outbox import draft
from exactlyonce.protocols.resequencer.protocol import Resequencer
from exactlyonce.protocols.steps import clean as cleaning
from exactlyonce.protocols.steps.clean import clean_blobs
from exactlyonce.protocols.stream.protocol import VersionStream
from exactlyonce.stores.blobs.port import MemoryBlobs
from exactlyonce.values.envelope import key_of
from tests.unit.bookkeeping import Bookkeeper
from tests.unit.interleaving import PEACE, Interleaving, unfenced
from tests.unit.protocols.gallery import in_order, painting
from tests.unit.script import ABSENT, ENTITY

STRATEGIES: dict[str, tuple[str, Strategy]] = {
    "outbox of one": ("outbox", Outbox()),
    "outbox of three": ("outbox", Outbox()),
    "co-located": ("colocated", Colocated()),
    "stream": ("stream", VersionStream(snapshot_every=2)),
    "read model": ("resequencer", Resequencer()),
}
MARKS = {"outbox of one": (1, 0), "outbox of three": (3, 1)}
"""Above how many marks the oldest leave the ledger, and how many stay."""
MESSAGES = {key_of(item): item for item in map(in_order, range(1, 7))}
MOMENT = timedelta(microseconds=1)


@pytest.fixture(autouse=True)
def few_marks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The marks of the outbox that a test names; else as few as can be."""
    name = request.node.callspec.params.get("name") if hasattr(request.node, "callspec") else None
    most, stay = MARKS.get(str(name), (1, 0))
    monkeypatch.setattr(draft, "MOST_MARKS", most)
    monkeypatch.setattr(draft, "MARKS_STAY", stay)


class History(Interleaving):
    """One random history of an entity whose messages write a blob each."""

    def __init__(self, seed: int, name: str) -> None:
        super().__init__(Random(seed))
        self.protocol, self.strategy = STRATEGIES[name]
        self.blobs = MemoryBlobs(lambda: self.now)
        self.late: list[WriteOnce] = []
        self.queue = [key for key in MESSAGES for _ in range(self.random.randint(1, 3))]

    def play(self) -> list[str]:
        """Everything at once, then in peace to the end; what is wrong with it."""
        for _ in range(300):
            if len(self.jobs) < 3:
                self.random.choice([self.deliver, self.deliver, self.clean])()
            self.advance()
            if self.random.random() < 0.05:
                self.land_late()
        self.calm()
        self.land_late()
        while self.queue:
            self.deliver()
            self.run_out()
        self.clean()
        self.run_out()
        return self.wrong()

    def wrong(self) -> list[str]:
        newest = self.store._entity(ENTITY).newest(ENTITY.id)
        assert newest is not None
        assert newest.document is not None
        committed = set(newest.document.value["pictures"])
        there = {name.split("/")[2] for name in self.blobs.written}
        return [
            *(f"the blob of {tx}, which was committed, is gone" for tx in committed - there),
            *(f"the blob of {tx}, which was lost, is left over" for tx in there - committed),
        ]

    def deliver(self) -> None:
        if not self.queue:
            return
        keys = [self.queue.pop(self.random.randrange(len(self.queue))) for _ in range(min(2, len(self.queue)))]
        work = Work(ENTITY, tuple(MESSAGES[key] for key in keys), painting, ABSENT)

        def ended(result: Any) -> None:
            if result is None or isinstance(result, Again):
                self.queue += [key_of(message) for message in work.messages]

        self.begin(self.strategy.attempt(work, Memory()), ended)

    def clean(self) -> None:
        self.begin(self.cleaning())

    def cleaning(self) -> Step[Any]:
        return clean_blobs(ENTITY, tuple(self.blobs.listed()), ABSENT, Memory(), self.strategy)

    def perform(self, effect: Effect[Any], book: Bookkeeper) -> Any:
        match effect:
            case Begin() | OpenNumbers():
                self.now += MOMENT
                return super().perform(effect, book)
            case WriteOnce():
                return self.write(effect)
            case DeleteBlobs():
                return self.blobs.perform(effect)
            case _:
                return super().perform(effect, book)

    def write(self, effect: WriteOnce) -> Any:
        """Applied or not, answered or not; or applied at any later time."""
        fate = 0.0 if self.store._trouble is PEACE else self.random.random()
        if fate < 0.95:
            self.blobs.perform(effect)
        elif fate < 0.98:
            self.late.append(effect)
        return KEPT if fate < 0.9 else UNKNOWN

    def land_late(self) -> None:
        late, self.late = self.late, []
        for effect in late:
            self.blobs.perform(effect)


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("seed", range(40))
def test_blobs_of_committed_attempts_stay_and_those_of_lost_ones_go(name: str, seed: int) -> None:
    assert History(seed, name).play() == []


@pytest.mark.parametrize("name", STRATEGIES)
def test_without_its_fence_clean_up_is_convicted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleaning, "fence", unfenced)
    assert any(History(seed, name).play() for seed in range(100))


def test_the_histories_are_eventful() -> None:
    histories = [History(seed, name) for seed in range(5) for name in STRATEGIES]
    for history in histories:
        history.play()
    performed = set().union(*(history.performed for history in histories))
    assert {LoadEntity, FindBlobs, LoadCompanions, WriteOnce, DeleteBlobs} <= performed
