"""Payments: the money taken for each order, by a bank that answers late, twice or never."""

import os
from datetime import timedelta
from typing import Final, Literal

from pydantic import BaseModel

from exactlyonce import Api, Context, Entity, Outbox, Reply, message
from examples.shop.messages import Charge, Charged, Declined, LookInto, Refund

MOST: Final = 1000
"""Nobody may pay more at once."""

bank = Api(
    "bank",
    "https://bank.example.com/v1",
    key_lifetime=timedelta(hours=24),
    credentials=lambda: {"Authorization": f"Bearer {os.environ.get('BANK_KEY', '')}"},
)


class Amount(BaseModel):
    """The body of a call to the bank."""

    amount: int


@message("shop.bank-charged")
class BankCharged(Reply):
    """The bank's answer to a charge. The tag is the order."""


@message("shop.bank-refunded")
class BankRefunded(Reply):
    """Its answer to a refund."""


class Payment(BaseModel):
    """State of the payment for one order."""

    status: Literal["new", "asked", "taken", "declined", "unknown"] = "new"
    amount: int = 0
    taken: int = 0
    returned: int = 0


payments = Entity("payment", state=Payment, container="payments", strategy=Outbox())


@payments.handles(Charge, key=lambda charge: charge.order)
def take(state: Payment, charge: Charge, context: Context) -> Payment:
    """Let the bank take the money, unless it is too much."""
    if charge.amount > MOST:
        context.send("orders", Declined(order=charge.order))
        return Payment(status="declined", amount=charge.amount)
    context.call(bank, "POST", "/charges", Amount(amount=charge.amount), then=BankCharged, tag=charge.order)
    return Payment(status="asked", amount=charge.amount)


@payments.handles(BankCharged, key=lambda answer: answer.tag)
def charged(state: Payment, answer: BankCharged, context: Context) -> Payment:
    """Tell the order.

    What the bank did is unknown if it gave no answer for a day, or refused a try after one whose answer was lost: a person
    asks it.
    """
    if not (answer.ok or answer.refused):
        context.send("support", LookInto(order=answer.tag))
        return state.model_copy(update={"status": "unknown"})
    if not answer.ok:
        context.send("orders", Declined(order=answer.tag))
        return state.model_copy(update={"status": "declined"})
    context.send("orders", Charged(order=answer.tag))
    return state.model_copy(update={"status": "taken", "taken": state.amount})


@payments.handles(Refund, key=lambda refund: refund.order)
def pay_back(state: Payment, refund: Refund, context: Context) -> Payment:
    """Let the bank give all of it back."""
    context.call(bank, "POST", "/refunds", Amount(amount=state.taken), then=BankRefunded, tag=refund.order)
    return state


@payments.handles(BankRefunded, key=lambda answer: answer.tag)
def paid_back(state: Payment, answer: BankRefunded, context: Context) -> Payment:
    """Note it, or let a person look."""
    if answer.ok:
        return state.model_copy(update={"returned": state.taken})
    context.send("support", LookInto(order=answer.tag))
    return state
