"""What triggers deliver: read, processed alone or in batches, and given up."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import azure.functions as func
import pytest
from azure.functions import meta
from azure.functions.servicebus import ServiceBusMessage, ServiceBusMessageInConverter

from exactlyonce import Destination, Entity, Envelope, HandlerFailed, MalformedMessage, TryAgainLater
from exactlyonce.drivers.async_driver import AsyncDriver
from exactlyonce.drivers.combining import Combiner
from exactlyonce.drivers.retrying import Backoff, Retrying
from exactlyonce.drivers.surroundings import Surroundings
from exactlyonce.effects import Conflict, FoundParked, LoadParked, Saved, SaveEntity
from exactlyonce.handling.attempts import key_of
from exactlyonce.hosting.adapters import PlainJson
from exactlyonce.hosting.azure_functions import envelope_of, id_of
from exactlyonce.hosting.claim_checks import ClaimChecks
from exactlyonce.hosting.failures import Failures
from exactlyonce.hosting.mending import Mending
from exactlyonce.hosting.poison import PoisonSettler, nobodys
from exactlyonce.hosting.receiving import Receiver
from exactlyonce.identity import EntityRef
from exactlyonce.records import ParkedMessage
from exactlyonce.stores.awaiting import Awaited
from exactlyonce.stores.memory import MemoryStore
from exactlyonce.stores.port import Busy, Unknown
from exactlyonce.testing.chance import InstantClock
from exactlyonce.testing.world import World
from exactlyonce.transports.service_bus_binding import Content, written
from tests.samples import Deposit, accounts, breaking, deposit
from tests.unit.bus import delivered
from tests.unit.playing import AT

SECRET = "what-the-body-says"


class Counting(MemoryStore):
    """Notes which entities were saved with a new message."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__(now)
        self.commits: list[EntityRef] = []

    def save_entity(self, effect: SaveEntity) -> Saved | Conflict | Unknown | Busy:
        self.commits.append(effect.entity)
        return super().save_entity(effect)


class Place(World):
    """A world with one process that receives."""

    store: Counting

    def __init__(self) -> None:
        clock = InstantClock()
        super().__init__((Destination("receipts"),), clock=clock, store=Counting(clock.now))
        self.open = True
        driver = AsyncDriver(Awaited(self.store), self._publisher, Surroundings(self.clock, self.random))
        retrying = Retrying(Backoff(tries=2), self.random)
        mending, claims, failures = Mending(driver, retrying, self.routes), ClaimChecks(None), Failures()
        self.settler = PoisonSettler(mending, claims, failures, timedelta(days=7), self.clock.now)
        combiner = Combiner(driver, retrying, self.clock)
        self.receiver = Receiver(combiner, mending, claims, failures, self.settler, self._begin, self._begin)
        self.combiner = combiner

    async def _begin(self) -> None:
        if not self.open:
            raise TryAgainLater("The account could not be asked.")

    async def take(self, kind: Entity[Any], *messages: ServiceBusMessage, give_up_after: int = 5) -> None:
        await self.receiver.take_all(messages, kind, None, give_up_after)

    def parked(self, place: EntityRef, message: str) -> ParkedMessage | None:
        found = self.store.load_parked(LoadParked(place, message))
        assert isinstance(found, FoundParked)
        return found.message

    def changed_by(self, entity: str = "a") -> Sequence[str]:
        """The messages that changed an account, one for every save that brought it in."""
        ref = accounts().ref(entity)
        return [one.message for one in self.facts().commits if one.entity == ref.key]


@pytest.fixture
def place() -> Place:
    return Place()


