"""Orders: placed, then paid in time or cancelled."""

from datetime import timedelta
from typing import Final, Literal

from pydantic import BaseModel

from exactlyonce import Context, Entity, Outbox
from examples.shop.messages import (
    CancelIfUnpaid,
    Charge,
    Charged,
    Declined,
    OrderCancelled,
    OrderPaid,
    PlaceOrder,
    Refund,
    Ship,
)

TIME_TO_PAY: Final = timedelta(minutes=15)


class Order(BaseModel):
    """State of one order."""

    status: Literal["new", "placed", "paid", "cancelled"] = "new"
    customer: str = ""
    item: str = ""
    amount: int = 0
    deadline: str = ""
    """Id of the message that cancels the order if it is not paid."""


class Receipt(BaseModel):
    """The answer to a customer."""

    order: str
    status: str


orders = Entity("order", state=Order, container="orders", strategy=Outbox())


@orders.handles(PlaceOrder, key=lambda placed: placed.order)
def place(state: Order, placed: PlaceOrder, context: Context) -> Order:
    """Charge the customer, and cancel the order after a quarter of an hour if the money did not come."""
    if state.status == "new":
        context.send("payments", Charge(order=placed.order, amount=placed.amount))
        deadline = context.send("orders", CancelIfUnpaid(order=placed.order), at=context.now + TIME_TO_PAY)
        state = Order(
            status="placed", customer=placed.customer, item=placed.item, amount=placed.amount, deadline=deadline
        )
    context.reply(Receipt(order=placed.order, status=state.status), status=202)
    return state


@orders.handles(Charged, key=lambda charged: charged.order)
def confirm(state: Order, charged: Charged, context: Context) -> Order:
    """Ship what is paid, and take the deadline back; pay back what comes too late."""
    if state.status != "placed":
        context.send("payments", Refund(order=charged.order))
        return state
    context.cancel(state.deadline)  # If it is too late for that, `look` finds the order paid.
    context.send("shipping", Ship(order=charged.order, item=state.item))
    context.announce(OrderPaid(order=charged.order, customer=state.customer))
    return state.model_copy(update={"status": "paid"})


@orders.handles(Declined, key=lambda declined: declined.order)
def reject(state: Order, declined: Declined, context: Context) -> Order:
    """Cancel what is not paid."""
    return cancelled(state, declined.order, context)


@orders.handles(CancelIfUnpaid, key=lambda due: due.order)
def look(state: Order, due: CancelIfUnpaid, context: Context) -> Order:
    """Cancel what is not paid by now."""
    return cancelled(state, due.order, context)


def cancelled(state: Order, order: str, context: Context) -> Order:
    """The order, cancelled unless it is paid."""
    if state.status != "placed":
        return state
    context.announce(OrderCancelled(order=order, customer=state.customer))
    return state.model_copy(update={"status": "cancelled"})
