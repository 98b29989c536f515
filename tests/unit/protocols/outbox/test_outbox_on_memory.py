"""What a message costs in requests to the store, counted there, for each preset; and what may delay its outputs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from exactlyonce import Outbox
from exactlyonce.attempt import Memory, Strategy
from exactlyonce.effects.effect import Begin, Effect
from exactlyonce.effects.port import Busy, Reply
from exactlyonce.effects.publish import Publish
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.testing.chance import ManualClock
from exactlyonce.testing.guarantee import violations
from exactlyonce.testing.world import World
from tests.samples import accounts, deposit, ledger_queue
from tests.unit.script import Played, Script, attempt

DEFAULT, TALK, EMBEDDED = Outbox(), Outbox.transaction_id(), Outbox.embedded()


class Counting(MemoryStore):
    """A store that notes every request it gets."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.requests: list[str] = []

    def perform(self, effect: Effect[Reply]) -> Reply | Busy:
        self.requests.append(type(effect).__name__)
        return super().perform(effect)


class Setting:
    """A world with a counting store; its clock stands still, so nothing is marked before its process is closed."""

    def __init__(self, strategy: Strategy) -> None:
        clock = ManualClock()
        self.store = Counting(clock.now)
        self.world = World([ledger_queue], clock=clock, store=self.store)
        self.entity = accounts(strategy)
        self.process = self.world.process()

    async def busy(self, numbers: range) -> None:
        """Deliver messages one after the other, with no time between them."""
        for number in numbers:
            await self.process.deliver(self.entity, deposit(f"m-{number}"))

    async def quiet(self, numbers: range) -> None:
        """Deliver messages with so much time between them that each is marked on its own."""
        for number in numbers:
            await self.process.deliver(self.entity, deposit(f"m-{number}"))
            await self.process.close()

    @property
    def made(self) -> int:
        return len(self.store.requests)


@pytest.mark.parametrize(("strategy", "most"), [(DEFAULT, 3.1), (TALK, 6), (EMBEDDED, 2)])
async def test_a_message_for_a_busy_entity_costs(strategy: Outbox, most: float) -> None:
    setting = Setting(strategy)
    await setting.busy(range(16))
    before = setting.made
    await setting.busy(range(16, 96))
    assert (setting.made - before) / 80 <= most
    await setting.process.close()
    assert violations(setting.world.facts(), drained=True) == ()


@pytest.mark.parametrize(("strategy", "most"), [(DEFAULT, 4.1), (TALK, 7), (EMBEDDED, 3)])
async def test_a_message_for_a_quiet_entity_costs_with_its_mark(strategy: Outbox, most: float) -> None:
    setting = Setting(strategy)
    await setting.quiet(range(16))
    before = setting.made
    await setting.quiet(range(16, 96))
    assert (setting.made - before) / 80 <= most
    assert setting.world.facts().owing == frozenset()


@pytest.mark.parametrize("strategy", [DEFAULT, TALK, EMBEDDED])
@pytest.mark.parametrize("age", [0, 3, 39])
async def test_a_duplicate_costs_two_reads_at_most(strategy: Outbox, age: int) -> None:
    setting = Setting(strategy)
    await setting.busy(range(40))
    await setting.process.close()
    before = setting.made
    await setting.process.deliver(setting.entity, deposit(f"m-{39 - age}"))
    assert sorted(setting.store.requests[before:]) in (["FindProcessed", "LoadEntity"], ["LoadEntity"])
    assert len(setting.world.published) == 40


async def test_messages_that_arrive_together_share_one_load_and_one_save() -> None:
    setting = Setting(DEFAULT)
    messages = [deposit(f"m-{number}") for number in range(17)]
    await asyncio.gather(*(setting.process.deliver(setting.entity, message) for message in messages))
    assert setting.store.requests.count("SaveEntity") == 2
    assert setting.store.requests.count("LoadEntity") == 2
    assert len(setting.world.published) == 17


def rounds_before_outputs(played: Played) -> list[str]:
    """The requests, one after the other, that the outputs of a message wait for."""
    last = max(index for index, effect in enumerate(played.effects) if isinstance(effect, Publish))
    return [kind.__name__ for kind in played.kinds[:last] if kind is not Begin]


def test_outputs_wait_for_two_rounds_and_for_three_when_records_are_written() -> None:
    script, memory, rounds = Script(), Memory(), []
    for number in range(40):
        played = script.play(attempt(DEFAULT, deposit(f"m-{number}"), memory=memory))
        memory = played.finished.memory
        rounds.append(rounds_before_outputs(played))
    usual, full = ["Together", "SaveEntity"], ["Together", "WriteProcessed", "SaveEntity"]
    assert rounds == [full if number in (16, 32) else usual for number in range(40)]


def test_staged_outputs_wait_for_one_round_more() -> None:
    script, memory = Script(), Memory()
    for number in range(3):
        played = script.play(attempt(TALK, deposit(f"m-{number}"), memory=memory))
        memory = played.finished.memory
    assert rounds_before_outputs(played) == ["Together", "WriteProcessed", "Stage", "SaveEntity"]


async def test_a_new_process_that_remembers_nothing_publishes_what_is_owed_before_it_leaves() -> None:
    setting = Setting(Outbox(window=1))
    await setting.busy(range(1))
    await setting.process.crash()
    setting.process = setting.world.process()
    await setting.busy(range(1, 2))
    ids = [output.id for output in setting.world.published]
    assert len(ids) == 3
    assert len(set(ids)) == 2
    await setting.process.close()
    assert violations(setting.world.facts(), drained=True) == ()
