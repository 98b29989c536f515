"""A commit that the store refuses for a handler's result: its message fails alone, the others of its group are committed."""

from __future__ import annotations

import asyncio
from typing import Any

import azure.functions as func

from exactlyonce import Destination, Envelope
from exactlyonce.errors import HandlerFailed, UniqueKeyTaken
from exactlyonce.hosting.deliveries.poison import PoisonSettler
from exactlyonce.hosting.deliveries.settlement import aside_place
from exactlyonce.hosting.deliveries.triggers import Failures
from exactlyonce.stores.memory.store import Fate, MemoryStore
from exactlyonce.testing.world import InstantClock, ManualClock, World
from exactlyonce.values.envelope import EntityRef
from tests.people import UNIQUE_KEYS, leave, move, people, welcomes
from tests.unit.fated import Fated
from tests.unit.hosting.settlers import dated, parked, settler


class Company:
    """People of one logical partition, whose emails are unique."""

    def __init__(self, trouble: Any = None, clock: ManualClock | None = None) -> None:
        clock = clock or InstantClock()
        self.store = MemoryStore(clock.now, trouble, unique_keys=UNIQUE_KEYS)
        self.world = World([welcomes, Destination("people")], clock=clock, store=self.store)
        self.people = people()
        self.process = self.world.process()

    async def deliver(self, *envelopes: Envelope) -> list[Any]:
        """Deliver at the same time; what each came to."""
        deliveries = (self.process.deliver(self.people, envelope) for envelope in envelopes)
        return await asyncio.gather(*deliveries, return_exceptions=True)

    @property
    def settler(self) -> PoisonSettler:
        failures = Failures()
        failures.note("person", "web/m-3", HandlerFailed("seen by this process"), 5)
        return settler(self.world, failures)

    def saved(self, person: str) -> Any:
        """A person's document; None if there is none."""
        partition = self.store.entities["person", "acme"]
        version = partition.newest(person)
        return None if version is None or version.document is None else version.document.value

    @property
    def published(self) -> list[Any]:
        return [output.envelope.value["data"]["moves"] for output in self.world.published]


async def test_a_message_that_takes_a_taken_unique_key_fails_without_effect() -> None:
    company = Company()
    await company.deliver(move("m-1", "ann", "a@x"))
    (error,) = await company.deliver(move("m-2", "bob", "a@x"))
    assert isinstance(error, UniqueKeyTaken)
    assert "Message web/m-2" in str(error)
    assert str(EntityRef("person", ("acme",), "bob")) in str(error)
    assert company.saved("bob") is None
    assert company.published == [1]


async def test_once_the_key_is_free_the_message_goes_through() -> None:
    company = Company()
    await company.deliver(move("m-1", "ann", "a@x"))
    await company.deliver(move("m-2", "bob", "a@x"))
    await company.deliver(move("m-3", "ann", "new@x"))
    assert await company.deliver(move("m-2", "bob", "a@x")) == [None]
    assert company.saved("bob")["email"] == "a@x"


async def test_the_other_messages_of_the_group_are_committed() -> None:
    company = Company()
    await company.deliver(move("m-1", "ann", "a@x"), move("m-2", "bob", "b@x"))
    group = [move("m-3", "bob", "c@x"), move("m-4", "bob", "a@x"), move("m-4", "bob", "a@x"), move("m-5", "bob", "")]
    done = await company.deliver(*group[:3])
    assert [type(item) for item in done] == [type(None), UniqueKeyTaken, UniqueKeyTaken]
    assert "Message web/m-4" in str(done[1])
    assert await company.deliver(group[3]) == [None]
    saved = company.saved("bob")
    assert (saved["email"], saved["moves"]) == ("", 3)
    assert sorted(company.published) == [1, 1, 2, 3]


async def test_messages_after_a_refused_group_share_commits_again() -> None:
    company = Company(clock=ManualClock())  # It stands still: marks would be further saves.
    await company.deliver(move("m-1", "ann", "a@x"))
    await company.deliver(move("m-2", "bob", "b@x"), move("m-3", "bob", "a@x"))
    partition = company.store.entities["person", "acme"]
    before = len(partition.log)
    assert await company.deliver(*(move(f"n-{number}", "bob", f"{number}@x") for number in range(5))) == [None] * 5
    assert len(partition.log) == before + 1


async def test_a_second_tombstone_is_refused_since_missing_values_count_as_null() -> None:
    company = Company()
    await company.deliver(move("m-1", "ann", "a@x"), move("m-2", "bob", "b@x"))
    assert await company.deliver(leave("m-3", "ann")) == [None]
    (error,) = await company.deliver(leave("m-4", "bob"))
    assert isinstance(error, UniqueKeyTaken)
    assert "tombstones" in str(error)
    assert company.saved("bob")["email"] == "b@x"


async def test_a_commit_whose_reply_was_lost_is_not_taken_for_a_refused_one() -> None:
    company = Company(Fated(Fate.LOST_AFTER, "save_entity", times=1))
    assert await company.deliver(move("m-1", "ann", "a@x")) == [None]
    assert company.saved("ann")["moves"] == 1
    assert company.published == [1]


async def test_a_poison_message_is_put_aside_if_another_tombstone_refuses_its_fence() -> None:
    company = Company()
    await company.deliver(move("m-1", "ann", "a@x"), leave("m-2", "ann"))
    given_up = dated(move("m-3", "bob", "b@x"))
    body = given_up.to_json().text.encode()
    assert await company.settler.settle(company.people, func.QueueMessage(id="q-1", body=body), "people") == "parked"
    aside = parked(company.world, aside_place(company.people), "web/m-3")
    assert aside is not None
    assert aside.reason == f"UniqueKeyTaken, of entity {EntityRef('person', ('acme',), 'bob')}"
    assert aside.envelope == given_up.to_json()
    assert company.saved("bob") is None
