"""What stands for the bank in tests."""

from exactlyonce.testing import App, Request, Response
from examples.shop.composition import DESTINATIONS, ENTITIES
from examples.shop.payments import bank


class Bank:
    """A bank that does as it is told.

    Attributes:
        taken, returned: the money of all orders.
    """

    def __init__(self) -> None:
        self.taken = self.returned = 0

    def __call__(self, request: Request) -> Response:
        """Carry out a call."""
        if request.path == "/charges":
            self.taken += request.body["amount"]
        else:
            self.returned += request.body["amount"]
        return Response(201)


def opened(service: Bank | None = None) -> App:
    """The shop in memory, with a bank."""
    return App(*ENTITIES, destinations=DESTINATIONS, apis={bank: service or Bank()})
