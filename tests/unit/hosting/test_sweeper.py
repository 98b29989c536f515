"""The sweeper: which entities it sweeps, which it leaves alone, and that every entity has its turn."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest

from exactlyonce import (
    Colocated,
    Context,
    Destination,
    Entity,
    Envelope,
    Outbox,
    Rebuild,
    Resequencer,
    TryAgainLater,
    VersionStream,
)
from exactlyonce.attempt import Again, Finished, Memory, Strategy, Work
from exactlyonce.drivers.publisher import Address, Publisher
from exactlyonce.drivers.retry import Backoff
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.effects.effect import Step
from exactlyonce.hosting.upkeep.sweeper import AT_ONCE, LONGEST, MOST_LISTED, Sweeper
from exactlyonce.records.outputs import Output
from exactlyonce.stores.listing import AsyncListing
from exactlyonce.stores.memory.listing import MemoryListing
from exactlyonce.testing.world import World
from exactlyonce.transports.memory import MemoryTransport
from exactlyonce.values.identity import EntityRef
from tests.samples import Deposited, accounts, deposit
from tests.unit.boards import BOARDS, Board, Scored, Shown, scored
from tests.unit.hosting.settlers import maintenance

MINUTE = timedelta(minutes=1)
RECEIPTS = Destination("receipts", receives=(Deposited,))
SCREENS = Destination("screens", receives=(Shown,))


class Place(World):
    """A world whose queues take nothing at first, so that all outputs are owed, and its sweeper."""

    def __init__(self) -> None:
        self.open = False
        super().__init__((RECEIPTS, SCREENS), outcome=lambda output: (self.takes(output), True))
        self.broken: set[str] = set()

    def takes(self, output: Output) -> bool:
        return self.open and not any(output.envelope.value["source"] == f"account/{one}" for one in self.broken)

    async def owe(self, type: Entity[Any], *messages: Envelope) -> None:
        """Process messages whose outputs are not published; their process crashes. An hour passes."""
        process = self.process(backoff=Backoff(tries=1))
        for message in messages:
            with pytest.raises(TryAgainLater):
                await process.deliver(type, message)
        await process.crash()
        await self.later()

    async def later(self) -> None:
        await self.clock.sleep(3600)

    def sweeper(self, listing: AsyncListing | None = None) -> Sweeper:
        return Sweeper(maintenance(self), listing or MemoryListing(self.store), Runtime(self.clock, Random(1)))


@pytest.fixture
def place() -> Place:
    return Place()


@pytest.mark.parametrize("strategy", [Outbox(), Outbox.transaction_id(), Outbox.embedded(), Colocated()])
async def test_outputs_owed_for_long_are_published_once_and_marked(place: Place, strategy: Strategy) -> None:
    kind = accounts(strategy)
    await place.owe(kind, deposit("m-1", "a"), deposit("m-2", "b"))
    place.open = True
    swept = await place.sweeper().sweep([kind], MINUTE, 1_000)
    assert (swept.swept, swept.failed, swept.left) == (2, (), 0)
    assert sorted(output.envelope.value["source"] for output in place.published) == ["account/a", "account/b"]
    assert (await place.sweeper().sweep([kind], MINUTE, 1_000)).swept == 0
    assert not place.facts().owing


async def test_outputs_owed_for_a_moment_are_left_alone(place: Place) -> None:
    kind = accounts()
    await place.owe(kind, deposit("m-1"))
    place.open = True
    assert (await place.sweeper().sweep([kind], timedelta(hours=2), 1_000)).swept == 0
    assert not place.published


async def test_a_stream_owes_nothing_of_messages_from_queues(place: Place) -> None:
    kind = accounts(VersionStream())
    await place.owe(kind, deposit("m-1"))
    swept = await place.sweeper().sweep([kind], MINUTE, 1_000)
    assert (swept.swept, swept.failed) == (0, ())


async def test_a_read_model_publishes_what_it_owes_and_marks_it(place: Place) -> None:
    await place.owe(BOARDS, scored(1, answers=2))
    place.open = True
    assert (await place.sweeper().sweep([BOARDS], MINUTE, 1_000)).swept == 1
    assert len(place.published) == 2
    assert not place.facts().owing


async def test_a_read_model_with_an_old_gap_is_tended(place: Place) -> None:
    boards = BOARDS.using(Resequencer(gap_timeout=MINUTE, on_gap="skip"))
    process = place.process()
    await process.deliver(boards, scored(2))
    await process.close()
    assert (await place.sweeper().sweep([boards], MINUTE, 1_000)).swept == 0
    await place.later()
    assert (await place.sweeper().sweep([boards], MINUTE, 1_000)).swept == 1
    assert (await place.sweeper().sweep([boards], MINUTE, 1_000)).swept == 0
    assert len(place.facts().skipped) == 1


async def test_a_read_model_whose_handler_raises_is_reported_and_swept_again(place: Place) -> None:
    fixed: list[bool] = []
    boards = Entity("board", state=Board, container="boards", strategy=Resequencer())

    @boards.handles(Scored, key=lambda scored: scored.board)
    def show(state: Board, given: Scored, context: Context) -> Board:
        if not fixed:
            raise ValueError("what the body says")
        return Board([*state.seen, str(given.number)])

    process = place.process()
    await process.deliver(boards, scored(1))
    await process.close()
    await place.later()
    swept = await place.sweeper().sweep([boards], MINUTE, 1_000)
    ((name, reason),) = swept.failed
    assert (swept.swept, name) == (0, '["board","b","b"]')
    assert reason.startswith("HandlerFailed: Message s/m-1 on entity board/b")
    assert "what the body says" not in reason
    fixed.append(True)
    await place.later()
    assert (await place.sweeper().sweep([boards], MINUTE, 1_000)).swept == 1


async def test_the_sweeper_sends_the_replay_requests_of_a_read_model(place: Place) -> None:
    rebuild = Rebuild(of=accounts(VersionStream()), through="receipts")
    boards = BOARDS.using(Resequencer(gap_timeout=MINUTE, on_gap=rebuild))
    process = place.process()
    await process.deliver(boards, scored(2))
    await process.close()
    await place.later()
    place.open = True
    await place.sweeper().sweep([boards], MINUTE, 1_000)
    assert [output.envelope.value["type"] for output in place.published] == ["exactlyonce.replay"]


async def test_an_entity_that_fails_is_reported_and_does_not_stop_the_others(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    kind = accounts()
    await place.owe(kind, *(deposit(f"m-{one}", one, padding="the-body") for one in "abc"))
    place.open, place.broken = True, {"b"}
    with caplog.at_level(logging.INFO):
        swept = await place.sweeper().sweep([kind], MINUTE, 1_000)
    assert (swept.swept, swept.left) == (2, 0)
    ((failed, reason),) = swept.failed
    assert failed == kind.ref("b").key
    assert reason.startswith("TryAgainLater: Entity account/b: 2 attempts did not finish")
    assert "account/b could not be swept" in caplog.text
    assert "the-body" not in caplog.text
    place.broken.clear()
    assert (await place.sweeper().sweep([kind], MINUTE, 1_000)).swept == 1


async def test_a_foreign_error_is_reported_by_its_class_only(place: Place) -> None:
    kind = accounts()
    await place.owe(kind, deposit("m-1", "a"), deposit("m-2", "b"))
    place.open = True
    raising = iter([ValueError("what the body says")])

    def outcome(_: Output) -> tuple[bool, bool]:
        for error in raising:
            raise error
        return True, True

    place.transport._outcome = outcome
    swept = await place.sweeper().sweep([kind], MINUTE, 1_000)
    assert (swept.swept, [reason for _, reason in swept.failed]) == (1, ["ValueError"])


async def test_a_type_that_cannot_be_listed_does_not_stop_the_others(place: Place) -> None:
    class Silent(MemoryListing):
        def owing(self, type: str, before: datetime) -> AsyncIterator[tuple[EntityRef, ...]]:
            if type == "board":
                raise TryAgainLater("the container could not be searched")
            return super().owing(type, before)

    kind = accounts()
    await place.owe(kind, deposit("m-1"))
    place.open = True
    swept = await place.sweeper(Silent(place.store)).sweep([BOARDS, kind], MINUTE, 1_000)
    assert swept.swept == 1
    assert swept.failed == (("board", "TryAgainLater: the container could not be searched"),)


async def test_entities_that_always_fail_do_not_block_the_others(place: Place) -> None:
    kind = accounts()
    names = [f"a{number}" for number in range(12)]
    await place.owe(kind, *(deposit(f"m-{one}", one) for one in names))
    place.open, place.broken = True, set(names[:10])
    sweeper = place.sweeper()
    for _ in range(60):
        swept = await sweeper.sweep([kind], MINUTE, 3)
        assert swept.swept + len(swept.failed) == 3
        if len(place.published) == 2:
            break
    assert {output.envelope.value["source"] for output in place.published} == {"account/a10", "account/a11"}


async def test_more_failures_than_workers_do_not_block_the_others(place: Place) -> None:
    kind = accounts()
    names = [f"a{number:02}" for number in range(AT_ONCE + 4)]
    await place.owe(kind, *(deposit(f"m-{one}", one) for one in names))
    place.open, place.broken = True, set(names[:-2])
    swept = await place.sweeper().sweep([kind], MINUTE, 100)
    assert (swept.swept, len(swept.failed), swept.left) == (2, AT_ONCE + 2, 0)


async def test_entities_over_the_limit_are_counted_as_left(place: Place) -> None:
    kind = accounts()
    await place.owe(kind, *(deposit(f"m-{one}", one) for one in "abcde"))
    place.open = True
    swept = await place.sweeper().sweep([kind], MINUTE, 2)
    assert (swept.swept, swept.left) == (2, 3)


async def test_a_long_run_starts_no_further_entity(place: Place) -> None:
    kind = accounts()
    await place.owe(kind, *(deposit(f"m-{one}", f"a{one}") for one in range(20)))

    class Slow(MemoryTransport):
        async def send(self, address: str, outputs: tuple[Output, ...]) -> Any:
            await place.clock.sleep(LONGEST.total_seconds() / 4)
            return await super().send(address, outputs)

    place._publisher = Publisher({"receipts": Address(Slow(), "receipts")})
    swept = await place.sweeper().sweep([kind], MINUTE, 1_000)
    assert 0 < swept.swept < 20
    assert swept.swept + swept.left == 20


async def test_two_sweepers_at_once_publish_copies_at_most(place: Place) -> None:
    kind = accounts()
    await place.owe(kind, *(deposit(f"m-{one}", one) for one in "abc"))
    place.open = True
    await asyncio.gather(*(place.sweeper().sweep([kind], MINUTE, 1_000) for _ in range(2)))
    assert len({output.id for output in place.published}) == 3
    assert not place.facts().owing


async def test_a_run_lists_a_bounded_number_of_entities(place: Place) -> None:
    asked: list[int] = []

    class Endless(MemoryListing):
        async def owing(self, type: str, before: datetime) -> AsyncIterator[tuple[EntityRef, ...]]:
            for page in range(10**9):
                asked.append(page)
                yield tuple(EntityRef(type, (f"{page}-{one}",), f"{page}-{one}") for one in range(1_000))

    swept = await place.sweeper(Endless(place.store)).sweep([accounts()], MINUTE, 10)
    assert (swept.swept, swept.left) == (10, MOST_LISTED - 10)
    assert len(asked) == MOST_LISTED // 1_000


async def test_entities_of_one_id_in_several_partitions_are_all_swept(place: Place) -> None:
    """For Python the partition values 1 and True are equal."""

    class Alike(MemoryListing):
        async def owing(self, type: str, before: datetime) -> AsyncIterator[tuple[EntityRef, ...]]:
            for value in ("x", "y", 1, True):
                yield (EntityRef(type, (value,), "a"),)

    swept = await place.sweeper(Alike(place.store)).sweep([accounts()], MINUTE, 10)
    assert (swept.swept, swept.failed) == (4, ())


async def test_a_slow_listing_leaves_half_of_the_time_for_sweeping(place: Place) -> None:
    kind = accounts()
    await place.owe(kind, *(deposit(f"m-{one}", f"a{one}") for one in range(20)))
    place.open = True

    class Slow(MemoryListing):
        async def owing(self, type: str, before: datetime) -> AsyncIterator[tuple[EntityRef, ...]]:
            for ref in [ref async for page in super().owing(type, before) for ref in page]:
                await place.clock.sleep(LONGEST.total_seconds() / 12)
                yield (ref,)

    swept = await place.sweeper(Slow(place.store)).sweep([kind], MINUTE, 1_000)
    assert (swept.swept, swept.left) == (6, 0)


async def test_an_applications_own_strategy_is_swept_by_its_own_sweep() -> None:
    class Other(Outbox):
        def sweep(self, work: Work, memory: Memory) -> Step[Finished | Again]:
            swept.append(work.entity)
            yield from ()
            return Finished(memory)

    swept: list[EntityRef] = []
    place = Place()
    kind = accounts(Other())
    await place.owe(kind, deposit("m-1"))
    assert (await place.sweeper().sweep([kind], MINUTE, 10)).swept == 1
    assert swept == [kind.ref("a")]
