"""Tests of the shop, as its authors write them: flows on a clock, and every order of events that there is."""

from __future__ import annotations

import pytest

from exactlyonce.testing import App, Response, Seen, explore
from examples.shop.customers import Customer, customers
from examples.shop.fakes import Bank, opened
from examples.shop.messages import CancelIfUnpaid, LookInto, PlaceOrder, Ship
from examples.shop.orders import orders
from examples.shop.payments import Payment, bank, payments

SHOES = PlaceOrder(order="o-1", customer="ann", item="shoes", amount=80)


@pytest.fixture
def service() -> Bank:
    return Bank()


@pytest.fixture
def shop(service: Bank) -> App:
    return opened(service)


def status(seen: App | Seen) -> str | None:
    order = seen.state(orders, "o-1")
    return None if order is None else order.status


def test_an_order_is_paid_and_shipped(shop: App, service: Bank) -> None:
    shop.send(orders, SHOES)
    assert service.taken == 80
    assert status(shop) == "paid"
    assert shop.outputs("shipping") == (Ship(order="o-1", item="shoes"),)
    shop.advance(minutes=20)
    assert status(shop) == "paid"
    assert CancelIfUnpaid(order="o-1") not in shop.outputs("orders")
    assert shop.state(customers, "ann") == Customer(paid=["o-1"])


@pytest.mark.parametrize("seed", range(5))
def test_everything_counts_once_though_it_comes_twice_and_answers_of_the_bank_are_lost(
    shop: App, service: Bank, seed: int
) -> None:
    shop.duplicate_everything(seed)
    shop.trouble(bank, "lost", "down", "lost", Response(500))
    shop.send(orders, SHOES)
    shop.advance(hours=1)
    assert (service.taken, service.returned) == (80, 0)
    assert shop.state(payments, "o-1") == Payment(status="taken", amount=80, taken=80)
    assert shop.outputs("shipping") == (Ship(order="o-1", item="shoes"),)
    assert shop.state(customers, "ann") == Customer(paid=["o-1"])


def test_an_order_that_is_not_paid_in_time_is_cancelled_and_late_money_goes_back(shop: App, service: Bank) -> None:
    shop.trouble(bank, Response(503, headers={"Retry-After": "1200"}))
    shop.send(orders, SHOES)
    shop.advance(minutes=14)
    assert status(shop) == "placed"
    shop.advance(minutes=3)  # The sweeper comes within two minutes.
    assert status(shop) == "cancelled"
    assert service.taken == 0
    shop.advance(minutes=3)
    assert (service.taken, service.returned) == (80, 80)
    assert shop.outputs("shipping") == shop.outputs("support") == ()


def test_a_person_looks_into_a_charge_whose_answers_are_all_lost(shop: App, service: Bank) -> None:
    shop.trouble(bank, "lost", times=1_000)
    shop.send(orders, SHOES)
    shop.advance(hours=23)
    assert shop.outputs("support") == ()
    shop.advance(hours=1, seconds=2)
    assert shop.outputs("support") == (LookInto(order="o-1"),)
    assert shop.state(payments, "o-1") == Payment(status="unknown", amount=80)
    assert (status(shop), service.taken) == ("cancelled", 80)


def test_an_order_that_the_bank_declines_is_cancelled(shop: App) -> None:
    shop.trouble(bank, Response(402))
    shop.send(orders, SHOES)
    assert status(shop) == "cancelled"


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
    """Nobody pays for nothing, whenever the time to pay is over; or a person knows of it."""
    payment = seen.state(payments, "o-1") or Payment()
    assert status(seen) in ("paid", "cancelled")
    assert len(seen.outputs("shipping")) == (status(seen) == "paid")
    if not seen.outputs("support"):
        assert payment.taken - payment.returned == (80 if status(seen) == "paid" else 0)


@pytest.mark.parametrize(("faults", "interruptions"), [(1, 0), (0, 1)])
def test_whatever_comes_first_nobody_pays_for_nothing(shop: App, faults: int, interruptions: int) -> None:
    explore(shop, [(orders, SHOES)], in_the_end=shipped_or_paid_back, faults=faults, interruptions=interruptions)
