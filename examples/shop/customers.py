"""What each customer has bought: a read model, built from the orders' events."""

from pydantic import BaseModel

from exactlyonce import Context, Entity, Outbox
from examples.shop.messages import OrderCancelled, OrderPaid


class Customer(BaseModel):
    """State of one customer."""

    paid: list[str] = []
    cancelled: list[str] = []


customers = Entity("customer", state=Customer, container="customers", strategy=Outbox())


@customers.handles(OrderPaid, key=lambda event: event.customer)
def count_paid(state: Customer, event: OrderPaid, context: Context) -> Customer:
    """One more order that was paid."""
    return Customer(paid=[*state.paid, event.order], cancelled=state.cancelled)


@customers.handles(OrderCancelled, key=lambda event: event.customer)
def count_cancelled(state: Customer, event: OrderCancelled, context: Context) -> Customer:
    """One more that was not."""
    return Customer(paid=state.paid, cancelled=[*state.cancelled, event.order])
