"""Payments: the money taken for each order."""

from typing import Final

from pydantic import BaseModel

from exactlyonce import Context, Entity, Outbox
from examples.shop.messages import Charge, Charged, Declined, Refund

MOST: Final = 1000
"""Nobody may pay more at once."""


class Payment(BaseModel):
    """State of the payment for one order."""

    taken: int = 0
    returned: int = 0


payments = Entity("payment", state=Payment, container="payments", strategy=Outbox())


@payments.handles(Charge, key=lambda charge: charge.order)
def take(state: Payment, charge: Charge, context: Context) -> Payment:
    """Take the money, unless it is too much."""
    if charge.amount > MOST:
        context.send("orders", Declined(order=charge.order))
        return state
    context.send("orders", Charged(order=charge.order))
    return Payment(taken=state.taken + charge.amount, returned=state.returned)


@payments.handles(Refund, key=lambda refund: refund.order)
def pay_back(state: Payment, refund: Refund, context: Context) -> Payment:
    """Give all of it back."""
    return Payment(taken=state.taken, returned=state.taken)
