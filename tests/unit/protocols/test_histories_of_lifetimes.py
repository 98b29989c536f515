"""Whole histories in which copies live longer than anybody thought: waits add up, debts are paid late, and pages are gone.

Each goes with what ships (strategies, the judge, sweeper, clean-up of pages) on a store in memory, over weeks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from exactlyonce import Context, Destination, Entity, Envelope, Outbox, TryAgainLater, VersionStream
from exactlyonce.attempt import Memory, Strategy
from exactlyonce.effects.companions import DeleteCompanions, FoundCompanions, LoadCompanions
from exactlyonce.effects.effect import Step
from exactlyonce.effects.entity import LoadEntity
from exactlyonce.errors import DamagedDocument, TooOldToJudge
from exactlyonce.protocols.outbox import draft
from exactlyonce.records.companions import entry_id
from exactlyonce.records.ledger import hash_in, read_entity, read_page, split
from exactlyonce.testing.world import InstantClock, World
from exactlyonce.values.envelope import EntityRef, key_of, message_hash, milliseconds
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.lifetimes import Lifetimes, Retention
from tests.asking import settle, sweep
from tests.samples import SENT, Account, Deposited, accounts, deposit

DAY = timedelta(days=1)
SHORTEST = Lifetimes(Retention(16 * DAY))
"""With the delivery limit as it is, hardly anything shorter is possible."""
SHOP, TILL = EntityRef("account", ("a",), "a"), EntityRef("till", ("t",), "t")


def tills(strategy: Strategy) -> Entity[Account]:
    """One till, which counts the receipts of all shops."""
    entity = Entity("till", state=Account, container="tills", strategy=strategy)

    @entity.handles(Deposited, key=lambda _: "t")
    def count(state: Account, _: Deposited, context: Context) -> Account:
        return Account(state.total + 1)

    return entity


class History:
    """A shop, and a till that gets its receipts; sixteen or thirty days are kept."""

    def __init__(self, shop: Strategy, till: Strategy | None = None, lifetimes: Lifetimes | None = None) -> None:
        self.answers = True
        self.clock = InstantClock(SENT)
        self.world = World(
            (Destination("receipts"),),
            clock=self.clock,
            outcome=lambda _: (True, self.answers),
            lifetimes=lifetimes,
        )
        self.shop, self.till = accounts(shop), tills(till or Outbox())
        self.process = self.world.process()

    def until(self, day: float) -> None:
        """Let time pass until so many days after the beginning."""
        self.clock.advance((SENT + day * DAY - self.clock.now()).total_seconds())

    async def owe(self, message: Envelope) -> None:
        """Commit a message and publish its outputs, without hearing of it, in a process that dies."""
        self.answers = False
        with pytest.raises(TryAgainLater):
            await self.process.deliver(self.shop, message)
        await self.process.crash()
        self.answers, self.process = True, self.world.process()

    async def count(self, receipt: Envelope) -> None:
        await self.process.deliver(self.till, receipt)

    async def clean(self, entity: EntityRef) -> int:
        """Clean up the pages of an entity, as the job does; how many went."""
        kept = self.world.lifetimes.retention.kept(self.clock.now())
        old = [*self._pages(entity, milliseconds(self.clock.now() - kept))]
        await self.process.run(entity, lambda memory: cleaning(entity, old))
        return len(old)

    def _pages(self, entity: EntityRef, before: int) -> Iterator[tuple[str, str]]:
        log = self.world.store.library[entity.key]
        for id in log.ids(len(log.log)):
            version = log.newest(id)
            if not id.startswith("page:") or version is None or version.document is None:
                continue
            if read_page(version.document.value).until < before:
                yield id.removeprefix("page:"), version.etag

    @property
    def receipts(self) -> list[Envelope]:
        return [Envelope.read(queue.envelope.text.encode()) for queue in self.world.transport.queues["receipts"]]

    def times(self, message: Envelope) -> int:
        """In how many transactions a message changed an entity."""
        same = (commit for commit in self.world.facts().commits if commit.message == message_hash(key_of(message)))
        return len({item.version for item in same if item.version is not None})


def cleaning(entity: EntityRef, pages: list[tuple[str, str]]) -> Step[None]:
    yield from Outbox().clean(entity, tuple(pages), Memory())


@pytest.fixture(autouse=True)
def one_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger with a mark has a page cut by the next commit, in which all of them leave."""
    monkeypatch.setattr(draft, "MOST_MARKS", 0)
    monkeypatch.setattr(draft, "MARKS_STAY", 0)


