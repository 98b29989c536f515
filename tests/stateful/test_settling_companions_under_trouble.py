"""Settler, requeuing, sweeper and tending in the middle of processing, for protocols whose records are companions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, ClassVar

import pytest

from exactlyonce import Colocated, Resequencer, VersionStream
from exactlyonce.attempt import Memory, Strategy
from exactlyonce.effects.companions import FindOwing, LoadCompanions, ReplaceCompanions
from exactlyonce.effects.effect import Step
from exactlyonce.effects.library import LoadParked, Park, Unpark
from exactlyonce.protocols.steps import park as parking
from exactlyonce.records.ledger import read_entity
from exactlyonce.records.sequences import Place
from exactlyonce.values.envelope import Envelope, key_of
from tests.asking import settle_by, unhandled
from tests.samples import deposit
from tests.stateful.interleaving import unfenced
from tests.stateful.settlement import ENTITY, Held, Settlement


class History(Settlement):
    """With nothing else."""

    protocol: ClassVar[str] = "stream"

    def settling(self, key: str) -> Step[Any]:
        return settle_by(self.protocol, self.work(key), "it always fails", Memory())


class Swept(History):
    """With the sweeper."""

    protocol = "colocated"

    @property
    def chores(self) -> tuple[Callable[[], None], ...]:
        return (self.sweep,)

    def sweep(self) -> None:
        self.begin(Colocated().sweep(unhandled(ENTITY), Memory()))


class Tended(History):
    """A read model that two sources feed, and that is tended."""

    protocol = "resequencer"
    messages: ClassVar[Mapping[str, Envelope]] = {
        key_of(item): item
        for source, first in (("web", 0), ("shop", 100))
        for number in (1, 2, 3, 4)
        for item in (
            replace(
                deposit(f"m-{number}", amount=first + number),
                source=source,
                extensions=Place(f"from{source}", ENTITY.source, number).extensions,
            ),
        )
    }

    @property
    def chores(self) -> tuple[Callable[[], None], ...]:
        return (self.tend, self.let_time_pass)

    def tend(self) -> None:
        self.begin(self.strategy.sweep(self.work(), Memory()))

    def let_time_pass(self) -> None:
        self.now += timedelta(minutes=3)

    def garbage(self) -> list[str]:
        """And what is wrong in the state: each source's amounts in their order, but for those that came late."""
        entity = self.store._entity(ENTITY).newest(ENTITY.id)
        body = read_entity(ENTITY, None if entity is None else entity.document).body
        history = [] if body is None else body.value["history"]
        late = {message for _, message in self.world.facts().late}
        taken = [item.data.value["amount"] for key, item in self.messages.items() if key not in late]
        heard = [amount for source in (range(100), range(100, 200)) for amount in history if amount in source]
        wrong = [] if heard == taken else [f"the state has {history}; late came {sorted(late)}"]
        return [*wrong, *super().garbage()]


HISTORIES: dict[str, tuple[type[History], Strategy]] = {
    "co-located": (Swept, Colocated()),
    "stream": (History, VersionStream(snapshot_every=2)),
    "stream of whole states": (History, VersionStream(snapshot_every=1)),
    "read model that waits": (Tended, Resequencer()),
    "read model that skips": (Tended, Resequencer(on_gap="skip")),
}


@pytest.mark.parametrize("name", HISTORIES)
@pytest.mark.parametrize("seed", range(15))
def test_everything_is_done_once_and_nothing_is_left_whichever_process_finishes_it(name: str, seed: int) -> None:
    history, strategy = HISTORIES[name]
    assert history(seed, strategy).play() == []


@pytest.mark.parametrize("name", HISTORIES)
def test_without_its_fence_it_is_convicted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parking, "fence", unfenced)
    history, strategy = HISTORIES[name]
    assert any(history(seed, strategy).play() for seed in range(100))


@pytest.mark.parametrize("name", HISTORIES)
def test_with_a_driver_that_goes_on_for_what_was_given_back_it_is_convicted(name: str) -> None:
    history, strategy = HISTORIES[name]

    class Careless(history):  # type: ignore[misc, valid-type]
        def going_on_for(self, held: Held) -> Sequence[str]:
            return held.all

    assert any(Careless(seed, strategy).play() for seed in range(200))


@pytest.mark.parametrize("name", HISTORIES)
def test_the_histories_are_eventful(name: str) -> None:
    kind, strategy = HISTORIES[name]
    histories = [kind(seed, strategy) for seed in range(10)]
    for history in histories:
        history.play()
    performed = set().union(*(history.performed for history in histories))
    late, skipped = (any(getattr(item.world.facts(), what) for item in histories) for what in ("late", "skipped"))
    assert {LoadCompanions, Park, LoadParked, Unpark} <= performed
    assert ({FindOwing, ReplaceCompanions} <= performed) == (kind is Swept)
    assert (late and skipped) == (name == "read model that skips")