class TestReading:
    @pytest.mark.parametrize(
        "content",
        [
            written(deposit("m-1").to_json()),
            Content(deposit("m-1").to_json().text.encode(), "application/cloudevents+json"),
            Content(deposit("m-1").to_json().text.encode()),
        ],
        ids=["binary", "structured", "not said"],
    )
    def test_a_message_of_service_bus_is_read_in_every_mode(self, content: Content) -> None:
        assert envelope_of(delivered(content)) == deposit("m-1")

    def test_properties_are_found_under_the_name_of_before(self) -> None:
        content = written(deposit("m-1").to_json())
        older = delivered(content, application_properties=None, user_properties=dict(content.properties))
        assert envelope_of(older) == deposit("m-1")

    def test_a_batch_is_read_as_the_hosts_own_decoder_makes_it(self) -> None:
        contents = [written(deposit(f"m-{number}").to_json()) for number in range(3)]
        arrays: dict[str, list[Any]] = {
            "ApplicationPropertiesArray": [dict(one.properties) for one in contents],
            "UserPropertiesArray": [dict(one.properties) for one in contents],
            "ContentTypeArray": [one.type for one in contents],
            "MessageIdArray": ["o-0", "o-1", "o-2"],
            "DeliveryCountArray": [1, 2, 3],
        }
        metadata = {name: meta.Datum(json.dumps(values), "json") for name, values in arrays.items()}
        data = meta.Datum(json.dumps([json.loads(one.body) for one in contents]), "json")
        messages = ServiceBusMessageInConverter.decode(data, trigger_metadata=metadata)
        assert isinstance(messages, list)
        assert [envelope_of(message) for message in messages] == [deposit(f"m-{number}") for number in range(3)]

    def test_an_adapter_gets_the_body_as_it_came(self) -> None:
        adapter = PlainJson(Deposit, "shop", lambda body: str(body["order"]), lambda _: AT)
        foreign = delivered(Content(b'{"order": 7, "account": "a"}', "application/json", {"color": "red"}))
        assert key_of(envelope_of(foreign, adapter)) == "shop/7"

    def test_what_is_no_envelope_is_refused_by_the_name_of_its_delivery(self) -> None:
        with pytest.raises(MalformedMessage, match=r"Queue message o-1/7/[0-9a-f]{16}: .*adapter") as told:
            envelope_of(delivered(Content(SECRET.encode())))
        assert SECRET not in str(told.value)

    def test_deliveries_that_share_an_id_are_told_apart_by_number_and_body(self) -> None:
        some = [
            delivered(Content(b"a")),
            delivered(Content(b"b")),
            delivered(Content(b"a"), sequence_number=8),
            delivered(Content(b"a"), message_id=None),
        ]
        assert len({id_of(one) for one in some}) == 4
        assert id_of(some[0]) == id_of(delivered(Content(b"a"), delivery_count=3))
        assert id_of(func.QueueMessage(id="q-1", body=b"")) == "q-1"


class TestBatches:
    async def test_messages_for_one_entity_share_a_commit(self, place: Place) -> None:
        await place.take(
            accounts(), *(delivered(deposit(f"m-{number}")) for number in range(3)), delivered(deposit("n", "b"))
        )
        assert set(place.changed_by("a")) == {"web/m-0", "web/m-1", "web/m-2"}
        assert place.changed_by("b") == ["web/n"]
        assert place.store.commits.count(accounts().ref("a")) == 1

    async def test_one_that_fails_keeps_no_other_from_being_done_and_brings_all_of_them_back(
        self, place: Place
    ) -> None:
        with pytest.raises(HandlerFailed, match=r"1 of the 3 messages .* HandlerFailed \(RuntimeError\)"):
            await place.take(accounts(), *map(delivered, (deposit("m-1"), breaking("m-2"), deposit("m-3", "b"))))
        assert place.changed_by("a") == ["web/m-1"]
        assert place.changed_by("b") == ["web/m-3"]

    async def test_those_that_are_done_are_known_when_they_come_again(self, place: Place) -> None:
        batch = (deposit("m-1"), breaking("m-2"), deposit("m-3", "b"))
        for delivery in (1, 2, 3):
            with pytest.raises(HandlerFailed):
                await place.take(accounts(), *(delivered(one, delivery_count=delivery) for one in batch))
        assert len({output.id for output in place.published}) == 2
        assert set(place.changed_by("a")) == {"web/m-1"}

    async def test_one_that_keeps_failing_is_parked_and_the_others_are_rid_of_it(self, place: Place) -> None:
        kind, batch = accounts(), (deposit("m-1"), breaking("m-2"))
        with pytest.raises(HandlerFailed):
            await place.take(kind, *(delivered(one, delivery_count=4) for one in batch))
        assert place.parked(kind.ref("a"), "web/m-2") is None
        await place.take(kind, *(delivered(one, delivery_count=5) for one in batch))
        parked = place.parked(kind.ref("a"), "web/m-2")
        assert parked is not None
        assert parked.reason == "its batch gave it up; delivery 5 failed with HandlerFailed (RuntimeError)"

    async def test_one_that_nobody_can_read_is_put_aside_in_the_end(self, place: Place) -> None:
        kind = accounts()
        unreadable = delivered(Content(SECRET.encode()), delivery_count=5)
        await place.take(kind, unreadable, delivered(deposit("m-1")))
        key = f"exactlyonce.unreadable/{id_of(unreadable).replace('/', '%2F')}"
        assert place.parked(nobodys(kind), key) is not None
        assert place.changed_by("a") == ["web/m-1"]

    async def test_what_the_world_does_is_no_reason_to_give_a_message_up(self, place: Place) -> None:
        kind = accounts()
        place.open = False
        for message in (deposit("m-1"), breaking("m-2")):
            with pytest.raises(TryAgainLater):
                await place.take(kind, delivered(message, delivery_count=9))
        place.open = True
        assert place.parked(kind.ref("a"), "web/m-1") is None
        assert place.parked(kind.ref("a"), "web/m-2") is None

    async def test_no_other_is_given_up_once_the_time_of_a_delivery_is_over(self, place: Place) -> None:
        kind, clock = accounts(), place.clock
        settle = place.settler.settle

        async def slowly(*given: Any, **more: Any) -> Any:
            await clock.sleep(25)
            return await settle(*given, **more)

        retrying = Retrying(Backoff(tries=2, seconds=60), place.random)
        receiver = replace(
            place.receiver,
            mending=replace(place.receiver.mending, retrying=retrying),
            poison=cast("PoisonSettler", SimpleNamespace(settle=slowly, now=clock.now)),
        )
        batch = [delivered(breaking(f"m-{number}"), delivery_count=5) for number in range(5)]
        with pytest.raises(HandlerFailed, match="2 of the 5 messages"):
            await receiver.take_all(batch, kind, None, 5)
        parked = [place.parked(kind.ref("a"), f"web/m-{number}") is not None for number in range(5)]
        assert parked == [True, True, True, False, False]

    async def test_one_that_cannot_even_be_parked_keeps_no_other_from_it(self, place: Place) -> None:
        kind, settle = accounts(), place.settler.settle

        async def unless_too_large(entity: Entity[Any], message: Any, *given: Any, **more: Any) -> Any:
            if envelope_of(message, None).id == "m-1":
                raise MalformedMessage("the message is too large to be parked")
            return await settle(entity, message, *given, **more)

        poison = cast("PoisonSettler", SimpleNamespace(settle=unless_too_large, now=place.clock.now))
        batch = [delivered(breaking(id), delivery_count=5) for id in ("m-1", "m-2")]
        with pytest.raises(HandlerFailed, match="1 of the 2 messages"):
            await replace(place.receiver, poison=poison).take_all(batch, kind, None, 5)
        assert place.parked(kind.ref("a"), "web/m-2") is not None

    async def test_an_empty_batch_is_done(self, place: Place) -> None:
        await place.take(accounts())


