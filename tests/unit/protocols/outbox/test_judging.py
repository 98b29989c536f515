"""What is not known and may have been processed all the same is refused; and what is too old is not sent to be judged."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from exactlyonce import Colocated, Destination, Envelope, VersionStream
from exactlyonce.drivers.overdue import place_of
from exactlyonce.drivers.runtime import StoreTime
from exactlyonce.effects.attempt import Strategy
from exactlyonce.effects.companions import DeleteCompanions, FoundCompanions, LoadCompanions
from exactlyonce.effects.library import LoadParked
from exactlyonce.errors import DamagedDocument, MessageFromTheFuture, TooOldToJudge, UndatedMessage
from exactlyonce.protocols.outbox.protocol import Outbox
from exactlyonce.records.companions import entry_id
from exactlyonce.testing.world import InstantClock, ManualClock, World
from exactlyonce.values.envelope import key_of, message_hash
from exactlyonce.values.lifetimes import Lifetimes, Retention
from tests.samples import SENT, accounts, deposit
from tests.unit.script import ENTITY

FORGETFUL: list[Strategy] = [Outbox(), Colocated(), VersionStream()]
LIMITS = Lifetimes()
OLDEST = LIMITS.oldest_judged(SENT)
SENDABLE = LIMITS.send_limit(SENT)
SECOND = timedelta(seconds=1)


class Shop:
    """Accounts on a strategy; the queue takes what is sent, or does not answer."""

    def __init__(self, strategy: Strategy, lifetimes: Lifetimes | None = None) -> None:
        self.open = True
        self.world = World(
            (Destination("receipts"),),
            clock=InstantClock(SENT),
            outcome=lambda _: (self.open, self.open),
            lifetimes=lifetimes,
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
    @pytest.mark.parametrize(
        ("time", "error"),
        [
            (SENT, None),
            (SENT - SECOND, TooOldToJudge),
            (None, UndatedMessage),
            (SENT + OLDEST + timedelta(days=1, seconds=1), MessageFromTheFuture),
        ],
        ids=["as old as can be judged", "older", "without a time", "from the future"],
    )
    async def test_one_that_cannot_be_judged_changes_nothing(
        self, strategy: Strategy, time: datetime | None, error: type[Exception] | None
    ) -> None:
        shop = Shop(strategy)
        shop.later(OLDEST)
        words = "It came about 28 days, 23:55:01 ago" if error is TooOldToJudge else ""
        with nullcontext() if error is None else pytest.raises(error, match=f"^Message web/m-1 on entity .*: {words}"):
            await shop.deliver(replace(deposit("m-1"), time=time))
        assert shop.commits == ([message_hash("web/m-1")] if error is None else [])


@pytest.mark.parametrize("strategy", FORGETFUL, ids=repr)
class TestSenders:
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


@pytest.mark.parametrize("forgets", [True, False], ids=["old", "young"])
async def test_of_a_group_only_the_copy_is_refused_whose_way_back_clean_up_has_begun_to_take(forgets: bool) -> None:
    shop = Shop(VersionStream(2), Lifetimes(Retention(timedelta(days=16))))
    for number in (1, 2, 3):
        await shop.deliver(deposit(f"m-{number}"))
    shop.later(timedelta(days=16.5 if forgets else 14))
    ids = (entry_id(ENTITY, "web/m-2"),)  # Clean-up was stopped when it had deleted the second entry.
    found = shop.world.store.perform(LoadCompanions(ENTITY, ids))
    assert isinstance(found, FoundCompanions)
    shop.world.store.perform(DeleteCompanions(ENTITY, tuple((ids[0], etag) for _, etag in found.companions)))
    fresh = replace(deposit("m-4"), time=shop.world.clock.now())
    copy, new = await asyncio.gather(shop.deliver(deposit("m-1")), shop.deliver(fresh), return_exceptions=True)
    if forgets:
        assert isinstance(copy, TooOldToJudge)
        assert "web/m-1 on entity account/a was processed as version 1" in str(copy)
        assert (new, shop.commits.count(message_hash("web/m-1")), len(shop.commits)) == (None, 1, 4)
    else:  # That was not clean-up.
        assert isinstance(copy, DamagedDocument)
        assert isinstance(new, DamagedDocument)
        assert len(shop.commits) == 3


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
