"""Which queues have a poison queue, and which texts are bodies."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function_host.queue_rules import decode_body, poison_queue_name


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
