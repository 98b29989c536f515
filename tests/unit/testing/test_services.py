"""Calls of an application in memory: the functions that stand for services, their trouble, and the clock between tries."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel

from exactlyonce import Api, ConfigurationError, Context, Destination, Entity, Outbox, Reply, message
from exactlyonce.errors import InvalidMessage
from exactlyonce.handling.calls import Call, read_call
from exactlyonce.records.outbox import Output
from exactlyonce.testing import App, Request, Response
from exactlyonce.testing.services import Service, Trouble
from tests.calling import ORDERS, PAYMENTS, RECEIPTS, Bill, Billed, Charge, Charged, Order, orders

API = replace(PAYMENTS, credentials=lambda: {"Authorization": "Bearer key"})
"""Its last try starts 58 minutes and 30 seconds after the commit."""
LAST_TRY = timedelta(minutes=58, seconds=30)


class Bank:
    """A service that charges what it is told to."""

    def __init__(self) -> None:
        self.charges: Counter[str] = Counter()

    def __call__(self, request: Request) -> Response:
        self.charges[request.key] += request.body["amount"]
        return Response(201, {"charge": len(self.charges)}, {"Location": "/charges/1"})


def refusing(request: Request) -> Response:
    raise ConnectionError


class Shop:
    """An application whose orders are charged by a bank."""

    def __init__(self, service: Any = None, api: Api = API) -> None:
        self.bank, self.api = Bank(), api
        self.orders: Entity[Order] = orders(api=api)
        named = (ORDERS, RECEIPTS, api)
        self.app = App(
            self.orders, destinations=named, queues={"orders": self.orders}, apis={api: service or self.bank}
        )

    def bill(self, order: str = "a", **more: Any) -> None:
        self.app.send(self.orders, Bill(order, **more))

    def order(self, id: str = "a") -> Order | None:
        return self.app.state(self.orders, id)


@pytest.fixture
def shop() -> Shop:
    return Shop()


@message("priced")
class Priced(Reply):
    """The price of something, by a service that writes numbers."""

    body: dict[str, Decimal]


class Price(BaseModel):
    price: Decimal = Decimal(0)


def test_a_price_that_is_no_double_reaches_the_handler_as_it_was_answered() -> None:
    priced = Entity("priced", state=Price, container="priced", strategy=Outbox())
    queue = Destination("priced", receives=(Priced,))

    @priced.handles(Bill, key=lambda bill: bill.order)
    def ask(state: Price, bill: Bill, context: Context) -> Price:
        context.call(API, "GET", "/price", then=Priced, tag=bill.order)
        return state

    @priced.handles(Priced, key=lambda reply: reply.tag)
    def note(state: Price, reply: Priced, context: Context) -> Price:
        return Price(price=reply.body["price"])

    price = Decimal("99999999999999.99")
    apis: dict[Api, Service] = {API: lambda request: Response(200, {"price": price})}
    app = App(priced, destinations=(queue, API), queues={"priced": priced}, apis=apis)
    app.send(priced, Bill("a"))
    assert app.state(priced, "a") == Price(price=price)


PAID, UNKNOWN, OPEN = Order(bills=1, paid=1), Order(bills=1, unknown=1), Order(bills=1)


def test_a_call_reaches_its_service_and_the_reply_is_handled(shop: Shop) -> None:
    shop.bill(amount=80, path="/charges?now=1")
    assert shop.order() == PAID
    assert shop.app.outputs("receipts") == (Billed("a"),)
    (tried,) = shop.app.tries(API)
    assert (tried.method, tried.path, tried.body) == ("POST", "/charges?now=1", {"amount": 80})
    assert tried.headers["Authorization"] == "Bearer key"
    assert tried.headers["Idempotency-Key"] == tried.key
    assert "Bearer" not in repr(tried)
    assert shop.bank.charges == {tried.key: 80}
    (call,) = shop.app.outputs(API)
    assert isinstance(call, Call)
    assert (call.path, call.tag) == ("/charges?now=1", "a")


TROUBLES: dict[str, tuple[tuple[Trouble, ...], int, int, int, int]] = {
    "a lost answer is asked for again": (("lost", "lost"), 80, 0, 60, 3),
    "a service that is down is called again": (("down",), 0, 0, 2, 2),
    "a service may say when to come again": ((Response(503, headers={"Retry-After": "600"}),), 0, 599, 1, 2),
    "an answer that takes longer than the timeout is lost": ((timedelta(seconds=31),), 80, 30, 2, 2),
}
"""The troubles of a call; what is charged at first, how many seconds it is open, in how many more it is paid, and its tries."""


@pytest.mark.parametrize("name", TROUBLES)
def test_a_call_in_trouble_is_tried_again_under_its_key_and_the_service_charges_once(shop: Shop, name: str) -> None:
    troubles, charged, seconds, more, tries = TROUBLES[name]
    shop.app.trouble(API, *troubles)
    shop.bill(amount=80)
    shop.app.advance(seconds=seconds)
    assert shop.order() == OPEN
    assert sum(shop.bank.charges.values()) == charged
    shop.app.advance(seconds=more)
    assert shop.order() == PAID
    assert list(shop.bank.charges.values()) == [80]
    assert len(shop.app.tries(API)) == tries
    assert len({item.key for item in shop.app.tries(API)}) == 1


def test_a_status_that_is_final_is_not_tried_again(shop: Shop) -> None:
    shop.app.trouble(API, Response(402, {"reason": "no money"}))
    shop.bill()
    shop.app.advance(hours=2)
    assert shop.order() == PAID  # These orders ask for an outcome only.
    assert not shop.bank.charges
    assert len(shop.app.tries(API)) == 1


def test_while_an_answer_takes_its_time_other_messages_are_processed(shop: Shop) -> None:
    shop.app.trouble(API, timedelta(seconds=30))
    shop.bill()
    shop.bill("b")
    assert (shop.order(), shop.order("b")) == (OPEN, PAID)
    shop.app.advance(seconds=29)
    assert shop.order() == OPEN
    shop.app.advance(seconds=1)
    assert shop.order() == PAID
    assert len(shop.app.tries(API)) == 2


def test_a_call_whose_key_runs_out_is_unknown() -> None:
    shop = Shop(refusing)
    shop.bill()
    shop.app.advance(LAST_TRY)
    tries = len(shop.app.tries(PAYMENTS))
    assert shop.order() == OPEN
    shop.app.advance(PAYMENTS.timeout + PAYMENTS.clock_tolerance)
    assert (shop.order(), len(shop.app.tries(PAYMENTS))) == (OPEN, tries)
    shop.app.advance(seconds=2)
    assert shop.order() == UNKNOWN


def test_effects_of_a_service_before_its_connection_broke_stay() -> None:
    charged: list[str] = []

    def breaking(request: Request) -> Response:
        charged.append(request.key)
        raise TimeoutError

    shop = Shop(breaking)
    shop.bill()
    shop.app.advance(seconds=2)
    assert len(charged) == 2  # It does not honour keys: it never came to an answer.


def test_an_error_of_the_function_is_raised_to_the_test() -> None:
    def wrong(request: Request) -> Response:
        assert request.body == {"amount": 1000}, "a wrong amount"
        return Response()

    shop = Shop(wrong)
    with pytest.raises(AssertionError, match="a wrong amount"):
        shop.bill()
    assert shop.order() == OPEN


def test_an_answer_that_is_not_final_is_not_remembered() -> None:
    answers = [Response(503), Response(409), Response(200)]
    shop = Shop(lambda _: answers.pop(0))
    shop.bill()
    shop.app.advance(minutes=1)
    assert shop.order() == PAID
    assert answers == []


def test_the_answer_of_a_reply_has_what_its_api_names() -> None:
    shop = Shop(api=replace(API, most_bytes=3))
    shop.bill()
    _, reply = shop.app.outputs("orders")
    assert (reply.status, reply.body, reply.cut) == (201, None, True)
    assert reply.headers == {"Content-Type": "application/json", "Location": "/charges/1"}


@pytest.mark.parametrize("seed", range(5))
def test_everything_comes_twice_and_in_any_order_and_each_order_is_charged_once(seed: int) -> None:
    shop = Shop()
    shop.app.duplicate_everything(seed)
    shop.app.trouble(API, "lost", "down", Response(500), "lost", "down", timedelta(seconds=20))
    for order in "abc":
        shop.bill(order)
    shop.app.advance(hours=2)
    assert [shop.order(item) for item in "abc"] == [PAID] * 3
    assert list(shop.bank.charges.values()) == [1, 1, 1]
    assert len(shop.app.outputs(API)) == len(shop.app.outputs("receipts")) == 3


def test_copies_of_a_call_that_is_tried_for_long_stay_few() -> None:
    shop = Shop(refusing)
    shop.app.duplicate_everything()
    shop.bill()
    shop.app.advance(hours=2)
    assert shop.order() == UNKNOWN
    assert len(shop.app.tries(API)) < 100


def test_the_same_calls_of_a_test_give_the_same_tries() -> None:
    def tries() -> list[tuple[str, str]]:
        shop = Shop()
        shop.app.trouble(API, "down", "lost")
        shop.bill()
        shop.app.advance(minutes=1)
        return [(item.key, item.path) for item in shop.app.tries(API)]

    assert tries() == tries()


def test_two_services_with_one_address_are_told_apart() -> None:
    other, bank = replace(API, name="loans"), Bank()
    entity = Entity("order", state=Order, container="orders", strategy=Outbox())

    @entity.handles(Bill, key=lambda bill: bill.order)
    def bill(state: Order, given: Bill, context: Context) -> Order:
        for api in (API, other):
            context.call(api, "POST", "/charges", Charge(1), then=Charged, tag=given.order)
        return state

    @entity.handles(Charged, key=lambda charged: charged.tag)
    def charged(state: Order, got: Charged, context: Context) -> Order:
        return Order(paid=state.paid + got.ok, unknown=state.unknown + (not got.ok))

    apis: dict[Api, Service] = {API: bank, other: lambda _: Response(404)}
    app = App(entity, destinations=(ORDERS, API, other), queues={"orders": entity}, apis=apis)
    app.send(entity, Bill("a"))
    assert app.state(entity, "a") == Order(paid=1, unknown=1)
    assert len(bank.charges) == len(app.tries(API)) == len(app.tries(other)) == 1


def test_a_call_without_a_service_is_refused() -> None:
    entity = orders()
    app = App(entity, destinations=(ORDERS, RECEIPTS, PAYMENTS), queues={"orders": entity})
    with pytest.raises(
        ConfigurationError,
        match=r"^A handler called 'payments', and apis= of App has no function for it\. Name one there\.$",
    ):
        app.send(entity, Bill("a"))
    assert app.state(entity, "a") == OPEN
    assert len(app.outputs(PAYMENTS)) == 1


@pytest.mark.parametrize("more", [(), (Destination("payments"),)], ids=["none", "a destination of that name"])
def test_a_service_that_is_no_destination_is_refused(more: tuple[Destination, ...]) -> None:
    with pytest.raises(ConfigurationError, match="apis= names 'payments', which is no Api of destinations="):
        App(orders(), destinations=(ORDERS, RECEIPTS, *more), apis={PAYMENTS: Bank()})


def test_a_message_that_is_no_call_is_given_up_and_settled_as_its_queue_does(shop: Shop) -> None:
    with pytest.raises(InvalidMessage, match="is no call"):
        shop.app.run(shop.app.once.send("payments", Billed("a"), message_id="m-1"))


def test_a_call_that_cannot_be_made_is_settled_and_ends_as_unknown(shop: Shop) -> None:
    shop.bill()
    call = shop.app.host.sent["payments"].popitem()[1]
    wrong = replace(call, extensions=replace(read_call(call), path="//elsewhere").extensions)

    async def arrive() -> None:
        shop.app.host.arrive("payments", Output("x", "payments", wrong.to_json()))

    with pytest.raises(InvalidMessage, match="A path of payments"):
        shop.app.run(arrive())
    assert shop.app.host.delayed[0].envelope.requeued == 1
