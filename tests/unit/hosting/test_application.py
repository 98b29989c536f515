"""The application: contradictions are refused before the first message, and its parts share what they should."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any

import azure.functions as func
import pytest
from azure.functions.queue import QueueMessage
from pydantic import BaseModel

from exactlyonce import (
    Api,
    ConfigurationError,
    Context,
    Destination,
    Entity,
    Envelope,
    Outbox,
    Rebuild,
    Resequencer,
    TryAgainLater,
    VersionStream,
    message,
)
from exactlyonce.effects.attempt import Strategy
from exactlyonce.errors import InvalidMessage, MalformedMessage, OutputTooLarge, UnknownDestination
from exactlyonce.hosting import ExactlyOnce, Needs, ServiceBusConnection, Settings, StorageConnection
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.lifetimes import Lifetimes, Retention
from tests.calling import ORDERS, PAYMENTS, bill, orders, taken
from tests.samples import Account, Deposit, accounts, deposit
from tests.unit.bus import delivered

STORAGE = StorageConnection(
    "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=c2VjcmV0;QueueEndpoint=http://127.0.0.1:9/a;"
)


@message("receipt")
class Receipt(BaseModel):
    account: str


BUS = ServiceBusConnection("name.servicebus.windows.net")


def application(
    *entities: Entity[Any],
    destinations: tuple[Destination | Api, ...] = (),
    mapping: dict[str, str] | None = None,
    blobs: str | None = None,
    storage: StorageConnection | None = STORAGE,
    bus: ServiceBusConnection | None = None,
    transport: str = "storage",
) -> ExactlyOnce:
    """An application that is not connected to anything."""
    given = Settings.model_validate(
        {
            "COSMOS__accountEndpoint": "http://127.0.0.1:9/",
            "COSMOS__accountKey": "c2VjcmV0",
            "COSMOS__database": "shop",
            "EXACTLYONCE__destinations": mapping or {},
            "EXACTLYONCE__blobContainer": blobs,
            "EXACTLYONCE__transport": transport,
        }
    )
    return ExactlyOnce(entities, destinations=destinations, settings=given, storage=storage, service_bus=bus)


RECEIPTS = Destination("receipts")


def acknowledging() -> Entity[Account]:
    """An account whose handler names a destination of its module."""
    kind = accounts()

    @kind.handles(Receipt, key=lambda given: given.account)
    def acknowledge(state: Account, given: Receipt, context: Context) -> Account:
        context.send(RECEIPTS, given)
        return state

    return kind


def impostors() -> Entity[Account]:
    """An entity with a message type that travels under the name of another type."""

    @message("account.withdraw", formerly=("account.deposit",))
    class Impostor(BaseModel):
        pass

    other = Entity("other", state=Account, container="others", strategy=Outbox())
    other.handles(Impostor, key=lambda _: "o")(lambda state, given, context: state)
    return other


def boards(strategy: Strategy) -> Entity[Account]:
    return Entity("board", state=Account, container="boards", strategy=strategy)


REBUILD = Rebuild(of=accounts(VersionStream()), through="deposits")
CONTRADICTIONS: dict[str, tuple[Callable[[], object], str]] = {
    "two entities have one name": (lambda: application(accounts(), accounts()), "Two entities have the name"),
    "two destinations have one name": (
        lambda: application(destinations=(Destination("a"), Destination("a"))),
        "Two destinations have the name 'a'",
    ),
    "a destination and a service have one name": (
        lambda: application(orders(), destinations=(Destination("payments"), PAYMENTS)),
        "Two destinations have the name 'payments'",
    ),
    "two models travel under one name": (
        lambda: application(accounts(), impostors()),
        r"both travel as 'account\.deposit'",
    ),
    "a queue is mapped to no destination": (
        lambda: application(destinations=(Destination("board"),), mapping={"bord": "queue"}),
        "'bord', which is no destination",
    ),
    "a container for blobs is in no known account": (
        lambda: application(accounts(), blobs="blobs", storage=StorageConnection("https://a.queue.core.windows.net")),
        "set AzureWebJobsStorage__blobServiceUri",
    ),
    "a read model rebuilds through no destination": (
        lambda: application(accounts(Resequencer(on_gap=REBUILD)), destinations=(Destination("board"),)),
        "names 'deposits', which is no destination",
    ),
    "a handler names a destination of another application": (
        lambda: application(acknowledging(), destinations=(Destination("mail"),)),
        r"handler acknowledge of entity 'account' names destination 'receipts', .*: mail",
    ),
    "a handler names a destination, and there is none": (lambda: application(acknowledging()), "declared are: none"),
    "a partition key has no place for companions": (
        lambda: application(boards(Resequencer())),
        r"entity 'board' has the partition key path '/id', so every document",
    ),
    "queues of storage have no connection": (lambda: application(accounts(), storage=None), "give storage="),
    "queues of Service Bus have no connection": (
        lambda: application(accounts(), storage=None, transport="servicebus"),
        "give service_bus=",
    ),
}


@pytest.mark.parametrize(("make", "says"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_contradiction_is_refused_before_the_first_message(make: Callable[[], object], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        make()


def test_declarations_that_fit_are_taken() -> None:
    kind = acknowledging()
    assert application(kind, destinations=(RECEIPTS,)).entities == (kind,)
    assert application(boards(Outbox())).entities


async def test_sending_to_a_destination_that_nobody_declared_is_refused() -> None:
    once = application(accounts(), destinations=(Destination("board"),))
    with pytest.raises(UnknownDestination, match="known are: board"):
        await once.send("bord", Deposit("a"), message_id="m-1")
    await once.close()


async def test_sending_more_than_a_queue_takes_is_refused() -> None:
    once = application(accounts(), destinations=(Destination("board"),))
    with pytest.raises(OutputTooLarge, match="its queue takes 49152"):
        await once.send("board", Deposit("a", padding="x" * 50_000), message_id="m-1")
    await once.close()


async def test_calls_wait_in_queues_of_their_own() -> None:
    once = application(orders(), destinations=(ORDERS, PAYMENTS), mapping={"payments": "calls"})
    assert once._parts.resources.addresses["payments"].name == "calls"
    for take in (once.call, once.settle_call):
        with pytest.raises(InvalidMessage, match="Message web/m-1 is no call"):
            await take(taken(bill("m-1")))
    assert once._parts.caller.publisher._new_mark is not None
    assert once._parts.caller.publisher._accepted is None
    await once.close()


async def test_with_a_container_handlers_have_addresses_for_blobs() -> None:
    identity = StorageConnection("https://a.queue.core.windows.net", "c-1", "https://a.blob.core.windows.net")
    for storage in (STORAGE, identity):
        once = application(accounts(), blobs="blobs", storage=storage)
        assert once._parts.routes.blobs in (
            "http://a.blob.core.windows.net/blobs",
            "https://a.blob.core.windows.net/blobs",
        )
        await once.close()
    assert application(accounts())._parts.routes.blobs is None


async def test_an_application_without_a_container_refuses_a_message_whose_data_is_a_blob() -> None:
    once = application(accounts())
    body = Envelope("web", "m-1", "account.deposit", Json.of({})).by_reference("https://evil.example/a").to_json()
    with pytest.raises(MalformedMessage, match=r"web/m-1.*EXACTLYONCE__blobContainer"):
        await once.process(func.QueueMessage(id="1", body=body.text.encode()), once.entities[0])
    await once.close()


@pytest.mark.parametrize("name", ["Leader_Board", "a", "x" * 64, "two--hyphens", "-first"])
def test_a_destination_that_cannot_be_a_queue_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be the name of a queue"):
        application(destinations=(Destination(name),))


def test_a_handler_without_code_of_its_own_is_not_looked_into() -> None:
    kind = accounts()

    def acknowledge(to: Destination, state: Account, given: Receipt, context: Context) -> Account:
        context.send(to, given)
        return state

    kind.handles(Receipt, key=lambda given: given.account)(partial(acknowledge, RECEIPTS))
    assert application(kind).entities == (kind,)


@pytest.mark.parametrize(
    "use",
    [
        lambda once: once.process(func.QueueMessage(id="1", body=b"{}"), accounts()),
        lambda once: once.process_batch([], accounts(), queue="accounts"),
        lambda once: once.settle(func.QueueMessage(id="1", body=b"{}"), accounts(), queue="accounts"),
        lambda once: once.sweep(accounts()),
    ],
    ids=["process", "process_batch", "settle", "sweep"],
)
async def test_an_entity_the_application_was_not_made_with_is_refused(use: Callable[[ExactlyOnce], Any]) -> None:
    with pytest.raises(ConfigurationError, match="not among the entities"):
        await use(application(accounts()))


async def test_a_sweep_of_no_entity_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="it is 0"):
        await application(accounts()).sweep(limit=0)


async def test_the_reason_of_a_failed_delivery_is_remembered_for_settling() -> None:
    once = application(accounts())
    body = deposit("m-1", account="a/b").to_json().text.encode()
    delivery = QueueMessage(id="1", body=body, dequeue_count=3)  # type: ignore[no-untyped-call]
    with pytest.raises(InvalidMessage):
        await once.process(delivery, once.entities[0])
    assert once._parts.receiver.failures.reason("account", "web/m-1").endswith("delivery 3 failed with InvalidMessage")
    await once.close()


async def test_the_reason_is_remembered_for_each_message_of_a_service_bus_batch() -> None:
    queues = (Destination("accounts"),)
    once = application(accounts(), destinations=queues, storage=None, bus=BUS, transport="servicebus")
    with pytest.raises(InvalidMessage):
        await once.process(delivered(deposit("m-1", account="a/b"), delivery_count=3), once.entities[0])
    batch = [delivered(deposit(f"n-{number}", account="a/b"), delivery_count=2) for number in range(2)]
    with pytest.raises(InvalidMessage, match="2 of the 2 messages"):
        await once.process_batch(batch, once.entities[0], queue="accounts")
    reasons = [once._parts.receiver.failures.reason("account", f"web/{id}") for id in ("m-1", "n-0", "n-1")]
    assert [reason.split("; ")[1] for reason in reasons] == [
        f"delivery {number} failed with InvalidMessage" for number in (3, 2, 2)
    ]
    await once.close()


async def test_a_message_may_be_as_long_as_its_transport_takes() -> None:
    destinations = (Destination("board"),)
    limits = []
    for transport in ("storage", "servicebus"):
        once = application(accounts(), destinations=destinations, bus=BUS, transport=transport)
        limits.append(once._parts.routes.limits["board"])
        await once.close()
    assert limits == [48 * 1024, 248 * 1024]


def test_a_second_event_loop_is_refused_with_what_to_do() -> None:
    once = application(accounts(), destinations=(Destination("board"),))

    async def read() -> None:
        await once.read(accounts(), "a")

    with pytest.raises(TryAgainLater):
        asyncio.run(read())
    with pytest.raises(ConfigurationError, match="async def"):
        asyncio.run(read())


async def test_all_drivers_share_timeout_and_books_and_only_a_replay_sends_accepted_outputs_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EXACTLYONCE__deliveryTimeout", "7")
    once = application(accounts())
    parts = once._parts
    runners = parts.sweeper.maintenance, parts.poison.settler.maintenance, parts.maintenance
    assert {runner.retrying.backoff.seconds for runner in runners} == {parts.retrying.backoff.seconds} == {7}
    drivers = parts.driver, *(runner.driver for runner in runners)
    assert [driver._publisher._accepted is not None for driver in drivers] == [True, True, True, False]
    assert all(driver.books is parts.books for driver in drivers)
    await once.close()


async def test_a_process_that_answers_requests_proves_sooner_what_it_sent_unless_settings_say_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for said, before, after in ((None, 10, 2), ("PT5M", 5, 5)):
        if said is not None:
            monkeypatch.setenv("EXACTLYONCE__provedWithin", said)
        once = application(accounts())
        once._is_swept = True
        assert once._parts.books.within == timedelta(minutes=before)
        once._require_swept(once.entities[0])
        assert once._parts.books.within == timedelta(minutes=after)
        await once.close()


async def test_maintenance_has_the_lifetimes_and_the_types_of_the_application(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = accounts()
    once = application(kind)
    lifetimes = Lifetimes(Retention(timedelta(days=40)), expiry="store")
    monkeypatch.setattr(once._parts.resources.ownership, "_current", lifetimes)
    work = once._parts.sweeper.maintenance.work(kind, kind.ref("a"))
    assert (work.retention, work.page_lifetime) == (timedelta(days=40), timedelta(days=41))
    assert work.send_limit == lifetimes.send_limit(datetime.now(timezone.utc))
    assert work.senders == {"account"}
    await once.close()


async def test_an_entity_that_could_not_be_read_is_not_taken_for_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = accounts()
    once = application(kind)

    async def ready() -> None:
        """The accounts pass; from now on they do not answer."""

    monkeypatch.setattr(once._parts.resources, "ready", ready)
    with pytest.raises(TryAgainLater, match="account/a could not be read"):
        await once.read(kind, "a")
    await once.close()


async def test_accounts_are_verified_before_processing_and_before_settling(monkeypatch: pytest.MonkeyPatch) -> None:
    once = application(accounts())

    async def ready() -> None:
        raise ConfigurationError("The container belongs to another application.")

    monkeypatch.setattr(once._parts.resources, "ready", ready)
    for check in (once._parts.receiver.ready, once._parts.poison.settler.ready):
        with pytest.raises(ConfigurationError, match="another application"):
            await check()
    await once.close()


async def test_clients_are_closed_after_the_lanes_have_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    once, done = application(accounts()), list[str]()
    close = once._parts.resources.close

    async def quiesce() -> None:
        await asyncio.sleep(0)
        done.append("finished")

    async def end() -> None:
        done.append("ended")

    async def closing() -> None:
        await close()
        done.append("closed")

    monkeypatch.setattr(once._parts.lanes, "quiesce", quiesce)
    monkeypatch.setattr(once._parts.books, "end", end)
    monkeypatch.setattr(once._parts.resources, "close", closing)
    await once.close()
    assert done == ["finished", "ended", "closed"]


def test_the_needs_of_an_application_are_its_declarations_by_the_names_in_settings() -> None:
    once = application(
        accounts(),
        destinations=(Destination("mail"), Destination("audit"), PAYMENTS),
        mapping={"audit": "other"},
        blobs="blobs",
    )
    kind, queues = accounts(), ("mail", "other", "payments")
    assert once.needs == Needs("shop", {kind.container: kind.paths}, "exactlyonce", queues, "blobs")
