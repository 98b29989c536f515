"""Exploring an application: planted bugs are found, each with a shortest story."""

from __future__ import annotations

import sys
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel

from exactlyonce import (
    Colocated,
    ConfigurationError,
    Context,
    Destination,
    Entity,
    Outbox,
    Resequencer,
    VersionStream,
    message,
)
from exactlyonce.testing import App, Explored, InvariantBroken, Seen, Unexplored, explore
from examples.shop.composition import DESTINATIONS, ENTITIES
from examples.shop.fakes import Bank, opened
from examples.shop.messages import CancelIfUnpaid, Charge, Charged, PlaceOrder, Ship
from examples.shop.orders import Order, confirm, orders
from examples.shop.payments import Payment, bank, payments, take

SHOES = PlaceOrder(order="o-1", customer="ann", item="shoes", amount=80)
Handler = Callable[[Any, Any, Context], Any]


def shop(entity: Entity[Any], model: type, handler: Handler) -> App:
    """The shop with another handler."""
    broken = copy(entity)
    name = next(name for name, item in entity.models.items() if item is model)
    broken._registrations = {
        **entity._registrations,
        name: replace(entity._registrations[name], handler=handler),
    }
    entities = (broken if item is entity else item for item in ENTITIES)
    return App(*entities, destinations=DESTINATIONS, apis={bank: Bank()})


def status(seen: Seen) -> str:
    order = seen.state(orders, "o-1")
    return "none" if order is None else order.status


def shipped_once(seen: Seen) -> None:
    assert len(seen.outputs("shipping")) <= 1


def shipped_only_if_paid(seen: Seen) -> object:
    return status(seen) == "paid" or seen.outputs("shipping") == ()


def paid_or_paid_back(seen: Seen) -> str | None:
    payment = seen.state(payments, "o-1") or Payment()
    kept = 0 if seen.outputs("support") else payment.taken - payment.returned  # People look into the others.
    return f"an order that is {status(seen)} keeps {kept}" if kept and status(seen) != "paid" else None


def test_a_sound_application_has_no_story_and_its_states_are_counted() -> None:
    found = explore(opened(), [(orders, SHOES)], shipped_once, in_the_end=paid_or_paid_back, interruptions=0)
    again = explore(opened(), [("orders", SHOES)], shipped_once, in_the_end=paid_or_paid_back, interruptions=0)
    assert isinstance(found, Explored)
    assert found == again
    assert found.states > 200


def ship_whatever_happened(state: Order, charged: Charged, context: Context) -> Order:
    context.send("shipping", Ship(order=charged.order, item=state.item))
    return state if state.status == "cancelled" else state.model_copy(update={"status": "paid"})


def test_a_bug_that_takes_a_certain_order_is_found_with_its_shortest_story() -> None:
    with pytest.raises(InvariantBroken, match="shipped_only_if_paid does not hold") as caught:
        explore(shop(orders, Charged, ship_whatever_happened), [(orders, SHOES)], in_the_end=shipped_only_if_paid)
    story = caught.value.story
    taken = [line.split(" takes ")[1].split("(")[0] for line in story if " takes " in line]
    assert taken[0] == "PlaceOrder"
    assert sorted(taken[1:4]) == ["BankCharged", "CancelIfUnpaid", "Charge"]
    assert taken[-1] in ("Charged", "OrderCancelled")
    assert "publishes Ship to shipping" in str(caught.value)
    assert not any("lost" in line or "crashes" in line for line in story)


def test_an_invariant_across_two_entities_tells_what_it_found() -> None:
    def keep(state: Order, charged: Charged, context: Context) -> Order:
        return state if state.status == "cancelled" else confirm(state, charged, context)

    with pytest.raises(InvariantBroken, match="paid_or_paid_back: an order that is cancelled keeps 80"):
        explore(shop(orders, Charged, keep), [(orders, SHOES)], in_the_end=paid_or_paid_back)


def test_a_counter_outside_of_the_state_is_found() -> None:
    seen: list[str] = []

    def count(state: Payment, charge: Charge, context: Context) -> Payment:
        seen.append(charge.order)
        taken: Payment = take(state, Charge(order=charge.order, amount=len(seen)), context)
        return taken

    with pytest.raises(InvariantBroken, match=r"not deterministic.*\n.*state\.amount: 1 at first, then 2"):
        explore(shop(payments, Charge, count), [(orders, SHOES)])