def other(id: str) -> Envelope:
    """Another receipt, with whose commit the mark of the one before leaves."""
    return Envelope("elsewhere", id, "account.deposited", Json.of({"total": 1, "receipt": id}), SENT)


async def test_what_was_owed_for_a_month_is_not_sent_again_and_a_copy_of_it_is_not_applied_again() -> None:
    history = History(Outbox())
    await history.owe(deposit("m-1"))
    sent = history.receipts
    receipt = sent[0]
    await history.count(receipt)
    await history.count(other("r-2"))
    history.until(29.83)
    await history.process.run(SHOP, partial(sweep, SHOP))
    assert history.receipts == sent  # It is too old, and parked.
    history.until(30.04)
    assert await history.clean(TILL) == 1
    with pytest.raises(TooOldToJudge):
        await history.count(receipt)
    assert history.times(receipt) == 1


async def test_what_a_stream_sends_again_for_a_late_copy_is_not_applied_again() -> None:
    history = History(VersionStream(), lifetimes=SHORTEST)
    await history.process.deliver(history.shop, deposit("m-1"))
    (receipt,) = history.receipts
    await history.count(receipt)
    await history.count(other("r-2"))
    history.until(13)
    await history.process.deliver(history.shop, deposit("m-1"))
    assert history.receipts == [receipt]  # Too old to be sent: it is parked.
    history.until(16.5)
    assert await history.clean(TILL) == 1
    with pytest.raises(TooOldToJudge):
        await history.count(receipt)
    assert history.times(receipt) == 1


@pytest.mark.parametrize("forgets", [True, False], ids=["old", "young"])
async def test_of_a_group_only_the_copy_is_refused_whose_way_back_clean_up_has_begun_to_take(forgets: bool) -> None:
    history = History(VersionStream(2), lifetimes=SHORTEST)
    for number in (1, 2, 3):
        await history.process.deliver(history.shop, deposit(f"m-{number}"))
    history.until(16.5 if forgets else 14)
    ids = (entry_id(SHOP, key_of(deposit("m-2"))),)  # Clean-up was stopped when it had deleted the second entry.
    found = history.world.store.perform(LoadCompanions(SHOP, ids))
    assert isinstance(found, FoundCompanions)
    history.world.store.perform(DeleteCompanions(SHOP, tuple((ids[0], etag) for _, etag in found.companions)))
    fresh = replace(deposit("m-4"), time=history.clock.now())
    deliveries = (history.process.deliver(history.shop, item) for item in (deposit("m-1"), fresh))
    copy, new = await asyncio.gather(*deliveries, return_exceptions=True)
    if forgets:
        assert isinstance(copy, TooOldToJudge)
        assert "web/m-1 on entity account/a was processed as version 1" in str(copy)
        assert (new, history.times(fresh), history.times(deposit("m-1"))) == (None, 1, 1)
    else:  # That was not clean-up.
        assert isinstance(copy, DamagedDocument)
        assert isinstance(new, DamagedDocument)
        assert history.times(fresh) == 0


async def test_a_mark_that_is_older_than_the_retention_leaves_for_good_and_its_copy_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(draft, "MOST_MARKS", 32)
    history = History(Outbox(), lifetimes=SHORTEST)
    await history.process.deliver(history.shop, deposit("m-1"))
    history.until(17)
    fresh = replace(deposit("m-2"), time=history.clock.now())
    await history.process.deliver(history.shop, fresh)
    ledger = read_entity(SHOP, history.world.store.perform(LoadEntity(SHOP)).document).ledger  # type: ignore[union-attr]
    assert ledger is not None
    assert [hash_in(part) for part in split(ledger.marks)] == [message_hash(key_of(fresh))]
    with pytest.raises(TooOldToJudge):
        await history.process.deliver(history.shop, deposit("m-1"))
    assert history.times(deposit("m-1")) == 1


async def test_a_copy_that_waited_in_a_queue_was_requeued_and_given_up_again_is_not_applied_again() -> None:
    history = History(Outbox(), lifetimes=SHORTEST)
    await history.process.deliver(history.shop, deposit("m-1"))
    await history.process.deliver(history.shop, deposit("m-2"))
    history.until(16.5)
    assert await history.clean(SHOP) == 1
    ref, late = SHOP, deposit("m-1")
    absent = Json.of({"id": "a", "owner": "a"})
    await history.process.run(ref, partial(settle, ref, late, "its queue gave it up", absent))
    with pytest.raises(TooOldToJudge):  # Requeued as it is.
        await history.process.deliver(history.shop, late)
    assert history.times(late) == 1
