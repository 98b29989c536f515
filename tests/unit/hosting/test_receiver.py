"""The receiver: deliveries processed in batches, and settled when they are given up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from azure.functions.servicebus import ServiceBusMessage

from exactlyonce import (
    Colocated,
    ConfigurationError,
    Context,
    Entity,
    Envelope,
    TryAgainLater,
    VersionStream,
    message,
)
from exactlyonce.effects.attempt import Strategy
from exactlyonce.effects.effect import Busy, NoAnswer, Unknown
from exactlyonce.effects.entity import Conflict, Loaded, LoadEntity, Saved, SaveEntity
from exactlyonce.effects.library import WriteBook, Written
from exactlyonce.errors import HandlerFailed, InvalidMessage, MalformedMessage
from exactlyonce.hosting.deliveries.poison import UNREADABLE, PoisonSettler
from exactlyonce.hosting.deliveries.settlement import aside_place
from exactlyonce.hosting.deliveries.triggers import envelope_of, id_of
from exactlyonce.records.ledger import ReplyTo
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.testing.world import InstantClock, ManualClock
from exactlyonce.transports.service_bus.binding import Content, written
from exactlyonce.values.envelope import EntityRef, message_hash, message_key
from exactlyonce.values.frozen_json import Json
from tests.samples import Account, accounts, breaking, deposit
from tests.unit.bus import delivered
from tests.unit.hosting.settlers import Place as Settling
from tests.unit.hosting.settlers import dated, maintenance, receiver

SECRET = "what-the-body-says"


@message("account.spend")
@dataclass
class Spend:
    account: str


class Counting(MemoryStore):
    """Notes which entities were saved with a new message, and when entities were loaded and books written."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__(now)
        self.commits: list[EntityRef] = []
        self.asked: list[type] = []

    def load_entity(self, effect: LoadEntity) -> Loaded | NoAnswer | Busy:
        self.asked.append(LoadEntity)
        return super().load_entity(effect)

    def write_book(self, effect: WriteBook) -> Written | Unknown | Busy:
        self.asked.append(WriteBook)
        return super().write_book(effect)

    def save_entity(self, effect: SaveEntity) -> Saved | Conflict | Unknown | Busy:
        self.commits.append(effect.entity)
        return super().save_entity(effect)


MESSAGES = ("m-0", "m-1", "m-2", "m-3", "n")


class Place(Settling):
    """A world with one process that receives."""

    store: Counting

    def __init__(self) -> None:
        clock = InstantClock()
        super().__init__(clock=clock, store=Counting(clock.now))
        # The clock of the lanes stands still: marks would be further saves.
        self.receiver = receiver(self, maintenance(self), self.failures, self.settler, ManualClock())

    async def take(self, kind: Entity[Any], *messages: ServiceBusMessage, give_up_after: int = 5) -> None:
        await self.receiver.take_all(messages, kind, "accounts", None, give_up_after)

    def changed_by(self, entity: str = "a") -> Sequence[str]:
        """The messages that changed an account, one for each of their marks."""
        ref, names = accounts().ref(entity), {message_hash(f"web/{item}"): f"web/{item}" for item in MESSAGES}
        marked = (commit for commit in self.facts().commits if commit.version is not None and commit.entity == ref.key)
        return [names[item.message] for item in marked]


@pytest.fixture
def place() -> Place:
    return Place()


async def test_the_book_is_begun_before_the_first_entity_is_loaded_and_once(place: Place) -> None:
    await place.take(accounts(), delivered(deposit("m-1")), delivered(deposit("m-2", "b")))
    assert place.store.asked == [WriteBook, LoadEntity, LoadEntity]


async def test_no_book_is_begun_where_no_strategy_needs_one(place: Place) -> None:
    await place.take(accounts(Colocated()), delivered(deposit("m-1")))
    assert place.store.asked == [LoadEntity]


async def test_messages_for_one_entity_share_a_commit(place: Place) -> None:
    await place.take(
        accounts(), *(delivered(deposit(f"m-{number}")) for number in range(3)), delivered(deposit("n", "b"))
    )
    assert set(place.changed_by("a")) == {"web/m-0", "web/m-1", "web/m-2"}
    assert place.changed_by("b") == ["web/n"]
    assert place.store.commits.count(accounts().ref("a")) == 1