class TestDeadLetters:
    @pytest.mark.parametrize("as_property", [False, True])
    async def test_the_brokers_reason_is_kept(self, place: Place, as_property: bool) -> None:
        kind, reason = accounts(), "MaxDeliveryCountExceeded"
        more: dict[str, Any] = {"dead_letter_reason": reason}
        if as_property:
            more = {
                "application_properties": {**written(breaking("m-1").to_json()).properties, "DeadLetterReason": reason}
            }
        assert await place.settler.settle(kind, delivered(breaking("m-1"), **more)) == "parked"
        parked = place.parked(kind.ref("a"), "web/m-1")
        assert parked is not None
        assert parked.reason == (
            "its queue gave it up; this process did not see why; its broker says MaxDeliveryCountExceeded"
        )

    async def test_one_that_was_processed_is_finished(self, place: Place) -> None:
        await place.take(accounts(), delivered(deposit("m-1")))
        assert await place.settler.settle(accounts(), delivered(deposit("m-1"))) == "processed"
        assert len({output.id for output in place.published}) == 1

    @pytest.mark.parametrize(("days", "aside"), [(13.9, False), (14.1, True)])
    async def test_one_that_lay_there_for_too_long_cannot_be_decided_about(
        self, place: Place, days: float, aside: bool
    ) -> None:
        kind, enqueued = accounts(), place.clock.now() - timedelta(days=days)
        old = delivered(deposit("m-1"), enqueued_time_utc=enqueued.replace(tzinfo=None))
        assert await place.settler.settle(kind, old) == "parked"
        assert (place.parked(nobodys(kind), "web/m-1") is not None) is aside
        assert (place.parked(kind.ref("a"), "web/m-1") is not None) is not aside

    async def test_the_same_body_under_two_numbers_is_put_aside_twice(self, place: Place) -> None:
        kind = accounts()
        for number in (7, 8, 8):
            unreadable = delivered(Content(b"?"), sequence_number=number)
            assert await place.settler.settle(kind, unreadable) == "parked"
        kept = [
            place.parked(nobodys(kind), key_of(Envelope("exactlyonce.unreadable", id_of(one), "x", deposit("m").data)))
            for one in (delivered(Content(b"?"), sequence_number=number) for number in (7, 8))
        ]
        assert None not in kept
