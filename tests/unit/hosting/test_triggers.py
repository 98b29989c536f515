"""Envelopes of trigger messages: Service Bus in every mode, alone and in batches."""

from __future__ import annotations

import json
from typing import Any

import azure.functions as func
import pytest
from azure.functions import meta
from azure.functions.servicebus import ServiceBusMessageInConverter

from exactlyonce.errors import MalformedMessage
from exactlyonce.hosting.deliveries.triggers import PlainJson, envelope_of, id_of
from exactlyonce.transports.service_bus.binding import Content, written
from exactlyonce.values.envelope import key_of
from tests.samples import Deposit, deposit
from tests.unit.bus import delivered
from tests.unit.script import AT

SECRET = "what-the-body-says"


@pytest.mark.parametrize(
    "content",
    [
        written(deposit("m-1").to_json()),
        Content(deposit("m-1").to_json().text.encode(), "application/cloudevents+json"),
        Content(deposit("m-1").to_json().text.encode()),
    ],
    ids=["binary", "structured", "not said"],
)
def test_a_message_of_service_bus_is_read_in_every_mode(content: Content) -> None:
    assert envelope_of(delivered(content)) == deposit("m-1")


def test_properties_are_found_under_their_former_name() -> None:
    content = written(deposit("m-1").to_json())
    older = delivered(content, application_properties=None, user_properties=dict(content.properties))
    assert envelope_of(older) == deposit("m-1")


def test_a_batch_is_read_as_the_hosts_own_decoder_makes_it() -> None:
    contents = [written(deposit(f"m-{number}").to_json()) for number in range(3)]
    arrays: dict[str, list[Any]] = {
        "ApplicationPropertiesArray": [dict(content.properties) for content in contents],
        "UserPropertiesArray": [dict(content.properties) for content in contents],
        "ContentTypeArray": [content.type for content in contents],
        "MessageIdArray": ["o-0", "o-1", "o-2"],
        "DeliveryCountArray": [1, 2, 3],
    }
    metadata = {name: meta.Datum(json.dumps(values), "json") for name, values in arrays.items()}
    data = meta.Datum(json.dumps([json.loads(content.body) for content in contents]), "json")
    messages = ServiceBusMessageInConverter.decode(data, trigger_metadata=metadata)
    assert isinstance(messages, list)
    assert [envelope_of(message) for message in messages] == [deposit(f"m-{number}") for number in range(3)]


def test_an_adapter_gets_the_delivered_body() -> None:
    adapter = PlainJson(Deposit, "shop", lambda body: str(body["order"]), lambda _: AT)
    foreign = delivered(Content(b'{"order": 7, "account": "a"}', "application/json", {"color": "red"}))
    assert key_of(envelope_of(foreign, adapter)) == "shop/7"


def test_a_body_that_is_not_an_envelope_is_refused_with_the_id_of_its_delivery() -> None:
    with pytest.raises(MalformedMessage, match=r"Queue message o-1/7/[0-9a-f]{16}: .*adapter") as caught:
        envelope_of(delivered(Content(SECRET.encode())))
    assert SECRET not in str(caught.value)


def test_deliveries_with_one_id_differ_by_number_and_body() -> None:
    some = [
        delivered(Content(b"a")),
        delivered(Content(b"b")),
        delivered(Content(b"a"), sequence_number=8),
        delivered(Content(b"a"), message_id=None),
    ]
    assert len({id_of(item) for item in some}) == 4
    assert id_of(some[0]) == id_of(delivered(Content(b"a"), delivery_count=3))
    assert id_of(func.QueueMessage(id="q-1", body=b"")) == "q-1"
