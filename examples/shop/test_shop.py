"""Tests of the shop, as its authors write them: flows on a clock, and every order of events that there is."""

from __future__ import annotations

import pytest

from exactlyonce.testing import App, Seen, explore
from examples.shop.composition import DESTINATIONS, ENTITIES
from examples.shop.customers import Customer, customers
from examples.shop.messages import PlaceOrder, Ship
from examples.shop.orders import orders
from examples.shop.payments import Payment, payments

SHOES = PlaceOrder(order="o-1", customer="ann", item="shoes", amount=80)


@pytest.fixture
def shop() -> App:
    return App(*ENTITIES, destinations=DESTINATIONS)


def status(seen: App | Seen) -> str | None:
    order = seen.state(orders, "o-1")
    return None if order is None else order.status


def test_an_order_is_paid_and_shipped(shop: App) -> None:
    shop.send(orders, SHOES)
    assert status(shop) == "paid"
    assert shop.outputs("shipping") == (Ship(order="o-1", item="shoes"),)
    shop.advance(minutes=15)
    assert status(shop) == "paid"
    assert shop.state(customers, "ann") == Customer(paid=["o-1"])


def test_everything_counts_once_though_it_comes_twice_and_in_any_order(shop: App) -> None:
    shop.duplicate_everything(seed=7)
    shop.send(orders, SHOES)
    shop.advance(hours=1)
    assert shop.state(payments, "o-1") == Payment(taken=80)
    assert shop.outputs("shipping") == (Ship(order="o-1", item="shoes"),)
    assert shop.state(customers, "ann") == Customer(paid=["o-1"])


def test_an_order_that_costs_too_much_is_cancelled(shop: App) -> None:
    shop.send(orders, SHOES.model_copy(update={"amount": 5000}))
    assert status(shop) == "cancelled"
    assert shop.outputs("shipping") == ()
    assert shop.state(customers, "ann") == Customer(cancelled=["o-1"])


def test_a_repeated_request_gets_the_same_answer(shop: App) -> None:
    first = shop.ask(orders, SHOES, key="k-1")
    again = shop.ask(orders, SHOES, key="k-1")
    assert (first.status, first.body) == (202, '{"order":"o-1","status":"placed"}')
    assert (again.body, again.replayed) == (first.body, True)


def shipped_or_paid_back(seen: Seen) -> None:
    """Nobody pays for nothing, whenever the time to pay is over."""
    payment = seen.state(payments, "o-1") or Payment()
    assert status(seen) in ("paid", "cancelled")
    assert len(seen.outputs("shipping")) == (status(seen) == "paid")
    assert payment.taken - payment.returned == (80 if status(seen) == "paid" else 0)


def test_whatever_comes_first_nobody_pays_for_nothing(shop: App) -> None:
    explore(shop, [(orders, SHOES)], in_the_end=shipped_or_paid_back)
