"""Numbers of messages keep their digits at every door, and until the model says what they are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import azure.functions as func
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, JsonValue

from exactlyonce import Envelope, message
from exactlyonce.effects.library import WriteOnce
from exactlyonce.errors import InvalidMessage, MalformedMessage
from exactlyonce.handling.messages import decode
from exactlyonce.hosting.deliveries.claim_checks import ClaimChecks
from exactlyonce.hosting.deliveries.triggers import PlainJson, envelope_of
from exactlyonce.records.blobs import Blob
from exactlyonce.stores.blobs.port import AwaitedBlobs, MemoryBlobs
from exactlyonce.transports.service_bus.binding import Content, read, written
from exactlyonce.values.frozen_json import Json

AT = datetime(2026, 1, 1, tzinfo=timezone.utc)
HEAD = '"specversion":"1.0","id":"1","source":"s","type":"money.put","time":"2026-01-01T00:00:00Z"'
AMOUNTS = st.from_regex(r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?", fullmatch=True)


@message("money.put")
class Put(BaseModel):
    amount: Decimal


@message("money.measured")
class Measured(BaseModel):
    degrees: float
    number: int = 0
    at: datetime | None = None
    more: Any = None


@message("money.open")
class Open(BaseModel):
    value: JsonValue


PLAIN = PlainJson(Put, "s", id=lambda body: "1", time=lambda body: AT)


async def fetched(data: str) -> Envelope:
    blobs = MemoryBlobs()
    blobs.perform(WriteOnce((Blob("a", data.encode(), "application/json"),)))
    claims = ClaimChecks(AwaitedBlobs(blobs, "https://a.blob.core.windows.net/b"))
    return await claims.redeemed(
        Envelope("s", "1", "money.put", Json("null"), AT).by_reference("https://a.blob.core.windows.net/b/a")
    )


def on_bus(data: str) -> Envelope:
    names = ("specversion", "id", "source", "type", "time")
    values = ("1.0", "1", "s", "money.put", "2026-01-01T00:00:00Z")
    properties = {f"cloudEvents:{name}": value for name, value in zip(names, values, strict=True)}
    return Envelope.read(read(Content(data.encode(), "application/json", properties)))


DOORS: dict[str, Callable[[str], Envelope]] = {
    "an envelope": lambda data: Envelope.read(f'{{{HEAD},"data":{data}}}'),
    "a queue message": lambda data: envelope_of(func.QueueMessage(id="q", body=f'{{{HEAD},"data":{data}}}'.encode())),
    "a plain body": lambda data: envelope_of(func.QueueMessage(id="q", body=data.encode()), PLAIN),
    "Service Bus": on_bus,
    "a claim check": lambda data: asyncio.run(fetched(data)),
}
WAYS: dict[str, Callable[[Envelope], Envelope]] = {
    "as it is": lambda envelope: envelope,
    "once more": lambda envelope: Envelope.read(envelope.once_more().to_json().text),
    "over Service Bus": lambda envelope: Envelope.read(read(written(envelope.to_json()))),
    "frozen anew": lambda envelope: envelope.with_data(Json.of(envelope.data.value)),
}


def read_as(model: type, data: str) -> Any:
    return decode(model, DOORS["an envelope"](data).data, source="s", id="1")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("door", DOORS)
@given(digits=AMOUNTS)
@example(digits="600000000000000.2")  # One double with 600000000000000.3.
def test_an_amount_that_is_a_number_keeps_its_digits_at_every_door(door: str, way: str, digits: str) -> None:
    envelope = WAYS[way](DOORS[door](f'{{"amount":{digits}}}'))
    put = decode(Put, envelope.data, source="s", id="1")
    assert put.amount == Decimal(digits)
    assert Envelope.read(envelope.to_json().text) == envelope


@pytest.mark.parametrize(
    "bad", ["1e400", "NaN", '1,"amount":2', "9" * 5_000, "[" * 500, '"\\ud800"', "0." + "1" * 1_000]
)
@pytest.mark.parametrize("door", DOORS)
def test_json_that_parsers_read_differently_is_refused_at_every_door(door: str, bad: str) -> None:
    with pytest.raises(MalformedMessage) as caught:
        DOORS[door](f'{{"amount":{bad}}}')
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("door", DOORS)
def test_a_byte_order_mark_is_passed_over_at_every_door(door: str) -> None:
    if door not in ("an envelope", "a queue message"):
        assert DOORS[door]('\ufeff{"amount":1.5}').data == Json('{"amount":1.5}')
    assert Envelope.read(f"\ufeff{{{HEAD}}}").id == "1"


def test_the_declared_type_says_what_a_number_is() -> None:
    measured = read_as(Measured, '{"degrees":0.10000000000000001,"number":1e2,"at":1767225600.12345678901234}')
    assert (measured.degrees, type(measured.degrees), measured.number) == (0.1, float, 100)
    assert measured.at == AT.replace(microsecond=123457)
    assert read_as(Measured, '{"degrees":1,"number":1234567890123456789.0}').number == 1234567890123456789
    assert read_as(Measured, '{"degrees":1,"more":[0.10000000000000001]}').more == [Decimal("0.10000000000000001")]


def test_a_field_that_cannot_hold_the_digits_refuses_them_by_name() -> None:
    with pytest.raises(InvalidMessage, match=r"does not fit Open: value"):
        read_as(Open, '{"value":99999999999999.99}')
    with pytest.raises(InvalidMessage, match=r"does not fit Measured: number"):
        read_as(Measured, '{"degrees":1,"number":1.00000000000000000001}')
