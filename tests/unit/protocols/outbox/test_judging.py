"""What is not known and may have been processed all the same is refused; and what is too old is not sent to be judged."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from exactlyonce import Colocated, Destination, Envelope, VersionStream
from exactlyonce.attempt import Strategy
from exactlyonce.drivers.overdue import place_of
from exactlyonce.drivers.runtime import StoreTime
from exactlyonce.effects.effect import UNKNOWN, Effect
from exactlyonce.effects.library import LoadParked, Park
from exactlyonce.errors import MessageFromTheFuture, TooOldToJudge, UndatedMessage
from exactlyonce.protocols.outbox.protocol import Outbox
from exactlyonce.testing.world import InstantClock, ManualClock, World
from exactlyonce.values.envelope import key_of, message_hash
from exactlyonce.values.lifetimes import Lifetimes
from tests.asking import unhandled
from tests.samples import SENT, accounts, deposit
from tests.unit.script import ENTITY

FORGETFUL: list[Strategy] = [Outbox(), Colocated(), VersionStream()]
LIMITS = Lifetimes()
OLDEST = LIMITS.oldest_judged(SENT)
SENDABLE = LIMITS.send_limit(SENT)
SECOND = timedelta(seconds=1)


class Shop:
    """Accounts on a strategy; the queue takes what is sent, or does not answer."""

    def __init__(self, strategy: Strategy) -> None:
        self.open = True
        self.world = World(
            (Destination("receipts"),), clock=InstantClock(SENT), outcome=lambda _: (self.open, self.open)
        )
        self.kind = accounts(strategy)
        self.process = self.world.process()

    async def deliver(self, envelope: Envelope) -> None:
        await self.process.deliver(self.kind, envelope)

    async def leave_owing(self, envelope: Envelope) -> None:
        """Commit a message whose outputs do not get through, in a process that dies."""
        self.open = False
        with pytest.raises(Exception, match="could not be published"):
            await self.deliver(envelope)
        await self.process.crash()
        self.open, self.process = True, self.world.process()

    def later(self, time: timedelta) -> None:
        self.world.clock.block(time.total_seconds())

    @property
    def commits(self) -> list[str]:
        """Hashes of the messages that were committed, as often as they were."""
        commits = (commit for commit in self.world.facts().commits if commit.version is not None)
        return [message for message, _ in dict.fromkeys((commit.message, commit.version) for commit in commits)]

    @property
    def parked(self) -> list[str]:
        """Ids of parked outputs."""
        return [
            id
            for place, log in self.world.store.library.items()
            for id in {version.id for version in log.log}
            if place == place_of(ENTITY).key
        ]


@pytest.mark.parametrize("strategy", FORGETFUL, ids=repr)
class TestReceivers:
    async def test_one_that_is_as_old_as_can_be_judged_is_processed(self, strategy: Strategy) -> None:
        shop = Shop(strategy)
        shop.later(OLDEST)
        await shop.deliver(deposit("m-1"))
        assert shop.commits == [message_hash("web/m-1")]

    async def test_one_that_is_older_changes_nothing(self, strategy: Strategy) -> None:
        shop = Shop(strategy)
        shop.later(OLDEST + SECOND)
        with pytest.raises(
            TooOldToJudge, match=r"^Message web/m-1 on entity account/a: It came about 28 days, 23:55:01 ago"
        ):
            await shop.deliver(deposit("m-1"))
        assert shop.commits == []

    async def test_one_without_a_time_changes_nothing(self, strategy: Strategy) -> None:
        shop = Shop(strategy)
        with pytest.raises(UndatedMessage):
            await shop.deliver(replace(deposit("m-1"), time=None))
        assert shop.commits == []

    async def test_one_from_the_future_changes_nothing(self, strategy: Strategy) -> None:
        shop = Shop(strategy)
        with pytest.raises(MessageFromTheFuture):
            await shop.deliver(replace(deposit("m-1"), time=SENT + timedelta(days=1, seconds=1)))
        assert shop.commits == []

    async def test_a_duplicate_of_any_age_that_is_still_known_is_acknowledged(self, strategy: Strategy) -> None:
        shop = Shop(strategy)
        await shop.deliver(deposit("m-1"))
        shop.later(timedelta(days=100))
        await shop.deliver(deposit("m-1"))
        assert shop.commits == [message_hash("web/m-1")]

    async def test_the_others_of_its_group_are_committed_without_it(self, strategy: Strategy) -> None:
        shop = Shop(strategy)
        shop.later(OLDEST + SECOND)
        with pytest.raises(TooOldToJudge):
            await shop.deliver(deposit("m-1"))
        await shop.deliver(replace(deposit("m-2"), time=shop.world.clock.now()))
        assert shop.commits == [message_hash("web/m-2")]


@pytest.mark.parametrize("strategy", FORGETFUL, ids=repr)
class TestSenders:
    async def test_what_is_owed_for_as_long_as_may_be_is_published(self, strategy: Strategy) -> None:
        shop = Shop(strategy)
        await shop.leave_owing(deposit("m-1"))
        shop.later(SENDABLE - timedelta(minutes=1))
        await shop.deliver(deposit("m-1"))
        assert (len(shop.world.published), shop.parked) == (1, [])

    async def test_what_is_owed_for_longer_is_parked_and_its_copy_acknowledged(self, strategy: Strategy) -> None:
        shop = Shop(strategy)
        await shop.leave_owing(deposit("m-1", answers=2))
        shop.later(SENDABLE + SECOND)
        await shop.deliver(deposit("m-1", answers=2))
        assert (len(shop.world.published), len(shop.parked)) == (0, 2)

    async def test_a_parked_output_keeps_where_it_was_to_go_and_why_it_did_not(self, strategy: Strategy) -> None:
        shop = Shop(strategy)
        await shop.leave_owing(deposit("m-1"))
        shop.later(SENDABLE + SECOND)
        await shop.deliver(deposit("m-1"))
        (id,) = shop.parked
        found = shop.world.store.perform(LoadParked(place_of(ENTITY), id.removeprefix("parked:")))
        message = found.message  # type: ignore[union-attr]
        assert message is not None
        assert (message.destination, message.message) == ("receipts", key_of(Envelope.read(message.envelope.text)))
        assert message.reason.startswith(
            "committed by account/a at 2026-01-01T00:00:00Z, for a message of more than 14 days"
        )


@pytest.mark.parametrize("strategy", [Outbox(), Colocated()], ids=repr)
async def test_the_sweeper_pays_by_parking_what_is_too_old(strategy: Strategy) -> None:
    shop = Shop(strategy)
    await shop.leave_owing(deposit("m-1"))
    shop.later(SENDABLE + SECOND)
    await shop.process.run(ENTITY, lambda memory: strategy.sweep(unhandled(ENTITY), memory))
    assert (len(shop.world.published), len(shop.parked)) == (0, 1)
    assert shop.world.facts().owing == frozenset()


async def test_what_could_not_be_parked_stays_owed() -> None:
    shop = Shop(Outbox())
    await shop.leave_owing(deposit("m-1"))
    shop.later(SENDABLE + SECOND)
    perform = shop.world.store.perform

    def unparked(effect: Effect[Any]) -> Any:
        return UNKNOWN if isinstance(effect, Park) else perform(effect)

    shop.world.store.perform = unparked  # type: ignore[method-assign]
    with pytest.raises(Exception, match="owed outputs could not be published"):
        await shop.deliver(deposit("m-1"))
    assert shop.world.facts().owing


class TestTheStoresTime:
    def test_a_clock_that_agrees_with_the_store_is_taken_as_it_is(self) -> None:
        clock = ManualClock()
        present = StoreTime(clock)
        present.compare(clock.now() + timedelta(seconds=30))
        assert present.now() == clock.now()

    def test_one_that_does_not_is_corrected_until_it_does(self) -> None:
        clock = ManualClock(datetime(2020, 1, 1, tzinfo=timezone.utc))
        present = StoreTime(clock)
        present.compare(SENT)
        clock.advance(7)
        assert present.now() == SENT + timedelta(seconds=7)
        clock.advance((SENT - clock.now()).total_seconds())
        present.compare(SENT)
        assert present.now() == SENT
