"""What a type checker sees of an application. `mypy` is the test, and nothing here runs.

Each mistake is marked with the error that reports it: one that is no longer reported is an unused mark, which mypy refuses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from exactlyonce import Context, Destination, Entity, Outbox, VersionStream, message
from exactlyonce.hosting import ExactlyOnce
from exactlyonce.testing import App, run

if TYPE_CHECKING:
    from typing_extensions import assert_type  # noqa: TC004  # Nothing here runs.


@message("types.place")
class Place(BaseModel):
    order: str
    amount: int = 0


@message("types.pay")
class Pay(BaseModel):
    order: str


@message("types.paid")
class Paid(BaseModel):
    order: str


class Unregistered(BaseModel):
    order: str


class Order(BaseModel):
    placed: int = 0


class Other(BaseModel):
    placed: int = 0


orders = Entity("order", state=Order, container="orders", strategy=Outbox())
streams = Entity("stream", state=Order, container="streams", strategy=VersionStream())
to_orders = Destination("orders", receives=(Place,), to=orders)
to_both = Destination("both", receives=(Place, Pay))
to_any = Destination("any")


async def right(app: App, once: ExactlyOnce, types: tuple[type, ...]) -> None:
    @orders.handles(Place, key=lambda place: place.order)
    def place(state: Order, given: Place, context: Context) -> Order:
        context.send(to_orders, given)
        context.send(to_both, given)
        context.send(to_both, Pay(order="o"))
        context.send(to_any, Paid(order="o"))
        context.send("elsewhere", Paid(order="o"))
        context.announce(Paid(order="o"))
        return state

    @streams.applies(Paid)
    def paid(state: Order, event: Paid) -> Order:
        return state

    @streams.handles(Pay, key=lambda pay: pay.order)
    def pay(state: Order, given: Pay, context: Context) -> list[Paid]:
        return [Paid(order=given.order)]

    @streams.handles(Place, key=lambda place: place.order)
    def place_nothing(state: Order, given: Place, context: Context) -> tuple[Paid | Pay, ...]:
        return ()

    assert_type(run(place, Order(), Place(order="o")).state, Order)
    assert_type(run(pay, Order(), Pay(order="o")).state, list[Paid])
    assert_type(place(Order(), Place(order="o"), context_of()), Order)
    assert_type(to_orders, Destination[Place])
    assert_type(to_both, Destination[Place | Pay])
    assert_type(to_any, Destination[Any])
    assert_type(Destination("more", types), Destination[Any])
    app.send(to_orders, Place(order="o"))
    app.send(orders, Place(order="o"))
    await once.send(to_orders, Place(order="o"), message_id="m-1")


def context_of() -> Context:
    raise NotImplementedError


async def wrong(context: Context, app: App, once: ExactlyOnce) -> None:
    orders.handles(Place, key=lambda place: place.amount)  # type: ignore[arg-type, return-value]
    orders.handles(Place, key=lambda place: place.nothing)  # type: ignore[attr-defined]
    orders.handles(Place, key="order")  # type: ignore[call-overload]
    orders.handles(Place)  # type: ignore[call-overload]
    orders.handles(Unregistered, key=lambda given: given.order)  # type: ignore[misc]
    orders.applies(Unregistered)  # type: ignore[misc]
    Entity("order", state=Order, container="orders", strategy=Outbox)  # type: ignore[arg-type]

    @orders.handles(Place, key=lambda place: place.order)  # type: ignore[arg-type]
    def of_another_state(state: Other, given: Place, context: Context) -> Other:
        return state

    @orders.handles(Place, key=lambda place: place.order)  # type: ignore[arg-type]
    def of_another_message(state: Order, given: Pay, context: Context) -> Order:
        return state

    @orders.handles(Place, key=lambda place: place.order)  # type: ignore[arg-type]
    def returns_another_state(state: Order, given: Place, context: Context) -> Other:
        return Other()

    @orders.handles(Place, key=lambda place: place.order)  # type: ignore[arg-type]
    def returns_nothing(state: Order, given: Place, context: Context) -> None:
        state.placed += 1

    @orders.handles(Place, key=lambda place: place.order)  # type: ignore[arg-type]
    def returns_a_dict(state: Order, given: Place, context: Context) -> dict[str, int]:
        return {"placed": 1}

    @orders.handles(Place, key=lambda place: place.order)  # type: ignore[arg-type]
    async def waits(state: Order, given: Place, context: Context) -> Order:
        return state

    @orders.handles(Place, key=lambda place: place.order)  # type: ignore[arg-type]
    def of_two_parameters(state: Order, given: Place) -> Order:
        return state

    context.send(to_orders, Pay(order="o"))  # type: ignore[misc]
    context.send(to_both, Paid(order="o"))  # type: ignore[misc]
    context.send(orders, Place(order="o"))  # type: ignore[arg-type]
    context.send("elsewhere", "text")  # type: ignore[type-var]
    context.send("elsewhere", Unregistered(order="o"))  # type: ignore[misc]
    context.send("elsewhere", Place)  # type: ignore[type-var]
    context.announce("text")  # type: ignore[arg-type]
    context.announce(Unregistered(order="o"))  # type: ignore[misc]
    app.send(to_orders, Pay(order="o"))  # type: ignore[misc]
    await once.send(to_orders, Pay(order="o"), message_id="m-1")  # type: ignore[misc]
    Destination("q", receives=Place)  # type: ignore[call-overload]
    Destination("q", receives=(Place(order="o"),))  # type: ignore[arg-type]
    Destination("q", to=to_orders)  # type: ignore[call-overload]
    App(to_orders)  # type: ignore[arg-type]
    ExactlyOnce((orders,), destinations=(orders,), settings=once.configuration[0])  # type: ignore[arg-type]
