"""The parts of the shop, and the queues between them."""

from exactlyonce import Destination
from examples.shop.customers import customers
from examples.shop.messages import OrderCancelled, OrderPaid
from examples.shop.orders import orders
from examples.shop.payments import BankCharged, BankRefunded, bank, payments

ENTITIES = (orders, payments, customers)
DESTINATIONS = (
    Destination("orders", to=orders),
    Destination("payments", to=payments, receives=(BankCharged, BankRefunded)),
    Destination("customers", to=customers, receives=(OrderPaid, OrderCancelled)),
    bank,
    Destination("support"),  # People look into what nobody knows.
    Destination("shipping"),  # Another application packs and sends.
)