def test_a_handler_that_raises_in_some_order_is_found_unless_messages_may_fail() -> None:
    def insist(state: Order, due: CancelIfUnpaid, context: Context) -> Order:
        if state.status != "placed":
            raise ValueError("it is too late")
        return state

    with pytest.raises(InvariantBroken, match=r"HandlerFailed.*ValueError: it is too late"):
        explore(shop(orders, CancelIfUnpaid, insist), [(orders, SHOES)])

    def failed_if_paid(seen: Seen) -> None:
        assert not seen.failed() or (status(seen), seen.failed()) == ("paid", (CancelIfUnpaid(order="o-1"),))

    explore(shop(orders, CancelIfUnpaid, insist), [(orders, SHOES)], failed_if_paid, may_fail=True)


def test_packages_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened()
    monkeypatch.setitem(sys.modules, "yieldcheck", None)
    with pytest.raises(ConfigurationError, match="needs the package yieldcheck, which exactlyonce-dev brings"):
        explore(app, [(orders, SHOES)])
    monkeypatch.delitem(sys.modules, "exactlyonce.testing.in_memory")
    monkeypatch.setitem(sys.modules, "azure.functions.queue", None)
    with pytest.raises(ConfigurationError, match=r"needs azure\.functions\.queue: install exactlyonce\[azure\]"):
        opened()


def test_too_many_states_prove_nothing() -> None:
    with pytest.raises(
        Unexplored,
        match=r"within 300 states, but there are more\. \d\d % of them come from [A-Z]\w+, [A-Z]\w+ and [A-Z]\w+\. Give fewer",
    ):
        explore(opened(), [(orders, SHOES)], most_states=300)


def test_an_exploration_starts_from_what_the_application_holds_and_leaves_it_alone() -> None:
    app = opened()
    app.send(orders, SHOES)

    def never_cancelled(seen: Seen) -> bool:
        return status(seen) == "paid"

    # The charge is over, and the message for the end of the time to pay was taken back.
    assert explore(app, [], never_cancelled).states == 1
    found = explore(app, [(orders, SHOES)], never_cancelled)
    assert found.states > 5
    assert app.outputs("shipping") == (Ship(order="o-1", item="shoes"),)
    with pytest.raises(InvariantBroken):
        explore(app, [(orders, SHOES)], lambda seen: seen.state(orders, "o-2") is None and status(seen) != "paid")


@message("test.explored.add")
class Add(BaseModel):
    key: str
    amount: int = 1


@message("test.explored.added")
class Added(Add):
    """Something was added."""


class Sum(BaseModel):
    total: int = 0


def sums(strategy: Any, key: str = "/id") -> Entity[Sum]:
    entity = Entity("sum", state=Sum, container="sums", partition_key=key, strategy=strategy)

    @entity.handles(Add, key=lambda add: add.key)
    def add(state: Sum, add: Add, context: Context) -> Sum:
        context.send("added", Added(key=add.key, amount=add.amount))
        return Sum(total=state.total + add.amount)

    return entity


def boards() -> Entity[Sum]:
    entity = Entity("board", state=Sum, container="boards", partition_key="/board", strategy=Resequencer())

    @entity.handles(Added, key=lambda added: added.key)
    def count(state: Sum, added: Added, context: Context) -> Sum:
        return Sum(total=10 * state.total + added.amount)

    return entity


@pytest.mark.parametrize(
    ("strategy", "path"),
    [(Outbox(), "/id"), (Colocated(), "/sum"), (VersionStream(), "/sum")],
)
def test_every_strategy_is_explored(strategy: Any, path: str) -> None:
    added, board = sums(strategy, path), boards()
    app = App(added, board, destinations=(Destination("sums", to=added), Destination("added", to=board)))

    def added_up(seen: Seen) -> bool:
        shown = seen.state(board, "a")
        return seen.state(added, "a") == Sum(total=3) and shown is not None and shown.total in (12, 21)

    explore(app, [(added, Add(key="a")), (added, Add(key="a", amount=2))], in_the_end=added_up, interruptions=0)


def test_a_message_that_nobody_takes_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="shipping"):
        explore(opened(), [("shipping", Ship(order="o-1", item="shoes"))])


def test_a_message_with_an_invalid_key_is_a_failed_delivery() -> None:
    added = sums(Outbox())
    app = App(added, destinations=(Destination("sums", to=added), Destination("added")))
    with pytest.raises(InvariantBroken, match=r"and fails") as caught:
        explore(app, [(added, Add(key="a")), (added, Add(key=""))], faults=0)
    assert len(caught.value.story) == 1
    explore(app, [(added, Add(key=""))], in_the_end=lambda seen: seen.failed() == (Add(key=""),), may_fail=True)
