"""Functions get their messages as Microsoft's worker makes them of what the host sends."""

import json
from datetime import datetime

import azure.functions as func
import pytest
from azure.functions.servicebus import ServiceBusMessage

from function_host.service_bus.values import value_of, values_of
from function_host_tests.broker import delivered


def test_a_message_comes_with_its_metadata() -> None:
    delivery = delivered(
        DeliveryCount=3,
        ContentType="application/json",
        SessionId="game-1",
        ApplicationProperties={"cloudEvents:id": "m-1", "n": 2},
        UserProperties={"cloudEvents:id": "m-1", "n": 2},
    )

    message = value_of(delivery, binary=False)

    assert isinstance(message, func.ServiceBusMessage)
    assert (message.message_id, message.get_body(), message.delivery_count) == ("id-hello", b"hello", 3)
    assert (message.content_type, message.session_id) == ("application/json", "game-1")
    assert message.application_properties == message.user_properties == {"cloudEvents:id": "m-1", "n": 2}
    assert message.enqueued_time_utc == datetime.fromisoformat("2026-01-01T12:00:00")
    assert message.sequence_number == 7
    assert message.dead_letter_reason is None


def test_a_dead_letter_has_its_reason_among_its_properties_only_as_the_host_has_it() -> None:
    properties = {"DeadLetterReason": "MaxDeliveryCountExceeded"}
    delivery = delivered(ApplicationProperties=properties, UserProperties=properties)

    message = value_of(delivery, binary=False)

    assert message.dead_letter_reason is None
    assert message.application_properties == properties


def test_a_batch_is_a_list_in_the_order_of_arrival() -> None:
    batch = [delivered("a", SequenceNumber=1), delivered("b", SequenceNumber=2, DeliveryCount=2)]

    messages = values_of(batch, binary=False)

    assert [(message.get_body(), message.message_id) for message in messages] == [(b"a", "id-a"), (b"b", "id-b")]
    assert [(message.sequence_number, message.delivery_count) for message in messages] == [(1, 1), (2, 2)]
    assert all(isinstance(message, ServiceBusMessage) for message in messages)


def test_in_a_batch_the_texts_of_messages_that_lack_one_are_made_up_by_those_that_follow() -> None:
    batch = [delivered("a"), delivered("b", ContentType="text/plain")]

    assert [message.content_type for message in values_of(batch, binary=False)] == ["text/plain", None]


def test_a_message_without_a_body_makes_its_batch_undecodable_and_is_an_empty_one_by_itself() -> None:
    empty = delivered("")

    assert value_of(empty, binary=False).get_body() == b""
    with pytest.raises(IndexError):
        values_of([delivered("a"), empty], binary=False)


def test_bodies_are_texts_unless_the_binding_says_that_they_are_bytes() -> None:
    odd = delivered()
    object.__setattr__(odd, "body", b"\xff")

    assert value_of(odd, binary=True).get_body() == b"\xff"
    assert values_of([odd], binary=True)[0].get_body() == b"\xff"
    with pytest.raises(UnicodeDecodeError):
        value_of(odd, binary=False)
    with pytest.raises(UnicodeDecodeError):
        values_of([odd], binary=False)


def test_a_json_body_stays_the_text_that_it_is() -> None:
    body = json.dumps({"position": 4})

    assert value_of(delivered(body), binary=False).get_body() == body.encode()
