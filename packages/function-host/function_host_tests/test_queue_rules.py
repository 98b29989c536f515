"""What happens to a message depends on its body, its deliveries and its function."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function_host.queue_rules import QueueRules, Step, decode_body, poison_queue_name

RULES = QueueRules(max_dequeue_count=5, has_poison_queue=True)
WITHOUT_POISON = QueueRules(max_dequeue_count=5, has_poison_queue=False)


@pytest.mark.parametrize(("dequeue_count", "step"), [(1, Step.CALL), (5, Step.CALL), (6, Step.POISON)])
def test_a_message_delivered_too_often_is_poison_before_the_call(dequeue_count: int, step: Step) -> None:
    assert RULES.on_arrival(readable=True, dequeue_count=dequeue_count) is step


def test_an_unreadable_body_is_poison_at_once() -> None:
    assert RULES.on_arrival(readable=False, dequeue_count=1) is Step.POISON


@pytest.mark.parametrize(("dequeue_count", "step"), [(1, Step.RELEASE), (4, Step.RELEASE), (5, Step.POISON)])
def test_a_failed_message_comes_back_until_its_last_delivery(dequeue_count: int, step: Step) -> None:
    assert RULES.on_outcome(succeeded=False, dequeue_count=dequeue_count) is step


def test_without_a_poison_queue_failed_messages_are_left_invisible() -> None:
    assert WITHOUT_POISON.on_outcome(succeeded=False, dequeue_count=1) is Step.LEAVE
    assert WITHOUT_POISON.on_arrival(readable=True, dequeue_count=6) is Step.LEAVE


@given(st.integers(1, 100), st.booleans())
def test_success_always_deletes(dequeue_count: int, has_poison: bool) -> None:
    assert QueueRules(5, has_poison).on_outcome(succeeded=True, dequeue_count=dequeue_count) is Step.DELETE


def test_poison_queues_and_too_long_names_have_no_poison_queue() -> None:
    assert poison_queue_name("orders") == "orders-poison"
    assert poison_queue_name("orders-poison") is None
    assert poison_queue_name("q" * 56) == "q" * 56 + "-poison"
    assert poison_queue_name("q" * 57) is None


@given(st.binary())
def test_base64_bodies_come_out_as_they_went_in(body: bytes) -> None:
    assert decode_body(base64.b64encode(body).decode(), "base64") == body


@pytest.mark.parametrize("text", ["{}", "abc", "ü===", "YWJj=", "YWJj====", "plain text"])
def test_texts_that_are_not_base64_are_unreadable(text: str) -> None:
    assert decode_body(text, "base64") is None


def test_white_space_in_base64_is_skipped() -> None:
    assert decode_body("YW\r\n Jj\t", "base64") == b"abc"


def test_without_encoding_the_text_is_the_body() -> None:
    assert decode_body("ü {}", "none") == "ü {}".encode()
