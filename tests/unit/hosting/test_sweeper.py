"""The sweeper: which entities it sweeps, which it leaves alone, and that every entity has its turn."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

import azure.functions as func
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
from exactlyonce.drivers.driver import Backoff
from exactlyonce.drivers.publisher import Address, Publisher
from exactlyonce.drivers.runtime import Clock, Runtime
from exactlyonce.effects.attempt import Again, Finished, Memory, Strategy, Work
from exactlyonce.effects.effect import Step
from exactlyonce.effects.library import WriteBook
from exactlyonce.hosting.config.functions import EVERY_MINUTE, register_sweeper
from exactlyonce.hosting.upkeep import sweeper as sweeper_module
from exactlyonce.hosting.upkeep.sweeper import LONGEST, Sweeper
from exactlyonce.records.library import Search
from exactlyonce.records.outbox import Output
from exactlyonce.stores.memory.listing import MemoryListing
from exactlyonce.stores.memory.store import Fate, MemoryStore, NoTrouble
from exactlyonce.stores.port import AsyncListing, ListedBook
from exactlyonce.testing.world import World
from exactlyonce.transports.port import MemoryTransport
from exactlyonce.values.envelope import EntityRef, PartitionValue
from tests.samples import Deposit, Deposited, accounts, deposit
from tests.unit.boards import BOARDS, Board, Scored, Shown, scored
from tests.unit.hosting.settlers import maintenance

MINUTE = timedelta(minutes=1)
RECEIPTS = Destination("receipts", receives=(Deposited,))
SCREENS = Destination("screens", receives=(Shown,))


@dataclass
class Alarm:
    """The state of an entity that only keeps messages."""


class LateSave(NoTrouble):
    """The first save of an entity lands late."""

    def __init__(self) -> None:
        self.left = 1

    def fate(self, operation: str) -> Fate:
        if operation == "save_entity" and self.left:
            self.left -= 1
            return Fate.DELAYED
        return Fate.ANSWERED


class Place(World):
    """A world whose queues take nothing at first, and its sweeper."""

    def __init__(self) -> None:
        self.open = False
        super().__init__((RECEIPTS, SCREENS), outcome=lambda output: (self.takes(output), True))
        self.broken: set[str] = set()

    def takes(self, output: Output) -> bool:
        return self.open and not any(output.envelope.value["source"] == f"account/{item}" for item in self.broken)

    async def owe(self, type: Entity[Any], *messages: Envelope) -> None:
        """Process messages whose outputs are not published; their process crashes. An hour passes, and the queues open."""
        process = self.process(backoff=Backoff(tries=1))
        for message in messages:
            with pytest.raises(TryAgainLater):
                await process.deliver(type, message)
        await process.crash()
        await self.later()
        self.open = True

    async def later(self) -> None:
        await self.clock.sleep(3600)

    def sweeper(self, listing: AsyncListing | None = None) -> Sweeper:
        return Sweeper(maintenance(self), listing or MemoryListing(self.store), Runtime(self.clock, Random(1)))


@pytest.fixture
def place() -> Place:
    return Place()


@pytest.mark.parametrize("strategy", [Outbox(), Colocated()])
async def test_outputs_that_a_process_left_owed_are_published_once(place: Place, strategy: Strategy) -> None:
    kind = accounts(strategy)
    await place.owe(kind, deposit("m-1", "a"), deposit("m-2", "b"))
    swept = await place.sweeper().sweep([kind], MINUTE, 1_000)
    assert (swept.swept, swept.failed, swept.left) == (2, (), 0)
    assert sorted(output.envelope.value["source"] for output in place.published) == ["account/a", "account/b"]
    assert (await place.sweeper().sweep([kind], MINUTE, 1_000)).swept == 0
    assert not place.facts().owing


@pytest.mark.parametrize(("behind", "swept"), [(timedelta(0), 0), (timedelta(hours=2), 1)])
async def test_a_moment_is_told_by_the_stores_time_whatever_the_clock_says(
    place: Place, behind: timedelta, swept: int
) -> None:
    kind = accounts(Colocated())
    await place.owe(kind, deposit("m-1"))
    runtime = Runtime(place.clock, Random(1), present=lambda: place.clock.now() + behind)
    sweeper = Sweeper(maintenance(place), MemoryListing(place.store), runtime)
    assert (await sweeper.sweep([kind], timedelta(hours=2), 1_000)).swept == swept


class Counting(MemoryListing):
    """Counts its searches of entities for transactions of books."""

    searches = 0

    def owing(self, type: str, searches: tuple[Search, ...]) -> AsyncIterator[tuple[tuple[EntityRef, str], ...]]:
        self.searches += 1
        return super().owing(type, searches)


async def test_a_fleet_that_is_well_costs_no_search_of_entities(place: Place) -> None:
    kind, listing = accounts(), Counting(place.store)
    place.open = True
    process = place.process()
    for minute in range(30):
        await process.deliver(kind, deposit(f"m-{minute}"))
        await place.clock.sleep(60)
        assert (await place.sweeper(listing).sweep([kind], MINUTE)).swept == 0
    await process.close()
    for _ in range(30):
        await place.later()
        await place.sweeper(listing).sweep([kind], MINUTE)
    assert listing.searches == 0


async def test_a_silent_book_is_searched_again_after_an_hour_and_after_a_day(place: Place) -> None:
    kind, listing = accounts(), Counting(place.store)
    place.open = True
    process = place.process()
    await process.deliver(kind, deposit("m-1"))
    await process.crash()
    searched: list[Any] = []
    for minute in range(0, 4_000, 10):
        await place.sweeper(listing).sweep([kind], MINUTE)
        if listing.searches > len(searched):
            searched.append(minute)
        await place.clock.sleep(600)
    assert searched == [20, 80, 1_460]


async def test_a_save_that_lands_after_the_first_search_is_found_by_a_later_search(place: Place) -> None:
    kind = accounts()
    place.store._trouble = LateSave()
    process = place.process(backoff=Backoff(tries=1))
    with pytest.raises(TryAgainLater):
        await process.deliver(kind, deposit("m-1"))
    await process.crash()
    await place.later()
    place.open = True
    assert (await place.sweeper().sweep([kind], MINUTE)).swept == 0
    place.store.land_delayed()
    assert (await place.sweeper().sweep([kind], MINUTE)).swept == 0
    await place.later()
    assert (await place.sweeper().sweep([kind], MINUTE)).swept == 1
    assert len(place.published) == 1


async def test_a_number_that_is_stuck_is_searched_though_its_process_is_alive(place: Place) -> None:
    kind, listing = accounts(), Counting(place.store)
    process = place.process(backoff=Backoff(tries=1))
    for id, name in (("m-1", "a"), ("m-2", "b")):
        with pytest.raises(TryAgainLater):
            await process.deliver(kind, deposit(id, name))
    place.open = True
    (own,) = process._driver.books._shelf.mine
    now = place.clock.now()
    book = replace(own.document(now, timedelta(minutes=10)), stuck=(2,))
    place.store.perform(WriteBook(book, 60))
    for _ in range(3):
        await place.sweeper(listing).sweep([kind], MINUTE)
    assert [output.envelope.value["source"] for output in place.published] == ["account/b"]
    assert listing.searches == 1
    await place.later()
    await place.sweeper(listing).sweep([kind], MINUTE)
    assert [output.envelope.value["source"] for output in place.published] == ["account/b", "account/a"]


async def test_a_book_is_not_done_with_while_something_of_it_is_owed(place: Place) -> None:
    kind, listing = accounts(), Counting(place.store)
    await place.owe(kind, deposit("m-1", "a"), deposit("m-2", "b"))
    place.broken = {"a"}
    for _ in range(3):
        await place.sweeper(listing).sweep([kind], MINUTE)
    assert listing.searches == 3
    place.broken = set()
    assert (await place.sweeper(listing).sweep([kind], MINUTE)).swept == 1
    assert (await place.sweeper(listing).sweep([kind], MINUTE)).swept == 0
    assert listing.searches == 4


async def test_a_sweep_of_some_types_or_of_some_entities_leaves_books_to_be_searched(place: Place) -> None:
    kind = accounts()
    await place.owe(kind, deposit("m-1", "a"), deposit("m-2", "b"))
    assert (await place.sweeper().sweep([BOARDS], MINUTE, whole=False)).swept == 0
    swept = await place.sweeper().sweep([kind], MINUTE, 1)
    assert (swept.swept, swept.left) == (1, 1)
    assert (await place.sweeper().sweep([kind], MINUTE)).swept == 1


async def test_books_that_cannot_be_listed_are_reported_and_stop_nothing_else(place: Place) -> None:
    class Silent(MemoryListing):
        def books(self, since: int) -> AsyncIterator[tuple[ListedBook, ...]]:
            raise TryAgainLater(f"no answer since {since}")

    kind = accounts(Colocated())
    await place.owe(kind, deposit("m-1"))
    swept = await place.sweeper(Silent(place.store)).sweep([kind], MINUTE)
    assert (swept.swept, swept.failed) == (1, (("books", "TryAgainLater: no answer since 0"),))


async def test_only_the_first_run_of_a_process_looks_at_books_that_are_done_with(place: Place) -> None:
    asked = []

    class Asked(MemoryListing):
        def books(self, since: int) -> AsyncIterator[tuple[ListedBook, ...]]:
            asked.append(since)
            return super().books(since)

    kind = accounts()
    await place.owe(kind, deposit("m-1"))
    began = int(place.clock.now().timestamp())
    sweeper = place.sweeper(Asked(place.store))
    for _ in range(5):
        await sweeper.sweep([kind], MINUTE)
        await place.clock.sleep(86_400)
    assert asked[0] == 0
    assert began - 8_000 < asked[1] == asked[2] == asked[3] < began
    assert asked[4] > began + 2 * 86_400


async def test_kept_messages_are_released_when_they_are_due() -> None:
    place = Place()
    place.open = True
    kind = Entity("clock", state=Alarm, container="clocks", strategy=Outbox())

    @kind.handles(Deposit, key=lambda given: given.account)
    def set_alarm(state: Alarm | None, given: Deposit, context: Context) -> Alarm:
        context.send(RECEIPTS, Deposited(given.amount, given.account), at=context.now + timedelta(minutes=5))
        return state or Alarm()

    process = place.process()
    await process.deliver(kind, deposit("m-1"))
    await process.close()
    assert (await place.sweeper().sweep([kind], MINUTE)).swept == 0
    await place.clock.sleep(301)
    assert (await place.sweeper().sweep([kind], MINUTE)).swept == 1
    assert len(place.published) == 1
    assert (await place.sweeper().sweep([kind], MINUTE)).swept == 0


async def test_a_stream_owes_nothing_of_messages_from_queues(place: Place) -> None:
    kind = accounts(VersionStream())
    await place.owe(kind, deposit("m-1"))
    swept = await place.sweeper().sweep([kind], MINUTE, 1_000)
    assert (swept.swept, swept.failed) == (0, ())


async def test_a_read_model_publishes_what_it_owes(place: Place) -> None:
    await place.owe(BOARDS, scored(1, answers=2))
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
    await place.owe(kind, *(deposit(f"m-{item}", item, padding="the-body") for item in "abc"))
    place.broken = {"b"}
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
        def due(self, type: str, now: datetime) -> AsyncIterator[tuple[EntityRef, ...]]:
            if type == "board":
                raise TryAgainLater("the container could not be searched")
            return super().due(type, now)

    kind = accounts()
    await place.owe(kind, deposit("m-1"))
    swept = await place.sweeper(Silent(place.store)).sweep([BOARDS, kind], MINUTE, 1_000)
    assert swept.swept == 1
    assert swept.failed == (("board", "TryAgainLater: the container could not be searched"),)
    listing = Counting(place.store)
    await place.sweeper(listing).sweep([kind], MINUTE)
    assert listing.searches == 1  # Something of its book may be on a board.


async def test_a_long_run_starts_no_further_entity(place: Place) -> None:
    kind = accounts()
    await place.owe(kind, *(deposit(f"m-{number}", f"a{number}") for number in range(200)))

    class Slow(MemoryTransport):
        async def send(self, address: str, outputs: tuple[Output, ...]) -> Any:
            await place.clock.sleep(LONGEST.total_seconds() / 4)
            return await super().send(address, outputs)

    place._publisher = Publisher({"receipts": Address(Slow(), "receipts")})
    swept = await place.sweeper().sweep([kind], MINUTE, 1_000)
    assert 0 < swept.swept < 200
    assert swept.swept + swept.left == 200


async def test_two_sweepers_at_once_publish_copies_at_most(place: Place) -> None:
    kind = accounts()
    await place.owe(kind, *(deposit(f"m-{item}", item) for item in "abc"))
    await asyncio.gather(*(place.sweeper().sweep([kind], MINUTE, 1_000) for _ in range(2)))
    assert len({output.id for output in place.published}) == 3
    assert not place.facts().owing


class Names(MemoryListing):
    """Entities whose kept messages are due: all that are named, in the same order each time, on pages of ten."""

    def __init__(self, store: MemoryStore, names: list[PartitionValue], clock: Clock, seconds: float = 0.0) -> None:
        super().__init__(store)
        self.names = names
        self.clock = clock
        self.seconds = seconds
        self.asked = 0

    async def due(self, type: str, now: datetime) -> AsyncIterator[tuple[EntityRef, ...]]:
        for first in range(0, len(self.names), 10):
            self.asked += 1
            await self.clock.sleep(self.seconds)
            yield tuple(EntityRef(type, (name,), "a") for name in self.names[first : first + 10])


class Trying(Outbox):
    """Notes who is swept. Those whose partition begins with "s" are stuck."""

    def __init__(self) -> None:
        self.swept: list[PartitionValue]
        object.__setattr__(self, "swept", [])

    def sweep(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        self.swept.append(work.entity.partition[0])
        yield from ()
        if str(work.entity.partition[0]).startswith("s"):
            raise TryAgainLater("its destination is gone")
        return Finished(memory)


async def test_a_run_goes_on_behind_those_that_it_has_tried(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeper_module, "MOST_LISTED", 20)
    strategy = Trying()
    names: list[PartitionValue] = [*(f"s{number}" for number in range(100)), *(f"f{number}" for number in range(10))]
    swept = await place.sweeper(Names(place.store, names, place.clock)).sweep([accounts(strategy)], MINUTE)
    assert (swept.swept, len(swept.failed), swept.left) == (10, 100, 0)
    assert sorted(map(str, strategy.swept)) == sorted(map(str, names))


async def test_failed_entities_come_after_the_others(place: Place) -> None:
    strategy = Trying()
    names: list[PartitionValue] = [f"s{number}" for number in range(20)]
    listing = Names(place.store, names, place.clock)
    sweeper = place.sweeper(listing)
    await sweeper.sweep([accounts(strategy)], MINUTE)
    strategy.swept.clear()
    listing.names = [*names, "f1", "f2"]
    await sweeper.sweep([accounts(strategy)], MINUTE, 2)
    assert {*strategy.swept} == {"f1", "f2"}


async def test_a_slow_listing_leaves_half_of_the_time_for_sweeping(place: Place) -> None:
    names: list[PartitionValue] = [f"f{number}" for number in range(400)]
    listing = Names(place.store, names, place.clock, LONGEST.total_seconds() / 12)
    swept = await place.sweeper(listing).sweep([accounts(Trying())], MINUTE, 60)
    assert (swept.swept, listing.asked) == (60, 6)


async def test_a_listing_that_is_always_cut_ends_with_the_run(place: Place) -> None:
    names: list[PartitionValue] = [f"s{number}" for number in range(1_000)]
    listing = Names(place.store, names, place.clock, LONGEST.total_seconds())
    swept = await place.sweeper(listing).sweep([accounts(Trying())], MINUTE)
    assert (swept.swept, len(swept.failed), swept.left) == (0, 0, 10)


async def test_entities_of_one_id_in_several_partitions_are_all_swept(place: Place) -> None:
    """For Python the partition values 1 and True are equal."""
    swept = await place.sweeper(Names(place.store, ["x", "y", 1, True], place.clock)).sweep([accounts()], MINUTE, 10)
    assert (swept.swept, swept.failed) == (4, ())


async def test_the_timer_that_is_registered_awaits_a_sweep() -> None:
    sweeps: list[str] = []

    async def sweep() -> None:
        sweeps.append("a sweep")

    app = func.FunctionApp()
    register_sweeper(app, sweep, EVERY_MINUTE)
    (timer,) = app.get_functions()
    await timer.get_user_function()(None)
    assert sweeps == ["a sweep"]
