"""The messages of the shop. Each travels under its registered name."""

from pydantic import BaseModel, Field

from exactlyonce import message


class About(BaseModel):
    """Every message is about an order."""

    order: str = Field(pattern=r"^[A-Za-z0-9-]{1,40}$")


@message("shop.place-order")
class PlaceOrder(About):
    """A customer orders."""

    customer: str
    item: str
    amount: int = Field(gt=0)


@message("shop.cancel-if-unpaid")
class CancelIfUnpaid(About):
    """The time to pay is over."""


@message("shop.charge")
class Charge(About):
    """Take the money for an order."""

    amount: int


@message("shop.refund")
class Refund(About):
    """Give the money for an order back."""


@message("shop.charged")
class Charged(About):
    """The money was taken."""


@message("shop.declined")
class Declined(About):
    """The money was not taken."""


@message("shop.look-into")
class LookInto(About):
    """Ask the bank what it did for an order."""


@message("shop.ship")
class Ship(About):
    """Send an item."""

    item: str


class OfCustomer(About):
    """Events name the customer."""

    customer: str


@message("shop.order-paid")
class OrderPaid(OfCustomer):
    """An order was paid."""


@message("shop.order-cancelled")
class OrderCancelled(OfCustomer):
    """An order was cancelled."""
