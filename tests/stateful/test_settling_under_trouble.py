"""Sweeper, poison settler, requeuing and clean-up in the middle of processing, effect by effect, with every fault of the fault
model; judged by the invariants, which also convict a settler and a clean-up that leave their fence out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from exactlyonce import Outbox
from exactlyonce.attempt import Memory
from exactlyonce.effects.effect import Step
from exactlyonce.effects.library import FindPages, LoadParked, Park, Unpark, WritePage
from exactlyonce.protocols.outbox import draft
from exactlyonce.protocols.outbox.clean import clean_staged
from exactlyonce.protocols.steps import park as parking
from tests.asking import settle, sweep
from tests.stateful.interleaving import unfenced
from tests.stateful.settlement import ENTITY, RUNNER, Held, Settlement
from tests.unit.bookkeeping import Bookkeeper

SIZES = {"none stays": (1, 0), "one stays": (2, 1), "all stay": (32, 16)}
"""Marks above which the oldest leave a ledger, and those that stay then."""


@pytest.fixture(params=SIZES)
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(draft, "MOST_MARKS", SIZES[request.param][0])
    monkeypatch.setattr(draft, "MARKS_STAY", SIZES[request.param][1])
    return str(request.param)


class History(Settlement):
    """With sweeper and clean-up."""

    @property
    def chores(self) -> tuple[Callable[[], None], ...]:
        return (self.sweep, self.clean)

    def settling(self, key: str) -> Step[Any]:
        return settle(ENTITY, self.messages[key], "it always fails", RUNNER.absent, Memory())

    def sweep(self) -> None:
        self.begin(sweep(ENTITY, Memory()))

    def clean(self) -> None:
        candidates = tuple(id.removeprefix("staged:") for id in self.documents("staged:"))
        self.begin(clean_staged(ENTITY, candidates, RUNNER.absent, Memory()))

    def garbage(self) -> list[str]:
        """Staged documents that no entry names, too."""
        entity = self.store._entity(ENTITY).newest(ENTITY.id)
        text = entity.document.text if entity is not None and entity.document is not None else ""
        staged = [id for id in self.documents("staged:") if f'"{id.removeprefix("staged:")}"' not in text]
        return [*(f"{id} is left over" for id in staged), *super().garbage()]


@pytest.mark.usefixtures("size")
@pytest.mark.parametrize("seed", range(25))
def test_everything_is_done_once_and_nothing_is_left_whichever_process_finishes_it(seed: int) -> None:
    assert History(seed, Outbox()).play() == []


@pytest.mark.usefixtures("size")
def test_without_its_fence_it_is_convicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parking, "fence", unfenced)
    assert any(History(seed, Outbox()).play() for seed in range(100))


@pytest.mark.usefixtures("size")
def test_with_a_driver_that_goes_on_for_what_was_given_back_it_is_convicted() -> None:
    class Careless(History):
        def going_on_for(self, held: Held) -> Sequence[str]:
            return held.all

    assert any(Careless(seed, Outbox()).play() for seed in range(200))


@pytest.mark.usefixtures("size")
def test_where_what_is_owed_is_taken_for_paid_it_is_convicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bookkeeper, "_pays", lambda *_: True)
    assert any(History(seed, Outbox()).play() for seed in range(100))


def test_the_histories_are_eventful(size: str) -> None:
    histories = [History(seed, Outbox()) for seed in range(20)]
    for history in histories:
        history.play()
    performed = set().union(*(history.performed for history in histories))
    assert {Park, LoadParked, Unpark} <= performed
    assert ({FindPages, WritePage} <= performed) is (size != "all stay")