async def test_a_failing_message_does_not_stop_the_others_and_fails_the_batch(place: Place) -> None:
    with pytest.raises(HandlerFailed, match=r"1 of the 3 messages .* HandlerFailed \(RuntimeError\)"):
        await place.take(accounts(), *map(delivered, (deposit("m-1"), breaking("m-2"), deposit("m-3", "b"))))
    assert place.changed_by("a") == ["web/m-1"]
    assert place.changed_by("b") == ["web/m-3"]


async def test_a_duplicate_is_told_in_the_log(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "exactlyonce.hosting.deliveries.receiver")
    await place.take(accounts(), delivered(deposit("m-1", note=SECRET)))
    assert SECRET not in caplog.text
    caplog.clear()
    await place.take(accounts(), delivered(deposit("m-1", note=SECRET)))
    assert caplog.messages == ["message web/m-1 for account/a changed nothing: it is a duplicate"]


async def test_a_message_that_keeps_failing_is_parked_and_its_batch_acknowledged(place: Place) -> None:
    kind, batch = accounts(), (deposit("m-1"), dated(breaking("m-2")))
    for delivery in range(1, 6):
        with pytest.raises(HandlerFailed):
            await place.take(kind, *(delivered(item, delivery_count=delivery) for item in batch))
        assert place.parked(kind.ref("a"), "web/m-2") is None
    await place.take(kind, *(delivered(item, delivery_count=6) for item in batch))
    reason = place.reason(kind.ref("a"), "web/m-2")
    assert reason == "its batch gave it up; delivery 5 failed with HandlerFailed (RuntimeError)"
    assert set(place.changed_by("a")) == {"web/m-1"}
    assert len({output.id for output in place.published}) == 1


async def test_a_parked_message_is_not_processed_in_a_later_batch(place: Place) -> None:
    purse: list[str] = []
    kind = accounts()

    @kind.handles(Spend, key=lambda spend: spend.account)
    def spend(state: Account, given: Spend, context: Context) -> Account:
        if not purse:
            raise RuntimeError("not enough in the purse")
        return Account(state.total - 1)

    spending = dated(Envelope("web", "m-1", "account.spend", Json.of({"account": "a"})))
    with pytest.raises(HandlerFailed):
        await place.take(kind, delivered(spending, delivery_count=5))
    with pytest.raises(HandlerFailed, match="1 of the 2"):
        await place.take(kind, delivered(spending, delivery_count=6), delivered(breaking("m-2")))
    purse.append("money")
    await place.take(kind, delivered(spending, delivery_count=7), delivered(deposit("m-3")))
    assert set(place.changed_by("a")) == {"web/m-3"}
    assert place.parked(kind.ref("a"), "web/m-1") is not None


async def test_an_unreadable_message_is_put_aside_after_the_last_delivery(place: Place) -> None:
    kind = accounts()
    unreadable = delivered(Content(SECRET.encode()), delivery_count=6)
    await place.take(kind, unreadable, delivered(deposit("m-1")))
    assert place.parked(aside_place(kind), message_key(UNREADABLE, id_of(unreadable))) is not None
    assert place.changed_by("a") == ["web/m-1"]


@pytest.mark.parametrize("deliveries", [6, 7])
async def test_a_failure_of_the_environment_does_not_park_a_message(place: Place, deliveries: int) -> None:
    kind = accounts()
    place.failures.note(kind.name, "web/m-1", TryAgainLater("a queue did not answer"), deliveries - 1)
    await place.take(kind, delivered(dated(deposit("m-1")), delivery_count=deliveries))
    assert place.parked(kind.ref("a"), "web/m-1") is None
    (returned,) = place.transport.queues["accounts"]
    assert Envelope.read(returned.envelope.text).requeued == 1
    assert place.changed_by("a") == []


async def test_a_message_that_may_have_been_returned_is_not_parked(place: Place) -> None:
    kind, poison = accounts(), dated(breaking("m-1"))
    await place.take(kind, delivered(poison, delivery_count=6))
    place.failures.note(kind.name, "web/m-1", HandlerFailed(SECRET), 1)
    await place.take(kind, delivered(poison, delivery_count=7))
    returned = place.transport.queues["accounts"]
    assert [Envelope.read(output.envelope.text).unexplained for output in returned] == [1, 1]
    assert place.parked(kind.ref("a"), "web/m-1") is None


