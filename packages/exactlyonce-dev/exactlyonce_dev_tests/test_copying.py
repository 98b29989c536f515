"""A story that was seen is a test: it passes with a strategy of the library, and fails with naive handlers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from types import ModuleType
from typing import Any

import pytest

from exactlyonce.errors import ConfigurationError
from exactlyonce_dev.flow import Flow
from exactlyonce_dev.literals import Names
from exactlyonce_dev.new import TEMPLATE
from exactlyonce_dev.witness import When
from exactlyonce_dev_tests import naive
from exactlyonce_dev_tests.recorded import Recorded, run

COMMIT = "Commit: save the entity if it is unchanged"
PUBLISH = "Publish the outputs"


def module(*, is_naive: bool = False) -> ModuleType:
    """The business code of a new app, under its own name; by its own strategy, or by the naive one."""
    made = ModuleType("orders")
    text = (TEMPLATE / "orders.py").read_text()
    if is_naive:
        made.__dict__["Outbox"] = naive.Naive
        text = text.replace("Outbox, ", "")
    sys.modules["orders"] = made
    exec(compile(text, "orders.py", "exec"), made.__dict__)  # noqa: S102  # The template's own code.
    return made


class Shop(Recorded):
    """A new app."""

    def __init__(self) -> None:
        self.orders: Any = module()
        named = (self.orders.to_orders, self.orders.to_stocks)
        super().__init__(Names.of([self.orders]), self.orders.orders, self.orders.stocks, destinations=named)

    def order(self, id: str = "l-1") -> None:
        line = self.orders.OrderLine(order="o-1", item="tea", quantity=2)
        self.app.send(self.orders.orders, line, message_id=id, source="http")
        self.app.advance(minutes=1)

    def text(self) -> str:
        """The story of the latest delivery, as a test."""
        written = self.written()
        assert written.problem == ""
        return written.text


def passes(text: str, *, hurts: bool) -> None:
    """A test passes with the strategy of the app, and fails with naive handlers if the story hurts these."""
    module()
    run(text)
    module(is_naive=True)
    with pytest.raises(AssertionError) if hurts else nullcontext():
        run(text)


@pytest.fixture
def shop() -> Iterator[Shop]:
    yield Shop()
    sys.modules.pop("orders", None)


def test_a_story_without_trouble_is_a_test_of_the_app(shop: Shop) -> None:
    shop.order()
    text = shop.text()
    assert (
        text
        == """\
from exactlyonce.testing import App
from orders import Order, OrderLine, Stock, orders, stocks, to_orders, to_stocks


def test_what_happened_to_order_o_1() -> None:
    app = App(orders, stocks, destinations=(to_orders, to_stocks))

    app.send(orders, OrderLine(order="o-1", item="tea", quantity=2), message_id="l-1", source="http")

    assert app.state(orders, "o-1") == Order(lines={"tea": 2})
    assert app.state(stocks, "tea") == Stock(reserved=2)
    assert app.parked() == ()
"""
    )
    passes(text, hurts=False)


@pytest.mark.parametrize("type", ["orders", "stocks"])
def test_a_lost_reply_is_copied_and_breaks_a_naive_handler(shop: Shop, type: str) -> None:
    shop.app.lose("reply", of=getattr(shop.orders, type))
    shop.story.expect("lost-applied")
    shop.order()
    text = shop.text()
    assert f'    # "{COMMIT}": it is applied, and its reply is lost.\n    app.lose("reply", of={type})' in text
    passes(text, hurts=True)


def test_a_lost_request_is_copied_and_hurts_nobody(shop: Shop) -> None:
    shop.app.lose("request", of=shop.orders.orders)
    shop.story.expect("lost-not-applied")
    shop.order()
    text = shop.text()
    assert 'app.lose("request", of=orders)' in text
    passes(text, hurts=False)


@pytest.mark.parametrize(
    ("when", "effect", "title"),
    [("after", "SaveEntity", COMMIT), ("before", "Publish", PUBLISH), ("after", "Publish", PUBLISH)],
)
def test_a_kill_is_copied_and_breaks_a_naive_handler(shop: Shop, when: When, effect: str, title: str) -> None:
    shop.kill(when, effect, title, "order")
    shop.order()
    text = shop.text()
    assert f'    # The process is killed {when} "{title}".\n    app.kill("{when}", "{effect}", of=orders)' in text
    passes(text, hurts=True)


def test_a_copy_of_a_message_and_of_an_output_are_copied(shop: Shop) -> None:
    shop.order()
    shop.order()
    shop.app.send_again("stocks")
    text = shop.text()
    assert text.count('message_id="l-1"') == 2
    assert 'app.send_again("stocks", 0)' in text
    passes(text, hurts=True)


def test_a_story_begins_with_the_states_that_it_found(shop: Shop) -> None:
    shop.order("l-1")
    shop.kill("after", "SaveEntity", COMMIT, "stock")
    shop.order("l-2")
    text = shop.text()
    assert "l-1" not in text
    assert text.index('app.given(stocks, "tea", Stock(reserved=2))') < text.index(
        'app.kill("after", "SaveEntity", of=stocks)'
    )
    passes(text, hurts=True)


def test_other_entities_are_not_in_a_story(shop: Shop) -> None:
    shop.app.send(shop.orders.orders, shop.orders.OrderLine(order="o-9", item="milk", quantity=1), message_id="x")
    shop.order()
    assert "milk" not in shop.text()


def test_a_delivery_that_is_forgotten_is_refused(shop: Shop) -> None:
    with pytest.raises(ConfigurationError, match="forgotten"):
        Flow.of(shop.story.whole()["rows"], "1.1", {})
