"""More messages held than one batch can release: an arrival is acknowledged when the last of them is released, not before."""

from __future__ import annotations

from random import Random

import pytest

from exactlyonce import Envelope, Resequencer
from exactlyonce.attempt import Again, Finished, Memory, Work
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.protocols.resequencer.release import BATCH_DOCUMENTS
from exactlyonce.records.ledger import read_entity
from exactlyonce.records.sequences import Place
from exactlyonce.testing.guarantee import violations
from exactlyonce.values.envelope import EntityRef, key_of
from exactlyonce.values.frozen_json import Json
from tests.stateful.boards import DESTINATIONS, boards
from tests.stateful.interleaving import Interleaving

MANY = 230
STRATEGY = Resequencer()


def a_message(source: str, number: int) -> Envelope:
    data = {"player": source, "board": "go", "step": number, "total": number}
    place = Place(f"from{source}", "board/go", number)
    return Envelope(source, str(number), "boards.played", Json.of(data), extensions=place.extensions)


class Flood(Interleaving):
    """A read model, deliveries in groups, and how the world stands whenever a group is acknowledged."""

    def __init__(self, seed: int) -> None:
        super().__init__(Random(seed), DESTINATIONS, crash=0.02)
        self.broken: set[tuple[str, int]] = set()
        self.board = boards(STRATEGY, lambda given: (given.player, given.step) in self.broken)
        self.ref: EntityRef = self.board.ref("go")
        self.runner = Runner(self.board, self.ref, Routes.to(DESTINATIONS, dict.fromkeys(("boards", "news"), 10_000)))
        self.reported_at: dict[str, dict[str, list[int]]] = {}

    def deliver(self, group: tuple[Envelope, ...], memory: Memory | None = None) -> None:
        def ended(result: Finished | Again | None) -> None:
            if not isinstance(result, Finished):
                self.deliver(group, result.memory if result is not None else None)
                return
            for envelope in group:
                self.world.acknowledged.add((self.ref.key, key_of(envelope)))
                self.reported_at[key_of(envelope)] = self.told()

        self.begin(STRATEGY.attempt(self.work(*group), memory or Memory()), ended)

    def work(self, *messages: Envelope) -> Work:
        return Work(self.ref, messages, self.runner, self.runner.absent)

    def deliver_all(self, envelopes: list[Envelope]) -> None:
        """In groups, in any order, two groups at a time."""
        self.random.shuffle(envelopes)
        while envelopes or self.jobs:
            while envelopes and len(self.jobs) < 2:
                group, envelopes = envelopes[:49], envelopes[49:]
                self.deliver(tuple(group))
            self.advance()

    def told(self) -> dict[str, list[int]]:
        found = self.store._entity(self.ref).newest(self.ref.id)
        body = read_entity(self.ref, None if found is None else found.document).body
        told = {} if body is None else body.value["told"]
        return {source: [step for step, _ in steps] for source, steps in told.items()}


@pytest.mark.parametrize("seed", range(4))
def test_all_that_is_held_is_released_before_the_one_that_was_lacking_is_acknowledged(seed: int) -> None:
    flood = Flood(seed)
    flood.deliver_all([a_message("s", number) for number in range(2, MANY + 1)])
    assert flood.told() == {}
    commits = len(flood.store._entity(flood.ref).within)
    flood.deliver_all([a_message("s", 1)])
    everything = list(range(1, MANY + 1))
    assert flood.reported_at["s/1"] == {"s": everything}
    assert len(flood.store._entity(flood.ref).within) - commits >= MANY > 2 * BATCH_DOCUMENTS
    flood.calm()
    flood.begin(STRATEGY.sweep(flood.work(), Memory()))
    flood.run_out()
    assert violations(flood.world.facts(), drained=True) == ()


@pytest.mark.parametrize("seed", range(3))
def test_a_handler_that_raises_in_the_middle_holds_up_its_own_channel_only(seed: int) -> None:
    flood = Flood(seed)
    flood.broken = {("s", 105)}
    flood.deliver_all([a_message(source, number) for source in "st" for number in range(2, 131)])
    flood.deliver_all([a_message("s", 1), a_message("t", 1)])
    assert flood.reported_at["s/1"]["s"] == list(range(1, 105))
    assert flood.reported_at["t/1"]["t"] == list(range(1, 131))
    flood.broken = set()
    flood.deliver_all([a_message("t", 131)])
    assert flood.reported_at["t/131"] == {"s": list(range(1, 131)), "t": list(range(1, 132))}
    flood.calm()
    flood.begin(STRATEGY.sweep(flood.work(), Memory()))
    flood.run_out()
    assert violations(flood.world.facts(), drained=True) == ()