async def test_an_unknown_queue_is_refused_before_any_message_is_processed(place: Place) -> None:
    with pytest.raises(ConfigurationError, match="no destination 'purses'"):
        await place.receiver.take_all([delivered(deposit("m-1"))], accounts(), "purses", None, 5)
    assert place.changed_by("a") == []


async def test_processing_a_returned_message_deletes_its_parked_document(place: Place) -> None:
    kind = accounts()
    place.failures.note(kind.name, "web/m-1", HandlerFailed(SECRET), 5)
    await place.take(kind, delivered(dated(deposit("m-1")), delivery_count=6))
    assert place.parked(kind.ref("a"), "web/m-1") is not None
    await place.take(kind, delivered(deposit("m-1").once_more()))
    assert place.parked(kind.ref("a"), "web/m-1") is None
    assert place.changed_by("a") == ["web/m-1"]


async def test_a_message_that_cannot_be_parked_does_not_stop_the_others(place: Place) -> None:
    kind, settle = accounts(), place.settler.settle

    async def unless_too_large(entity: Entity[Any], message: Any, *given: Any, **more: Any) -> Any:
        if envelope_of(message, None).id == "m-1":
            raise MalformedMessage("the message is too large to be parked")
        return await settle(entity, message, *given, **more)

    poison = cast("PoisonSettler", SimpleNamespace(settle=unless_too_large, settler=place.settler.settler))
    batch = [delivered(dated(breaking(id)), delivery_count=6) for id in ("m-1", "m-2")]
    for id in ("m-1", "m-2"):
        place.failures.note(kind.name, f"web/{id}", HandlerFailed(SECRET), 5)
    with pytest.raises(MalformedMessage, match="1 of the 2 messages"):
        await replace(place.receiver, poison=poison).take_all(batch, kind, "accounts", None, 5)
    assert place.parked(kind.ref("a"), "web/m-2") is not None


@pytest.mark.parametrize("strategy", [Colocated(), VersionStream()], ids=repr)
async def test_a_reply_that_came_to_a_type_without_calls_is_parked_with_the_reason(
    place: Place, strategy: Strategy
) -> None:
    kind, reply = accounts(strategy), dated(deposit("c-1"))
    reply = replace(reply, extensions=ReplyTo("c-1", 1, "account/a").extensions)
    with pytest.raises(InvalidMessage) as refused:
        await place.take(kind, delivered(reply, delivery_count=5))
    assert "is the reply to a call, and entity 'account' makes none" in str(refused.value.__cause__)
    await place.take(kind, delivered(reply, delivery_count=6))
    assert place.changed_by("a") == []
    reason = place.reason(kind.ref("a"), "web/c-1")
    assert reason is not None
    assert reason.endswith("InvalidMessage: it is the reply to a call, and its entity type makes none")


async def test_an_empty_batch_is_acknowledged(place: Place) -> None:
    await place.take(accounts())


@pytest.mark.parametrize("as_property", [False, True])
async def test_the_brokers_reason_is_kept(place: Place, as_property: bool) -> None:
    kind, reason = accounts(), "MaxDeliveryCountExceeded"
    place.failures.note(kind.name, "web/m-1", HandlerFailed(SECRET), 10)
    more: dict[str, Any] = {"dead_letter_reason": reason}
    if as_property:
        properties = written(dated(breaking("m-1")).to_json()).properties
        more = {"application_properties": {**properties, "DeadLetterReason": reason}}
    assert await place.settler.settle(kind, delivered(dated(breaking("m-1")), **more), "accounts") == "parked"
    assert place.reason(kind.ref("a"), "web/m-1") == (
        "its queue gave it up; delivery 10 failed with HandlerFailed; its broker says MaxDeliveryCountExceeded"
    )


async def test_a_processed_dead_letter_is_finished(place: Place) -> None:
    await place.take(accounts(), delivered(deposit("m-1")))
    assert await place.settler.settle(accounts(), delivered(deposit("m-1")), "accounts") == "processed"
    assert len({output.id for output in place.published}) == 1


async def test_the_same_body_under_two_numbers_is_put_aside_twice(place: Place) -> None:
    kind = accounts()
    for number in (7, 8, 8):
        unreadable = delivered(Content(b"?"), sequence_number=number)
        assert await place.settler.settle(kind, unreadable, "accounts") == "parked"
    for item in (delivered(Content(b"?"), sequence_number=number) for number in (7, 8)):
        assert place.parked(aside_place(kind), message_key(UNREADABLE, id_of(item))) is not None
