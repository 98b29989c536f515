"""An entity that calls a payment service, for tests, and a message in its trigger's form."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from azure.functions.queue import QueueMessage

from exactlyonce import Api, Context, Destination, Entity, Envelope, Outbox, Reply, message
from exactlyonce.effects.attempt import Strategy
from exactlyonce.records.ledger import ReplyTo
from exactlyonce.values.frozen_json import Json
from tests.samples import SENT

PAYMENTS = Api("payments", "https://pay.example/v1", key_lifetime=timedelta(hours=1))


@message("order.bill")
@dataclass
class Bill:
    order: str
    amount: int = 1
    path: str = "/charges"
    times: int = 1


@dataclass
class Charge:
    amount: int


@message("order.charged")
class Charged(Reply):
    """The tag is the order."""


@message("order.billed", event=True)
@dataclass
class Billed:
    order: str


@dataclass
class Order:
    bills: int = 0
    paid: int = 0
    unknown: int = 0


ORDERS = Destination("orders", receives=(Charged,))
RECEIPTS = Destination("receipts", receives=(Billed,))


def orders(strategy: Strategy | None = None, api: Api = PAYMENTS) -> Entity[Order]:
    """A fresh entity type with its handlers."""
    entity = Entity("order", state=Order, container="orders", strategy=strategy or Outbox())

    @entity.handles(Bill, key=lambda bill: bill.order)
    def bill(state: Order, given: Bill, context: Context) -> Order:
        for _ in range(given.times):
            context.call(api, "POST", given.path, Charge(given.amount), then=Charged, tag=given.order)
        return Order(state.bills + 1, state.paid, state.unknown)

    @entity.handles(Charged, key=lambda charged: charged.tag)
    def charged(state: Order, got: Charged, context: Context) -> Order:
        if got.outcome == "unknown":
            return Order(state.bills, state.paid, state.unknown + 1)
        context.announce(Billed(got.tag))
        return Order(state.bills, state.paid + 1, state.unknown)

    return entity


def bill(id: str, order: str = "a", **more: Any) -> Envelope:
    """A message that makes the order call."""
    return Envelope("web", id, "order.bill", Json.of({"order": order, **more}), SENT)


def charged(
    call: str, version: int, order: str = "a", source: str = "exactlyonce/api/payments", **more: Any
) -> Envelope:
    """The reply to a call of the order."""
    data = Json.of({"tag": order, "outcome": "answered", "status": 200, **more})
    return Envelope(
        source, call, "order.charged", data, SENT, extensions=ReplyTo(call, version, f"order/{order}").extensions
    )


def taken(envelope: Envelope | Json, times: int | None = None) -> QueueMessage:
    """A message as the trigger of a storage queue delivers it."""
    wire = envelope if isinstance(envelope, Json) else envelope.to_json()
    return QueueMessage(id="q-1", body=wire.text.encode(), dequeue_count=times)  # type: ignore[no-untyped-call]
