"""The few things that proton is told in a way of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from proton import UNDESCRIBED, Array, Condition, Delivery, Link, Terminus, symbol

from local_service_bus.broker.refusals import RefusedError


def condition_of(refusal: RefusedError) -> Condition:
    """The error of a link or outcome. It always has an info map: the client of Python reads it unasked."""
    return Condition(refusal.condition, refusal.text, {symbol("source"): "the local endpoint"})


def close_with(link: Link, refusal: RefusedError) -> None:
    """Open a link without its end here, only to close it with an error: so AMQP refuses links."""
    terminus = link.source if link.is_sender else link.target
    terminus.type = Terminus.UNSPECIFIED
    link.open()
    link.condition = condition_of(refusal)
    link.close()


def transfer(link: Any, tag: bytes, payload: bytes) -> Delivery:
    """Send a message by a link; proton takes bytes for a tag, though its types do not say so."""
    delivery: Delivery = link.delivery(tag)
    link.send(payload)
    link.advance()
    return delivery


def array(kind: int, values: Iterable[Any]) -> Array:
    """An array of AMQP; `kind` is one of `Data`'s."""
    undescribed: Any = UNDESCRIBED
    return Array(undescribed, kind, *values)
